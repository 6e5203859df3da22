"""Nodes of one cluster on this machine, with a Redis server of their own."""

from __future__ import annotations

import secrets
import shutil
import signal
import socket
import subprocess
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Callable

from .clocks import assert_clock
from .node import ENVIRONMENT, LOOPBACK, Node, free_media_port, free_tcp_port
from .waiting import wait_until

# The server under the name of another program. Its package starts a server at its installation, this one's does not.
SERVER = "redis-check-rdb"


class Server:
    """A server of the Redis package as a process: `redis-server` or `redis-sentinel`, on a port of its own."""

    def __init__(self, folder: Path, *options: str, name: str = "redis-server", address: str = LOOPBACK) -> None:
        self.name = name
        self.options = options
        self.address = address
        self.port = free_tcp_port()
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Starts the server, without data."""
        program = shutil.which(SERVER)
        assert program, f"{SERVER} is missing: install redis-tools"
        listener = ["--bind", self.address, "--port", str(self.port), "--protected-mode", "no"]
        self.process = subprocess.Popen(
            [self.name, *self.options, *listener, "--dir", str(self.folder)],
            executable=program,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        wait_until(lambda: self.ask("PING") == "+PONG", f"the answer of {self.name}", 10)

    def answer(self, command: str) -> list[str]:
        """The lines of the answer to an inline command; empty without an answer."""
        try:
            with socket.create_connection((self.address, self.port), 2) as connection:
                connection.sendall(f"{command}\r\n".encode())
                return connection.recv(65536).decode(errors="replace").split("\r\n")
        except OSError:
            return []

    def ask(self, command: str) -> str:
        """The first line of the answer to an inline command; empty without an answer."""
        return next(iter(self.answer(command)), "")

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def close(self) -> None:
        self.thaw()
        self.kill()


class Store(Server):
    """A Redis server without persistence."""

    def __init__(self, folder: Path, *options: str, address: str = LOOPBACK) -> None:
        super().__init__(folder, "--save", "", *options, address=address)

    @property
    def url(self) -> str:
        return f"redis://{self.address}:{self.port}"

    def knows(self, channel: str) -> bool:
        """Whether a node has told it of the channel."""
        keys = [line for line in self.answer(f"KEYS *:room:{channel}") if line.endswith(f":room:{channel}")]
        return any(self.ask(f"HLEN {key}") not in ("", ":0") for key in keys)


class Place:
    """Where the nodes of a cluster run: all on this machine's loopback interface."""

    store = LOOPBACK
    is_development = True

    def address(self, _: str) -> str:
        """A node's address for clients and other nodes."""
        return LOOPBACK

    def command(self, _: str, *words: str) -> list[str]:
        """A command line that runs `words` where a node is."""
        return list(words)

    def at(self, _: str) -> AbstractContextManager[None]:
        """Inside, the calling thread is where a node is."""
        return nullcontext()


class Cluster:
    """The nodes `a`, `b`, …, each with a link listener, by default for development and on loopback.

    `url` is where the nodes find the store, if not at the store itself. With `is_public`, the nodes tell clients of each other.
    """

    def __init__(
        self,
        folder: Path,
        log: Callable[[str], Path],
        names: str = "abc",
        *options: str,
        place: Place | None = None,
        store: Store | None = None,
        url: str | None = None,
        is_public: bool = False,
    ) -> None:
        self.folder = folder
        self.log = log
        self.options = options
        self.place = place or Place()
        self.is_public = is_public
        self.store = store or Store(folder, address=self.place.store)
        self.url = url or self.store.url
        self.secret = folder / "secret"
        self.secret.write_text(secrets.token_hex(32))
        self.links = {name: free_tcp_port() for name in names}
        self.killed: list[Node] = []
        self.nodes: dict[str, Node] = {}
        try:
            for name in names:
                self.start(name)
            for node in self.nodes.values():
                self.await_metric(node, "nagare_cluster_nodes{state=ready}", len(names) - 1)
        except BaseException:
            self.close()
            raise

    def start(self, name: str, *options: str, ports: tuple[int, int, int] | None = None) -> Node:
        address = self.place.address(name)
        ports = ports or (free_tcp_port(), free_media_port(), free_tcp_port())
        public = ["--public-url", f"http://{address}:{ports[0]}"] if self.is_public else []
        self.nodes[name] = Node(
            self.log(f"{name}-{len(self.killed)}"),
            *("--cluster-store", self.url, "--cluster-name", "test", "--node-name", name),
            *("--cluster-link", f"{address}:{self.links[name]}", "--cluster-secret", f"@{self.secret}"),
            *("--state-dir", str(self.folder), "--loops", "2", *public),
            *self.options,
            *options,
            ports=ports,
            is_development=self.place.is_development,
            address=address,
            launch=lambda *words: self.place.command(name, *words),
            reach=lambda: self.place.at(name),
        )
        return self.nodes[name]

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def await_metric(self, node: Node, name: str, value: float, seconds: float = 10) -> None:
        wait_until(lambda: node.metrics().get(name) == value, f"{name} {value}", seconds, describe=node.log_tail)

    def connections(self, name: str, channel: str) -> list[dict]:
        """The members of a channel, as a node lists them."""
        return self.nodes[name].operate("20201013.ListChannelConnections", channel_id=channel)

    def await_members(self, channel: str, count: int, seconds: float = 10, at: str | None = None) -> None:
        """Waits until the nodes list the same members."""
        names = at or "".join(self.nodes)

        def look() -> bool:
            seen = [sorted(one["connection_id"] for one in self.connections(name, channel)) for name in names]
            return len(seen[0]) == count and all(one == seen[0] for one in seen)

        wait_until(
            look,
            f"{count} members of {channel} at {names}",
            seconds,
            describe=lambda: {name: len(self.connections(name, channel)) for name in names},
        )

    def given_up(self) -> dict[str, float]:
        """How many nodes each node has given up since its start."""
        return {name: node.metrics()["nagare_cluster_nodes_given_up_total{}"] for name, node in self.nodes.items()}

    def assert_given_up(self, before: dict[str, float], **more: int) -> None:
        """Asserts how many nodes each node has given up since `before`: those of `more`, and none by default.

        A clock of the nodes decides. A node that the machine holds up for seconds is given up, and its members are announced
        anew: facts about announcements hold only without that. A node whose own clients are back may still be about to give one up.
        """

        def grown() -> dict[str, float]:
            return {name: count - before.get(name, 0) for name, count in self.given_up().items()}

        wait_until(
            lambda: all(count >= more.get(name, 0) for name, count in grown().items()),
            f"the nodes to be given up: {more}",
            20,
            describe=grown,
        )
        seen = grown()
        assert_clock(seen == {name: more.get(name, 0) for name in seen}, f"nodes given up: {seen}, expected {more}")

    def kill(self, name: str) -> Node:
        """Ends a node as a crash does."""
        node = self.nodes.pop(name)
        node.process.kill()
        node.process.wait(10)
        self.killed.append(node)
        return node

    def close(self) -> None:
        try:
            for node in self.nodes.values():
                node.close()
        finally:
            for node in self.nodes.values():
                if node.process.poll() is None:
                    node.process.kill()
            self.store.close()
