"""Attacks do not affect other clients: each attack runs during a call with 20 viewers, while other clients join. Unit tests
of the limits check how the node handles the attack itself."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Callable

import pytest

import attacks
from harness.load import SENDS_ALL
from harness.neighbours import VIEWERS, attack_during_a_call
from harness.node import Node

JOIN_SECONDS_MAX = 1.0
# Attackers have their own addresses: some bind one of the loopback range, others use X-Forwarded-For.
OPTIONS = ("--trusted-proxy", "127.0.0.0/8", *SENDS_ALL)


def all_attacks() -> dict[str, Callable[[Node], None]]:
    found: dict[str, Callable[[Node], None]] = {}
    for module in pkgutil.iter_modules(attacks.__path__):
        for name, act in importlib.import_module(f"attacks.{module.name}").ATTACKS.items():
            found[f"{module.name}: {name}"] = act
    return found


ATTACKS = all_attacks()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_call_and_newcomers_are_not_affected_by(name: str, own_node: Callable[..., Node]) -> None:
    node = own_node(*OPTIONS)
    report, newcomers = attack_during_a_call(node, ATTACKS[name])
    assert report["subscribersConnected"] == VIEWERS
    assert not report["disconnections"], report["disconnections"]
    for kind in ("video", "audio"):
        media = report["window"][kind]
        assert media["packetsReceived"] > 0 and media["packetsLost"] == 0, f"{kind}: {media}"
    assert not newcomers.failures, f"{len(newcomers.seconds)} newcomers joined, and some failed: {newcomers.failures[:5]}"
    assert len(newcomers.seconds) >= 5, newcomers.seconds
    # They join one after the other: a pause of the machine delays one of them, an attack many.
    second, slowest = sorted(newcomers.seconds)[-2:]
    assert second < JOIN_SECONDS_MAX and slowest < 4 * JOIN_SECONDS_MAX, f"slow joins: {sorted(newcomers.seconds)[-5:]}"
