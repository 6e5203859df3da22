"""`nagare impair` between viewers and a node, and what a viewer sees over time."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable

from .clocks import ClockMissed
from .machine import WaitMeter
from .node import BINARY, ENVIRONMENT, LOOPBACK, Node, free_tcp_port
from .transport import Miss
from .waiting import wait_until

LINE = re.compile(r"down +([\d.]+) Mbit/s, +(\d+) dropped, queue +(\d+) ms .* up +([\d.]+) Mbit/s, +(\d+) dropped")


class Link:
    """A running link. Viewers that open `origin` use it."""

    def __init__(self, node: Node, *options: str, down: str = "", up: str = "") -> None:
        port = free_tcp_port()
        self.origin = f"http://{LOOPBACK}:{port}"
        self.signaling = f"ws://{LOOPBACK}:{port}/signaling"
        # A blank page without a content security policy.
        self.admin = node.admin
        command = [str(BINARY), "impair", "--to", node.origin, "--listen", f"{LOOPBACK}:{port}", *options]
        for name, link in (("--down", down), ("--up", up)):
            command += [name, link] if link else []
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT
        )
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: any("Watch through" in line for line in self.lines), "the link's start", 10, self.output)

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def output(self) -> str:
        return "\n".join(self.lines[-15:])

    def change(self, direction: str, conditions: str) -> None:
        """Changes the link from now on."""
        confirmed = len(self.lines)
        self.process.stdin.write(f"{direction} {conditions}\n")
        self.process.stdin.flush()
        wait_until(
            lambda: any(line.startswith(f"{direction}  ") for line in self.lines[confirmed:]), "the change", 5, self.output
        )

    def seconds(self) -> list[dict[str, float]]:
        """What passed in each second so far: Mbit/s and drops in both directions, and the queue in ms."""
        names = ("down", "down_dropped", "queue", "up", "up_dropped")
        return [
            dict(zip(names, map(float, found.groups()))) for found in map(LINE.search, list(self.lines)) if found
        ]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            assert self.process.wait(10) == 0, self.output()


class Timeline:
    """A viewer's numbers, twice a second."""

    def __init__(self, samples: list[dict[str, Any]], waits: list[float]) -> None:
        self.samples = samples
        # Seconds that a program of the test waited for a processor before each sample.
        self.waits = waits

    @staticmethod
    def watch(look: Callable[[], dict[str, Any]], seconds: float) -> "Timeline":
        return Timeline.watch_all([look], seconds)[0]

    @staticmethod
    def watch_all(looks: list[Callable[[], dict[str, Any]]], seconds: float) -> list["Timeline"]:
        """Watches several viewers at once."""
        meter, end = WaitMeter(), time.monotonic() + seconds
        samples: list[list[dict[str, Any]]] = [[look()] for look in looks]
        waits = [0.0]
        while time.monotonic() < end:
            time.sleep(min(0.5, max(0.05, end - time.monotonic())))
            for look, own in zip(looks, samples):
                own.append(look())
            waits.append(meter.lap().waited)
        return [Timeline(own, waits) for own in samples]

    def last(self, seconds: float) -> "Timeline":
        """The end of the timeline."""
        start = self.samples[-1]["at"] - seconds * 1000
        kept = [one for one in self.samples if one["at"] >= start]
        return Timeline(kept, self.waits[-len(kept) :])

    @property
    def waited(self) -> float:
        """Seconds in which programs of the test waited for a processor."""
        return sum(self.waits)

    def grown(self, key: str) -> float:
        return (self.samples[-1].get(key) or 0) - (self.samples[0].get(key) or 0)

    @property
    def seconds(self) -> float:
        return (self.samples[-1]["at"] - self.samples[0]["at"]) / 1000

    @property
    def frames_per_second(self) -> float:
        return self.grown("frames") / self.seconds

    @property
    def kilobits_per_second(self) -> float:
        return self.grown("bytes") * 8 / self.seconds / 1000

    @property
    def concealed_share(self) -> float:
        """The share of the sound that the viewer made up."""
        return self.grown("concealedSamples") / max(self.grown("audioSamples"), 1)

    @property
    def longest_pause(self) -> float:
        """The longest time without another frame, in seconds, to within half a second."""
        longest, since = 0.0, self.samples[0]
        for one in self.samples[1:]:
            if (one.get("frames") or 0) > (since.get("frames") or 0):
                since = one
            longest = max(longest, (one["at"] - since["at"]) / 1000)
        return longest

    @property
    def widths(self) -> list[int]:
        """The widths of the picture, without repetitions."""
        widths: list[int] = []
        for one in self.samples:
            if one.get("width") and (not widths or widths[-1] != one["width"]):
                widths.append(one["width"])
        return widths

    def __repr__(self) -> str:
        rows = [
            f"{(one['at'] - self.samples[0]['at']) / 1000:5.1f} s  {one.get('width')} wide  {one.get('frames')} frames  "
            f"{one.get('freezes')} freezes of {one.get('freezeSeconds') or 0:.1f} s  {one.get('bytes', 0) // 1000} kB"
            for one in self.samples
        ]
        return f"{self.waited:.1f} s waiting for a processor\n" + "\n".join(rows)


def assert_plays(
    seen: Timeline, frames_per_second: float = 20, frozen_seconds: float = 0.5, concealed: float = 0.05
) -> None:
    """Asserts that the picture moves, nearly without freezes, and that the sound is the publisher's.

    Waits for a processor meanwhile prove a missed bound to be the machine's; without them, the whole row tells.
    """
    share = min(1.0, seen.waited / seen.seconds)
    missed: list[Miss] = []
    if seen.frames_per_second < frames_per_second:
        starved = seen.frames_per_second >= frames_per_second * (1 - share)
        missed.append(Miss(f"{seen.frames_per_second:.1f} frames a second", starved))
    frozen = seen.grown("freezeSeconds")
    if frozen > frozen_seconds:
        missed.append(Miss(f"the picture was frozen for {frozen:.1f} s", frozen <= frozen_seconds + seen.waited))
    if seen.concealed_share > concealed:
        starved = seen.concealed_share <= concealed + share
        missed.append(Miss(f"{seen.concealed_share:.2f} of the sound was concealed", starved))
    if missed:
        raise ClockMissed(f"{'; '.join(map(str, missed))}\n{seen}", all(one.is_starved for one in missed) or None)
