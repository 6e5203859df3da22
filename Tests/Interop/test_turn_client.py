"""coturn's test client, `turnutils_uclient`, as a client of the TURN server.

It makes two allocations one after the other and refreshes each, asks for permissions with the second, and sends messages to the
peer. It draws channel numbers from the whole range of RFC 5766, of which RFC 8656 left a quarter to be used, so it sends
indications here (`-s`). Nobody answers it: an allocation leads to a session of the node, which does not echo.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Callable

import httpx
import pytest
from harness.certificate import make_certificate
from harness.node import LOOPBACK, Node, free_tcp_port
from harness.offers import SDP, offer
from harness.waiting import wait_until

MESSAGES = 3
# Requests of one run that succeed before it sends: allocation and refresh, twice, and permissions for two ports of the peer.
SUCCESSES = 6
# Bound on a run that is refused.
REFUSAL_SECONDS = 10


class Client:
    """A run of the program with the credentials of a session of its own."""

    def __init__(self, node: Node, channel: str, *options: str, peer: str = LOOPBACK, password: str | None = None) -> None:
        answer = httpx.post(f"{node.origin}/whip/{channel}", headers=SDP, content=offer("sendonly"), verify=False)
        assert answer.status_code == 201, answer.text
        link = answer.headers["Link"]
        username, credential = (re.search(rf'{name}="([^"]*)"', link)[1] for name in ("username", "credential"))
        self.process = subprocess.Popen(
            [
                *("turnutils_uclient", "-v", "-c", "-s", "-n", str(MESSAGES), "-p", str(node.media_port)),
                *("-u", username, "-w", password or credential, "-e", peer, "-r", str(node.media_port), *options, LOOPBACK),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def stop(self) -> str:
        """Ends the program; its output."""
        self.process.kill()
        return self.process.communicate()[0]

    def refused(self) -> str:
        """Waits for the program's end because of an error; its output."""
        try:
            output, _ = self.process.communicate(timeout=REFUSAL_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the client was not refused: {self.stop()}") from None
        assert self.process.returncode == 255, output
        return output


def test_uclient_allocates_refreshes_and_sends_over_udp_tcp_and_tls(
    own_node: Callable[..., Node], channel: str, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    port = free_tcp_port()
    node = own_node(
        *("--turn", "on", "--loops", "1", "--turn-tls-port", str(port), "--turn-tls-name", LOOPBACK),
        *("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key)),
    )
    node.origin = node.origin.replace("http:", "https:")
    ways = (), ("-t",), ("-t", "-S", "-E", str(certificate.authority), "-p", str(port))
    clients = [Client(node, f"{channel}-{number}", *options) for number, options in enumerate(ways)]
    outputs: list[str] = []
    try:
        # The program waits for some seconds before it sends.
        wait_until(
            lambda: node.total("nagare_turn_datagrams_total", "direction=in") == MESSAGES * len(ways),
            "the messages of all clients",
            15,
            describe=lambda: {name: one for name, one in node.metrics().items() if "nagare_turn_" in name},
        )
        assert node.total("nagare_turn_allocations_created_total") == 2 * len(ways)
        assert node.total("nagare_turn_allocations{", "transport=udp") == 2
        # The program may have closed the connections of its first allocations.
        assert node.total("nagare_turn_allocations{", "transport=tcp") >= 2
    finally:
        outputs += [one.stop() for one in clients]
    for output in outputs:
        # Over TLS the program also tries old versions, which fails.
        assert output.count("success") == SUCCESSES and not re.search(r"error \d", output), output
    assert node.total("nagare_turn_requests_total", "result=success") >= SUCCESSES * len(ways)
    assert node.total("nagare_turn_requests_total", "result=refused") == 0
    wait_until(
        lambda: node.total("nagare_turn_allocations{", "transport=tcp") == 0, "the end of the TCP clients' allocations", 10
    )


@pytest.mark.parametrize("transport", [(), ("-t",)], ids=["udp", "tcp"])
def test_uclient_is_refused_what_a_client_may_not_have(
    own_node: Callable[..., Node], channel: str, transport: tuple[str, ...]
) -> None:
    node = own_node("--turn", "on", "--loops", "1")
    # Documentation, private, link-local and unspecified addresses, and another loopback address.
    for number, peer in enumerate(("192.0.2.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "127.0.0.2")):
        output = Client(node, f"{channel}-{number}", *transport, peer=peer).refused()
        assert "create permission error 403 (Forbidden)" in output, output
    output = Client(node, channel + "-family", *transport, peer="::1").refused()
    assert "error 440" in output, output
    output = Client(node, channel + "-relay", *transport, "-T").refused()
    assert "error 442" in output, output
    before = node.total("nagare_turn_allocations_created_total")
    output = Client(node, channel + "-password", *transport, password="wrong").refused()
    assert output.count("allocate sent") > 10 and "success" not in output, output
    assert node.total("nagare_turn_allocations_created_total") == before
    assert node.total("nagare_turn_requests_total", "result=unauthorized") > 0
    assert node.total("nagare_turn_datagrams_total") == 0


def test_allocations_of_uclient_do_not_reach_each_other(own_node: Callable[..., Node], channel: str) -> None:
    node = own_node("--turn", "on", "--loops", "1")
    client = Client(node, channel, "-y")
    try:
        wait_until(lambda: node.total("nagare_turn_dropped_total", "reason=forbidden_peer") >= MESSAGES, "messages", 15)
        assert node.total("nagare_turn_datagrams_total") == 0
    finally:
        client.stop()
