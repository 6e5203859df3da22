"""A WHEP viewer that decodes nothing and records the packets at its transport.

It sends no NACK and no receiver report, so lost packets are not retransmitted. A line on standard input requests the records
since the previous one.
"""

from __future__ import annotations

import asyncio
import re
import struct
import sys
import time

from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpCodecParameters, codecs
from aiortc.rtcdtlstransport import RTCDtlsTransport

from .aiortc_session import start_session
from .peer_common import parser, report

# Codecs that aiortc does not have. Without a decoder they need a name and a payload type only.
MORE_CODECS = {45: "video/AV1", 46: "video/VP9", 47: "video/H265"}
SENDER_REPORT = 200
# Seconds from 1900, where NTP counts from, to 1970.
NTP_EPOCH = 2_208_988_800


class Records:
    """RTP packets (kind, SSRC, sequence number, timestamp, arrival) and sender reports (SSRC, NTP time, timestamp)."""

    def __init__(self) -> None:
        self.kinds: dict[int, str] = {}
        self.packets: list[tuple[str, int, int, int, float]] = []
        self.reports: list[tuple[int, float, int]] = []

    def learn(self, answer: str) -> None:
        """Maps payload types to media, without retransmissions."""
        for section in answer.split("\r\nm=")[1:]:
            kind = section.split(" ", 1)[0]
            for payload_type, codec in re.findall(r"a=rtpmap:(\d+) ([^/]+)/", section):
                if codec.lower() != "rtx":
                    self.kinds[int(payload_type)] = kind

    def rtp(self, data: bytes) -> None:
        arrival = time.monotonic()
        kind = self.kinds.get(data[1] & 0x7F)
        if kind:
            sequence, timestamp, ssrc = struct.unpack_from("!HII", data, 2)
            self.packets.append((kind, ssrc, sequence, timestamp, arrival))

    def rtcp(self, data: bytes) -> None:
        offset = 0
        while offset + 4 <= len(data):
            kind, words = struct.unpack_from("!xBH", data, offset)
            if kind == SENDER_REPORT and offset + 20 <= len(data):
                ssrc, seconds, fraction, timestamp = struct.unpack_from("!IIII", data, offset + 4)
                self.reports.append((ssrc, seconds - NTP_EPOCH + fraction / 2**32, timestamp))
            offset += 4 * (words + 1)

    def taken(self) -> dict[str, list]:
        """The records since the previous call."""
        taken = {"packets": self.packets, "reports": self.reports}
        self.packets, self.reports = [], []
        return taken


def through(answer: str, port: int | None) -> str:
    """The answer with the server's candidates at another port, where a proxy listens."""
    return re.sub(r"(a=candidate:\S+ \d+ \S+ \d+ \S+) \d+", rf"\1 {port}", answer) if port else answer


async def run() -> None:
    options = parser()
    options.add_argument("--proxy-port", type=int)
    chosen = options.parse_args()
    records = Records()

    # These methods receive decrypted packets. They replace aiortc's decoder, NACKs and receiver reports.
    async def rtp(_: RTCDtlsTransport, data: bytes, arrival_time_ms: int) -> None:
        records.rtp(data)

    async def rtcp(_: RTCDtlsTransport, data: bytes) -> None:
        records.rtcp(data)

    RTCDtlsTransport._handle_rtp_data = rtp
    RTCDtlsTransport._handle_rtcp_data = rtcp

    for payload_type, name in MORE_CODECS.items():
        codecs.CODECS["video"].append(
            RTCRtpCodecParameters(mimeType=name, clockRate=90_000, payloadType=payload_type)
        )
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    for kind in ("video", "audio"):
        connection.addTransceiver(kind, direction="recvonly")

    def adapt(answer: str) -> str:
        records.learn(answer)
        return through(answer, chosen.proxy_port)

    session = await start_session(connection, chosen.endpoint, chosen.token, adapt)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        report("records", **records.taken())
    status = await loop.run_in_executor(None, session.delete)
    await connection.close()
    report("ended", status=status)


asyncio.run(run())
