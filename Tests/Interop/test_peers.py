"""GStreamer's webrtcbin and aiortc publish to Chromium, and watch it."""

from __future__ import annotations

import time
from typing import Callable

import pytest

from harness.chromium import ChromiumPage
from harness.node import Node
from harness.peers import Peer
from harness.playback import assert_smooth, observe

OpenPage = Callable[..., ChromiumPage]
StartPeer = Callable[..., Peer]
SHOWN = {"VP8": "VP8", "H264": "H.264"}


@pytest.mark.parametrize("codec", ["VP8", "H264"])
@pytest.mark.parametrize("kind", ["gstreamer", "aiortc"])
def test_a_peer_publishes_and_chromium_plays(
    peer: StartPeer, open_page: OpenPage, node: Node, channel: str, kind: str, codec: str
) -> None:
    viewer = open_page(node.origin)
    viewer.open_channel(channel)
    publisher = peer(kind, "publish", f"{node.origin}/whip/{channel}?name={kind}", codec)
    publisher.wait("connected", 10)
    viewer.watched()
    time.sleep(1)
    playback = observe(lambda: next(iter(viewer.sample()["watch"].values())), 5)
    # aiortc's sender reports carry the time of encoding, which differs between picture and sound.
    assert_smooth(playback, in_sync=kind != "aiortc")
    assert (playback.last["codec"], playback.last["audioCodec"]) == (SHOWN[codec], "Opus")
    assert playback.last["name"] == kind
    # One who comes later needs a key frame of its own: the encoders here make none for ten seconds.
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
    time.sleep(4)
    later = viewer.last("stats")
    assert later["frames"] - seen["frames"] >= 4 * 18, f"too few frames: {seen} … {later}"
    # A browser begins small and grows as far as the feedback about its packets lets it.
    viewer.wait("stats", 15, width=640, height=360)
    final = viewer.end()
    assert final["status"] == 200


def test_a_peer_that_vanishes_is_let_go(peer: StartPeer, node: Node, channel: str) -> None:
    publisher = peer("aiortc", "publish", f"{node.origin}/whip/{channel}")
    publisher.wait("connected", 10)
    assert len(node.publishing(channel)) == 1
    publisher.kill()
    deadline = time.monotonic() + 45
    while node.publishing(channel):
        assert time.monotonic() < deadline, "a publisher without consent for 45 s is still there"
        time.sleep(0.5)
