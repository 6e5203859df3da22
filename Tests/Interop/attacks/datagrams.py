"""Datagrams of unknown senders to the media port."""

from __future__ import annotations

import os
import random
import socket
import struct
import time

from attacks import Attack
from harness.node import LOOPBACK, Node

DATAGRAMS = 2000
# Slow enough that the kernel's receive queue does not drop any.
DATAGRAMS_PER_SECOND = 2000
SEED = 20260101


def send_all(node: Node, datagrams: list[bytes]) -> list[bytes]:
    """Sends datagrams from a new socket to the media port, and returns the replies."""
    replies: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((LOOPBACK, 0))
        sender.setblocking(False)
        for index, datagram in enumerate(datagrams):
            sender.sendto(datagram, (LOOPBACK, node.media_port))
            if index % 50 == 49:
                time.sleep(50 / DATAGRAMS_PER_SECOND)
        time.sleep(0.5)
        try:
            while True:
                replies.append(sender.recv(2048))
        except BlockingIOError:
            pass
    return replies


def stun_request(username: bytes) -> bytes:
    """A binding request with a user name, an invalid MESSAGE-INTEGRITY and no FINGERPRINT."""
    padded = username + bytes(-len(username) % 4)
    attributes = struct.pack("!HH", 0x0006, len(username)) + padded + struct.pack("!HH", 0x0008, 20) + bytes(20)
    return struct.pack("!HHI", 0x0001, len(attributes), 0x2112A442) + os.urandom(12) + attributes


def client_hello() -> bytes:
    """A DTLS 1.2 ClientHello with one cipher suite and use_srtp."""
    extensions = struct.pack("!HHHHB", 14, 5, 2, 0x0007, 0)
    body = b"\xfe\xfd" + os.urandom(32) + b"\0" + b"\0" + struct.pack("!HH", 2, 0xC02B) + b"\x01\0"
    body += struct.pack("!H", len(extensions)) + extensions
    handshake = b"\x01" + len(body).to_bytes(3, "big") + b"\0\0" + bytes(3) + len(body).to_bytes(3, "big") + body
    return b"\x16\xfe\xff\0\0" + bytes(6) + struct.pack("!H", len(handshake)) + handshake


def datagrams(kind: str) -> list[bytes]:
    chance = random.Random(SEED)
    if kind == "garbage":
        return [chance.randbytes(chance.randrange(0, 1473)) for _ in range(DATAGRAMS)]
    if kind == "truncated STUN":
        whole = stun_request(b"abcd:efgh")
        return [whole[: chance.randrange(1, len(whole))] for _ in range(DATAGRAMS)]
    if kind == "STUN with an unknown user name":
        return [stun_request(chance.randbytes(4).hex().encode() + b":abcd") for _ in range(DATAGRAMS)]
    if kind == "STUN with false lengths":
        messages = []
        for _ in range(DATAGRAMS):
            message = bytearray(stun_request(b"abcd:efgh"))
            struct.pack_into("!H", message, chance.choice([2, 22, 36]), chance.randrange(0, 65536))
            messages.append(bytes(message))
        return messages
    if kind == "ClientHello":
        return [client_hello() for _ in range(DATAGRAMS)]
    if kind == "RTP":
        return [
            struct.pack("!BBHII", 0x80 | chance.randrange(64), chance.randrange(96, 128), n & 0xFFFF, n * 3000, 7)
            + chance.randbytes(chance.randrange(0, 1200))
            for n in range(DATAGRAMS)
        ]
    if kind == "RTCP":
        return [
            struct.pack("!BBHI", 0x80 | chance.randrange(32), chance.randrange(192, 224), chance.randrange(65536), 7)
            + chance.randbytes(chance.randrange(0, 600))
            for _ in range(DATAGRAMS)
        ]
    raise ValueError(kind)


KINDS = ["garbage", "truncated STUN", "STUN with an unknown user name", "STUN with false lengths", "ClientHello", "RTP", "RTCP"]


def send_every_kind(node: Node) -> int:
    before = node.total("nagare_datagrams_received_total")
    for kind in KINDS:
        send_all(node, datagrams(kind))
    # Other clients send meanwhile, too.
    return min(len(KINDS) * DATAGRAMS, int(node.total("nagare_datagrams_received_total") - before))


ATTACKS: dict[str, Attack] = {"datagrams of every kind": send_every_kind}

LEAST = {
    "datagrams of every kind": 4_600,
}
