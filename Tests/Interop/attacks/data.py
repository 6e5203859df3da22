"""Attacks by participants over their data channels."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
import zlib
from typing import AsyncIterator

import websockets.asyncio.client
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from attacks import SECONDS, Attack
from harness.node import Node

# 256 KiB of zeros, in fewer than 300 bytes.
BOMB = zlib.compress(bytes(262_144), 9)
# The most that a stream of any length may become: 16 kB, of 40 bytes.
DENSE = zlib.compress(bytes(16_000), 9)
# The messages of a line of 1 MB/s.
BOMBS_PER_SECOND = 3_600
# One of them stopped a control loop once, and ten the whole of signaling.
CLIENTS = 10
SIGNALING = ["signaling", "notify", "push", "stats"]
CHAT = {"label": "#chat", "direction": "sendrecv", "compress": True}
PLAIN = {"label": "#plain", "direction": "sendrecv"}
# Ten times what one participant may send.
MESSAGES_PER_SECOND = 10_000
# Messages to others beyond what one participant may send or have delivered, and clients that were ended for a message where they
# only receive.
COUNTED = (
    "nagare_messages_dropped_total reason=rate",
    "nagare_messages_dropped_total reason=deliveries",
    "nagare_signaling_refused_total reason=data_message",
)
# Fewer than what its rate of messages permits five receivers of one sender.
OPTIONS = ("--limit", "deliveries-per-second=2000")
# What may wait in the client, in bytes.
WAITING_MAX = 64 * 1024
# What a client that is late does at once, before others of its process have their turn.
BURST = 50


async def ticks(per_second: int, end: float) -> AsyncIterator[None]:
    """Yields at a rate, until `end`."""
    began, count = time.monotonic(), 0
    while (now := time.monotonic()) < end:
        for _ in range(min(int((now - began) * per_second) + 1 - count, BURST)):
            yield
            count += 1
        await asyncio.sleep(0.002)


class Member:
    """A Sora client without media, whose signaling is over data channels unless it joins otherwise."""

    def __init__(self, socket: websockets.asyncio.client.ClientConnection) -> None:
        self.socket = socket
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.channels: dict[str, RTCDataChannel] = {}
        self.connection.on("datachannel", self._opened)
        self._reading: asyncio.Task[None] | None = None

    def _opened(self, channel: RTCDataChannel) -> None:
        self.channels[channel.label] = channel

    async def _read(self) -> None:
        """Reads the WebSocket, and answers its pings."""
        with contextlib.suppress(websockets.exceptions.ConnectionClosed):
            async for text in self.socket:
                if json.loads(text)["type"] == "ping":
                    await self.socket.send(json.dumps({"type": "pong"}))

    @classmethod
    async def join(cls, node: Node, channel: str, data_channels: tuple[dict, ...] = (), **members: object) -> Member:
        """Joins, and waits until it is connected and all channels are open.

        `members` replace those of the first message.
        """
        headers = {"X-Forwarded-For": "198.51.100.8"}
        member = cls(await websockets.asyncio.client.connect(node.signaling, additional_headers=headers, max_size=None))
        connect = {
            "type": "connect", "role": "recvonly", "channel_id": channel, "sora_client": "attack", "audio": False,
            "video": False, "data_channel_signaling": True, "data_channels": list(data_channels), **members,
        }  # fmt: skip
        await member.socket.send(json.dumps(connect))
        offer = json.loads(await member.socket.recv())
        assert offer["type"] == "offer", offer
        member._reading = asyncio.create_task(member._read())
        await member.connection.setRemoteDescription(RTCSessionDescription(offer["sdp"], "offer"))
        # A member with media only sends. Without a track aiortc sends no packets of it.
        for transceiver in member.connection.getTransceivers():
            transceiver.direction = "sendonly"
        await member.connection.setLocalDescription(await member.connection.createAnswer())
        answer = {"type": "answer", "sdp": member.connection.localDescription.sdp}
        await member.socket.send(json.dumps(answer))
        expected = {one["label"] for one in data_channels} | set(SIGNALING if connect["data_channel_signaling"] else ())
        # A handshake of aiortc on a busy machine needs a few retransmissions.
        for _ in range(600):
            if member.connection.connectionState == "connected" and expected <= member.channels.keys():
                return member
            await asyncio.sleep(0.05)
        raise AssertionError(
            f"the member is {member.connection.connectionState}, and of {expected} only {list(member.channels)} are open"
        )

    @property
    def is_open(self) -> bool:
        """Whether all its channels are open."""
        return all(one.readyState == "open" for one in self.channels.values())

    async def flood(self, label: str, message: bytes, end: float, per_second: int) -> int:
        """Sends a message again and again, until `end` or until the channel is closed. Returns how often."""
        channel, sent = self.channels[label], 0
        async for _ in ticks(per_second, end):
            if channel.readyState != "open":
                break
            if channel.bufferedAmount < WAITING_MAX:
                channel.send(message)
                sent += 1
        return sent

    async def leave(self) -> None:
        await self.connection.close()
        await self.socket.close()


def name() -> str:
    return f"attacked-{random.randrange(1 << 30)}"


def bombs_where_a_client_only_receives(node: Node) -> int:
    """Sends messages on `push` that decompress to a thousand times their length, of ten clients at a time, each with a new connection
    after each end."""

    async def client(end: float) -> int:
        sent = 0
        while time.monotonic() < end:
            member = await Member.join(node, name())
            sent += await member.flood("push", BOMB, end, BOMBS_PER_SECOND)
            await member.leave()
        return sent

    async def run() -> int:
        end = time.monotonic() + SECONDS
        return sum(await asyncio.gather(*(client(end) for _ in range(CLIENTS))))

    return asyncio.run(run())


async def flood_others(node: Node, channel: str, receivers: int, seconds: float) -> int:
    """Sends others messages that decompress to as much as they may, beside some that decompress to more. Returns how many."""
    members = [await Member.join(node, channel, (CHAT,)) for _ in range(receivers + 1)]
    end = time.monotonic() + seconds
    counts = await asyncio.gather(
        members[0].flood("#chat", DENSE, end, BOMBS_PER_SECOND), members[0].flood("#chat", BOMB, end, 100)
    )
    for member in members:
        await member.leave()
    return sum(counts)


def compressed_messages_to_others(node: Node) -> int:
    return asyncio.run(flood_others(node, name(), 3, SECONDS))


def small_messages_to_many(node: Node) -> int:
    """Sends messages of one byte to the other members of a channel, far more often than it may."""

    async def run() -> int:
        channel = name()
        members = [await Member.join(node, channel, (PLAIN,)) for _ in range(6)]
        sent = await members[0].flood("#plain", b"x", time.monotonic() + SECONDS, MESSAGES_PER_SECOND)
        for member in members:
            await member.leave()
        return sent

    return asyncio.run(run())


ATTACKS: dict[str, Attack] = {
    "bombs where a client only receives": bombs_where_a_client_only_receives,
    "compressed messages to others": compressed_messages_to_others,
    "small messages to many": small_messages_to_many,
}

LEAST = {
    "bombs where a client only receives": 18,
    "compressed messages to others": 3_700,
    "small messages to many": 9_800,
}
