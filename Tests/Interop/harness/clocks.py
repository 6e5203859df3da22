"""Assertions that a clock judges.

A row of the tests asserts facts (packets lost at the transport, a state, an order) with `assert`. What depends on how fast
programs run (frames a second, a freeze, "within 2 s") goes through this module. `harness.verdicts` calls a row whose clock
was missed failed where the machine was quiet, and inconclusive where it was starved of processors.
"""

from __future__ import annotations


class ClockMissed(AssertionError):
    """A clock was missed.

    `is_starved` is what the assertion itself knows: True when waits for a processor in the judged interval explain the miss,
    False when they do not, None when only the whole row can tell.
    """

    def __init__(self, message: str, is_starved: bool | None = None) -> None:
        super().__init__(message)
        self.is_starved = is_starved


def assert_clock(holds: object, message: object, is_starved: bool | None = None) -> None:
    """Asserts what a clock judges. `message` says what was seen."""
    if not holds:
        raise ClockMissed(str(message), is_starved)
