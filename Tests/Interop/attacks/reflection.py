"""Attacks by a connected viewer: ICE checks with a spoofed source, and invalid DTLS.

Addresses of 127.0.0.0/8 represent spoofed sources. All packets go to the node.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct
import time
from typing import Awaitable, Callable

import httpx
from aioice import stun
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from attacks import SECONDS, Attack
from harness.clocks import ClockMissed
from harness.node import Node
from harness.offers import SDP

SOURCES = [f"127.0.0.{number}" for number in range(50, 62)]


async def connected(node: Node, channel: str) -> RTCPeerConnection:
    """A viewer of a channel, after the DTLS handshake."""
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    connection.addTransceiver("video", direction="recvonly")
    connection.addTransceiver("audio", direction="recvonly")
    await connection.setLocalDescription(await connection.createOffer())
    async with httpx.AsyncClient() as client:
        answer = await client.post(
            f"{node.origin}/whep/{channel}",
            content=connection.localDescription.sdp,
            headers=SDP,
        )
    await connection.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
    for _ in range(100):
        if connection.connectionState == "connected":
            return connection
        await asyncio.sleep(0.05)
    raise ClockMissed(f"the viewer is {connection.connectionState}")


def agent(connection: RTCPeerConnection):
    """The viewer's ICE agent, with its credentials and its candidate pair."""
    return connection.getTransceivers()[0].receiver.transport.transport._connection


def target(connection: RTCPeerConnection) -> tuple[str, int]:
    """The node's address that the viewer is connected to."""
    return agent(connection)._nominated[1].remote_addr


def check(connection: RTCPeerConnection, nominates: bool = True) -> bytes:
    """A valid connectivity check with the viewer's credentials."""
    ice = agent(connection)
    request = stun.Message(message_method=stun.Method.BINDING, message_class=stun.Class.REQUEST)
    request.attributes["USERNAME"] = f"{ice.remote_username}:{ice.local_username}"
    request.attributes["PRIORITY"] = 1000
    request.attributes["ICE-CONTROLLING"] = 77
    if nominates:
        request.attributes["USE-CANDIDATE"] = None
    request.add_message_integrity(ice.remote_password.encode())
    request.add_fingerprint()
    return bytes(request)


def running(attack: Callable[[RTCPeerConnection], Awaitable[int]]) -> Attack:
    """Runs an attack with a viewer of its own."""

    def run(node: Node) -> int:
        async def whole() -> int:
            connection = await connected(node, f"attacked-{random.randrange(1 << 30)}")
            try:
                return await attack(connection)
            finally:
                await connection.close()

        return asyncio.run(whole())

    return run


async def checks_from_false_sources(connection: RTCPeerConnection) -> int:
    sockets, sent = [], 0
    for source in SOURCES:
        sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sockets[-1].bind((source, 0))
    end = time.monotonic() + SECONDS
    kept = [check(connection) for _ in range(20)]
    while time.monotonic() < end:
        for one in sockets:
            one.sendto(check(connection), target(connection))
            # Replayed checks as well.
            one.sendto(random.choice(kept), target(connection))
            sent += 2
        await asyncio.sleep(0.05)
    for one in sockets:
        one.close()
    return sent


def from_port_zero(source: str, port: int, payload: bytes) -> bytes:
    """An IPv4 packet whose UDP source port is 0; the kernel fills in the checksum of its header."""
    udp = struct.pack("!HHHH", 0, port, 8 + len(payload), 0) + payload
    return (
        struct.pack(
            "!BBHHHBBH4s4s",
            *(0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0),
            *(socket.inet_aton(source), socket.inet_aton("127.0.0.1")),
        )
        + udp
    )


async def checks_from_port_zero(connection: RTCPeerConnection) -> int:
    # Only root may send from port 0, as ops/test in a container and CI do.
    raw, sent = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW), 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for source in SOURCES:
            raw.sendto(from_port_zero(source, target(connection)[1], check(connection)), ("127.0.0.1", 0))
            sent += 1
        await asyncio.sleep(0.05)
    raw.close()
    return sent


async def dtls_garbage(connection: RTCPeerConnection) -> int:
    end = time.monotonic() + SECONDS
    ice, sent = agent(connection), 0
    while time.monotonic() < end:
        for _ in range(20):
            record = struct.pack("!BHHHIH", random.choice((21, 22)), 0xFEFD, 1, 0, 9, 26) + os.urandom(26)
            plain = struct.pack("!BHHHIH", random.choice((20, 21, 22, 23)), 0xFEFD, 0, 0, 9, 12) + os.urandom(12)
            await ice.send((record + plain) * 15)
            sent += 1
        await asyncio.sleep(0.01)
    return sent


ATTACKS: dict[str, Attack] = {
    "checks from false sources": running(checks_from_false_sources),
    "checks from port 0": running(checks_from_port_zero),
    "DTLS garbage after the handshake": running(dtls_garbage),
}

LEAST = {
    "checks from false sources": 470,
    "checks from port 0": 230,
    "DTLS garbage after the handshake": 1_900,
}
