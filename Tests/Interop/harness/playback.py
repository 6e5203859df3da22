"""Checks separately what the node sent and how the browser played it.

The facts are at the transport: what a viewer that decodes nothing received (`harness.transport`), and the packets that the
browser lost. Everything else is judged by a clock, with the same bounds on every machine: a missed bound that the waits for a
processor in the interval explain is inconclusive (`harness.clocks`).
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Callable

from .clocks import ClockMissed
from .machine import DropMeter, Wait, WaitMeter
from .transport import SKEW_SECONDS_MAX, Arrivals, Miss, TransportViewer

Look = Callable[[], dict[str, Any]]

FRAMES_PER_SECOND_MIN = 20.0
# The publisher's and the receivers' numbers are not read at the same instant.
FRAMES_ARRIVED_SHARE_MIN = 0.9
SOUND_SHARE_MIN = 0.9
CONCEALED_SHARE_MAX = 0.05
# A frame counts as a freeze when it comes 150 ms later than usual (W3C webrtc-stats, freezeCount). A second in which every
# thread waited less than this for a processor excuses no freeze.
FREEZE_SECONDS = 0.15


@dataclass
class Playback:
    """The changes of a viewer's statistics in an interval."""

    seconds: float
    frames: int
    frames_received: int | None
    freezes: int
    # Freezes in seconds in which no program waited for a processor long enough to cause one.
    unexcused_freezes: int
    lost: int
    energy: float
    samples: int
    concealed: int
    skew: float | None
    last: dict[str, Any] = field(repr=False)
    # One for each second.
    waits: list[Wait]
    # Those that the viewer can notice in the interval: of the interval, and earlier ones whose gap it had not reached.
    kernel_drops: int
    arrivals: Arrivals | None = field(default=None, repr=False)
    # Frames that the publisher sent in a second.
    sent_per_second: float | None = None

    @property
    def frames_per_second(self) -> float:
        return self.frames / self.seconds

    @property
    def worst_wait(self) -> float:
        """The most seconds that a thread waited for a processor in one second."""
        return max((one.waited for one in self.waits), default=0.0)

    @property
    def backlog(self) -> float:
        """The most seconds of media that may still be on the way at the end, because programs waited for a processor.

        What waits in queues grows while a program waits for most of each second, and goes in the first second in which it
        does not.
        """
        kept = takewhile(lambda one: one.waited >= one.seconds / 2, reversed(self.waits))
        return max(self.worst_wait, sum(one.waited for one in kept))

    @property
    def waited_share(self) -> float:
        """The share of the time that was spent waiting for a processor, at most 1."""
        return min(1.0, sum(one.waited for one in self.waits) / max(1e-9, sum(one.seconds for one in self.waits)))


def observe(
    look: Look,
    seconds: float,
    transport: TransportViewer | None = None,
    sent: Look | None = None,
    during: Callable[[], None] | None = None,
) -> Playback:
    """Samples a viewer's statistics with `look` at the start, once a second, and at the end.

    `transport` watches the same publisher, and `sent` returns the publisher's statistics. `during` runs in a thread of its
    own, and the interval ends `seconds` after it.
    """
    first, sent_first = look(), sent() if sent else None
    if transport:
        transport.take(0)
    meter, drops, began = WaitMeter(), DropMeter(), time.monotonic()
    skews: list[float] = []
    waits: list[Wait] = []
    unexcused = 0
    last = first
    pool = ThreadPoolExecutor(1)
    running = pool.submit(during) if during else None
    end = began + seconds
    while (running and not running.done()) or time.monotonic() < end:
        if running and not running.done():
            end = time.monotonic() + seconds
        time.sleep(min(1.0, max(0.05, end - time.monotonic())))
        before, last = last, look()
        waits.append(meter.lap())
        if last.get("skew") is not None:
            skews.append(last["skew"] / 1000)
        # A freeze counts when it ends, which may be in the second after the wait.
        if max(one.waited for one in waits[-2:]) < FREEZE_SECONDS:
            unexcused += grown(before, last, "freezes")
    sent_last = sent() if sent else None
    if running:
        running.result()
    pool.shutdown()
    return Playback(
        seconds=(last["at"] - first["at"]) / 1000,
        frames=grown(first, last, "frames"),
        frames_received=grown(first, last, "framesReceived") if last.get("framesReceived") is not None else None,
        freezes=grown(first, last, "freezes"),
        unexcused_freezes=unexcused,
        lost=grown(first, last, "packetsLost"),
        energy=grown(first, last, "audioEnergy"),
        samples=grown(first, last, "audioSamples"),
        concealed=grown(first, last, "concealedSamples"),
        skew=statistics.median(skews) if skews else None,
        last=last,
        waits=waits,
        kernel_drops=drops.read() + max(0, drops.earlier - (first.get("packetsLost") or 0)),
        arrivals=transport.take(time.monotonic() - began) if transport else None,
        sent_per_second=(
            grown(sent_first, sent_last, "frames") / ((sent_last["at"] - sent_first["at"]) / 1000)
            if sent_first and sent_last
            else None
        ),
    )


def grown(first: dict[str, Any], last: dict[str, Any], key: str) -> Any:
    """The growth of a number. A missing number is 0."""
    return (last.get(key) or 0) - (first.get(key) or 0)


def facts_broken(playback: Playback, has_capture_clock: bool = True) -> list[str]:
    """Faults of the node that no machine excuses."""
    found: list[str] = []
    if playback.lost > playback.kernel_drops:
        found.append(f"the browser lost {playback.lost} packets, {playback.kernel_drops} dropped by the kernel")
    if playback.arrivals:
        found += playback.arrivals.faults(playback.kernel_drops, has_capture_clock)
    if playback.energy <= 0:
        found.append("no sound")
    return found


def is_incomplete(playback: Playback) -> bool:
    """Whether a packet was lost on the way to the browser or to the transport's viewer, at first at least."""
    streams = playback.arrivals.streams if playback.arrivals else []
    return playback.lost > 0 or any(one.lost or one.reordered for one in streams)


def clocks_missed(
    playback: Playback, in_sync: bool = True, freezes_allowed: int = 0, has_capture_clock: bool = True
) -> list[Miss]:
    """What came too late or too seldom, and whether waits for a processor in the interval explain it."""
    share, found = playback.waited_share, []
    if playback.kernel_drops and is_incomplete(playback):
        found.append(Miss(f"packets were lost; the kernel dropped {playback.kernel_drops} at full sockets", True))
    arrived: dict[str, float] = {}
    if playback.arrivals:
        found += playback.arrivals.misses(playback.worst_wait)
        found += [] if has_capture_clock else playback.arrivals.skew_misses(playback.worst_wait)
        arrived["the transport"] = playback.arrivals.frames_per_second
    if playback.frames_received is not None:
        arrived["the browser"] = playback.frames_received / playback.seconds
    counted = FRAMES_ARRIVED_SHARE_MIN * (1 - min(1.0, playback.backlog / playback.seconds))
    for where, rate in arrived.items():
        if playback.sent_per_second is not None and rate < FRAMES_ARRIVED_SHARE_MIN * playback.sent_per_second:
            starved = rate >= counted * playback.sent_per_second
            found.append(Miss(f"{rate:.1f} frames a second at {where}, {playback.sent_per_second:.1f} sent", starved))
    rate = playback.frames_per_second
    if rate < FRAMES_PER_SECOND_MIN:
        found.append(Miss(f"{rate:.1f} frames a second", rate >= FRAMES_PER_SECOND_MIN * (1 - share)))
    if playback.freezes > freezes_allowed:
        starved = playback.unexcused_freezes <= freezes_allowed
        found.append(Miss(f"{playback.freezes} freezes, {playback.unexcused_freezes} without a wait", starved))
    expected = playback.seconds * 48000 * SOUND_SHARE_MIN
    if playback.samples < expected:
        found.append(Miss("sound is missing", playback.samples >= expected * (1 - share)))
    if playback.concealed > playback.samples * CONCEALED_SHARE_MAX:
        starved = playback.concealed <= playback.samples * (CONCEALED_SHARE_MAX + share)
        found.append(Miss("sound was concealed", starved))
    if in_sync and playback.skew is not None and abs(playback.skew) > SKEW_SECONDS_MAX:
        # A starved browser plays sound late by what it concealed.
        concealed = playback.concealed / 48000 if share >= CONCEALED_SHARE_MAX else 0.0
        starved = abs(playback.skew) <= SKEW_SECONDS_MAX + playback.worst_wait + concealed
        # A browser brings them together by some milliseconds a second, so the cause may be a wait before the interval.
        found.append(Miss(f"picture and sound are played {playback.skew * 1000:+.0f} ms apart", starved or None))
    return found


def is_starved(missed: list[Miss]) -> bool | None:
    """Whether waits for a processor explain all of them; None when only the whole row can tell."""
    seen = {one.is_starved for one in missed}
    return False if False in seen else None if None in seen else True


def assert_smooth(
    playback: Playback, in_sync: bool = True, freezes_allowed: int = 0, has_capture_clock: bool = True
) -> None:
    """Asserts that the node sent everything in order and in sync, and that the browser played it.

    `in_sync` is false for a publisher whose sender reports do not have the time of capture. `freezes_allowed` is for what the
    browser itself does meanwhile; the rate of the frames bounds their length. Without `has_capture_clock`, the publisher's
    reports have the time of encoding, and an encoder that had no processor makes them wrong.
    """
    faults = facts_broken(playback, has_capture_clock)
    assert not faults, f"{'; '.join(faults)}: {playback}"
    missed = clocks_missed(playback, in_sync, freezes_allowed, has_capture_clock)
    if missed:
        raise ClockMissed(f"{'; '.join(map(str, missed))}: {playback}", is_starved(missed))
