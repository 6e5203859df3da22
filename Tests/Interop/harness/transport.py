"""Checks what the node sent, at the transport of a receiver that decodes nothing.

Loss, duplication, order and the clock of the sender reports do not depend on how fast a program runs: they are facts. Only
stalls are judged by a clock: a stall that is no longer than a wait for a processor is inconclusive (`harness.clocks`).
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, field

from .peers import Program
from .waiting import wait_until

CLOCK_RATES = {"video": 90_000, "audio": 48_000}
# A program in Python on a busy machine may need a few retransmissions of the handshake.
CONNECT_SECONDS_MAX = 30
# A publisher is live when its media arrives at this speed, within 10 %.
LIVE_SPEED, LIVE_TOLERANCE = 1.0, 0.1
# Beyond this a viewer notices that audio and video are out of sync (ITU-R BT.1359: +45 to -125 ms).
SKEW_SECONDS_MAX = 0.125
# A frame that comes 150 ms later than usual is a freeze (W3C webrtc-stats, freezeCount).
STALL_SECONDS_MAX = 0.15


def distance(older: int, newer: int, bits: int) -> int:
    """The shortest signed distance between two numbers that wrap around (RFC 1982)."""
    half = 1 << (bits - 1)
    return (newer - older + half) % (2 * half) - half


def unwrapped(numbers: list[int], bits: int) -> list[int]:
    """The numbers without wrap-around. The first is unchanged."""
    result: list[int] = []
    for number in numbers:
        result.append(result[-1] + distance(result[-1], number, bits) if result else number)
    return result


@dataclass(frozen=True)
class Packet:
    """An RTP packet; `arrival` is in seconds of the receiver's clock."""

    kind: str
    ssrc: int
    sequence: int
    timestamp: int
    arrival: float


@dataclass(frozen=True)
class SenderReport:
    """The NTP and RTP times in a sender report (RFC 3550 §6.4.1). `ntp` is in seconds."""

    ssrc: int
    ntp: float
    timestamp: int


@dataclass
class Stream:
    """The packets and sender reports of one SSRC."""

    packets: list[Packet]
    reports: list[SenderReport]
    sequences: list[int] = field(init=False)
    times: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.kind = self.packets[0].kind
        self.sequences = unwrapped([one.sequence for one in self.packets], 16)
        self.times = [at / CLOCK_RATES[self.kind] for at in unwrapped([one.timestamp for one in self.packets], 32)]

    @property
    def lost(self) -> int:
        return max(self.sequences) - min(self.sequences) + 1 - len(set(self.sequences))

    @property
    def repeated(self) -> int:
        return len(self.sequences) - len(set(self.sequences))

    @property
    def reordered(self) -> int:
        return sum(after < before for before, after in zip(self.sequences, self.sequences[1:]))

    @property
    def frames(self) -> int:
        """Video frames, or audio packets."""
        return len(set(self.times))

    @property
    def longest_stall(self) -> float:
        """The most seconds that a packet came later than its timestamp, relative to the previous packet."""
        gaps = zip(self.packets, self.packets[1:], self.times, self.times[1:])
        return max((b.arrival - a.arrival - (later - earlier) for a, b, earlier, later in gaps), default=0.0)

    @property
    def speed(self) -> float:
        """Seconds of media per second of arrivals. It is above 1 while a publisher catches up with its clock."""
        elapsed = self.packets[-1].arrival - self.packets[0].arrival
        return (self.times[-1] - self.times[0]) / elapsed if elapsed > 0 else 0.0

    @property
    def transit(self) -> float | None:
        """The shortest time from a packet's capture, by the sender reports' clock, to its arrival.

        The clocks of sender and receiver differ by a constant that is the same for all streams of a sender. The shortest
        time is that of a packet that waited nowhere, so it does not depend on the load of the machine.
        """
        if not self.reports:
            return None
        rate, first = CLOCK_RATES[self.kind], self.packets[0].timestamp
        # When the first packet was captured: the median, because a sender measures each report anew.
        began = statistics.median(one.ntp - distance(first, one.timestamp, 32) / rate for one in self.reports)
        start = self.times[0]
        return min(one.arrival - began - (at - start) for one, at in zip(self.packets, self.times))


@dataclass(frozen=True)
class Miss:
    """A clock that was missed. `is_starved` says whether waits for a processor meanwhile explain it; None when earlier ones may,
    too."""

    what: str
    is_starved: bool | None

    def __str__(self) -> str:
        return f"{self.what} (starved)" if self.is_starved else self.what


@dataclass
class Arrivals:
    """The streams that arrived in an interval of `seconds`."""

    seconds: float
    streams: list[Stream]

    @staticmethod
    def of(seconds: float, packets: list[Packet], reports: list[SenderReport]) -> "Arrivals":
        ssrcs = dict.fromkeys(one.ssrc for one in packets)
        return Arrivals(
            seconds,
            [Stream([p for p in packets if p.ssrc == ssrc], [r for r in reports if r.ssrc == ssrc]) for ssrc in ssrcs],
        )

    def of_kind(self, kind: str) -> list[Stream]:
        return [one for one in self.streams if one.kind == kind]

    @property
    def frames_per_second(self) -> float:
        return sum(one.frames for one in self.of_kind("video")) / self.seconds

    @property
    def skew(self) -> float | None:
        """The delay of video against audio captured at the same time, in seconds."""
        transits = {one.kind: one.transit for one in self.streams}
        if transits.get("video") is None or transits.get("audio") is None:
            return None
        return transits["video"] - transits["audio"]

    def faults(self, kernel_drops: int = 0, has_capture_clock: bool = True) -> list[str]:
        """Faults of the node.

        `kernel_drops` is the number of datagrams that the kernel dropped at full sockets. A retransmitted packet arrives out
        of order. Without `has_capture_clock`, the publisher's sender reports have the time of encoding (`skew_misses`).
        """
        found: list[str] = []
        for kind in CLOCK_RATES:
            streams = self.of_kind(kind)
            if len(streams) != 1:
                found.append(f"{len(streams)} streams of {kind} instead of one")
            for one in streams:
                for what in ("lost", "repeated", "reordered"):
                    count = getattr(one, what)
                    if count > (0 if what == "repeated" else kernel_drops):
                        found.append(f"{count} packets of {kind} {what}, {kernel_drops} dropped by the kernel")
        if self.skew is None:
            found.append("no sender reports for picture and sound")
        elif has_capture_clock and self.is_skewed:
            found.append(self.skew_description)
        return found

    @property
    def is_skewed(self) -> bool:
        return self.skew is not None and abs(self.skew) > SKEW_SECONDS_MAX

    @property
    def skew_description(self) -> str:
        return f"the sender reports put the picture {self.skew * 1000:+.0f} ms after the sound"

    def skew_misses(self, worst_wait: float = 0.0) -> list[Miss]:
        """A skew that an encoder may have caused which had no processor for longer than the bound."""
        return [Miss(self.skew_description, worst_wait > SKEW_SECONDS_MAX)] if self.is_skewed else []

    def misses(self, worst_wait: float = 0.0) -> list[Miss]:
        """Stalls. `worst_wait` is the longest wait of a program for a processor, in seconds."""
        return [
            Miss(
                f"{one.kind} stalled for {one.longest_stall:.3f} s; programs waited for {worst_wait:.3f} s",
                one.longest_stall <= STALL_SECONDS_MAX + worst_wait,
            )
            for one in self.streams
            if one.longest_stall > STALL_SECONDS_MAX
        ]


class TransportViewer(Program):
    """A WHEP viewer that records the packets (`harness.peer_transport`)."""

    def __init__(self, endpoint: str, *options: str) -> None:
        command = [sys.executable, "-m", "harness.peer_transport", "watch", endpoint, *options]
        super().__init__("the viewer at the transport", command)
        # The latest packet of each medium, and the latest report of each SSRC, for an interval without one.
        self.latest_packets: dict[str, Packet] = {}
        self.latest_reports: dict[int, SenderReport] = {}
        self.wait("connected", CONNECT_SECONDS_MAX)

    def take(self, seconds: float) -> Arrivals:
        """The arrivals since the previous call, which was `seconds` ago."""
        answer = self.ask("records")
        packets = [Packet(*one) for one in answer["packets"]]
        reports = [SenderReport(*one) for one in answer["reports"]]
        reported = {one.ssrc for one in reports}
        earlier = [one for ssrc, one in self.latest_reports.items() if ssrc not in reported]
        self.latest_packets.update({one.kind: one for one in packets})
        self.latest_reports.update({one.ssrc: one for one in reports})
        return Arrivals.of(seconds, packets, reports + earlier)

    def receives_both(self) -> bool:
        """Whether packets and sender reports of picture and sound have arrived by now."""
        self.take(0)
        ssrcs = [one.ssrc for one in self.latest_packets.values()]
        return len(ssrcs) == len(CLOCK_RATES) and all(ssrc in self.latest_reports for ssrc in ssrcs)


    def wait_until_live(self, seconds: float = 20) -> None:
        """Waits until the publisher's media arrives in real time.

        A starved encoder falls behind its clock and then catches up. Until then its sender reports are wrong.
        """
        self.take(0)

        def look() -> bool:
            arrivals = self.take(1)
            return {one.kind for one in arrivals.streams} == set(CLOCK_RATES) and all(
                abs(one.speed - LIVE_SPEED) <= LIVE_TOLERANCE for one in arrivals.streams
            )

        wait_until(look, "media in real time", seconds, interval=1.0)
