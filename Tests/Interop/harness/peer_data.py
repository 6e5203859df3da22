"""aiortc as a client with one data channel: `python -m harness.peer_data ROLE ENDPOINT --codec CODEC --label LABEL`.

It sends each line of its standard input as a message, reports the messages that it gets, and leaves at the end of the input.
"""

from __future__ import annotations

import asyncio
import sys

from aiortc import RTCConfiguration, RTCPeerConnection
from aiortc.mediastreams import AudioStreamTrack

from .aiortc_session import start_session
from .peer_common import parser, report


async def run() -> None:
    options = parser()
    options.add_argument("--label", required=True)
    chosen = options.parse_args()
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    publishing = chosen.role == "publish"
    # WHIP and WHEP have no session without media.
    connection.addTransceiver(
        AudioStreamTrack() if publishing else "audio", direction="sendonly" if publishing else "recvonly"
    )
    channel = connection.createDataChannel(chosen.label)

    @channel.on("open")
    def _() -> None:
        report("opened")

    @channel.on("message")
    def _(message: str | bytes) -> None:
        report("message", text=message if isinstance(message, str) else message.decode())

    @channel.on("close")
    def _() -> None:
        report("closed")

    session = await start_session(connection, chosen.endpoint, chosen.token)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        channel.send(line.strip())
    status = await loop.run_in_executor(None, session.delete)
    await connection.close()
    report("ended", status=status)


asyncio.run(run())
