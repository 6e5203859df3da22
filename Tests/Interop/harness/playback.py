"""Judging what a viewer sees and hears, by the viewer's own numbers."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any, Callable

FRAMES_PER_SECOND_MIN = 20.0
# Beyond this a person notices that lips and voice part (ITU-R BT.1359 puts it at +45 to -125 ms).
SKEW_MILLISECONDS_MAX = 125.0


@dataclass
class Playback:
    """What happened between two looks at a viewer."""

    seconds: float
    frames: int
    freezes: int
    lost: int
    energy: float
    samples: int
    concealed: int
    skew: float | None
    last: dict[str, Any]

    @property
    def frames_per_second(self) -> float:
        return self.frames / self.seconds


def observe(look: Callable[[], dict[str, Any]], seconds: float) -> Playback:
    """Looks at one tile's numbers at the beginning, once a second, and at the end."""
    began, first = time.monotonic(), look()
    skews: list[float] = []
    last = first
    while time.monotonic() < began + seconds:
        time.sleep(min(1.0, max(0.05, began + seconds - time.monotonic())))
        last = look()
        if last.get("skew") is not None:
            skews.append(last["skew"])

    def grown(key: str) -> Any:
        return (last.get(key) or 0) - (first.get(key) or 0)

    return Playback(
        seconds=(last["at"] - first["at"]) / 1000,
        frames=grown("frames"),
        freezes=grown("freezes"),
        lost=grown("packetsLost"),
        energy=grown("audioEnergy"),
        samples=grown("audioSamples"),
        concealed=grown("concealedSamples"),
        skew=statistics.median(skews) if skews else None,
        last=last,
    )


def assert_smooth(playback: Playback, in_sync: bool = True) -> None:
    """Frames keep coming, nothing froze, there is sound, and the two belong together.

    `in_sync` is false for a publisher whose own sender reports do not say when its media was captured.
    """
    assert playback.frames_per_second >= FRAMES_PER_SECOND_MIN, f"too few frames: {playback}"
    assert playback.freezes == 0, f"the picture froze: {playback}"
    assert playback.energy > 0, f"no sound: {playback}"
    assert playback.samples >= playback.seconds * 48000 * 0.9, f"sound is missing: {playback}"
    assert playback.concealed <= playback.samples * 0.05, f"sound was made up for lost packets: {playback}"
    if in_sync and playback.skew is not None:
        assert abs(playback.skew) <= SKEW_MILLISECONDS_MAX, f"picture and sound are apart: {playback}"
