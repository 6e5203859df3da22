"""Hostile input on every port during a call: the call is not affected, and dropped datagrams are counted."""

from __future__ import annotations

import math
import os
import random
import socket
from typing import Callable, Iterator

import httpx
import pytest

from attacks.datagrams import DATAGRAMS, KINDS, SEED, datagrams, send_all
from harness.chromium import ChromiumPage
from harness.clocks import assert_clock
from harness.machine import DropMeter
from harness.node import LOOPBACK, Node
from harness.offers import SDP, offer
from harness.page import watch_and_publish
from harness.playback import Playback, assert_smooth, observe
from harness.transport import SKEW_SECONDS_MAX, TransportViewer
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]


@pytest.fixture
def call(
    open_page: OpenPage, transport: Callable[..., TransportViewer], node: Node, channel: str
) -> Iterator[Callable[[Callable[[], None]], Playback]]:
    """A running call, and a function that observes it during an attack."""
    receiver = transport()
    viewer, publisher = watch_and_publish(open_page, node.origin, channel, codec="VP8")
    # A browser that had little of the processor when it began brings picture and sound together within seconds.
    wait_until(
        lambda: abs(viewer.other().get("skew") or math.inf) <= SKEW_SECONDS_MAX * 1000,
        "picture and sound in sync before the attack",
        10,
        describe=viewer.other,
    )

    def while_playing(act: Callable[[], None]) -> Playback:
        playback = observe(viewer.other, 3, receiver, publisher.published, during=act)
        assert_smooth(playback)
        # A flood may fill the kernel's buffers of a starved program: the run then proves nothing.
        assert_clock(playback.lost == 0, f"media was lost: {playback}", playback.lost <= playback.kernel_drops)
        assert playback.last["connections"] == 1, "the viewer had to reconnect"
        return playback

    yield while_playing


def test_datagrams_of_unknown_senders_are_dropped_and_counted(
    node: Node, call: Callable[[Callable[[], None]], Playback]
) -> None:
    answered: dict[str, int] = {}
    # Of each kind, the datagrams that the node counted, and those that the kernel dropped before.
    uncounted: dict[str, tuple[float, int]] = {}

    def attack() -> None:
        for kind in KINDS:
            before, drops = node.total("dropped_total"), DropMeter(node.process.pid)
            answered[kind] = len(send_all(node, datagrams(kind)))
            counted, by_kernel = node.total("dropped_total") - before, drops.read()
            if counted < DATAGRAMS * 0.9:
                uncounted[kind] = counted, by_kernel

    call(attack)
    seen = f"of {DATAGRAMS} datagrams each, only these were counted as dropped, by the node and the kernel: {uncounted}"
    assert all(counted + by_kernel >= DATAGRAMS * 0.9 for counted, by_kernel in uncounted.values()), seen
    assert_clock(not uncounted, seen, is_starved=True)
    # The node must not amplify: it answers an unknown sender with at most as many datagrams as it received.
    assert answered["ClientHello"] == answered["RTP"] == answered["RTCP"] == answered["garbage"] == 0, answered
    assert max(answered.values()) <= DATAGRAMS, answered


def garbage_over_tcp(port: int) -> dict[bool, int]:
    """Sends garbage on one connection after the other. How many of them were answered, and how many only ended."""
    ends: dict[bool, int] = {True: 0, False: 0}
    chance = random.Random(SEED)
    pieces = [
        b"GET / HTTP/1.1\r\n" * 200,
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /whip/x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /whip/x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /whip/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(5000)) + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(200),
        *(chance.randbytes(chance.randrange(1, 4000)) for _ in range(50)),
    ]
    for piece in pieces:
        with socket.create_connection((LOOPBACK, port), timeout=5) as connection:
            try:
                connection.sendall(piece)
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(2)
                answer = connection.recv(65536)
            except TimeoutError:
                raise
            except OSError:
                ends[False] += 1
                continue
            ends[bool(answer)] += 1
            assert not answer or answer.startswith(b"HTTP/1.1 ") or answer.startswith(bytes(2)), answer[:80]
            # An HTTP/2 preface or an invalid line gets a 4xx answer or a closed connection.
            assert b" 500 " not in answer[:20], answer[:200]
    return ends


def test_garbage_over_tcp_does_not_affect_a_call(node: Node, call: Callable[[Callable[[], None]], Playback]) -> None:
    ends: list[dict[bool, int]] = []

    def attack() -> None:
        ends.extend(garbage_over_tcp(port) for port in (node.http_port, node.admin_port))

    call(attack)
    # A request that is too large may end its connection before the answer is read.
    assert all(one[True] >= 50 and one[False] <= 3 for one in ends), f"connections that were answered or only ended: {ends}"
    assert httpx.get(node.origin).status_code == 200
    wait_until(node.ready, "readiness", 5)


def big_offers() -> list[bytes]:
    plain = offer("sendonly")
    line = "a=candidate:1 1 udp 2122260223 127.0.0.1 50000 typ host\r\n"
    return [
        plain.encode() + b"a=" + b"x" * 4_000_000 + b"\r\n",
        (plain + line * 60_000).encode(),
        (plain + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" * 100_000).encode(),
        os.urandom(3_000_000),
        (plain + "a=rtpmap:" + "96 VP8/90000 " * 4000 + "\r\n").encode(),
    ]


def test_megabytes_of_sdp_are_refused(node: Node, call: Callable[[Callable[[], None]], Playback]) -> None:
    statuses: list[int] = []

    def attack() -> None:
        for body in big_offers():
            try:
                statuses.append(
                    httpx.post(f"{node.origin}/whip/big", headers=SDP, content=body, timeout=20).status_code
                )
            except httpx.WriteError:
                # The node may close the connection of a client that continues to send after the refusal.
                statuses.append(413)

    call(attack)
    assert all(400 <= one < 500 for one in statuses), statuses
    assert statuses[:4] == [413] * 4, statuses


def test_idle_connections_do_not_block_other_clients(
    node: Node, call: Callable[[Callable[[], None]], Playback]
) -> None:
    idle = [socket.create_connection((LOOPBACK, node.http_port), timeout=5) for _ in range(200)]
    try:
        for index, connection in enumerate(idle):
            if index % 2:
                connection.sendall(b"POST /whip/slow HTTP/1.1\r\nHost: x\r\nContent-Le")
        call(lambda: None)
        assert httpx.get(node.origin, timeout=5).status_code == 200
    finally:
        for connection in idle:
            connection.close()
