"""`nagare impair` between browsers and the node: what holds on any link that is wide enough."""

from __future__ import annotations

import subprocess
import time
from typing import Callable

import pytest

from harness.browser_member import BrowserMember
from harness.chromium import ChromiumPage
from harness.impair import Link, Timeline, assert_plays
from harness.node import BINARY, ENVIRONMENT, Node
from harness.page import Page
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]
StartLink = Callable[..., Link]


def publish(open_page: OpenPage, node: Node, channel: str, **publication: object) -> Page:
    """Publishes past the link."""
    publisher = open_page(node.origin)
    publisher.open_channel(channel)
    publisher.publish(codec="VP8", **publication)
    return publisher


def watch(viewer: Page, channel: str) -> Page:
    viewer.open_channel(channel)
    viewer.watched(seconds=20)
    return viewer


def test_a_viewer_plays_through_a_slow_link(
    open_page: OpenPage, open_viewer: Callable[[str], Page], link: StartLink, node: Node, channel: str
) -> None:
    slow = link(down="rate=3M,delay=40ms,jitter=5ms", up="delay=40ms")
    publish(open_page, node, channel)
    viewer = watch(open_viewer(slow.origin), channel)
    time.sleep(2)
    seen = Timeline.watch(viewer.other, 5)
    # Firefox reports the round trip after its first consent check.
    wait_until(lambda: (viewer.other().get("rtt") or 0) >= 75, "the link's round trip time", 10, describe=viewer.stats)
    assert_plays(seen)


def test_retransmissions_pass_through_a_lossy_link(
    open_page: OpenPage, open_viewer: Callable[[str], Page], link: StartLink, node: Node, channel: str
) -> None:
    lossy = link(down="rate=3M,delay=40ms,loss=2%", up="delay=40ms")
    publish(open_page, node, channel)
    viewer = watch(open_viewer(lossy.origin), channel)
    time.sleep(2)
    seen = Timeline.watch(viewer.other, 8)
    assert sum(second["down_dropped"] for second in lossy.seconds()) > 0, lossy.output()
    assert_plays(seen, frozen_seconds=1, concealed=0.08)


def test_media_continues_after_an_outage(open_page: OpenPage, link: StartLink, node: Node, channel: str) -> None:
    broken = link()
    publish(open_page, node, channel)
    viewer = watch(open_page(broken.origin), channel)
    for direction in ("down", "up"):
        broken.change(direction, "loss=100%")
    before = viewer.other()["frames"]
    lost = Timeline.watch(viewer.other, 6)
    assert lost.longest_pause >= 4.5, lost
    for direction in ("down", "up"):
        broken.change(direction, "loss=0")
    wait_until(lambda: viewer.other()["frames"] > before + 30, "the picture's return", 5, describe=viewer.stats)
    assert viewer.other()["connections"] == 1, "the viewer had to connect again"


def test_two_viewers_share_one_link(open_page: OpenPage, link: StartLink, node: Node, channel: str) -> None:
    shared = link(down="rate=4M,delay=20ms")
    publish(open_page, node, channel)
    viewers = [watch(open_page(shared.origin), channel) for _ in range(2)]
    time.sleep(2)
    for seen in Timeline.watch_all([one.other for one in viewers], 5):
        assert_plays(seen)
    assert all("2 clients" in line for line in shared.lines[-3:]), shared.output()


def test_an_ice_restart_stays_on_the_link(open_page: OpenPage, link: StartLink, node: Node, channel: str) -> None:
    slow = link(down="delay=40ms")
    publish(open_page, node, channel)
    viewer = watch(open_page(slow.origin), channel)
    viewer.evaluate("window.nagare.restartIce()")
    frames = viewer.other()["frames"]
    wait_until(lambda: viewer.other()["frames"] > frames + 60, "the picture after the restart", 10, describe=viewer.stats)
    wait_until(lambda: (viewer.other().get("rtt") or 0) >= 35, "the round trip by the link", 5, describe=viewer.stats)


def test_sora_signaling_passes_through_the_link(open_page: OpenPage, link: StartLink, node: Node, channel: str) -> None:
    slow = link(down="rate=3M,delay=40ms")
    near = BrowserMember(open_page(node.origin), node, channel, "sendrecv", video={"codec_type": "VP8"}).connected()
    far = BrowserMember(open_page(slow.origin), slow, channel, "sendrecv", video={"codec_type": "VP8"}).connected()
    far.sees(near.id)
    near.sees(far.id)
    wait_until(lambda: any(one["down"] > 0.1 for one in slow.seconds()), "media on the link", 5, describe=slow.output)
    assert far.disconnect() == (1000, "TYPE-DISCONNECT")


@pytest.mark.parametrize(
    "options, sentence",
    [
        (("--down", "rate=fast"), "--down: rate=fast cannot be read: write rate=1M or 3M/600k@20s/3M@40s."),
        (("--to", "https://127.0.0.1:8443"), "this command does not connect with TLS"),
        (("--to", "nowhere"), "write the node's URL"),
        (("--listen", "8088"), "write an IP address and a port"),
    ],
)
def test_a_wrong_option_is_explained(options: tuple[str, ...], sentence: str) -> None:
    command = [str(BINARY), "impair", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=10, env=ENVIRONMENT, check=False)
    assert ended.returncode == 64
    assert sentence in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr
