"""Browsers that reach the node over TCP only."""

from __future__ import annotations

from typing import Callable

from harness.chromium import ChromiumPage
from harness.node import Node
from harness.relay_viewer import RelayViewer
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]


def test_a_whep_viewer_without_udp_watches_over_tcp(open_page: OpenPage, node: Node, channel: str) -> None:
    publisher = open_page(node.origin)
    publisher.open_channel(channel)
    publisher.publish(codec="VP8")
    ended = node.total("nagare_tcp_ended_total")
    viewer = RelayViewer(open_page(node.origin), channel, candidates=" tcp ")
    seen = viewer.watches(60)
    assert (seen["protocol"], seen["remoteProtocol"], seen["remoteType"]) == ("tcp", "tcp", "host"), seen
    assert seen["lost"] < 30, seen
    assert node.total("nagare_tcp_connections{") >= 1
    assert node.total("nagare_tcp_sent_bytes_total") > 20_000
    viewer.page.call("() => window.viewer.connection.close()")
    wait_until(lambda: node.total("nagare_tcp_ended_total") > ended, "the end of the connection", 10)


def test_browsers_prefer_udp(open_page: OpenPage, node: Node, channel: str) -> None:
    publisher = open_page(node.origin)
    publisher.open_channel(channel)
    publisher.publish(codec="VP8")
    viewer = RelayViewer(open_page(node.origin), channel)
    seen = viewer.watches(30)
    assert seen["protocol"] == "udp", seen
