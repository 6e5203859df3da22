"""Bounded waiting: every wait of a test has a time limit."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

from .clocks import ClockMissed
from .machine import PatientClock

Value = TypeVar("Value")


def wait_until(
    look: Callable[[], Value],
    what: str,
    seconds: float,
    describe: Callable[[], object] | None = None,
    interval: float = 0.1,
) -> Value:
    """Calls `look` until it returns something true, and returns that.

    Misses the test's clock after `seconds` (`harness.clocks`), with a message about the expected and the last seen value. On a
    machine without a free processor the limit is up to four times as long (`PatientClock`).
    """
    clock = PatientClock()
    while True:
        value = look()
        if value:
            return value
        if clock.now() >= seconds:
            seen = describe() if describe else value
            raise ClockMissed(f"{what} did not happen within {seconds} s; last seen: {seen!r}")
        time.sleep(interval)
