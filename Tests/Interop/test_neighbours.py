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
from harness.load import SENDS_ALL, assert_lossless, is_starved
from harness.neighbours import VIEWERS, attack_during_a_call
from harness.node import Node

JOIN_SECONDS_MAX = 1.0
# Attackers have their own addresses: some bind one of the loopback range, others use X-Forwarded-For.
OPTIONS = ("--trusted-proxy", "127.0.0.0/8", *SENDS_ALL)


def all_attacks() -> dict[str, dict[str, Attack]]:
    """The attacks of each module."""
    names = [module.name for module in pkgutil.iter_modules(attacks.__path__)]
    return {name: importlib.import_module(f"attacks.{name}").ATTACKS for name in names}


ATTACKS = all_attacks()


@pytest.mark.parametrize("module", ATTACKS)
def test_a_call_and_newcomers_are_not_affected_by_attacks_of(module: str, own_node: Callable[..., Node]) -> None:
    node = own_node(*OPTIONS)
    outcome = attack_during_a_call(node, ATTACKS[module])
    attacked, newcomers, report = outcome.attacks, outcome.newcomers, outcome.report
    assert list(attacked.delivered) == list(ATTACKS[module])
    nothing = [name for name, count in attacked.delivered.items() if not count]
    assert not nothing, f"attacks that delivered nothing: {nothing}; all: {attacked.delivered}"
    assert report["subscribersConnected"] == VIEWERS
    failures = [f"{attacked.at(began)}: {what}" for began, what in newcomers.failures]
    assert not failures, f"{len(newcomers.joins)} newcomers joined, and some failed: {failures[:5]}"
    # Every attack had newcomers.
    joined = {attacked.at(one.began) for one in newcomers.joins}
    assert joined >= set(ATTACKS[module]), f"no newcomers during {set(ATTACKS[module]) - joined}"
    try:
        assert_lossless(report)
    except AssertionError:
        print("\n".join(outcome.progress))
        raise
    slow = sorted(newcomers.joins, key=lambda one: one.seconds)[-5:]
    seen = [f"{attacked.at(one.began)}: {one.seconds:.2f} s" for one in slow]
    assert_clock(slow[-1].seconds < JOIN_SECONDS_MAX, f"slow joins: {seen}", is_starved(report) or None)
