"""Compares the TURN server with coturn: turn_coturn.py [SECONDS]

Both servers run on the loopback, one after the other, and get the same requests from this program: Allocate without
credentials, Allocate with them, and Refresh that ends the allocation. For coturn also packets of 1,200 bytes that it relays
to a client over a channel. All figures are CPU time of the server's process.

The environment names the programs: NAGARE, a release build, and TURNSERVER, by default `turnserver`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Iterator

COOKIE = 0x2112A442
ALLOCATE, REFRESH, CHANNEL_BIND = 0x003, 0x004, 0x009
USERNAME, INTEGRITY, CHANNEL_NUMBER, LIFETIME = 0x0006, 0x0008, 0x000C, 0x000D
PEER, REALM, NONCE, RELAYED, TRANSPORT = 0x0012, 0x0014, 0x0015, 0x0016, 0x0019
CHANNEL = 0x4000
# Of one session of ours, in five minutes.
ALLOCATIONS_A_SESSION = 30
SESSIONS = 100
PACKET = bytes(1_200)
# Packets that are sent before the client reads them.
BURST = 16
OFFER = """v=0
o=- 1 1 IN IP4 0.0.0.0
s=-
t=0 0
a=group:BUNDLE 0
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=mid:0
a=sendonly
a=rtcp-mux
a=setup:actpass
a=ice-ufrag:abcd
a=ice-pwd:abcdefghijklmnopqrstuvwx
a=fingerprint:sha-256 {fingerprint}
a=rtpmap:111 opus/48000/2
a=msid:stream track
a=ssrc:1 cname:one
"""

Credentials = tuple[str, str]


def cpu_ns(pid: int) -> int:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((one / "schedstat").read_text().split()[0]) for one in tasks)


class Client:
    """One client at an address of its own, because servers limit what they answer to one address."""

    def __init__(self, number: int, server: tuple[str, int], credentials: Credentials) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((f"127.1.{number >> 8 & 255}.{number & 255}", 0))
        self.socket.connect(server)
        self.socket.settimeout(5)
        self.credentials = credentials
        self.realm = self.nonce = b""
        self.key = b""
        self.number = 0

    def exchange(self, method: int, *attributes: tuple[int, bytes]) -> tuple[bool, dict[int, bytes]]:
        """Whether the request succeeded, and the attributes of the response."""
        self.number += 1
        body = b"".join(self.attribute(*one) for one in attributes)
        if self.nonce:
            user = (USERNAME, self.credentials[0].encode()), (REALM, self.realm), (NONCE, self.nonce)
            body += b"".join(self.attribute(*one) for one in user)
        transaction = struct.pack("!III", COOKIE, 7, 7) + struct.pack("!I", self.number)
        length = len(body) + (24 if self.nonce else 0)
        message = struct.pack("!HH", method, length) + transaction + body
        if self.nonce:
            message += self.attribute(INTEGRITY, hmac.new(self.key, message, hashlib.sha1).digest())
        self.socket.send(message)
        response = self.socket.recv(2_048)
        found = dict(self.attributes(response))
        if NONCE in found:
            self.realm, self.nonce = found[REALM], found[NONCE]
            text = f"{self.credentials[0]}:{self.realm.decode()}:{self.credentials[1]}"
            self.key = hashlib.md5(text.encode()).digest()
        return struct.unpack("!H", response[:2])[0] == method | 0x100, found

    @staticmethod
    def attribute(kind: int, value: bytes) -> bytes:
        return struct.pack("!HH", kind, len(value)) + value + bytes(-len(value) & 3)

    @staticmethod
    def attributes(message: bytes) -> Iterator[tuple[int, bytes]]:
        place = 20
        while place < len(message):
            kind, length = struct.unpack("!HH", message[place : place + 4])
            yield kind, message[place + 4 : place + 4 + length]
            place += 4 + (length + 3 & ~3)

    def allocate(self) -> tuple[str, int]:
        """The relayed address."""
        transport = (TRANSPORT, bytes([17, 0, 0, 0]))
        if self.exchange(ALLOCATE, transport)[0]:
            raise RuntimeError("an allocation without credentials")
        succeeded, found = self.exchange(ALLOCATE, transport)
        if not succeeded:
            raise RuntimeError(f"no allocation: {found}")
        _, _, port, ip = struct.unpack("!BBHI", found[RELAYED])
        return socket.inet_ntoa(struct.pack("!I", ip ^ COOKIE)), port ^ COOKIE >> 16

    def release(self) -> None:
        if not self.exchange(REFRESH, (LIFETIME, bytes(4)))[0]:
            raise RuntimeError("the allocation does not end")
        self.socket.close()

    def bind_channel(self, peer: tuple[str, int]) -> None:
        ip = struct.unpack("!I", socket.inet_aton(peer[0]))[0] ^ COOKIE
        address = struct.pack("!BBHI", 0, 1, peer[1] ^ COOKIE >> 16, ip)
        if not self.exchange(CHANNEL_BIND, (CHANNEL_NUMBER, struct.pack("!HH", CHANNEL, 0)), (PEER, address))[0]:
            raise RuntimeError("the channel is not bound")


def allocation_ns(pid: int, server: tuple[str, int], users: list[Credentials]) -> float:
    """CPU time of an allocation from its first request to its end."""
    for number in range(ALLOCATIONS_A_SESSION):
        client = Client(60_000 + number, server, users[-1])
        client.allocate()
        client.release()
    before, count = cpu_ns(pid), 0
    for user in users[:-1]:
        for _ in range(ALLOCATIONS_A_SESSION):
            client = Client(count, server, user)
            client.allocate()
            client.release()
            count += 1
    return (cpu_ns(pid) - before) / count


def relay_ns(pid: int, server: tuple[str, int], user: Credentials, seconds: float) -> float:
    """CPU time of a packet from a peer to a client."""
    client = Client(1, server, user)
    relayed = client.allocate()
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.bind(("127.0.0.1", 0))
    client.bind_channel(peer.getsockname())
    end, arrived, before = time.monotonic() + seconds, 0, cpu_ns(pid)
    while time.monotonic() < end:
        for _ in range(BURST):
            peer.sendto(PACKET, relayed)
        for _ in range(BURST):
            if len(client.socket.recv(2_048)) < len(PACKET):
                raise RuntimeError("something else than the packet")
            arrived += 1
    return (cpu_ns(pid) - before) / arrived


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def until_ready(ready: object, process: subprocess.Popen[bytes]) -> None:
    for _ in range(100):
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        try:
            ready()  # type: ignore[operator]
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{process.args!r} does not answer")


def measure_coturn(seconds: float) -> tuple[float, float]:
    port = free_port(socket.SOCK_DGRAM)
    command = [
        os.environ.get("TURNSERVER", "turnserver"), "-n", "--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1",
        "--listening-port", str(port), "--min-port", "30000", "--max-port", "60000", "--lt-cred-mech", "--user", "u:p",
        "--realm", "nagare", "--allow-loopback-peers", "--no-tls", "--no-dtls", "--no-cli", "--no-tcp",
        "--relay-threads", "1", "--log-file", "/dev/null", "--pidfile", "", "--db", "/dev/null",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        server, user = ("127.0.0.1", port), ("u", "p")

        def ready() -> None:
            client = Client(2, server, user)
            client.socket.settimeout(1)
            client.allocate()
            client.release()

        until_ready(ready, process)
        return allocation_ns(process.pid, server, [user] * SESSIONS), relay_ns(process.pid, server, user, seconds)
    finally:
        process.terminate()
        process.wait()


def join(port: int, number: int) -> tuple[tuple[str, int], Credentials]:
    """The TURN server and the credentials of a new publisher."""
    digest = hashlib.sha256(str(number).encode()).hexdigest().upper()
    fingerprint = ":".join(digest[place : place + 2] for place in range(0, 64, 2))
    offer = OFFER.format(fingerprint=fingerprint).replace("\n", "\r\n").encode()
    headers = {"Content-Type": "application/sdp"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/whip/c{number}", offer, headers)
    with urllib.request.urlopen(request) as response:
        link = ", ".join(response.headers.get_all("Link", []))
    found = re.search(r'<turn:([0-9.]+):(\d+)\?transport=udp>[^<]*', link)
    fields = dict(re.findall(r'(username|credential)="([^"]*)"', found[0])) if found else {}
    if not found or len(fields) != 2:
        raise RuntimeError(f"no TURN server in {link}")
    return (found[1], int(found[2])), (fields["username"], fields["credential"])


def measure_ours() -> float:
    http, media = free_port(socket.SOCK_STREAM), free_port(socket.SOCK_DGRAM)
    command = [
        os.environ["NAGARE"], "serve", "--http", f"127.0.0.1:{http}", "--media", f"127.0.0.1:{media}", "--loops", "1",
        "--turn", "on",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NAGARE")}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        until_ready(lambda: urllib.request.urlopen(f"http://127.0.0.1:{http}/").close(), process)
        joined = [join(http, number) for number in range(SESSIONS)]
        return allocation_ns(process.pid, joined[0][0], [credentials for _, credentials in joined])
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5
    ours = measure_ours()
    theirs, relay = measure_coturn(seconds)
    print(f"allocations a second of CPU time: Nagare {1e9 / ours:.0f}, coturn {1e9 / theirs:.0f}, ratio {theirs / ours:.2f}")
    print(f"CPU time of a packet relayed by coturn: {relay:.0f} ns")


main()
