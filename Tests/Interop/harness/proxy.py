"""A UDP proxy in front of the node's media port that drops runs of packets on the way to the client."""

from __future__ import annotations

import select
import socket
import threading
import time

from .node import LOOPBACK


class Proxy:
    """Passes datagrams of one client to the node and back, in a thread of its own."""

    def __init__(self, media_port: int) -> None:
        self.client, self.node = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self.client.bind((LOOPBACK, 0))
        self.node.bind((LOOPBACK, 0))
        self.node.connect((LOOPBACK, media_port))
        self.port: int = self.client.getsockname()[1]
        self.dropped = 0
        self._run = 0
        self._every = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._pass, daemon=True)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(5)
        self.client.close()
        self.node.close()

    def drop(self, run: int, every: float) -> None:
        """From now on, drops so many media packets in a row, once in so many seconds."""
        self._run, self._every = run, every

    def _pass(self) -> None:
        address: tuple[str, int] | None = None
        due, left = 0.0, 0
        while not self._stopping.is_set():
            for ready in select.select([self.client, self.node], [], [], 0.1)[0]:
                if ready is self.client:
                    data, address = ready.recvfrom(2048)
                    self.node.send(data)
                    continue
                data = ready.recv(2048)
                # Media and reports have the version 2 in the first two bits (RFC 7983); checks and handshakes pass.
                is_media = data[0] >> 6 == 2
                if is_media and self._run and time.monotonic() >= due:
                    left, due = self._run, time.monotonic() + self._every
                if is_media and left:
                    left -= 1
                    self.dropped += 1
                elif address:
                    self.client.sendto(data, address)
