"""Joins and requests that waste resources: participants that never connect, filters with many rules, channel churn, mutes
without end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Callable, Iterator

import httpx
import websockets.sync.client

from attacks import SECONDS, Attack, Deliveries
from attacks.data import Member, name, ticks
from harness.node import Node
from harness.offers import SDP, offer

THREADS = 4
SPEAKERS = 10
MEMBERS = 60
RULES = 1280
FILTERS = 20
# Each of ten mutes a hundred times a second, as often as a WebSocket takes a message. To tell the others of all that would be
# 39,000 notifications a second: more than of one member in a channel of 300.
LISTENERS, MUTERS, MUTES_PER_SECOND = 30, 10, 100
# A member that knows of mutes, and whose own ones are told.
SPEAKER = {"role": "sendonly", "audio": True, "data_channel_signaling": False, "nagare": {}}

COUNTED = ("nagare_member_changes_limited_total{result=delayed}",)


def _until(deadline: float, work: Callable[[int], bool | None]) -> int:
    """Calls `work` in several threads with increasing numbers until the deadline, and counts the calls that the node answered.

    Refusals are expected. `work` returns False when it asked nothing.
    """
    delivered = Deliveries()

    def run(first: int) -> None:
        number = first
        while time.monotonic() < deadline:
            try:
                if work(number) is not False:
                    delivered.add()
            except (OSError, httpx.HTTPError, websockets.exceptions.WebSocketException):
                time.sleep(0.02)
            number += THREADS

    threads = [threading.Thread(target=run, args=(first,), daemon=True) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()) + 10)
    return delivered.count


def _addresses() -> Iterator[str]:
    """Five client addresses in turn, for the X-Forwarded-For header."""
    number = 0
    while True:
        yield f"198.51.100.{number % 5 + 1}"
        number += 1


def channels_without_media(node: Node) -> int:
    """Publishes to one new channel after another, and never sends media."""
    body = offer("sendonly")
    addresses = _addresses()
    lock = threading.Lock()
    with httpx.Client(timeout=5) as client:

        def publish(number: int) -> bool:
            with lock:
                address = next(addresses)
            response = client.post(
                f"{node.origin}/whip/without-media-{number}",
                content=body,
                headers={**SDP, "X-Forwarded-For": address},
            )
            # A client that asks too often is refused.
            return response.status_code in (201, 429, 503)

        return _until(time.monotonic() + SECONDS, publish)


def _connect(node: Node, channel: str, role: str, **members: object) -> websockets.sync.client.ClientConnection:
    headers = {"X-Forwarded-For": "198.51.100.6"}
    socket = websockets.sync.client.connect(
        node.signaling, open_timeout=5, max_size=None, additional_headers=headers
    )
    message = {"type": "connect", "role": role, "channel_id": channel, "audio": True, "video": True, **members}
    socket.send(json.dumps(message))
    return socket


def offers_unanswered(node: Node) -> int:
    """Joins channels over the WebSocket, and leaves every offer unanswered."""
    deadline = time.monotonic() + SECONDS
    sockets: list[websockets.sync.client.ClientConnection] = []

    def join(number: int) -> None:
        socket = _connect(node, f"unanswered-{number % 50}", "sendrecv")
        socket.recv(timeout=5)
        sockets.append(socket)

    delivered = _until(deadline, join)
    for socket in sockets:
        socket.socket.close()
    return delivered


def _filters(rules: int, filters: int) -> list[dict]:
    return [
        {
            "name": f"filter {number}",
            "priority": number,
            "action": "block",
            "rules": [
                [{"field": "client_id", "operator": "is_in", "values": [f"nobody {number} {rule}"]}]
                for rule in range(rules // filters)
            ],
        }
        for number in range(filters)
    ]


def filters_of_many_rules(node: Node) -> int:
    """Joins with forwarding filters: half of the members with too many rules, half with the most that are allowed."""
    deadline = time.monotonic() + SECONDS
    sockets: list[websockets.sync.client.ClientConnection] = []
    many, few = _filters(RULES, FILTERS), _filters(64, 1)

    def join(number: int) -> bool:
        if len(sockets) >= MEMBERS + SPEAKERS:
            time.sleep(0.05)
            return False
        if number % 7 == 0:
            sockets.append(_connect(node, "filtered", "sendonly"))
        else:
            filters = few if number % 2 else many
            socket = _connect(node, "filtered", "recvonly", spotlight=True, forwarding_filters=filters)
            try:
                socket.recv(timeout=5)
                sockets.append(socket)
            except websockets.exceptions.ConnectionClosed:
                pass
        return True

    delivered = _until(deadline, join)
    for socket in sockets:
        socket.socket.close()
    return delivered


def joins_of_one_channel(node: Node) -> int:
    """Joins and leaves one channel as fast as possible. Each join and each leave is a webhook event."""
    body = offer("sendonly")
    with httpx.Client(timeout=5, headers={"X-Forwarded-For": "198.51.100.7"}) as client:

        def join_and_leave(_: int) -> None:
            answer = client.post(f"{node.origin}/whip/join-and-leave", content=body, headers=SDP)
            if answer.status_code == 201:
                client.delete(node.origin + answer.headers["location"])

        return _until(time.monotonic() + SECONDS, join_and_leave)


async def _mute(member: Member, end: float) -> int:
    """Mutes and unmutes a member's microphone in turn. Returns how often."""
    count = 0
    async for _ in ticks(MUTES_PER_SECOND, end):
        parameters = {"kind": "audio", "muted": count % 2 == 0}
        request = {"type": "request", "id": count, "method": "setMuted", "params": parameters}
        await member.socket.send(json.dumps(request))
        count += 1
    return count


def mutes_without_end(node: Node) -> int:
    """Mutes and unmutes members of a large channel, of which the node tells all others."""

    async def run() -> int:
        channel = name()
        members = await asyncio.gather(*(Member.join(node, channel, **SPEAKER) for _ in range(LISTENERS + MUTERS)))
        end = time.monotonic() + SECONDS
        counts = await asyncio.gather(*(_mute(member, end) for member in members[:MUTERS]))
        await asyncio.gather(*(member.leave() for member in members))
        return sum(counts)

    return asyncio.run(run())


ATTACKS: dict[str, Attack] = {
    "channels without media": channels_without_media,
    "offers unanswered": offers_unanswered,
    "filters of many rules": filters_of_many_rules,
    "joins of one channel": joins_of_one_channel,
    "mutes without end": mutes_without_end,
}

LEAST = {
    "channels without media": 1_500,
    "offers unanswered": 85,
    "filters of many rules": 40,
    "joins of one channel": 600,
    "mutes without end": 1_000,
}
