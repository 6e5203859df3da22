"""A stream over two nodes, and what its viewer lost."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from pathlib import Path
from typing import IO, Any

from .clocks import assert_clock
from .load import assert_none_lost, is_starved, load_command, report_of
from .node import ENVIRONMENT, Node
from .waiting import wait_until


class Stream:
    """A publisher and a viewer of the load generator at two nodes, whose report tells what the viewer lost."""

    def __init__(self, publisher: Node, viewer: Node, channel: str, seconds: int = 110) -> None:
        self.publisher = self.run(publisher, channel, "--subscribers", "0", "--audio", "--duration", str(seconds + 8))
        wait_until(lambda: publisher.publishing(channel), "the publisher", 15)
        self.progress = tempfile.NamedTemporaryFile("w")
        options = ("--publishers", "0", "--subscribers", "1", "--audio", "--duration", str(seconds))
        self.viewer = self.run(viewer, channel, *options, errors=self.progress)
        wait_until(lambda: len(viewer.channel(channel).get("participants", [])) >= 1, "the viewer's channel", 15)

    @staticmethod
    def run(
        node: Node, channel: str, *options: str, errors: int | IO[Any] = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            load_command(node, *options, channel=channel),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=ENVIRONMENT,
        )

    def report(self) -> dict:
        """What the viewer received, after its time."""
        out, _ = self.viewer.communicate(timeout=120)
        return report_of(self.viewer.returncode, out, self.shown())

    def shown(self) -> str:
        """The progress that the viewer has written."""
        return Path(self.progress.name).read_text()

    def finish(self) -> dict:
        """What the viewer received until now. A run that ends before it is connected measures nothing."""
        wait_until(
            lambda: "1/1 connected" in self.shown() or self.viewer.poll() is not None, "the viewer", 15,
            describe=self.shown,
        )  # fmt: skip
        self.viewer.send_signal(signal.SIGTERM)
        return self.report()

    def end(self) -> None:
        for one in (self.publisher, self.viewer):
            if one.poll() is None:
                one.send_signal(signal.SIGTERM)
            one.communicate(timeout=30)


# No fault of the network or of the store may stop a call for as long as it takes to notice the fault, which is 3 s.
GAP_MILLISECONDS_MAX = 2_900


def assert_undisturbed(report: dict, starved: bool = False) -> None:
    """Asserts that nothing was lost, and that the pictures never stopped for long. `starved` is evidence of the test itself."""
    window = report["window"]
    assert_none_lost(report, "packetsLost", starved=starved)
    gap = window["video"]["longestGapMilliseconds"]
    assert_clock(gap < GAP_MILLISECONDS_MAX, f"a gap of {gap} ms: {window}", starved or is_starved(report) or None)
