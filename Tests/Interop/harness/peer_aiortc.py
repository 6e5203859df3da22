"""aiortc as publisher or viewer."""

from __future__ import annotations

import asyncio
import fractions
import math
import sys

import aioice
import numpy
from aiortc import (
    AudioStreamTrack,
    RTCConfiguration,
    RTCPeerConnection,
    RTCRtpReceiver,
    RTCRtpSender,
    VideoStreamTrack,
)
from aiortc.mediastreams import MediaStreamError
from aiortc.rtp import RtcpSrPacket
from av import AudioFrame, VideoFrame

from .aiortc_session import start_session
from .peer_common import parser, report


AUDIO_RATE, AUDIO_SAMPLES = 48000, 960


class MovingBar(VideoStreamTrack):
    """A bright bar that moves over a grey ramp."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.width, self.height = width, height
        self.count = 0

    async def recv(self) -> VideoFrame:
        timestamp, time_base = await self.next_timestamp()
        ramp = numpy.linspace(40, 120, self.width, dtype=numpy.uint8)
        picture = numpy.tile(ramp[None, :, None], (self.height, 1, 3))
        left = self.count * 6 % (self.width - 40)
        picture[:, left : left + 40] = (240, 200, 90)
        self.count += 1
        frame = VideoFrame.from_ndarray(numpy.ascontiguousarray(picture), format="rgb24")
        frame.pts, frame.time_base = timestamp, time_base
        return frame


class Tone(AudioStreamTrack):
    """A sine of 440 Hz at 48 kHz, in frames of 20 ms."""

    position = 0
    began: float | None = None

    async def recv(self) -> AudioFrame:
        loop = asyncio.get_running_loop()
        self.began = self.began if self.began is not None else loop.time()
        await asyncio.sleep(max(0.0, self.began + self.position / AUDIO_RATE - loop.time()))
        times = (numpy.arange(AUDIO_SAMPLES) + self.position) / AUDIO_RATE
        samples = (numpy.sin(times * 2 * math.pi * 440) * 8000).astype(numpy.int16)
        frame = AudioFrame.from_ndarray(samples[None, :], format="s16", layout="mono")
        frame.sample_rate = AUDIO_RATE
        frame.pts, frame.time_base = self.position, fractions.Fraction(1, AUDIO_RATE)
        self.position += AUDIO_SAMPLES
        return frame


class Seen:
    """The numbers of frames that a viewer decoded."""

    frames = 0
    width = height = 0
    audio_frames = 0
    loud_frames = 0

    async def look(self, track: VideoStreamTrack) -> None:
        try:
            while True:
                frame = await track.recv()
                self.frames += 1
                self.width, self.height = frame.width, frame.height
        except MediaStreamError:
            return

    async def listen(self, track: AudioStreamTrack) -> None:
        try:
            while True:
                samples = (await track.recv()).to_ndarray().astype(numpy.float64)
                self.audio_frames += 1
                self.loud_frames += int(math.sqrt(float(numpy.mean(samples**2))) > 300)
        except MediaStreamError:
            return


def falsify_audio_clock(seconds: float) -> None:
    """Shifts the NTP time in the audio's sender reports, like a server with a broken clock."""

    send = RTCRtpSender._send_rtcp

    async def falsified(sender: RTCRtpSender, packets: list) -> None:
        for packet in packets:
            if isinstance(packet, RtcpSrPacket) and sender.kind == "audio":
                packet.sender_info.ntp_timestamp += int(seconds * 2**32)
        await send(sender, packets)

    RTCRtpSender._send_rtcp = falsified


def answer_no_checks() -> None:
    """Drops the server's connectivity checks, like a client that is not there any more. Its own checks go on."""
    aioice.Connection.request_received = lambda *_: None


async def run() -> None:
    options = parser()
    options.add_argument("--answers-no-checks", action="store_true")
    options.add_argument("--audio-clock-seconds", type=float, default=0.0)
    options.add_argument("--size", default="640x360")
    chosen = options.parse_args()
    width, height = (int(part) for part in chosen.size.split("x"))
    if chosen.answers_no_checks:
        answer_no_checks()
    if chosen.audio_clock_seconds:
        falsify_audio_clock(chosen.audio_clock_seconds)
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    seen = Seen()
    publishing = chosen.role == "publish"
    video = connection.addTransceiver(
        MovingBar(width, height) if publishing else "video", direction="sendonly" if publishing else "recvonly"
    )
    connection.addTransceiver(Tone() if publishing else "audio", direction="sendonly" if publishing else "recvonly")
    known = (RTCRtpSender if publishing else RTCRtpReceiver).getCapabilities("video").codecs
    wanted = [one for one in known if one.mimeType.lower() in (f"video/{chosen.codec.lower()}", "video/rtx")]
    video.setCodecPreferences(wanted)
    tasks: list[asyncio.Task[None]] = []

    @connection.on("track")
    def _(track: VideoStreamTrack) -> None:
        tasks.append(asyncio.ensure_future(seen.look(track) if track.kind == "video" else seen.listen(track)))

    session = await start_session(connection, chosen.endpoint, chosen.token)
    loop = asyncio.get_running_loop()
    over = loop.run_in_executor(None, sys.stdin.read)
    while not over.done():
        await asyncio.wait([over], timeout=0.25)
        sent = sum(one.packetsSent for one in (await connection.getStats()).values() if one.type == "outbound-rtp")
        report(
            "stats",
            frames=seen.frames,
            width=seen.width,
            height=seen.height,
            audio=seen.audio_frames,
            loud=seen.loud_frames,
            packets_sent=sent,
        )
    status = await loop.run_in_executor(None, session.delete)
    await connection.close()
    for task in tasks:
        task.cancel()
    report("ended", status=status, frames=seen.frames, loud=seen.loud_frames)


asyncio.run(run())
