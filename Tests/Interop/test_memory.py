"""The memory that clients take at a node. Beside other tests they take a fifth more, because what they send waits for longer."""

from __future__ import annotations

import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import httpx

from attacks.signaling import unread_calls
from harness.certificate import make_certificate
from harness.clocks import assert_clock
from harness.load import is_starved, run_load
from harness.neighbours import ATTACK_RUNS_MAX
from harness.node import Node
from harness.waiting import wait_until

IDLE_SUBSCRIBER_BYTES_MAX = 64_000


@dataclass
class Attacked:
    """A node after an attack, and its memory in KiB: what was resident before, and at most, and what was allocated before."""

    node: Node
    before: int
    peak: int
    allocated: int


def attack_unread(node: Node, tls: ssl.SSLContext | None = None) -> Attacked:
    """Attacks a node by clients that read nothing."""
    # The first clients make resident what the node keeps for good.
    assert unread_calls(node, calls=2, seconds=1, tls=tls)
    resident = node.resident_kibibytes()
    seen = Attacked(node, resident, resident, node.allocated_kibibytes())
    delivered: list[int] = []

    def slow_readers() -> float:
        return node.total("nagare_signaling_refused_total", "reason=slow_reader")

    def act() -> None:
        # An attacker that gets no processor takes longer until enough waits for it.
        for _ in range(ATTACK_RUNS_MAX):
            delivered.append(unread_calls(node, seconds=6, tls=tls))
            if slow_readers():
                break

    attack = threading.Thread(target=act)
    attack.start()
    while attack.is_alive():
        seen.peak = max(seen.peak, node.resident_kibibytes())
        time.sleep(0.05)
    assert delivered and delivered[0], "an attack without a message"
    assert_clock(slow_readers(), f"no client was closed; messages of the attacks: {delivered}")
    return seen


def test_clients_that_read_nothing_take_bounded_memory_and_give_it_back(
    own_node: Callable[..., Node], tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    tls = ssl.create_default_context(cafile=certificate.authority)
    options = ("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key))
    # Memory comes back after half a minute without use, which both wait for together.
    attacked = [attack_unread(own_node()), attack_unread(own_node(*options), tls)]
    # What waits is bounded to 48 MiB for all. TLS adds about 0.2 MiB for each of the sixty connections.
    for one, bound in zip(attacked, (60, 80)):
        assert one.peak - one.before <= bound * 1024, f"{one.peak - one.before} KiB for clients that read nothing"
    for one in attacked:
        wait_until(
            lambda: one.node.resident_kibibytes() - one.before <= 16 * 1024,
            "the return of the memory",
            60,
            describe=lambda: f"at most {one.peak} KiB, now {one.node.resident_kibibytes()}: {one}",
        )
        one.node.await_allocated(one.allocated, 1024)
        assert httpx.get(f"{one.node.admin}/livez").status_code == 200


def test_an_idle_subscriber_takes_little_memory(own_node: Callable[..., Node]) -> None:
    node = own_node("--loops", "1")
    # Code and tables that the first subscriber makes resident are not memory of a subscriber.
    run_load(node, "--publishers", "0", "--subscribers", "1", "--duration", "1")
    report = run_load(
        node,
        *("--publishers", "0", "--subscribers", "400", "--duration", "2", "--join-rate", "50"),
        *("--server-pid", str(node.process.pid)),
    )
    assert report["subscribersConnected"] == 400
    each = report["window"]["server"]["residentBytesPerSubscriber"]
    # The more handshakes a machine delays, the more memory they take at a time. The generator knows of its own waits only.
    starved = is_starved(report) or None
    assert_clock(0 < each <= IDLE_SUBSCRIBER_BYTES_MAX, f"{each} bytes a subscriber", starved)
