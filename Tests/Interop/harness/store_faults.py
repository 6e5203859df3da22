"""Stores that fail: a slow one, and one that Sentinels replace."""

from __future__ import annotations

import contextlib
import heapq
import selectors
import socket
import threading
import time
from pathlib import Path
from typing import Iterator

from .cluster import Server, Store
from .node import LOOPBACK
from .waiting import wait_until


class FaultyStore:
    """Passes connections on to a store, in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self.store = store
        # By so many seconds the answers are late.
        self._delay = 0.0
        # How often the nodes' commands named a channel.
        self.channels = 0
        # How many answers said that the store is full.
        self.refused = 0
        self._listener = socket.create_server((LOOPBACK, 0))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._pass, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"redis://{LOOPBACK}:{self._listener.getsockname()[1]}"

    @contextlib.contextmanager
    def slow(self, seconds: float) -> Iterator[None]:
        """Inside, each answer of the store takes so long."""
        self._delay = seconds
        try:
            yield
        finally:
            self._delay = 0.0

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Inside, the store has no memory for whatever a script writes. It evicts nothing, as is its default."""
        assert self.store.ask("CONFIG SET maxmemory 1") == "+OK"
        try:
            yield
        finally:
            self.store.ask("CONFIG SET maxmemory 0")

    def _accept(self) -> None:
        node, _ = self._listener.accept()
        store = socket.create_connection((LOOPBACK, self.store.port), 5)
        for one, other, is_answer in ((node, store, False), (store, node, True)):
            self._selector.register(one, selectors.EVENT_READ, (other, is_answer))

    def _end(self, *ends: socket.socket) -> None:
        for one in ends:
            if one.fileno() >= 0:
                self._selector.unregister(one)
                one.close()

    def _send(self, to: socket.socket, data: bytes) -> None:
        try:
            to.sendall(data)
        except OSError:
            pass  # It has ended meanwhile.

    def _pass(self) -> None:
        answers: list[tuple[float, int, socket.socket, bytes]] = []
        count = 0
        while not self._stopping.is_set():
            wait = min(0.1, max(0.0, answers[0][0] - time.monotonic())) if answers else 0.1
            for key, _ in self._selector.select(wait):
                if key.data is None:
                    self._accept()
                    continue
                other, is_answer = key.data
                try:
                    data = key.fileobj.recv(65536)
                except OSError:
                    data = b""
                if not data:
                    self._end(key.fileobj, other)
                elif is_answer:
                    count += 1
                    self.refused += data.count(b"-OOM ")
                    heapq.heappush(answers, (time.monotonic() + self._delay, count, other, data))
                else:
                    self.channels += data.count(b":room:")
                    self._send(other, data)
            while answers and answers[0][0] <= time.monotonic():
                _, _, other, data = heapq.heappop(answers)
                self._send(other, data)

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(5)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()


class Sentinels:
    """A store, its replica, and three Sentinels that make the replica the primary when the store is down for a second."""

    NAME = "nagare"
    COUNT = 3

    def __init__(self, folder: Path) -> None:
        self.servers: list[Server] = []
        self.primary = self._add(Store(folder))
        self.replica = self._add(Store(folder, "--replicaof", LOOPBACK, str(self.primary.port)))
        self.sentinels: list[Server] = []
        for number in range(self.COUNT):
            path = folder / f"sentinel-{number}.conf"
            path.write_text(
                f"sentinel monitor {self.NAME} {LOOPBACK} {self.primary.port} 2\n"
                f"sentinel down-after-milliseconds {self.NAME} 1000\n"
                f"sentinel failover-timeout {self.NAME} 5000\n"
            )
            self.sentinels.append(self._add(Server(folder, str(path), name="redis-sentinel")))
        wait_until(self._is_complete, "Sentinels that know each other and the replica", 20, describe=self._described)

    def _add(self, server: Server) -> Server:
        self.servers.append(server)
        return server

    def _described(self) -> list[str]:
        lines = [line for one in self.sentinels for line in one.answer("INFO sentinel")]
        return [line for line in lines if line.startswith("master0:")]

    def _is_complete(self) -> bool:
        known = self._described()
        return len(known) == self.COUNT and all(f"slaves=1,sentinels={self.COUNT}" in line for line in known)

    @property
    def url(self) -> str:
        names = ",".join(f"{LOOPBACK}:{one.port}" for one in self.sentinels)
        return f"redis+sentinel://{names}/{self.NAME}"

    def close(self) -> None:
        for one in self.servers:
            one.close()
