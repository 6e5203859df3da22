"""The memory that clients take at a node. Beside other tests they take a fifth more, because what they send waits for longer."""

from __future__ import annotations

import ssl
import threading
import time
from pathlib import Path
from typing import Callable

import httpx
import pytest

from attacks.signaling import unread_calls
from harness.certificate import make_certificate
from harness.clocks import assert_clock
from harness.load import is_starved, run_load
from harness.neighbours import ATTACK_RUNS_MAX
from harness.node import Node
from harness.waiting import wait_until

IDLE_SUBSCRIBER_BYTES_MAX = 64_000


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "TLS"])
def test_clients_that_read_nothing_take_bounded_memory_and_give_it_back(
    own_node: Callable[..., Node], tmp_path: Path, is_encrypted: bool
) -> None:
    options: tuple[str, ...] = ()
    tls = None
    if is_encrypted:
        certificate = make_certificate(tmp_path)
        options = ("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key))
        tls = ssl.create_default_context(cafile=certificate.authority)
    node = own_node(*options)
    # The first clients make resident what the node keeps for good.
    assert unread_calls(node, calls=2, seconds=1, tls=tls)
    before = peak = node.resident_kibibytes()
    allocated = node.allocated_kibibytes()
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
        peak = max(peak, node.resident_kibibytes())
        time.sleep(0.05)
    assert delivered and delivered[0], "an attack without a message"
    assert_clock(slow_readers(), f"no client was closed; messages of the attacks: {delivered}")
    # What waits is bounded to 48 MiB for all. TLS adds about 0.2 MiB for each of the sixty connections.
    bound = 80 if is_encrypted else 60
    assert peak - before <= bound * 1024, f"{peak - before} KiB for clients that read nothing"
    wait_until(
        lambda: node.resident_kibibytes() - before <= 16 * 1024,
        "the return of the memory",
        60,
        describe=lambda: f"{before} KiB before, at most {peak}, and now {node.resident_kibibytes()}",
    )
    node.await_allocated(allocated, 1024)
    assert httpx.get(f"{node.admin}/livez").status_code == 200


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
