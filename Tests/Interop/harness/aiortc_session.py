"""A WHIP or WHEP session of an aiortc connection."""

from __future__ import annotations

import asyncio
from typing import Callable

from aiortc import RTCPeerConnection, RTCSessionDescription

from .peer_common import HTTPSession, report


async def start_session(
    connection: RTCPeerConnection, endpoint: str, token: str | None, adapt: Callable[[str], str] = str
) -> HTTPSession:
    """Sends the connection's offer and applies the answer, as `adapt` changes it. State changes are reported."""

    @connection.on("connectionstatechange")
    def _() -> None:
        report(connection.connectionState)

    await connection.setLocalDescription(await connection.createOffer())
    session = HTTPSession(endpoint, token)
    loop = asyncio.get_running_loop()
    answer = await loop.run_in_executor(None, session.post, connection.localDescription.sdp)
    await connection.setRemoteDescription(RTCSessionDescription(adapt(answer), "answer"))
    return session
