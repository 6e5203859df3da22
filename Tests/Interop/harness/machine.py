"""Measures how long the programs of a test waited for a processor.

A bound on the timing of a program (a browser that renders, a peer that encodes) holds only for a program that gets a
processor. The kernel counts for each thread the nanoseconds in which it was runnable and did not run (the second field of
`/proc/PID/task/TID/schedstat`), and for the machine the time in which any thread waited (`/proc/pressure/cpu`). Without
these files both are 0, and every bound is as strict as on an idle machine.
"""

from __future__ import annotations

import os
import threading
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


def waited_by(process: int, name: str) -> float:
    """Seconds that the threads of a process whose names begin with `name` have waited for a processor since their start."""
    seconds = 0.0
    for (_, thread), one in waited({process}).items():
        try:
            found = (PROC / str(process) / "task" / str(thread) / "comm").read_text()
        except OSError:
            continue  # The thread has ended.
        seconds += one if found.startswith(name) else 0.0
    return seconds


def socket_drops(processes: set[int]) -> dict[int, int]:
    """Datagrams that the kernel has dropped at full receive buffers, by the inode of each UDP socket of the processes."""
    tables: dict[str, dict[int, int]] = {}
    found: dict[int, int] = {}
    for process in processes:
        folder = PROC / str(process)
        try:
            # Each network namespace has a table of its own.
            namespace = os.readlink(folder / "ns/net")
            if namespace not in tables:
                lines = [line.split() for name in ("udp", "udp6") for line in (folder / "net" / name).read_text().splitlines()]
                tables[namespace] = {int(words[9]): int(words[-1]) for words in lines if words[0] != "sl"}
            opened = {_inode(folder / "fd" / name) for name in os.listdir(folder / "fd")}
        except OSError:
            continue  # The process has ended.
        found |= {inode: drops for inode, drops in tables[namespace].items() if inode in opened}
    return found


def _inode(descriptor: Path) -> int | None:
    """The inode of a socket, None of anything else."""
    try:
        target = os.readlink(descriptor)
    except OSError:
        return None  # It was closed.
    return int(target[len("socket:[") : -1]) if target.startswith("socket:[") else None


@dataclass
class DropMeter:
    """Counts what the kernel drops at the sockets of the test's own programs from now on, while the sockets are open."""

    root: int = field(default_factory=os.getpid)

    def __post_init__(self) -> None:
        self.before = socket_drops(descendants(self.root))

    @property
    def earlier(self) -> int:
        """The datagrams that were dropped before, at sockets that were open already."""
        return sum(self.before.values())

    def read(self) -> int:
        """The datagrams that were dropped until now."""
        after = socket_drops(descendants(self.root))
        return sum(drops - self.before.get(inode, 0) for inode, drops in after.items())


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


# Limits of a machine on which a missed clock is a fault of the product. They are above what the rows cause by themselves on
# two idle cores: an encoder of three layers waited for 0.32 of the time there, and for 0.86 s of its worst second.
STEAL_SHARE_MAX = 0.05
WAITED_SHARE_MAX = 0.4
WORST_WAIT_SECONDS_MAX = 0.95


@dataclass(frozen=True)
class Starvation:
    """How short of processors the machine was while a row ran.

    `steal` is the share of the processors' time that the host of the machine gave to others, `pressure` the share of the time
    in which some thread waited for a processor. `waited` is the share of the time that the thread of the test that waited
    longest spent waiting, and `worst` the most seconds that a thread of the test waited within one second.
    """

    seconds: float = 0.0
    steal: float = 0.0
    pressure: float = 0.0
    waited: float = 0.0
    worst: float = 0.0

    @property
    def is_within_limits(self) -> bool:
        """Whether a clock that was missed meanwhile is a fault of the product."""
        return (
            self.steal <= STEAL_SHARE_MAX
            and self.waited <= WAITED_SHARE_MAX
            and self.worst <= WORST_WAIT_SECONDS_MAX
        )

    def __str__(self) -> str:
        return (
            f"{self.seconds:.1f} s, steal {self.steal:.1%}, pressure {self.pressure:.0%}, "
            f"waited {self.waited:.0%}, worst second {self.worst:.2f} s"
        )


class StarvationMeter:
    """Measures the starvation of the machine and of the test's programs, from its start to `read`."""

    INTERVAL_SECONDS = 1.0

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.stolen, self.pressure = stolen_seconds(), pressure_seconds()
        self.laps: list[Wait] = []
        self.meter = WaitMeter()
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.ended.wait(self.INTERVAL_SECONDS):
            self._lap()

    def _lap(self) -> None:
        with self.lock:
            self.laps.append(self.meter.lap())

    def read(self) -> Starvation:
        """The starvation until now."""
        self._lap()
        seconds = max(1e-9, time.monotonic() - self.began)
        stolen = stolen_seconds() - self.stolen
        return Starvation(
            seconds=seconds,
            steal=stolen / seconds / (os.cpu_count() or 1),
            pressure=min(1.0, (pressure_seconds() - self.pressure - stolen) / seconds),
            waited=min(1.0, sum(one.waited for one in self.laps) / seconds),
            # The first and last laps may be shorter than a second: what was waited in them is less, too.
            worst=max(one.waited / max(1.0, one.seconds) for one in self.laps),
        )

    def end(self) -> Starvation:
        """The starvation of the whole interval; the measurement ends."""
        self.ended.set()
        self.thread.join()
        return self.read()


# Before an inconclusive row runs again, no more than this share of two seconds may pass with threads that wait.
QUIET_PRESSURE_MAX = 0.2


def await_quiet(seconds: float) -> bool:
    """Waits until the machine is quiet, for at most so many seconds. Whether it is."""
    end = time.monotonic() + seconds
    while True:
        before, stolen = pressure_seconds(), stolen_seconds()
        time.sleep(2)
        # `pressure_seconds` has what the host took, too.
        if (pressure_seconds() - before) / 2 <= QUIET_PRESSURE_MAX and stolen_seconds() - stolen <= STEAL_SHARE_MAX * 2:
            return True
        if time.monotonic() >= end:
            return False


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
