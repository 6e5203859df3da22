"""A certificate that is renewed while the node runs."""

from __future__ import annotations

import signal
import socket
import ssl
from pathlib import Path
from typing import Callable

import httpx
from cryptography import x509
from harness.certificate import make_certificate
from harness.node import LOOPBACK, Node, free_tcp_port
from harness.waiting import wait_until

TOKEN = "operators-0123456789"


def serial(port: int) -> int:
    """The serial number of the certificate that a new connection gets."""
    return x509.load_pem_x509_certificate(ssl.get_server_certificate((LOOPBACK, port)).encode()).serial_number


def written(folder: Path) -> int:
    """The serial number in the certificate's file."""
    return x509.load_pem_x509_certificate((folder / "chain.pem").read_bytes()).serial_number


class OpenConnection:
    """A connection over TLS to the page."""

    def __init__(self, port: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["http/1.1"])
        self.tls = context.wrap_socket(socket.create_connection((LOOPBACK, port), 10))

    def status(self) -> str:
        """The status of one more request."""
        self.tls.sendall(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while b"\r\n\r\n" not in answer:
            part = self.tls.recv(4096)
            assert part, "the connection ended"
            answer += part
        return answer.split(b" ")[1].decode()


def test_a_renewed_certificate_is_used_by_new_connections_and_bad_files_by_none(
    own_node: Callable[..., Node], tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    turn = free_tcp_port()
    node = own_node(
        *("--token", "0123456789abcdef", "--admin-token", TOKEN, "--turn", "on", "--loops", "1"),
        *("--turn-tls-port", str(turn), "--turn-tls-name", LOOPBACK),
        *("--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key)),
        is_development=False,
    )
    ports = (node.http_port, turn)
    first = written(tmp_path)
    assert [serial(port) for port in ports] == [first, first]
    connection = OpenConnection(node.http_port)
    assert connection.status() == "200"
    make_certificate(tmp_path)
    second = written(tmp_path)
    assert [serial(port) for port in ports] == [first, first], "before the reload"
    node.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "reloaded the certificate" in node.log_tail(), "the reload", 10)
    assert [serial(port) for port in ports] == [second, second]
    assert connection.status() == "200", "an open connection goes on"
    certificate.key.write_text("no key\n")
    answer = httpx.post(f"{node.admin}/v1/reload", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:nagare:problem:reload-failed"), answer.text
    assert "The certificate in use stays: correct the files and reload again" in node.log_tail()
    assert [serial(port) for port in ports] == [second, second]
    make_certificate(tmp_path)
    answer = httpx.post(f"{node.admin}/v1/reload", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200 and int(answer.json()["certificate"]["serial"], 16) == written(tmp_path), answer.text
    assert [serial(port) for port in ports] == [written(tmp_path)] * 2
    assert connection.status() == "200"
