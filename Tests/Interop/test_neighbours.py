"""Attacks do not affect other clients: the attacks of each module run during a call with 20 viewers, while other clients join.
Unit tests of the limits check how the node handles the attacks themselves."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Callable

import pytest

import attacks
from attacks import Attack
from harness.clocks import assert_clock
from harness.load import SENDS_ALL
from harness.neighbours import assert_attacked, assert_unaffected, attack_during_a_call
from harness.node import Node

# Attackers have their own addresses: some bind one of the loopback range, others use X-Forwarded-For.
# All media have one loop, so that what an attack takes of it is taken of the call.
# The history of connections would keep up to 32 MiB of those that attackers make.
OPTIONS = ("--loops", "1", "--trusted-proxy", "127.0.0.0/8", "--history-hours", "0", *SENDS_ALL)


MODULES = {
    module.name: importlib.import_module(f"attacks.{module.name}") for module in pkgutil.iter_modules(attacks.__path__)
}
ATTACKS: dict[str, dict[str, Attack]] = {name: module.ATTACKS for name, module in MODULES.items()}


@pytest.mark.parametrize("module", ATTACKS)
def test_a_call_and_newcomers_are_not_affected_by_attacks_of(module: str, own_node: Callable[..., Node]) -> None:
    node = own_node(*OPTIONS, *getattr(MODULES[module], "OPTIONS", ()))
    least = getattr(MODULES[module], "LEAST", {})
    outcome = attack_during_a_call(node, ATTACKS[module], least)
    assert_unaffected(outcome, ATTACKS[module])
    assert_attacked(outcome, least)
    for counter in getattr(MODULES[module], "COUNTED", ()):
        # An attacker that gets no processor does not reach the limits.
        assert_clock(node.total(*counter.split()) > 0, f"the node has not counted {counter}")
