"""Measures how long the programs of a test waited for a processor.

A bound on the timing of a program (a browser that renders, a peer that encodes) holds only for a program that gets a
processor. The kernel counts for each thread the nanoseconds in which it was runnable and did not run (the second field of
`/proc/PID/task/TID/schedstat`), and for the machine the time in which any thread waited (`/proc/pressure/cpu`). Without
these files both are 0, and every bound is as strict as on an idle machine.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
PRESSURE = PROC / "pressure/cpu"


def descendants(root: int) -> set[int]:
    """A process and all processes below it."""
    parents: dict[int, int] = {}
    for entry in os.listdir(PROC):
        if not entry.isdigit():
            continue
        try:
            # The name of the program is in parentheses and may contain any character.
            parents[int(entry)] = int((PROC / entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # The process has ended.
    found = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def waited(processes: set[int]) -> dict[tuple[int, int], float]:
    """Seconds that each thread has waited for a processor since its start, by process and thread."""
    seconds: dict[tuple[int, int], float] = {}
    for process in processes:
        tasks = PROC / str(process) / "task"
        try:
            threads = os.listdir(tasks)
        except OSError:
            continue
        for thread in threads:
            try:
                seconds[process, int(thread)] = int((tasks / thread / "schedstat").read_text().split()[1]) / 1e9
            except (OSError, IndexError, ValueError):
                continue
    return seconds


def stolen_seconds() -> float:
    """Seconds since the start of the machine in which its host ran others on its processors, of all of them together."""
    try:
        return int((PROC / "stat").read_text().splitlines()[0].split()[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def pressure_seconds() -> float:
    """Seconds since the start of the machine in which at least one thread waited for a processor, or its host had taken one."""
    try:
        waiting = int(PRESSURE.read_text().splitlines()[0].rpartition("total=")[2]) / 1e6
    except (OSError, IndexError, ValueError):
        waiting = 0.0
    return waiting + stolen_seconds()


@dataclass
class Wait:
    """How long the thread that waited longest for a processor waited in an interval, in seconds.

    What the host of the machine took counts as a wait: no thread is told of it.
    """

    seconds: float
    waited: float


@dataclass
class WaitMeter:
    """Measures the waits of the test's own programs, from one call of `lap` to the next."""

    root: int = field(default_factory=os.getpid)

    def __post_init__(self) -> None:
        self.at, self.stolen = time.monotonic(), stolen_seconds()
        self.before = waited(descendants(self.root))

    def lap(self) -> Wait:
        """The waits since the previous call, or since the start."""
        now, after = time.monotonic(), waited(descendants(self.root))
        # A thread that is new has waited since its own start, which may be longer than the interval.
        grown = [min(now - self.at, seconds - self.before.get(thread, 0.0)) for thread, seconds in after.items()]
        stolen = stolen_seconds()
        lap = Wait(now - self.at, min(now - self.at, max(grown, default=0.0) + stolen - self.stolen))
        self.at, self.before, self.stolen = now, after, stolen
        return lap


# A time limit on a machine without a free processor is at most this many times the limit on an idle one.
STRETCH_MAX = 4.0


class PatientClock:
    """A clock for time limits that runs slower while threads of this machine wait for a processor.

    It runs at full speed on an idle machine, and `STRETCH_MAX` times slower on one where a thread always waits.
    """

    def __init__(self) -> None:
        self.at, self.pressure = time.monotonic(), pressure_seconds()
        self.seconds = 0.0

    def now(self) -> float:
        """Seconds since the start of the clock."""
        now, pressure = time.monotonic(), pressure_seconds()
        elapsed = now - self.at
        if elapsed > 0:
            share = min(1.0, max(0.0, (pressure - self.pressure) / elapsed))
            self.seconds += elapsed / (1 + (STRETCH_MAX - 1) * share)
        self.at, self.pressure = now, pressure
        return self.seconds
