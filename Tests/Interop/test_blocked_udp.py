"""Clients in a network that blocks all UDP, as a firewall does that drops it: over TCP and TLS they publish and watch."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Iterator

import pytest
from harness.certificate import Certificate, make_certificate
from harness.chromium import Chromium
from harness.clocks import assert_clock
from harness.members import SoraMember
from harness.network import NODE_ADDRESS, NODE_NAME, Network
from harness.node import Node, free_tcp_port
from harness.relay_viewer import RelayPublisher, RelayViewer
from playwright.sync_api import Playwright

# The path of the selected candidate pair.
PATH = ("relay", "protocol", "remoteType", "remoteProtocol")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"), NODE_ADDRESS, NODE_NAME)


# The driver of the browsers stays on the machine's own network.
@pytest.fixture(scope="module")
def network(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    one = Network(tmp_path_factory.mktemp("network"))
    yield one
    one.close()


@pytest.fixture
def node(network: Network, own_node: Callable[..., Node], certificate: Certificate) -> Node:
    """A node that offers all ways around the block."""
    one = own_node(
        *("--turn", "on", "--loops", "1", "--turn-tls-port", str(free_tcp_port()), "--turn-tls-name", NODE_NAME),
        *("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key)),
        is_development=False,
        address=NODE_ADDRESS,
    )
    one.origin = f"https://{NODE_NAME}:{one.http_port}"
    one.signaling = f"wss://{NODE_NAME}:{one.http_port}/signaling"
    return one


def assert_no_udp(node: Node, network: Network) -> None:
    packets = network.packets()
    assert (packets["received-udp"], packets["sent-udp"]) == (0, 0), packets
    assert node.total("nagare_datagrams_received_total") == node.total("nagare_datagrams_sent_total") == 0


@pytest.mark.parametrize(
    "policy, server, path",
    [
        # With all candidates, and without a server.
        ("all", "none", (None, "tcp", "host", "tcp")),
        # With the URLs of UDP and TCP, of which one works.
        ("relay", "turn:", ("tcp", "udp", "host", "udp")),
        ("relay", "turns:", ("tls", "udp", "host", "udp")),
    ],
    ids=["ice-tcp", "turn-tcp", "turn-tls"],
)
def test_chromium_publishes_and_watches_without_udp(
    browser: Chromium,
    network: Network,
    node: Node,
    channel: str,
    policy: str,
    server: str,
    path: tuple[str | None, ...],
) -> None:
    blocked = network.packets()["blocked-udp"]
    publisher = RelayPublisher(browser.page(node.origin), channel, policy=policy, server=server)
    publisher.watches(5)
    viewer = RelayViewer(browser.page(node.origin), channel, policy=policy, server=server)
    try:
        for one in (viewer, publisher):
            seen = one.watches(60)
            assert tuple(seen.get(key) for key in PATH) == path, seen
        assert viewer.look()["lost"] < 30
        assert_no_udp(node, network)
        if server != "turns:":
            assert network.packets()["blocked-udp"] > blocked, "the browser tried UDP"
        assert node.total("nagare_turn_allocations{", "transport=tcp") == (0 if policy == "all" else 2)
        assert (node.total("nagare_turn_datagrams_total", "direction=out") > 60) == (policy == "relay")
    finally:
        for one in (viewer, publisher):
            one.page.close()


@pytest.mark.parametrize("way", ["tcp", "tls"])
def test_the_sora_sdk_calls_through_turn_without_udp(
    network: Network, node: Node, channel: str, certificate: Certificate, way: str
) -> None:
    ports = {"tcp": node.media_port, "tls": int(node.command[node.command.index("--turn-tls-port") + 1])}
    (other_port,) = (port for name, port in ports.items() if name != way)
    network.close_port(other_port)
    blocked = network.packets()["blocked-tcp"]
    options = {"ca_cert": certificate.authority, "video_codec_type": "VP8"}
    members = [SoraMember(node.signaling, channel, "sendrecv", launch=network.command, **options) for _ in range(2)]
    try:
        for one in members:
            one.connected(30)
        for one, other in (members, members[::-1]):
            one.sees(other, 20)
            one.hears(other)
        assert node.total("nagare_turn_allocations{", "transport=tcp") >= 2
        node.wait_for_turn("in", "out")
        assert node.operate("20171010.GetStatsReport")["total_turn_tcp_connections"] == 2
        assert network.packets()["blocked-tcp"] > blocked, "the SDK tried the closed port"
        assert_no_udp(node, network)
        # The SDK waits until the connection ends, and never answers the end of TLS.
        ended = members[0].end()
        assert_clock(ended["finished"] and ended["seconds"] < 3, ended)
    finally:
        for one in members:
            one.kill()
