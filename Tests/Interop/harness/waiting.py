"""Bounded waiting: the only way in which a test may wait for something."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

Value = TypeVar("Value")


def wait_until(
    look: Callable[[], Value],
    what: str,
    seconds: float,
    describe: Callable[[], object] | None = None,
    interval: float = 0.1,
) -> Value:
    """Calls `look` until it gives something true, and returns that.

    Fails the test after `seconds` with a sentence that says what was awaited and what was there instead.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() >= deadline:
            seen = describe() if describe else value
            raise AssertionError(f"{what} did not happen within {seconds} s; last seen: {seen!r}")
        time.sleep(interval)
