"""Offers and answers that exhaust shared resources: payload types, and the time to read and create descriptions."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time

import httpx
import websockets.exceptions
import websockets.sync.client
from aiortc import RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack
from websockets.asyncio.client import ClientConnection, connect

from attacks import SECONDS, Attack, Deliveries
from attacks.data import name
from attacks.signaling import in_parallel
from harness.node import Node
from harness.offers import FINGERPRINT, SDP, offer

# Channel counts and clock rates that no codec has, and profiles that few decoders know.
ODD_CODECS = (
    *(f"{name}/90000/{channels}" for name in ("VP8", "VP9", "H264", "H265", "AV1") for channels in (2, 3, 255)),
    *(f"{name}/48000" for name in ("VP8", "VP9")),
    *(f"VP9/90000\r\na=fmtp:96 profile-id={profile}" for profile in range(8)),
    *(f"AV1/90000\r\na=fmtp:96 profile={profile};tier={tier}" for profile in range(4) for tier in range(2)),
    *(f"H265/90000\r\na=fmtp:96 profile-id={profile};tier-flag={tier}" for profile in range(4) for tier in range(2)),
    *(
        f"H264/90000\r\na=fmtp:96 packetization-mode={mode};profile-level-id={profile}"
        for mode in range(3)
        for profile in ("42e01f", "42001f", "4d001f", "640c1f", "64001f", "f4001f", "6e001f", "7a001f")
    ),
)


def odd_payload_formats(node: Node) -> int:
    """Publishes with one rare or invalid format after the other to a channel."""
    delivered = Deliveries()
    end = time.monotonic() + SECONDS
    with httpx.Client(base_url=node.origin, headers=SDP, timeout=5) as client:
        for index, codec in enumerate(itertools.cycle(ODD_CODECS)):
            if time.monotonic() >= end:
                return delivered.count
            text = offer("sendonly", codec=codec)
            if index % 2:
                text = text.replace("opus/48000/2", ("red/48000/1", "opus/48000/1", "red/8000/2")[index % 3])
            # A section without a format that the node forwards is refused.
            if client.post("/whip/odd-formats", content=text).status_code in (201, 422):
                delivered.add()
            time.sleep(0.02)


async def _publish(node: Node, channel: str) -> RTCPeerConnection:
    """A publisher that connects, so that its track is offered to every participant of the channel."""
    peer = RTCPeerConnection()
    peer.addTransceiver(AudioStreamTrack(), direction="sendonly")
    await peer.setLocalDescription(await peer.createOffer())
    async with httpx.AsyncClient(headers=SDP, timeout=10) as client:
        response = await client.post(f"{node.origin}/whip/{channel}", content=peer.localDescription.sdp)
    assert response.status_code == 201, f"a publisher of the attack was refused: {response.status_code} {response.text}"
    await peer.setRemoteDescription(RTCSessionDescription(response.text, "answer"))
    return peer


def _answer(text: str, fragment: str) -> str:
    """An answer that accepts every media section of an offer, without media."""
    head, *sections = text.split("\r\nm=")
    lines = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0"]
    lines += [line for line in head.split("\r\n") if line.startswith("a=group:")]
    for section in sections:
        first, *rest = section.split("\r\n")
        lines += ["m=" + first, "c=IN IP4 0.0.0.0", f"a=ice-ufrag:{fragment}", "a=ice-pwd:passwordpasswordpassword"]
        lines += [f"a=fingerprint:{FINGERPRINT}", "a=setup:active", "a=rtcp-mux"]
        lines += [
            line
            for line in rest
            if line.startswith(("a=mid:", "a=rtpmap:", "a=fmtp:", "a=rtcp-fb:", "a=extmap:"))
        ]
        lines.append("a=recvonly" if "a=sendonly" in rest else "a=inactive")
    return "\r\n".join(lines) + "\r\n"


async def _member(node: Node, channel: str, index: int, answered: Deliveries) -> None:
    """A participant that answers every offer immediately."""
    async with connect(node.signaling, max_size=None) as socket:
        join = {"type": "connect", "role": "recvonly", "channel_id": channel, "sora_client": "attack"}
        await socket.send(json.dumps(join))
        await _answer_all(socket, f"user{index}", answered)


async def _answer_all(socket: ClientConnection, fragment: str, answered: Deliveries) -> None:
    async for text in socket:
        message = json.loads(text)
        if message["type"] in ("offer", "re-offer"):
            kind = "answer" if message["type"] == "offer" else "re-answer"
            await socket.send(json.dumps({"type": kind, "sdp": _answer(message["sdp"], fragment)}))
            answered.add()


async def _churn(node: Node) -> int:
    channel, answered = "offer-churn", Deliveries()
    members = [asyncio.create_task(_member(node, channel, index, answered)) for index in range(60)]
    publishers = [await _publish(node, channel) for _ in range(6)]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        # Each change of a publisher requires a new offer to every participant.
        await publishers.pop(0).close()
        publishers.append(await _publish(node, channel))
        await asyncio.sleep(0.1)
    # A member that was put out has ended by itself, which is an end of its part of the attack.
    present = sum(not task.done() for task in members)
    for task in members:
        task.cancel()
    await asyncio.gather(*members, *(publisher.close() for publisher in publishers), return_exceptions=True)
    return answered.count if present else 0


def offer_churn(node: Node) -> int:
    """Sixty participants of a channel answer every offer while publishers join and leave."""
    return asyncio.run(_churn(node))


def renegotiations(node: Node) -> int:
    """Clients of 1:1 calls that pass the node offer again and again, with another ICE user each time, as often as it answers."""
    url, headers = node.signaling.replace("/signaling", "/relay"), {"X-Forwarded-For": "198.51.100.9"}

    def act(end: float, delivered: Deliveries) -> None:
        # The node ends a client that sends too often, which comes again.
        with contextlib.suppress(websockets.exceptions.ConnectionClosed), websockets.sync.client.connect(
            url, open_timeout=5, max_size=None, additional_headers=headers
        ) as socket:

            def ask(message: dict, answer: str) -> None:
                socket.send(json.dumps(message))
                while json.loads(socket.recv(timeout=5))["type"] != answer:
                    pass

            ask({"type": "register", "roomId": name(), "media": "server"}, "accept")
            ask({"type": "offer", "sdp": offer("sendrecv")}, "answer")
            for number in itertools.count():
                if time.monotonic() >= end:
                    return
                ask({"type": "offer", "sdp": offer("sendrecv", ufrag=f"user{number}")}, "answer")
                delivered.add()

    return in_parallel(4, act)


ATTACKS: dict[str, Attack] = {
    "odd payload formats": odd_payload_formats,
    "offer churn": offer_churn,
    "renegotiations": renegotiations,
}

LEAST = {
    "odd payload formats": 45,
    "offer churn": 1_000,
    "renegotiations": 3_000,
}
