"""Honest clients during an attack: a call with 20 viewers, and clients that join one after the other."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Callable

import httpx

from .load import load_command
from .node import ENVIRONMENT, Node
from .offers import SDP, offer
from .waiting import wait_until

VIEWERS = 20
# Media is measured before, during and after the attack.
MEASURED_SECONDS = 5
ATTACK_SECONDS_MAX = 30
# A real attacker has a machine of its own. Here it has a lower priority than the node and the honest clients, so that the
# kernel's scheduling does not affect the result.
ATTACKER_NICENESS = 15


@dataclass
class Newcomers:
    """Clients that join and leave over WHIP, ten a second, until `stop`."""

    node: Node
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with httpx.Client(base_url=self.node.origin, timeout=20) as client:
            number = 0
            while not self._stop.wait(0.1):
                number += 1
                began = time.monotonic()
                try:
                    answer = client.post(f"/whip/newcomer-{number % 5}", headers=SDP, content=offer("sendonly"))
                except httpx.TransportError as error:
                    self.failures.append(repr(error))
                    continue
                self.seconds.append(time.monotonic() - began)
                if answer.status_code != 201:
                    self.failures.append(f"{answer.status_code} {answer.text}")
                    continue
                try:
                    client.delete(answer.headers["Location"])
                except httpx.TransportError as error:
                    self.failures.append(repr(error))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "a newcomer was never answered"


def _attack(act: Callable[[Node], None], node: Node) -> None:
    os.nice(ATTACKER_NICENESS)
    act(node)


def attack_during_a_call(node: Node, act: Callable[[Node], None]) -> tuple[dict, Newcomers]:
    """Runs an attack in a process of its own during a call. Returns the report of the call, and the newcomers."""
    options = ("--subscribers", str(VIEWERS), "--video-kbps", "1000", "--audio", "--duration", str(MEASURED_SECONDS))
    command = load_command(node, *options, "--join-rate", "50", channel="neighbour")
    load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
    newcomers = None
    attacker = multiprocessing.get_context("fork").Process(target=_attack, args=(act, node))
    try:
        wait_until(lambda: node.total("nagare_slots{") >= 2 * VIEWERS, "the call", 20, describe=node.log_tail)
        # A fork while another thread has a lock of OpenSSL would leave it locked in the child.
        attacker.start()
        newcomers = Newcomers(node)
        wait_until(lambda: attacker.exitcode is not None, "the end of the attack", ATTACK_SECONDS_MAX)
        assert attacker.exitcode == 0, f"the attack itself failed with {attacker.exitcode}: see its output above"
        output, errors = load.communicate(timeout=MEASURED_SECONDS + 30)
    finally:
        if newcomers:
            newcomers.stop()
        if attacker.is_alive():
            attacker.kill()
        if load.poll() is None:
            load.kill()
            load.communicate()
    assert load.returncode == 0, errors[-2000:] + output[-2000:]
    return json.loads(output), newcomers
