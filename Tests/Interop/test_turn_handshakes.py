"""Connections over TLS do not affect a call, whoever opens them, at the port of TURN or at that of HTTPS: their handshakes are
rated, and the media threads have no part in them."""

from __future__ import annotations

import collections
import itertools
import socket
import ssl
import struct
import time
from pathlib import Path
from typing import Callable

from attacks import ATTACKER, SECONDS, Attack, Deliveries
from attacks.signaling import in_parallel
from harness.certificate import make_certificate
from harness.load import SENDS_ALL
from harness.neighbours import assert_attacked, assert_unaffected, attack_during_a_call
from harness.node import LOOPBACK, Node, free_tcp_port

# The default of turn-tls-handshakes-per-second.
HANDSHAKES_PER_SECOND = 500
# The requests of one address, and its handshakes at the HTTPS port. Newcomers make 20 requests a second.
REQUEST_LIMITS = ("--limit", "address-request-burst=200", "--limit", "address-requests-per-second=50")
# Connections that an attacker keeps open, so that the node reads what was sent on them.
OPEN_CONNECTIONS = 400
# A third of what each attack delivers on an idle machine. The HTTPS port admits its handshakes one after the other.
LEAST = {
    "handshakes begun at the HTTPS port": 450,
    "handshakes begun from one address": 27_000,
    "handshakes begun from many addresses": 9_000,
    "whole handshakes": 60,
}
# A local port is chosen at the connection, not before it (ip(7)): more of them are available then.
IP_BIND_ADDRESS_NO_PORT = 24


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def client_hello() -> bytes:
    """The first message of a handshake."""
    sent = ssl.MemoryBIO()
    try:
        trusting().wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()
    raise AssertionError("a handshake without a server")


def flood(port: int, addresses: list[str]) -> int:
    """Begins handshakes from the addresses in turn, as fast as it can, and reads nothing."""
    hello, end = client_hello(), time.monotonic() + SECONDS
    held: collections.deque[socket.socket] = collections.deque()
    delivered = 0
    for address in itertools.cycle(addresses):
        if time.monotonic() >= end:
            break
        one = socket.socket()
        # A reset at the end, so that no local port waits afterwards.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        one.settimeout(1)
        held.append(one)
        try:
            one.bind((address, 0))
            one.connect((LOOPBACK, port))
            one.sendall(hello)
            delivered += 1
        except OSError:
            # The node refused it, or the listen queue is full.
            pass
        if len(held) > OPEN_CONNECTIONS:
            held.popleft().close()
    for one in held:
        one.close()
    return delivered


def whole_handshakes(port: int) -> int:
    """Completes handshakes, and sends nothing then."""
    context = trusting()

    def act(end: float, delivered: Deliveries) -> None:
        with socket.create_connection((LOOPBACK, port), 2, (ATTACKER, 0)) as tcp, context.wrap_socket(tcp):
            delivered.add()

    return in_parallel(4, act)


def test_an_address_begins_as_many_handshakes_at_the_https_port_as_it_may_make_requests(
    own_node: Callable[..., Node], tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    node = own_node(
        *("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key)),
        *("--limit", "address-request-burst=20", "--limit", "address-requests-per-second=1"),
    )
    port = int(node.origin.rpartition(":")[2])

    def has_handshake(address: str) -> bool:
        try:
            with socket.create_connection((LOOPBACK, port), 10, (address, 0)) as tcp, trusting().wrap_socket(tcp):
                return True
        except (ssl.SSLError, ConnectionError):
            return False

    began = time.monotonic()
    made = sum(has_handshake(ATTACKER) for _ in range(60))
    assert 20 <= made <= 21 + time.monotonic() - began
    assert node.total("nagare_signaling_refused_total", "reason=handshake_rate") == 60 - made
    assert has_handshake("127.0.0.67"), "another client is refused too"


def test_tls_connections_delay_no_media(own_node: Callable[..., Node], tmp_path: Path) -> None:
    certificate, port = make_certificate(tmp_path), free_tcp_port()
    began = time.monotonic()
    node = own_node(
        *("--turn", "on", "--loops", "1", "--turn-tls-port", str(port), "--turn-tls-name", LOOPBACK),
        *("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key), *REQUEST_LIMITS, *SENDS_ALL),
    )
    node.origin = node.origin.replace("http:", "https:")
    https = int(node.origin.rpartition(":")[2])
    attacks: dict[str, Attack] = {
        "handshakes begun at the HTTPS port": lambda _: flood(https, [ATTACKER]),
        "handshakes begun from one address": lambda _: flood(port, [ATTACKER]),
        "handshakes begun from many addresses": lambda _: flood(port, [f"127.0.1.{n}" for n in range(1, 201)]),
        "whole handshakes": lambda _: whole_handshakes(port),
    }
    outcome = attack_during_a_call(node, attacks, LEAST, certificate.authority)
    assert_unaffected(outcome, attacks)
    assert_attacked(outcome, LEAST)
    permitted = HANDSHAKES_PER_SECOND * (1 + time.monotonic() - began)
    assert 0 < node.total("nagare_tcp_accepted_total", "loop=tls") <= permitted
    assert node.total("nagare_tcp_refused_total", "reason=address_handshake_rate") > 0
    assert node.total("nagare_signaling_refused_total", "reason=handshake_rate") > 0
    assert node.total("nagare_tcp_received_bytes_total", "loop=0") == 0, "the media loop has read of them"
    # Another client has its handshake as before.
    assert "BEGIN CERTIFICATE" in ssl.get_server_certificate((LOOPBACK, port))
