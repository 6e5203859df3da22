"""Real clients that reach the node through its own TURN server only."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import httpx
from harness.browser_member import BrowserMember
from harness.certificate import make_certificate
from harness.chromium import FLAGS, Chromium, ChromiumPage
from harness.firefox import Firefox
from harness.members import Join
from harness.node import Node, free_media_port, free_tcp_port
from harness.page import Page
from harness.relay_viewer import RelayPublisher, RelayViewer
from harness.waiting import wait_until
from playwright.sync_api import Playwright

OpenPage = Callable[..., ChromiumPage]


def publish(open_page: OpenPage, node: Node, channel: str) -> None:
    publisher = open_page(node.origin)
    publisher.open_channel(channel)
    publisher.publish(codec="VP8")


def test_a_whep_viewer_with_a_relay_policy_watches_over_turn(
    open_page: OpenPage, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node("--turn", "on", "--log-level", "trace")
    publish(open_page, node, channel)
    viewer = RelayViewer(open_page(node.origin), channel, policy="relay", server="transport=udp")
    (server,) = viewer.answer["iceServers"]
    seen = viewer.watches(60)
    assert (seen["local"], seen["relay"], seen["remoteType"]) == ("relay", "udp", "host"), seen
    assert node.total("nagare_turn_datagrams_total", "direction=out") > 60
    assert node.total("nagare_turn_allocations{") >= 1
    log = node.log_path.read_text()
    assert server["credential"] not in log and server["username"] not in log
    viewer.page.call("(path) => fetch(path, { method: 'DELETE' }).then((one) => one.status)", viewer.answer["location"])
    # Without the session's end they would last for minutes.
    wait_until(lambda: node.total("nagare_turn_allocations{") == 0, "the end of the allocations with the session", 5)


def test_a_whep_viewer_with_a_relay_policy_watches_over_turn_and_tcp(
    open_page: OpenPage, open_viewer: Callable[[str], Page], own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node("--turn", "on")
    publish(open_page, node, channel)
    viewer = RelayViewer(open_viewer(node.origin), channel, policy="relay", server="transport=tcp")
    assert [one["urls"].endswith("?transport=tcp") for one in viewer.answer["iceServers"]] == [True]
    seen = viewer.watches(60)
    assert (seen["local"], seen["relay"], seen["remoteType"]) == ("relay", "tcp", "host"), seen
    assert seen["lost"] < 30, seen
    assert node.total("nagare_turn_datagrams_total", "direction=out") > 60
    assert node.total("nagare_turn_allocations{", "transport=tcp") >= 1
    assert node.total("nagare_tcp_connections{") >= 1 and node.total("nagare_tcp_sent_bytes_total") > 20_000
    report = node.operate("20171010.GetStatsReport")
    assert (report["total_turn_udp_connections"], report["total_turn_tcp_connections"]) == (1, 1), report
    viewer.page.call("() => window.viewer.connection.close()")
    wait_until(lambda: node.total("nagare_turn_allocations{") == 0, "the end of the allocation", 10)


def test_a_whep_viewer_with_a_relay_policy_watches_over_turn_and_tls(
    playwright: Playwright, own_node: Callable[..., Node], channel: str, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    port = free_tcp_port()
    node = own_node(
        *("--turn", "on", "--loops", "1", "--turn-tls-port", str(port), "--turn-tls-name", "127.0.0.1"),
        *("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key)),
    )
    node.origin = node.origin.replace("http:", "https:")
    trusting = [*FLAGS, f"--ignore-certificate-errors-spki-list={certificate.key_hash}"]
    browser = Chromium(playwright, trusting)
    try:
        publish(lambda origin: browser.page(origin), node, channel)
        viewer = RelayViewer(browser.page(node.origin), channel, policy="relay", server="turns:")
        assert [one["urls"] for one in viewer.answer["iceServers"]] == [f"turns:127.0.0.1:{port}?transport=tcp"]
        seen = viewer.watches(60)
        assert (seen["local"], seen["relay"], seen["remoteType"]) == ("relay", "tls", "host"), seen
        assert seen["lost"] < 30, seen
        assert node.total("nagare_turn_datagrams_total", "direction=out") > 60
        assert node.total("nagare_tcp_connections{") >= 1 and node.total("nagare_tcp_sent_bytes_total") > 20_000
        # A browser that does not trust the certificate gets no path.
        stranger = Chromium(playwright)
        try:
            page = stranger.page(node.origin, ignore_https_errors=True)
            refused = RelayViewer(page, channel, policy="relay", server="turns:")
            errors = wait_until(lambda: refused.look()["errors"], "the refusal of the certificate", 15)
            assert errors[0].startswith("701 "), errors
        finally:
            stranger.close()
    finally:
        browser.close()
    wait_until(lambda: node.total("nagare_turn_allocations{") == 0, "the end of the allocation", 10)


def test_firefox_publishes_and_watches_over_turn_and_tls(
    own_node: Callable[..., Node], channel: str, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    port = free_tcp_port()
    # Firefox uses TURN over TLS at names only.
    node = own_node(
        *("--turn", "on", "--loops", "1", "--turn-tls-port", str(port), "--turn-tls-name", "localhost"),
        *("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key)),
    )
    node.origin = f"https://localhost:{node.http_port}"
    browser = Firefox(authority=certificate.authority)
    try:
        publisher = RelayPublisher(browser.page(node.origin), channel, policy="relay", server="turns:")
        publisher.watches(5)
        viewer = RelayViewer(browser.page(node.origin), channel, policy="relay", server="turns:")
        for one in (viewer, publisher):
            assert [server["urls"] for server in one.answer["iceServers"]] == [f"turns:localhost:{port}?transport=tcp"]
            seen = one.watches(60)
            assert (seen["local"], seen["relay"], seen["remoteType"]) == ("relay", "tls", "host"), seen
        assert viewer.look()["lost"] < 30
        assert node.total("nagare_turn_allocations{", "transport=tcp") >= 2
        assert node.total("nagare_turn_datagrams_total", "direction=in") > 60
        assert node.total("nagare_turn_datagrams_total", "direction=out") > 60
    finally:
        browser.close()
    wait_until(lambda: node.total("nagare_turn_allocations{") == 0, "the end of the allocations", 10)


def test_https_and_turn_over_tls_share_one_port(
    playwright: Playwright, own_node: Callable[..., Node], channel: str, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    ports = (free_tcp_port(), free_media_port(), free_tcp_port())
    # A viewer's session is on either loop, and its connection comes to either.
    node = own_node(
        *("--turn", "on", "--loops", "2", "--ice-tcp", "off"),
        *("--turn-tls-port", str(ports[0]), "--turn-tls-name", "127.0.0.1"),
        *("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key)),
        ports=ports,
    )
    node.origin = node.origin.replace("http:", "https:")
    browser = Chromium(playwright, [*FLAGS, f"--ignore-certificate-errors-spki-list={certificate.key_hash}"])
    try:
        publish(lambda origin: browser.page(origin), node, channel)
        for _ in range(3):
            viewer = RelayViewer(browser.page(node.origin), channel, policy="relay", server="turns:")
            assert [one["urls"] for one in viewer.answer["iceServers"]] == [f"turns:127.0.0.1:{ports[0]}?transport=tcp"]
            seen = viewer.watches(60)
            assert (seen["local"], seen["relay"], seen["remoteType"]) == ("relay", "tls", "host"), seen
            assert seen["lost"] < 30, seen
        assert node.total("nagare_turn_allocations{", "transport=tcp") >= 3
        assert node.total("nagare_tcp_connections{") >= 3 and node.total("nagare_tcp_sent_bytes_total") > 60_000
        page = httpx.get(node.origin, verify=False, timeout=5)
        assert page.status_code == 200 and "<html" in page.text
    finally:
        browser.close()
    wait_until(lambda: node.total("nagare_turn_allocations{") == 0, "the end of the allocations", 10)


def test_a_client_that_names_itself_the_sora_ios_sdk_connects_over_turn_by_default(
    open_page: OpenPage, node: Node, channel: str
) -> None:
    video = {"codec_type": "VP8"}
    plain = BrowserMember(open_page(node.origin), node, channel, "sendrecv", video=video).connected()
    relayed = BrowserMember(
        open_page(node.origin), node, channel, "sendrecv", video=video, sora_client="Sora iOS SDK 2026.1.0"
    ).connected()
    plain.sees(relayed.id)
    relayed.sees(plain.id)
    configs = [one.page.evaluate("window.member.offer.config") for one in (plain, relayed)]
    assert configs[0] == {"iceServers": [], "iceTransportPolicy": "all"}
    assert configs[1]["iceTransportPolicy"] == "relay" and len(configs[1]["iceServers"]) == 1
    node.wait_for_turn("in")
    assert relayed.disconnect() == (1000, "TYPE-DISCONNECT")


def test_the_sora_sdk_connects_only_over_turn_where_an_offer_has_it(
    own_node: Callable[..., Node], channel: str, join: Join
) -> None:
    node = own_node("--turn", "on", "--loops", "1")
    members = [join("sendrecv", at=node, video_codec_type="VP8").connected() for _ in range(2)]
    for one, other in (members, members[::-1]):
        one.sees(other)
        one.hears(other)
    node.wait_for_turn("out")
    # What is not relayed are answers to the TURN client itself.
    # Both are of one scrape: media goes on between two.
    metrics = node.metrics()
    relayed = sum(n for name, n in metrics.items() if "nagare_turn_datagrams_total" in name and "direction=out" in name)
    sent = sum(n for name, n in metrics.items() if "nagare_datagrams_sent_total" in name)
    assert relayed > 60 and sent - relayed < 60, (relayed, sent)
    report = node.operate("20171010.GetStatsReport")
    # The first path may be one over TCP, on a busy machine.
    assert report["total_turn_udp_connections"] + report["total_turn_tcp_connections"] == 2, report
    for one in members:
        one.end()
