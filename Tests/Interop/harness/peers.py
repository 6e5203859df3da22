"""Peers other than browsers, each in a process of its own, which isolates their threads and faults from the test."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from .waiting import wait_until

HERE = Path(__file__).resolve().parent.parent

# GStreamer's Python bindings come with the system's own Python.
PEERS = {
    "aiortc": [sys.executable, "-m", "harness.peer_aiortc"],
    "data": [sys.executable, "-m", "harness.peer_data"],
    "gstreamer": ["/usr/bin/python3", "-m", "harness.peer_gstreamer"],
    # Built by ops/test.
    "pion": [str(HERE / "../../.build-peers/pion-peer")],
}


class Program:
    """A running peer. It writes reports as lines of JSON, and ends when its input is closed."""

    def __init__(self, kind: str, command: list[str]) -> None:
        self.kind = kind
        self.started = time.time()
        self.reports: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            command,
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.output: list[str] = []
        self.threads = [threading.Thread(target=one, daemon=True) for one in (self._read, self._read_errors)]
        for thread in self.threads:
            thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            try:
                self.reports.append(json.loads(line))
            except ValueError:
                self.output.append(line)

    def _read_errors(self) -> None:
        for line in self.process.stderr:
            self.output.append(line)

    def last(self, event: str) -> dict[str, Any] | None:
        """The latest report of an event."""
        return next((one for one in reversed(self.reports) if one["event"] == event), None)

    def wait(self, event: str, seconds: float, **at_least: float) -> dict[str, Any]:
        """Waits for a report with at least the given numbers."""

        def look() -> dict[str, Any] | None:
            if self.process.poll() is not None and not self.last(event):
                raise AssertionError(f"{self.kind} ended with {self.process.returncode}: {''.join(self.output[-15:])}")
            found = self.last(event)
            return found if found and all(found.get(key, 0) >= value for key, value in at_least.items()) else None

        what = f"{self.kind}: {event} with {at_least}"
        return wait_until(look, what, seconds, describe=lambda: (self.reports[-1:], "".join(self.output[-10:])))

    def ask(self, event: str, seconds: float = 10) -> dict[str, Any]:
        """Sends an empty line and waits for the report with the answer."""
        before = sum(one["event"] == event for one in self.reports)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        wait_until(
            lambda: sum(one["event"] == event for one in self.reports) > before,
            f"{self.kind}: {event}",
            seconds,
            describe=lambda: "".join(self.output[-10:]),
        )
        return self.last(event)

    def end(self) -> dict[str, Any]:
        """Ends the session and returns the final report. Over WHIP and WHEP its `status` is that of the DELETE."""
        self.process.stdin.close()
        wait_until(
            lambda: self.process.poll() is not None, f"the end of {self.kind}", 15,
            describe=lambda: "".join(self.output[-10:]),
        )  # fmt: skip
        for thread in self.threads:
            thread.join(5)
        final = self.last("ended")
        assert final is not None, f"{self.kind} ended with {self.process.returncode}: {''.join(self.output[-15:])}"
        return final

    def kill(self) -> None:
        """Kills the program, so that it does not end its session."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)


class Peer(Program):
    """A publisher or viewer over WHIP and WHEP."""

    def __init__(self, kind: str, role: str, endpoint: str, codec: str = "VP8", *options: str) -> None:
        super().__init__(kind, [*PEERS[kind], role, endpoint, "--codec", codec, *options])
