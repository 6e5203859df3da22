"""Attacks by participants with SCTP packets that no data channel needs: aiortc sets an association up, and its packets are made
here then."""

from __future__ import annotations

import asyncio
import itertools
import struct
import time
from typing import Callable, Iterator, SupportsBytes

from aiortc.rtcsctptransport import (
    SCTP_COMMON_HEADER_LENGTH,
    SCTP_DATA_FIRST_FRAG,
    SCTP_DATA_UNORDERED,
    SCTP_STR_RESET_OUT_REQUEST,
    SCTP_TSN_MODULO,
    WEBRTC_BINARY,
    AbortChunk,
    DataChunk,
    ForwardTsnChunk,
    ReconfigChunk,
    SackChunk,
    StreamResetOutgoingParam,
    parse_packet,
    serialize_packet,
)
from aiortc.utils import uint32_gt
from attacks import SECONDS, Attack
from attacks.data import Member, name, ticks
from harness.clocks import assert_clock
from harness.node import Node

# Ten times the rate of packets that stopped a loop once.
PACKETS_PER_SECOND = 6_000
# The most bytes of chunks in a packet: a record of DTLS that aiortc sends whole has 1,500.
PACKET_BYTES = 1_440
SKIPS_PER_PACKET = PACKET_BYTES // 8
SACKS_PER_PACKET = PACKET_BYTES // 20
FRAGMENTS_PER_PACKET = PACKET_BYTES // 20
# The most gap blocks of a SACK that the node reads.
GAP_BLOCKS = 300
# How far ahead of the first missing number the node takes others, with some margin, and how many fragments it holds.
AHEAD_MAX = 3_900
HELD_MAX = 28 * FRAGMENTS_PER_PACKET
# A stream that no channel has.
STREAM = 3_000
INBOUND = {"label": "#plain", "direction": "recvonly"}
OUTBOUND = {"label": "#plain", "direction": "sendonly"}
# Outstanding chunks without which a SACK has nothing to say.
OUTSTANDING_MIN = 1_000
OUTSTANDING_SECONDS_MAX = 10.0
PAIRS = 4

# The node counts the attacker that it ended for its work.
COUNTED = ("nagare_data_associations_ended_total reason=work",)

# The chunks of one packet after the other.
Chunks = list[SupportsBytes]
Packets = Callable[["Association"], Iterator[Chunks]]


class Association:
    """The association of a member, from which aiortc gets no packets any more.

    `acknowledges` says whether it acknowledges what comes, all but the first chunk.
    """

    def __init__(self, member: Member, acknowledges: bool = False) -> None:
        self.member = member
        self.acknowledges = acknowledges
        self.has_ended = False
        self._sctp = member.connection.sctp
        self._transport = self._sctp.transport
        # The next number of its own chunks.
        self.tsn: int = self._sctp._local_tsn
        # The number of its next request to reset streams.
        self.request: int = self._sctp._reconfig_request_seq
        # The number up to which everything of the node is acknowledged, and the highest that came.
        self._cumulative: int = self._sctp._last_received_tsn
        self._highest = self._cumulative
        self._transport._unregister_data_receiver(self._sctp)
        self._transport._register_data_receiver(self)

    @property
    def outstanding(self) -> int:
        """Chunks of the node from the first that is not acknowledged to the last that came."""
        return (self._highest - self._cumulative) % SCTP_TSN_MODULO

    async def _handle_data(self, data: bytes) -> None:
        """Called by aiortc's transport for each packet."""
        # The node sends an ABORT alone. To read all other packets would take the time that the attack needs.
        if data[SCTP_COMMON_HEADER_LENGTH] == AbortChunk.type:
            self.has_ended = True
        elif self.acknowledges:
            numbers = [chunk.tsn for chunk in parse_packet(data)[3] if isinstance(chunk, DataChunk)]
            for number in numbers:
                if uint32_gt(number, self._highest):
                    self._highest = number
            if numbers:
                await self.send([self.sack()])

    def sack(self, gaps: list[tuple[int, int]] | None = None) -> SackChunk:
        """Acknowledges gap blocks, or everything that came but the first chunk."""
        chunk = SackChunk()
        chunk.cumulative_tsn, chunk.advertised_rwnd = self._cumulative, 1 << 20
        chunk.gaps = gaps if gaps is not None else [(2, self.outstanding)] if self.outstanding >= 2 else []
        return chunk

    async def send(self, chunks: Chunks) -> None:
        sctp = self._sctp
        packet = serialize_packet(
            sctp._local_port, sctp._remote_port, sctp._remote_verification_tag, b"".join(map(bytes, chunks))
        )
        try:
            await self._transport._send_data(packet)
        except ConnectionError:
            # The node has closed the connection.
            self.has_ended = True

    async def flood(self, packets: Packets, end: float) -> int:
        """Sends packets until `end`, or until the node ends the association. Returns how many."""
        made, sent = packets(self), 0
        async for _ in ticks(PACKETS_PER_SECOND, end):
            if self.has_ended:
                break
            await self.send(next(made))
            sent += 1
        return sent


# Packets.


def data(tsn: int, stream: int, number: int, flags: int) -> bytes:
    """A fragment of one byte. Chunks of aiortc take too long for so many."""
    header = DataChunk.type, flags, 17, tsn % SCTP_TSN_MODULO, stream, number % 65_536, WEBRTC_BINARY
    return struct.pack("!BBHLHHL4s", *header, b"x")


def skip(tsn: int, *streams: tuple[int, int]) -> ForwardTsnChunk:
    """Gives up everything to a number, and these last messages of streams."""
    chunk = ForwardTsnChunk()
    chunk.cumulative_tsn = tsn % SCTP_TSN_MODULO
    chunk.streams = [(stream, number % 65_536) for stream, number in streams]
    return chunk


def skips(per_packet: int) -> Packets:
    """FORWARD-TSNs that each skip a number and pass the next, while fragments on a thousand streams are held there, and renewed
    as they are skipped."""

    def packets(association: Association) -> Iterator[Chunks]:
        tsn, held = association.tsn, association.tsn + 1_001
        flags = SCTP_DATA_FIRST_FRAG | SCTP_DATA_UNORDERED
        while True:
            last = held + 2 * FRAGMENTS_PER_PACKET
            if last < tsn + AHEAD_MAX:
                # Every second number, so that none continues another.
                yield [data(one, one // 2 % 1_000, 0, flags) for one in range(held, last, 2)]
                held = last
            else:
                yield [skip(one) for one in range(tsn, tsn + 2 * per_packet, 2)]
                tsn += 2 * per_packet

    return packets


def halves_backwards(association: Association) -> Iterator[Chunks]:
    """The first halves of ordered messages, the latest message first, so that all others have to be behind it. They are given
    up together."""
    tsn, number = association.tsn, 0
    while True:
        number += HELD_MAX
        for first in range(0, HELD_MAX, FRAGMENTS_PER_PACKET):
            places = range(first, first + FRAGMENTS_PER_PACKET)
            yield [data(tsn + place, STREAM, number - place, SCTP_DATA_FIRST_FRAG) for place in places]
        tsn += HELD_MAX
        yield [skip(tsn - 1, (STREAM, number))]


def stream_resets(association: Association) -> Iterator[Chunks]:
    """Requests to reset as many streams as a packet has room for."""
    streams = list(range(STREAM, STREAM + 700))
    for number in itertools.count(association.request):
        chunk = ReconfigChunk()
        request = StreamResetOutgoingParam(
            request_sequence=number % SCTP_TSN_MODULO,
            response_sequence=0,
            last_tsn=(association.tsn - 1) % SCTP_TSN_MODULO,
            streams=streams,
        )
        chunk.params.append((SCTP_STR_RESET_OUT_REQUEST, bytes(request)))
        yield [chunk]


def gap_blocks(association: Association) -> Iterator[Chunks]:
    """A SACK with as many gap blocks as the node reads, and one with none, again and again."""
    many = association.sack([(2 + 6 * place, 4 + 6 * place) for place in range(GAP_BLOCKS)])
    return itertools.cycle([[bytes(many)], [association.sack([])]])


def many_sacks(association: Association) -> Iterator[Chunks]:
    """As many SACKs as a packet has room for."""
    return itertools.repeat([bytes(association.sack())] * SACKS_PER_PACKET)


# Attacks.


def with_new_associations(packets: Packets) -> Attack:
    """Sends packets, with a new connection after each end."""

    async def run(node: Node) -> int:
        end, sent = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            association = Association(await Member.join(node, name()))
            sent += await association.flood(packets, end)
            await association.member.leave()
        return sent

    return lambda node: asyncio.run(run(node))


async def withheld(
    node: Node, message: bytes, per_second: int, seconds: float, senders: int = 1
) -> tuple[Association, list[Member], int]:
    """A member of a new channel that is sent messages, and acknowledges all chunks but one; its senders, and how many messages
    they sent."""
    channel = name()
    association = Association(await Member.join(node, channel, (INBOUND,)), acknowledges=True)
    members = [await Member.join(node, channel, (OUTBOUND,)) for _ in range(senders)]
    end = time.monotonic() + seconds
    counts = await asyncio.gather(*(one.flood("#plain", message, end, per_second) for one in members))
    return association, members, sum(counts)


def sacks_of_many_chunks(node: Node) -> int:
    """Acknowledges a thousand chunks and more in many gap blocks, and then in many SACKs of one packet."""

    async def run() -> int:
        association, members, _ = await withheld(node, b"x", 1_500, SECONDS / 2, senders=3)
        end = time.monotonic() + OUTSTANDING_SECONDS_MAX
        while association.outstanding < OUTSTANDING_MIN and (now := time.monotonic()) < end:
            await asyncio.gather(*(one.flood("#plain", b"x", now + 0.25, 1_500) for one in members))
        count = association.outstanding
        assert_clock(count >= OUTSTANDING_MIN, f"only {count} chunks are outstanding")
        sent = await association.flood(gap_blocks, time.monotonic() + SECONDS)
        sent += await association.flood(many_sacks, time.monotonic() + SECONDS)
        for member in (association.member, *members):
            await member.leave()
        return sent

    return asyncio.run(run())


def all_but_one_chunk(node: Node) -> int:
    """Keeps messages at the node, as many as it holds for a member, by acknowledging all chunks but one."""

    async def run() -> int:
        # A megabyte a second, as much as one participant may send.
        pairs = await asyncio.gather(*(withheld(node, bytes(16_384), 60, SECONDS) for _ in range(PAIRS)))
        for association, members, _ in pairs:
            for member in (association.member, *members):
                await member.leave()
        return sum(sent for _, _, sent in pairs)

    return asyncio.run(run())


ATTACKS: dict[str, Attack] = {
    "FORWARD-TSNs, many in a packet": with_new_associations(skips(SKIPS_PER_PACKET)),
    "FORWARD-TSNs, one in a packet": with_new_associations(skips(1)),
    "halves of messages, the latest first": with_new_associations(halves_backwards),
    "lists of streams to reset": with_new_associations(stream_resets),
    "SACKs of many chunks": sacks_of_many_chunks,
    "all but one chunk acknowledged": all_but_one_chunk,
}

LEAST = {
    "FORWARD-TSNs, many in a packet": 90,
    "FORWARD-TSNs, one in a packet": 4_800,
    "halves of messages, the latest first": 370,
    "lists of streams to reset": 360,
    "SACKs of many chunks": 6_000,
    "all but one chunk acknowledged": 240,
}
