"""Records the dependency descriptors that Chromium sends, for Tests/ForwardingTests/Resources.

    .build-venv/bin/python Tests/Interop/record_descriptors.py FOLDER [NAME…]

A file has a line for each packet: sequence number, timestamp, marker, payload bytes and the descriptor in hexadecimal.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiortc import RTCPeerConnection, RTCSessionDescription, codecs, rtcdtlstransport
from aiortc.rtcrtpparameters import RTCRtcpFeedback, RTCRtpCodecParameters, RTCRtpHeaderExtensionParameters
from aiortc.rtcrtpreceiver import RTCRtpReceiver
from aiortc.rtp import RtpPacket
from playwright.async_api import async_playwright

from harness.chromium import EXECUTABLE, FLAGS

URI = "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
STREAMS = {
    "av1-l3t3": ("AV1", ["L3T3"]),
    "av1-l3t3-key": ("AV1", ["L3T3_KEY"]),
    "av1-l2t2-key-shift": ("AV1", ["L2T2_KEY_SHIFT"]),
    "vp9-l3t3-key": ("VP9", ["L3T3_KEY"]),
}
PACKETS = 300
OFFER = """async ([codec, modes, uri]) => {
    const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 960, height: 540, frameRate: 15 } })
    const pc = (window.pc = new RTCPeerConnection())
    const count = modes.length
    const encodings = modes.map((scalabilityMode, place) => ({
        scalabilityMode, maxBitrate: 1500000, scaleResolutionDownBy: 2 ** (count - 1 - place),
        ...(count > 1 ? { rid: `r${place}` } : {}),
    }))
    const [track] = stream.getVideoTracks()
    const transceiver = pc.addTransceiver(track, { direction: "sendonly", sendEncodings: encodings })
    const known = RTCRtpSender.getCapabilities("video").codecs
    transceiver.setCodecPreferences(known.filter((one) => one.mimeType === `video/${codec}`))
    if (transceiver.setHeaderExtensionsToNegotiate) {
        const all = transceiver.getHeaderExtensionsToNegotiate()
        for (const one of all) if (one.uri === uri) one.direction = "sendrecv"
        transceiver.setHeaderExtensionsToNegotiate(all)
    }
    await pc.setLocalDescription()
    await new Promise((done) => {
        if (pc.iceGatheringState === "complete") done()
        pc.onicegatheringstatechange = () => pc.iceGatheringState === "complete" && done()
    })
    return pc.localDescription.sdp
}"""


def descriptor(data: bytes, identifier: int) -> bytes:
    """The header extension element with an identifier."""
    start = 12 + 4 * (data[0] & 0x0F)
    if not data[0] & 0x10:
        return b""
    profile, end = data[start : start + 2], start + 4 + 4 * int.from_bytes(data[start + 2 : start + 4], "big")
    place = start + 4
    while place < end:
        if data[place] == 0:
            place += 1
            continue
        if profile == b"\xbe\xde":
            found, length, place = data[place] >> 4, (data[place] & 0x0F) + 1, place + 1
        else:
            found, length, place = data[place], data[place + 1], place + 2
        if found == identifier:
            return data[place : place + length]
        place += length
    return b""


async def record(page, name: str) -> list[str]:
    codec, modes = STREAMS[name]
    offer = await page.evaluate(OFFER, [codec, modes, URI])
    extension = next((line for line in offer.splitlines() if URI in line), None)
    if extension is None:
        raise SystemExit("Chromium does not offer the extension")
    identifier = int(extension.split(":")[1].split()[0].split("/")[0])
    packets: dict[int, list[str]] = {}
    parse = RtpPacket.parse

    def note(data: bytes, *rest):
        packet = parse(data, *rest)
        payload = len(packet.payload)
        if payload:
            line = f"{packet.sequence_number} {packet.timestamp} {packet.marker} {payload}"
            packets.setdefault(packet.ssrc, []).append(f"{line} {descriptor(data, identifier).hex() or '-'}")
        return packet

    rtcdtlstransport.RtpPacket.parse = staticmethod(note)
    receiver = RTCPeerConnection()
    await receiver.setRemoteDescription(RTCSessionDescription(offer, "offer"))
    await receiver.setLocalDescription(await receiver.createAnswer())
    # Nothing reports on the path: the rate stays as it is set here.
    answer = receiver.localDescription.sdp
    number = next(line.split(":")[1].split()[0] for line in answer.splitlines() if f" {codec}/90000" in line)
    # A descriptor with a structure needs the two-byte form.
    answer = answer.replace("a=msid-semantic", "a=extmap-allow-mixed\r\na=msid-semantic")
    answer += f"a=fmtp:{number} x-google-start-bitrate=3000;x-google-min-bitrate=3000\r\n"
    await page.evaluate("(sdp) => pc.setRemoteDescription({ type: 'answer', sdp })", answer)
    isAsked = False
    for _ in range(240):
        await asyncio.sleep(0.5)
        count = max(map(len, packets.values()), default=0)
        if count > PACKETS / 2 and not isAsked:
            isAsked = True
            for ssrc in packets:
                await receiver.getTransceivers()[0].receiver._send_rtcp_pli(ssrc)
        if count >= PACKETS:
            break
    rtcdtlstransport.RtpPacket.parse = staticmethod(parse)
    await page.evaluate("pc.close()")
    await receiver.close()
    streams = [lines for lines in packets.values() if not all(line.endswith("-") for line in lines)]
    return [line for lines in streams for line in ["", *lines[:PACKETS]]][1:]


async def ignore(*_, **__) -> None:
    """The packets are not decoded."""


async def main(folder: Path, names: list[str]) -> None:
    feedback = [RTCRtcpFeedback("nack", "pli"), RTCRtcpFeedback("goog-remb")]
    codecs.CODECS["video"] = [
        RTCRtpCodecParameters(f"video/{name}", 90_000, payloadType=97 + place, rtcpFeedback=feedback)
        for place, name in enumerate(["AV1", "VP9", "VP8"])
    ]
    codecs.HEADER_EXTENSIONS["video"].append(RTCRtpHeaderExtensionParameters(id=12, uri=URI))
    RTCRtpReceiver._handle_rtp_packet = ignore
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=EXECUTABLE, args=FLAGS)
        context = await browser.new_context(permissions=["camera"])
        for name in names or STREAMS:
            page = await context.new_page()
            # A camera needs a secure origin.
            await page.route("**/*", lambda route: route.fulfill(body="<!doctype html>"))
            await page.goto("http://localhost/")
            lines = await record(page, name)
            (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
            print(name, len(lines), flush=True)
            await page.close()
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
