"""Attacks on the public listener by clients that are not authenticated."""

from __future__ import annotations

import base64
import json
import os
import resource
import socket
import ssl
import struct
import threading
import time
from typing import Callable

from attacks import ATTACKER, SECONDS, Attack, Deliveries
from harness.node import LOOPBACK, Node


# The addresses of attackers that the node has to admit first, one for each attack: those before have used up what theirs may
# request.
UNFINISHED, SLOW, CALLING = "127.0.0.67", "127.0.0.68", "127.0.0.69"


# Clients on plain sockets. A client library would use more CPU time than the node.


def connected(node: Node, timeout: float = 2, address: str = ATTACKER) -> socket.socket:
    return socket.create_connection((LOOPBACK, node.http_port), timeout=timeout, source_address=(address, 0))


def websocket(
    node: Node,
    timeout: float = 2,
    path: str = "/signaling",
    tls: ssl.SSLContext | None = None,
    address: str = ATTACKER,
) -> socket.socket:
    """A new WebSocket for signaling."""
    one = connected(node, timeout, address)
    if tls:
        one = tls.wrap_socket(one, server_hostname=LOOPBACK)
    key = base64.b64encode(os.urandom(16)).decode()
    one.sendall(
        f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = one.recv(1)
        if not piece:
            raise ConnectionError("no WebSocket")
        answer += piece
    status = answer.split(b"\r\n")[0].decode()
    if " 101 " not in status:
        raise ConnectionError(f"no WebSocket: {status}")
    return one


def frame(opcode: int, payload: bytes = b"", last: bool = True) -> bytes:
    """A masked WebSocket frame. The mask is zero."""
    head = bytes([(0x80 if last else 0) | opcode])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    elif len(payload) < 65536:
        head += bytes([0x80 | 126]) + struct.pack("!H", len(payload))
    else:
        head += bytes([0x80 | 127]) + struct.pack("!Q", len(payload))
    return head + bytes(4) + payload


def in_parallel(count: int, act: Callable[[float, Deliveries], None]) -> int:
    """Calls `act` repeatedly in `count` threads until the end of the attack; it counts what it delivered.

    Refused connections are expected.
    """
    end, delivered = time.monotonic() + SECONDS, Deliveries()

    def run() -> None:
        while time.monotonic() < end:
            try:
                act(end, delivered)
            except OSError:
                time.sleep(0.02)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return delivered.count


def flood(node: Node, frames: bytes, bits_per_second: int = 6_000_000) -> int:
    """Sends frames on two WebSockets, at the rate of a slow line. A closed WebSocket is opened again."""

    def act(end: float, delivered: Deliveries) -> None:
        with websocket(node) as one:
            began, sent = time.monotonic(), 0
            while time.monotonic() < end:
                one.sendall(frames)
                delivered.add()
                sent += len(frames)
                ahead = sent * 8 / bits_per_second - (time.monotonic() - began)
                if ahead > 0:
                    time.sleep(ahead)

    return in_parallel(2, act)


def messages(node: Node, payload: bytes) -> int:
    """Sends the payload as a first message, on a new WebSocket each time."""

    def act(end: float, delivered: Deliveries) -> None:
        with websocket(node) as one:
            one.sendall(frame(1, payload))
            delivered.add()
            one.recv(1024)
            time.sleep(0.05)

    return in_parallel(4, act)


def get(node: Node, path: str, token: str, delivered: Deliveries) -> None:
    with connected(node) as one:
        one.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode()
        )
        while one.recv(65536):
            pass
        delivered.add()


def nested(element: str, size: int, depth: int) -> bytes:
    elements = ",".join([element] * (size // (len(element) + 1)))
    return ("[" * depth + elements + "]" * depth).encode()


def encoded(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


# JSON before authentication.


def zeros(node: Node) -> int:
    return messages(node, bytes(120_000))


def wide_characters(node: Node) -> int:
    """Brackets in UTF-16. Every second byte is zero."""
    return messages(node, nested("[]", 60_000, 20).decode().encode("utf-16-be"))


def deep_numbers(node: Node) -> int:
    return messages(node, nested("1", 120_000, 30))


def deep_arrays(node: Node) -> int:
    return messages(node, nested("[]", 12_000, 30))


def long_names(node: Node) -> int:
    """Member names of combining marks, which are slow to hash."""
    name = "\u0301\u0316" * 15_000
    return messages(node, json.dumps({"type": "connect", name: 1}, ensure_ascii=False).encode())


def unsigned_tokens(node: Node) -> int:
    claims = encoded(nested("[]", 5_400, 30))
    header = encoded(b'{"alg":"HS256","typ":"JWT"}')
    token = f"{header}.{claims}.{encoded(bytes(32))}"
    return in_parallel(4, lambda end, delivered: get(node, "/api/channels/attack", token, delivered))


# WebSockets without a connect message.


def pings(node: Node) -> int:
    return flood(node, frame(9) * 500)


def pongs(node: Node) -> int:
    return flood(node, frame(10) * 500)


def empty_fragments(node: Node) -> int:
    return flood(node, frame(1, last=False) + frame(0, last=False) * 500)


def frames_behind_a_close(node: Node) -> int:
    return flood(node, frame(8, struct.pack("!H", 1000)) + frame(1, b"{}") * 500)


# Connections that are never used.


def hold(count: int, begin: Callable[[int], socket.socket]) -> int:
    """Opens up to `count` sockets, keeps them open until the end of the attack, and reads nothing. Returns their number.

    `begin` opens one, by its number.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sockets: list[socket.socket] = []
    began = time.monotonic()
    while len(sockets) < count and time.monotonic() < began + SECONDS / 2:
        try:
            sockets.append(begin(len(sockets)))
        except OSError:
            # The listen queue is full, or the node closed the connection.
            time.sleep(0.05)
    time.sleep(max(0, began + SECONDS - time.monotonic()))
    for one in sockets:
        one.close()
    return len(sockets)


def idle_connections(node: Node) -> int:
    return hold(10_000, lambda _: connected(node, 1.5))


def idle_event_streams(node: Node) -> int:
    def begin(number: int) -> socket.socket:
        one = connected(node, 1.5)
        one.sendall(f"GET /api/channels/attack-{number}/events HTTP/1.1\r\nHost: {LOOPBACK}\r\n\r\n".encode())
        return one

    return hold(4_000, begin)


# Senders that never finish.


def unfinished_messages(node: Node) -> int:
    """Sends most of a message of the greatest length on each of as many WebSockets as there is time for."""
    head = struct.pack("!BBQ", 0x81, 0x80 | 127, 500_000) + bytes(4)

    def begin(_: int) -> socket.socket:
        one = websocket(node, address=UNFINISHED)
        one.sendall(head + bytes(400_000))
        return one

    return hold(500, begin)


# Readers that read nothing.


def connect_message(channel: str, metadata_bytes: int) -> bytes:
    return json.dumps(
        {
            "type": "connect",
            "channel_id": channel,
            "role": "recvonly",
            "multistream": True,
            "sora_client": "attack",
            "signaling_notify_metadata": {"x": "a" * metadata_bytes},
        }
    ).encode()


def slow_readers(node: Node) -> int:
    """Members that read nothing, while others join and leave with large metadata, which causes many notifications."""
    channel = f"attack-{os.getpid()}"
    sockets: list[socket.socket] = []
    try:
        for _ in range(30):
            one = websocket(node, address=SLOW)
            one.sendall(frame(1, connect_message(channel, 4_000)))
            sockets.append(one)
    except OSError:
        pass

    def join_and_leave(end: float, delivered: Deliveries) -> None:
        with websocket(node, address=SLOW) as other:
            other.sendall(frame(1, connect_message(channel, 4_000)))
            other.recv(1024)
            delivered.add()

    joined = in_parallel(4, join_and_leave)
    for one in sockets:
        one.close()
    # Without members that read nothing, the joins of others harm nobody.
    return min(len(sockets), joined)


def caller(node: Node, room: str, tls: ssl.SSLContext | None) -> socket.socket:
    """A member of a call of two, from which nothing but its acceptance was read."""
    one = websocket(node, 5, "/relay", tls, CALLING)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    one.sendall(frame(1, json.dumps({"type": "register", "roomId": room}).encode()))
    answer = b""
    while b'"accept"' not in answer:
        piece = one.recv(4_096)
        if not piece:
            raise ConnectionError("not accepted")
        answer += piece
    return one


def unread_calls(node: Node, calls: int = 30, seconds: float = SECONDS, tls: ssl.SSLContext | None = None) -> int:
    """Calls of two: one member sends as much as a member may, and the other reads nothing."""
    # A buffer for one has twice its bytes.
    relayed = frame(1, json.dumps({"type": "candidate", "ice": "a" * 4_100}).encode())
    readers: list[socket.socket] = []
    senders: list[socket.socket] = []
    delivered = 0
    for _ in range(calls):
        room = f"attack-{os.urandom(8).hex()}"
        readers.append(caller(node, room, tls))
        senders.append(caller(node, room, tls))
    end, count = time.monotonic() + seconds, 900
    while time.monotonic() < end:
        for one in list(senders):
            try:
                one.sendall(relayed * count)
                delivered += count
            except OSError:
                # The node ended the call, because its other member reads nothing.
                senders.remove(one)
        count = 8
        time.sleep(0.1)
    for one in readers + senders:
        one.close()
    return delivered


COUNTED = ("nagare_signaling_refused_total reason=slow_sender",)
ATTACKS: dict[str, Attack] = {
    "zeros as JSON": zeros,
    "JSON in UTF-16": wide_characters,
    "numbers deep in arrays": deep_numbers,
    "arrays deep in arrays": deep_arrays,
    "names of combining marks": long_names,
    "unsigned tokens": unsigned_tokens,
    "pings before connect": pings,
    "pongs before connect": pongs,
    "empty fragments": empty_fragments,
    "frames behind a Close": frames_behind_a_close,
    "idle connections": idle_connections,
    "idle event streams": idle_event_streams,
    "messages that never end": unfinished_messages,
    "members that read nothing": slow_readers,
    "calls whose second member reads nothing": unread_calls,
}

LEAST = {
    "zeros as JSON": 75,
    "JSON in UTF-16": 75,
    "numbers deep in arrays": 75,
    "arrays deep in arrays": 75,
    "names of combining marks": 75,
    "unsigned tokens": 4_600,
    "pings before connect": 410,
    "pongs before connect": 410,
    "empty fragments": 410,
    "frames behind a Close": 75,
    "idle connections": 390,
    "idle event streams": 350,
    "messages that never end": 165,
    "members that read nothing": 10,
    "calls whose second member reads nothing": 11_000,
}
