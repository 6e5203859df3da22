"""Firefox and Chromium with each other: VP8, VP9 and AV1. Debian's Firefox has to download H.264, so it is not tested."""

from __future__ import annotations

import time
from typing import Callable, Iterator

import pytest

from harness.chromium import ChromiumPage
from harness.firefox import Firefox, FirefoxPage
from harness.node import Node
from harness.page import Page
from harness.playback import assert_smooth, observe
from harness.transport import TransportViewer

OpenPage = Callable[..., ChromiumPage]
StartTransport = Callable[..., TransportViewer]


@pytest.fixture
def firefox_page(firefox: Firefox, node: Node) -> Iterator[FirefoxPage]:
    page = firefox.page(node.origin)
    yield page
    page.close()


def play(publisher: Page, viewer: Page, receiver: TransportViewer, channel: str, codec: str) -> None:
    viewer.open_channel(channel)
    publisher.open_channel(channel)
    publisher.publish(codec)
    viewer.watched()
    time.sleep(1)
    playback = observe(viewer.other, 6, receiver, publisher.published)
    assert_smooth(playback)
    assert playback.last["codec"] == codec


@pytest.mark.parametrize("codec", ["VP8", "VP9"])
def test_firefox_publishes_and_chromium_plays(
    firefox_page: FirefoxPage, open_page: OpenPage, transport: StartTransport, node: Node, channel: str, codec: str
) -> None:
    play(firefox_page, open_page(node.origin), transport(), channel, codec)


@pytest.mark.parametrize("codec", ["VP8", "VP9", "AV1"])
def test_chromium_publishes_and_firefox_plays(
    firefox_page: FirefoxPage, open_page: OpenPage, transport: StartTransport, node: Node, channel: str, codec: str
) -> None:
    play(open_page(node.origin), firefox_page, transport(), channel, codec)


def test_media_continues_through_an_ice_restart_of_firefox(
    firefox_page: FirefoxPage, open_page: OpenPage, transport: StartTransport, node: Node, channel: str
) -> None:
    receiver = transport()
    viewer = open_page(node.origin)
    viewer.open_channel(channel)
    firefox_page.open_channel(channel)
    firefox_page.publish("VP8")
    viewer.watched()
    moved, answered = node.total("nagare_path_changes_total"), node.total("nagare_path_checks_answered_total")
    firefox_page.evaluate("window.nagare.restartIce()")
    time.sleep(1)
    assert_smooth(observe(viewer.other, 4, receiver, firefox_page.published))
    moves = node.total("nagare_path_changes_total") - moved
    assert moves >= 1
    assert node.total("nagare_path_checks_answered_total") - answered >= moves
    assert firefox_page.stats()["publish"]["connections"] == 1
