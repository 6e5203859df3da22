"""FFmpeg 8 publishes over WHIP. PyAV includes its muxer, built with GnuTLS, whose certificate uses the curve P-224."""

from __future__ import annotations

import threading
import time
from fractions import Fraction

import av
import httpx
import numpy
import pytest

from harness.node import Node
from harness.offers import SDP, offer
from harness.waiting import wait_until

FRAME_RATE = 30
AUDIO_RATE, AUDIO_SAMPLES = 48000, 960
CONSENT_SECONDS = 36


class Publisher:
    """Encodes and sends in a thread of its own, until `end`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.ending = threading.Event()
        self.failure: Exception | None = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        try:
            self.publish()
        except Exception as failure:  # The test reports FFmpeg's errors.
            self.failure = failure

    def publish(self) -> None:
        container = av.open(self.url, "w", format="whip")
        options = {"preset": "ultrafast", "tune": "zerolatency", "profile": "baseline", "g": str(FRAME_RATE)}
        video = container.add_stream("libx264", rate=FRAME_RATE, options=options)
        video.width, video.height, video.pix_fmt = 320, 240, "yuv420p"
        audio = container.add_stream("libopus", rate=AUDIO_RATE, layout="stereo")
        began = time.monotonic()
        heard = 0
        for number in range(60 * FRAME_RATE):
            if self.ending.is_set():
                break
            picture = av.VideoFrame.from_ndarray(
                numpy.full((240, 320, 3), number % 256, dtype=numpy.uint8), format="rgb24"
            )
            picture.pts, picture.time_base = number, Fraction(1, FRAME_RATE)
            container.mux(video.encode(picture))
            while heard * AUDIO_SAMPLES * FRAME_RATE < number * AUDIO_RATE:
                sound = av.AudioFrame.from_ndarray(
                    numpy.zeros((1, 2 * AUDIO_SAMPLES), dtype=numpy.int16), format="s16", layout="stereo"
                )
                sound.sample_rate = AUDIO_RATE
                sound.pts, sound.time_base = heard * AUDIO_SAMPLES, Fraction(1, AUDIO_RATE)
                container.mux(audio.encode(sound))
                heard += 1
            time.sleep(max(0.0, began + number / FRAME_RATE - time.monotonic()))
        container.close()

    def end(self) -> None:
        self.ending.set()
        self.thread.join(20)
        assert not self.thread.is_alive(), "FFmpeg did not end"


def test_ffmpeg_publishes(node: Node) -> None:
    assert "whip" in av.formats_available, "PyAV does not include FFmpeg 8"
    failed = node.total("nagare_peers_closed_total", "handshake_failed")
    publisher = Publisher(f"{node.origin}/whip/ffmpeg?name=ffmpeg")
    began = time.monotonic()

    def connected() -> bool:
        if publisher.failure is not None:
            pytest.fail(f"FFmpeg could not publish: {publisher.failure}")
        return node.total("nagare_packets_received_total", "protocol=rtp") > 100

    wait_until(connected, "media from FFmpeg", 20, describe=node.log_tail)
    assert len(node.publishing("ffmpeg")) == 1, node.channel("ffmpeg")
    # A viewer can subscribe to FFmpeg's codecs.
    answer = httpx.post(
        f"{node.origin}/whep/ffmpeg", content=offer("recvonly"), headers=SDP, timeout=5
    )
    assert answer.status_code == 201, answer.text
    # It answers no connectivity check of the node, and goes on for longer than consent lasts (RFC 7675 §5.1).
    time.sleep(max(0.0, began + CONSENT_SECONDS - time.monotonic()))
    received = node.total("nagare_packets_received_total", "protocol=rtp")
    wait_until(
        lambda: node.total("nagare_packets_received_total", "protocol=rtp") > received + 100,
        "media from FFmpeg after consent would have expired", 10, describe=node.log_tail,
    )  # fmt: skip
    assert len(node.publishing("ffmpeg")) == 1, node.channel("ffmpeg")
    publisher.end()
    assert publisher.failure is None, f"FFmpeg failed while it published: {publisher.failure}"
    assert node.total("nagare_peers_closed_total", "handshake_failed") == failed
