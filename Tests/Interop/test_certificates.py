"""A certificate that is renewed while the node runs."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Callable

import httpx
from cryptography import x509
from harness.certificate import make_certificate
from harness.node import BINARY, ENVIRONMENT, LOOPBACK, Node, free_tcp_port
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
    assert "Nothing has changed: correct that and reload again" in node.log_tail()
    assert [serial(port) for port in ports] == [second, second]
    make_certificate(tmp_path)
    answer = httpx.post(f"{node.admin}/v1/reload", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200 and int(answer.json()["certificate"]["serial"], 16) == written(tmp_path), answer.text
    assert [serial(port) for port in ports] == [written(tmp_path)] * 2
    assert connection.status() == "200"


def test_the_admin_address_has_a_certificate_of_its_own(own_node: Callable[..., Node], tmp_path: Path) -> None:
    folder = tmp_path / "admin"
    folder.mkdir()
    public, admin = make_certificate(tmp_path), make_certificate(folder)
    node = own_node(
        *("--token", "0123456789abcdef", "--admin-token", TOKEN, "--loops", "1"),
        *("--tls-cert", str(public.chain), "--tls-key", str(public.key)),
        *("--admin-tls-cert", str(admin.chain), "--admin-tls-key", str(admin.key)),
        is_development=False, admin_authority=admin.authority,
    )  # fmt: skip

    def nagare(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**ENVIRONMENT, "NAGARE_ADMIN_TOKEN": TOKEN}
        return subprocess.run([str(BINARY), *arguments], env=environment, capture_output=True, text=True, timeout=60)

    trusting = ("--api", node.admin, "--api-ca", str(admin.authority))
    ports = (node.http_port, node.admin_port)
    before = [written(tmp_path), written(folder)]
    assert [serial(port) for port in ports] == before
    assert nagare("channels", *trusting).returncode == 0
    stranger = nagare("channels", "--api", node.admin)
    assert stranger.returncode == 69 and "--api-ca" in stranger.stderr, stranger.stderr
    assert node.metrics()["nagare_certificate_expiry_timestamp_seconds{listener=admin}"] > 0
    # A bad file of one listener changes the certificate of neither.
    make_certificate(tmp_path)
    good = admin.key.read_text()
    admin.key.write_text("no key\n")
    refused = nagare("reload", *trusting)
    assert refused.returncode == 1 and str(admin.key) in refused.stderr, refused.stderr
    assert [serial(port) for port in ports] == before
    admin.key.write_text(good)
    replaced = nagare("reload", *trusting)
    assert replaced.returncode == 0 and "tls-cert" in replaced.stdout, replaced.stderr
    # A certificate of another authority: the command trusts that one alone, so it does not trust the node until the reload.
    make_certificate(folder)
    assert nagare("reload", *trusting).returncode == 69
    node.process.send_signal(signal.SIGHUP)
    wait_until(lambda: serial(node.admin_port) == written(folder), "the renewed certificate", 10)
    assert nagare("channels", *trusting).returncode == 0
    command = (
        "load", "--url", node.origin.replace("http:", "https:"), "--token", "0123456789abcdef", "--duration", "1",
        "--metrics-url", f"{node.admin}/metrics", "--ca", str(tmp_path / "both.pem"),
    )  # fmt: skip
    load = nagare(*command)
    assert load.returncode != 0 and "both.pem of --ca has no certificates" in load.stderr
    (tmp_path / "both.pem").write_text(public.authority.read_text() + admin.authority.read_text())
    load = nagare(*command)
    assert load.returncode == 0, load.stdout + load.stderr
