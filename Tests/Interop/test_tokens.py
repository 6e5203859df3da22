"""Signed tokens whose keys a login service publishes as a JSON Web Key Set: rotation, outage and reload; tokens of apps."""

import base64
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from harness.certificate import make_certificate
from harness.node import BINARY, ENVIRONMENT, Node

StartNode = Callable[..., Node]


class LoginService:
    """Publishes the public halves of RSA keys over HTTPS; `None` for an outage."""

    def __init__(self, folder: Path) -> None:
        self.keys: list[dict[str, str]] | None = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({"keys": service.keys}).encode()
                self.send_response(503 if service.keys is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        certificate = make_certificate(folder)
        self.authority = certificate.authority
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.chain, certificate.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"https://127.0.0.1:{self.server.server_port}/jwks?tenant=hidden"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def login(tmp_path: Path) -> Iterator[LoginService]:
    service = LoginService(tmp_path)
    yield service
    service.close()


class Signer:
    """A key pair, whose tokens `nagare token` makes."""

    def __init__(self, folder: Path, name: str) -> None:
        key = rsa.generate_private_key(65537, 2048)
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.name = name
        numbers = key.public_key().public_numbers()
        self.public = {"kty": "RSA", "kid": name, "use": "sig", "n": number(numbers.n), "e": number(numbers.e)}

    def token(self, channel: str) -> str:
        command = [str(BINARY), "token", "--jwt-key", f"rs256/{self.name}:@{self.path}", "--channel", channel]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def number(value: int) -> str:
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_the_keys_of_a_login_service_admit_clients_through_rotation_outage_and_reload(
    own_node: StartNode, login: LoginService, channel: str, tmp_path: Path
) -> None:
    old, new, other = (Signer(tmp_path, name) for name in ("old", "new", "other"))
    settings = tmp_path / "nagare.yaml"
    settings.write_text(f"jwks: {login.url}\njwks-ca: {login.authority}\n")
    login.keys = [old.public]
    node = own_node("--config", str(settings))

    def status(token: str) -> int:
        url = f"{node.origin}/api/channels/{channel}"
        return httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=20).status_code

    assert status(old.token(channel)) == 200
    assert status(new.token(channel)) == 401

    def reload() -> httpx.Response:
        return httpx.post(f"{node.admin}/v1/reload", timeout=20)

    login.keys = [old.public, new.public]
    assert reload().json()["changed"] == []
    assert status(new.token(channel)) == 200
    login.keys = None
    assert reload().status_code == 200
    assert status(old.token(channel)) == status(new.token(channel)) == 200
    metrics = httpx.get(f"{node.admin}/metrics").text
    assert "nagare_jwks_keys 2\n" in metrics and 'nagare_jwks_fetches_total{result="failed"}' in metrics
    # Another URL that does not work, and a file without a key, change nothing.
    settings.write_text(f"jwks: {login.url}&other=1\njwks-ca: {login.authority}\n")
    refused = reload()
    assert refused.status_code == 409 and "cannot be fetched" in refused.json()["detail"]
    keys = tmp_path / "jwks.json"
    settings.write_text(f"jwks: {keys}\n")
    keys.write_text('{"keys": []}')
    assert "no key that verifies" in reload().json()["detail"]
    assert status(old.token(channel)) == 200
    # A file takes the place of the URL.
    keys.write_text(json.dumps({"keys": [other.public]}))
    answer = reload().json()
    assert (answer["changed"], answer["needs_restart"]) == (["jwks"], ["jwks-ca"])
    assert status(other.token(channel)) == 200 and status(old.token(channel)) == 401
    keys.write_text(json.dumps({"keys": [old.public]}))
    assert reload().json()["changed"] == ["jwks"]
    assert status(other.token(channel)) == 401 and status(old.token(channel)) == 200
    log = node.log_path.read_text()
    assert "tenant" not in log and 'key ID of the token' in log


APP = ("--app", "live:0123456789abcdef")


def app_token(*options: str) -> str:
    command = [str(BINARY), "token", *APP, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout.strip()


def moved(token: str, **fields: str) -> str:
    """The token with other fields, and its own hash."""
    return base64.b64encode(json.dumps(json.loads(base64.b64decode(token)) | fields).encode()).decode()


def test_the_fields_of_a_strict_token_cannot_be_moved(own_node: StartNode) -> None:
    lenient, strict = own_node(*APP), own_node(*APP, "--app-token", "strict")

    def answer(node: Node, channel: str, token: str) -> httpx.Response:
        url = f"{node.origin}/api/channels/{channel}"
        return httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=20)

    published = app_token("--channel", "room1", "--user", "2", "--nonce", "")
    stolen = moved(published, channelid="room", userid="12")
    assert answer(lenient, "room", stolen).status_code == 200, "a moved field is noticed without the setting"
    made = app_token("--channel", "room1", "--user", "2")
    for node in (lenient, strict):
        assert answer(node, "room1", made).status_code == 200
    for token in (published, stolen, moved(made, channelid="room", userid="12")):
        refused = answer(strict, "room1" if token == published else "room", token)
        assert refused.status_code == 401, refused.text
        assert refused.json()["type"].endswith("token-malformed") and '"nonce"' in refused.json()["detail"]
    guessed = answer(strict, "room", moved(made, channelid="room", userid="12", nonce="4.2."))
    assert guessed.status_code == 401 and guessed.json()["type"].endswith("token-invalid"), guessed.text
