"""GStreamer's webrtcbin and aiortc publish to Chromium, and watch it."""

from __future__ import annotations

import time
from typing import Callable

import pytest

from harness.chromium import ChromiumPage
from harness.clocks import assert_clock
from harness.machine import WaitMeter
from harness.node import Node
from harness.peers import Peer
from harness.playback import assert_smooth, observe
from harness.transport import TransportViewer

OpenPage = Callable[..., ChromiumPage]
StartPeer = Callable[..., Peer]
StartTransport = Callable[..., TransportViewer]
FRAMES_PER_SECOND_MIN = 18
SHOWN = {"VP8": "VP8", "H264": "H.264"}


@pytest.mark.parametrize("codec", ["VP8", "H264"])
@pytest.mark.parametrize("kind", ["gstreamer", "aiortc"])
def test_a_peer_publishes_and_chromium_plays(
    peer: StartPeer,
    open_page: OpenPage,
    transport: StartTransport,
    node: Node,
    channel: str,
    kind: str,
    codec: str,
) -> None:
    receiver = transport()
    viewer = open_page(node.origin)
    viewer.open_channel(channel)
    publisher = peer(kind, "publish", f"{node.origin}/whip/{channel}?name={kind}", codec)
    publisher.wait("connected", 10)
    viewer.watched()
    receiver.wait_until_live()
    playback = observe(viewer.other, 5, receiver)
    # aiortc's sender reports have the time of encoding, not of capture, so video and audio are not in sync.
    # GStreamer's are wrong while its encoder has no processor.
    assert_smooth(playback, in_sync=kind != "aiortc", has_capture_clock=False)
    assert (playback.last["codec"], playback.last["audioCodec"]) == (SHOWN[codec], "Opus")
    assert playback.last["name"] == kind
    # A later viewer needs a key frame request: these encoders make a key frame by themselves only every ten seconds.
    latecomer = open_page(node.origin)
    latecomer.open_channel(channel)
    latecomer.watched(seconds=4)
    assert publisher.end()["status"] == 200


@pytest.mark.parametrize("codec", ["VP8", "H264"])
@pytest.mark.parametrize("kind", ["gstreamer", "aiortc"])
def test_chromium_publishes_and_a_peer_plays(
    peer: StartPeer, open_page: OpenPage, node: Node, channel: str, kind: str, codec: str
) -> None:
    publisher = open_page(node.origin)
    publisher.open_channel(channel)
    publisher.publish(codec)
    viewer = peer(kind, "watch", f"{node.origin}/whep/{channel}", codec)
    seen = viewer.wait("stats", 12, frames=20, loud=1)
    meter = WaitMeter()
    time.sleep(4)
    later, wait = viewer.last("stats"), meter.lap()
    grown = later["frames"] - seen["frames"]
    starved = grown >= 4 * FRAMES_PER_SECOND_MIN * (1 - wait.waited / wait.seconds)
    assert_clock(grown >= 4 * FRAMES_PER_SECOND_MIN, f"{grown} frames in 4 s: {seen} … {later}, {wait}", starved or None)
    # A browser starts at a low resolution and raises it as the transport feedback allows.
    viewer.wait("stats", 15, width=640, height=360)
    final = viewer.end()
    assert final["status"] == 200
