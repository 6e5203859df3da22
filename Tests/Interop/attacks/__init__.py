"""Attacks by hostile clients.

Each module has a dictionary `ATTACKS` of functions that run for a few seconds and return how many datagrams, messages or
requests they delivered. An attack that delivered nothing proves nothing, and fails its row.

A module may have besides:
- `LEAST`, with how much an attack delivers at least on an idle machine: a third of what it usually does there. An attack that
  has not delivered it runs again, a few times.
- `OPTIONS` of its node.
- `COUNTED`, with the names of metrics that are greater than 0 at a node that has met its attacks, each with a part of its labels
  where only some samples count.
"""

import threading
from typing import Callable

from harness.node import Node

# Three whole seconds of the call lie in an attack, so that one pause of the machine does not decide.
SECONDS = 4.0
# An address that no other client uses, because limits are per address.
ATTACKER = "127.0.0.66"

Attack = Callable[[Node], int]


class Deliveries:
    """A count that threads raise together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self) -> None:
        with self._lock:
            self.count += 1
