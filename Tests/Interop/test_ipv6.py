"""A call over IPv6 alone: the node has no IPv4 address for media, and the firewall counts by which family packets come."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Iterator

import pytest
from playwright.sync_api import Playwright

from harness.certificate import Certificate, make_certificate
from harness.chromium import Chromium
from harness.network import NODE_ADDRESS_6, NODE_NAME_6, Network
from harness.node import Node
from harness.relay_viewer import RelayPublisher, RelayViewer
from harness.waiting import wait_until


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"), NODE_ADDRESS_6, NODE_NAME_6)


# The driver of the browsers stays on the machine's own network.
@pytest.fixture(scope="module")
def network(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    one = Network(tmp_path_factory.mktemp("network"), passes_udp=True)
    yield one
    one.close()


def test_chromium_publishes_and_watches_over_ipv6(
    browser: Chromium, network: Network, own_node: Callable[..., Node], channel: str, certificate: Certificate
) -> None:
    node = own_node(
        *("--loops", "1", "--ice-tcp", "off", "--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key)),
        is_development=False,
        address=f"[{NODE_ADDRESS_6}]",
    )
    node.origin = f"https://{NODE_NAME_6}:{node.http_port}"
    publisher = RelayPublisher(browser.page(node.origin), channel)
    publisher.watches(5)
    viewer = RelayViewer(browser.page(node.origin), channel)
    try:
        for one in (viewer, publisher):
            seen = one.watches(60)
            assert (seen["protocol"], seen["remoteType"]) == ("udp", "host"), seen
            assert ":" in one.look()["remoteAddress"], one.look()
        assert viewer.look()["lost"] == 0
        before = network.packets()["received-udp"]
        wait_until(lambda: network.packets()["received-udp"] > before + 100, "packets over IPv6", 10)
        assert network.packets()["received-udp4"] == 0, network.packets()
    finally:
        for one in (viewer, publisher):
            one.page.close()
