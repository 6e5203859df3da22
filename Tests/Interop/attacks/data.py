"""Attacks by participants over their data channels."""

from __future__ import annotations

import asyncio
import json
import random
import time
import zlib

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
SIGNALING = ["signaling", "notify", "push", "stats"]
CHAT = {"label": "#chat", "direction": "sendrecv", "compress": True}
PLAIN = {"label": "#plain", "direction": "sendrecv"}
# Ten times what one participant may send.
MESSAGES_PER_SECOND = 10_000
# What may wait in the client, in bytes.
WAITING_MAX = 64 * 1024


class Member:
    """A Sora client without media, whose signaling is over data channels."""

    def __init__(self, socket: websockets.asyncio.client.ClientConnection) -> None:
        self.socket = socket
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.channels: dict[str, RTCDataChannel] = {}
        self.received = 0

        @self.connection.on("datachannel")
        def _(one: RTCDataChannel) -> None:
            self.channels[one.label] = one
            one.on("message", self._count)

    def _count(self, _: str | bytes) -> None:
        self.received += 1

    @classmethod
    async def join(cls, node: Node, channel: str, data_channels: tuple[dict, ...] = ()) -> Member:
        """Joins, and waits until all channels are open."""
        headers = {"X-Forwarded-For": "198.51.100.8"}
        member = cls(await websockets.asyncio.client.connect(node.signaling, additional_headers=headers, max_size=None))
        connect = {
            "type": "connect", "role": "recvonly", "channel_id": channel, "sora_client": "attack", "audio": False,
            "video": False, "data_channel_signaling": True, "data_channels": list(data_channels),
        }  # fmt: skip
        await member.socket.send(json.dumps(connect))
        offer = json.loads(await member.socket.recv())
        assert offer["type"] == "offer", offer
        await member.connection.setRemoteDescription(RTCSessionDescription(offer["sdp"], "offer"))
        await member.connection.setLocalDescription(await member.connection.createAnswer())
        answer = {"type": "answer", "sdp": member.connection.localDescription.sdp}
        await member.socket.send(json.dumps(answer))
        expected = {*SIGNALING, *(one["label"] for one in data_channels)}
        # A handshake of aiortc on a busy machine needs a few retransmissions.
        for _ in range(600):
            if expected <= member.channels.keys():
                return member
            await asyncio.sleep(0.05)
        raise AssertionError(f"of {expected} only {list(member.channels)} are open")

    async def flood(self, label: str, message: bytes, end: float, per_second: int) -> int:
        """Sends a message again and again, until `end` or until the channel is closed. Returns how often."""
        channel, sent, began = self.channels[label], 0, time.monotonic()
        while time.monotonic() < end and channel.readyState == "open":
            due = sent < (time.monotonic() - began) * per_second + 10
            if due and channel.bufferedAmount < WAITING_MAX:
                channel.send(message)
                sent += 1
            else:
                await asyncio.sleep(0.005)
        return sent

    async def leave(self) -> None:
        await self.connection.close()
        await self.socket.close()


def name() -> str:
    return f"attacked-{random.randrange(1 << 30)}"


def bombs_where_a_client_only_receives(node: Node) -> int:
    """Sends messages on `push` that decompress to a thousand times their length, with a new connection after each end."""

    async def run() -> int:
        end, sent = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            member = await Member.join(node, name())
            sent += await member.flood("push", BOMB, end, BOMBS_PER_SECOND)
            await member.leave()
        return sent

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
