"""Nodes of one cluster on this machine, with a Redis server of their own."""

from __future__ import annotations

import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Callable

from .node import ENVIRONMENT, LOOPBACK, Node, free_tcp_port
from .waiting import wait_until

# The server under the name of another program. Its package starts a server at its installation, this one's does not.
SERVER = "redis-check-rdb"


class Store:
    """A Redis server without persistence."""

    def __init__(self, folder: Path) -> None:
        self.port = free_tcp_port()
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Starts an empty server."""
        program = shutil.which(SERVER)
        assert program, f"{SERVER} is missing: install redis-tools"
        self.process = subprocess.Popen(
            ["redis-server", "--bind", LOOPBACK, "--port", str(self.port), "--save", "", "--dir", str(self.folder)],
            executable=program,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        wait_until(lambda: self.ask("PING") == "+PONG", "the store's answer", 10)

    def ask(self, command: str) -> str:
        """The first line of the answer to an inline command; empty without an answer."""
        try:
            with socket.create_connection((LOOPBACK, self.port), 2) as connection:
                connection.sendall(f"{command}\r\n".encode())
                return connection.recv(65536).decode(errors="replace").split("\r\n")[0]
        except OSError:
            return ""

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)


class Cluster:
    """The nodes `a`, `b`, …, each a development node on loopback with a link listener."""

    def __init__(self, folder: Path, log: Callable[[str], Path], names: str = "abc", *options: str) -> None:
        self.folder = folder
        self.log = log
        self.options = options
        self.store = Store(folder)
        self.secret = folder / "secret"
        self.secret.write_text(secrets.token_hex(32))
        self.links = {name: free_tcp_port() for name in names}
        self.killed: list[Node] = []
        self.nodes: dict[str, Node] = {}
        for name in names:
            self.start(name)
        for node in self.nodes.values():
            self.await_metric(node, "nagare_cluster_nodes{state=ready}", len(names) - 1)

    def start(self, name: str, *options: str, ports: tuple[int, int, int] | None = None) -> Node:
        self.nodes[name] = Node(
            self.log(f"{name}-{len(self.killed)}"),
            *("--cluster-store", self.store.url, "--cluster-name", "test", "--node-name", name),
            *("--cluster-link", f"{LOOPBACK}:{self.links[name]}", "--cluster-secret", f"@{self.secret}"),
            *("--state-dir", str(self.folder), "--loops", "2"),
            *self.options,
            *options,
            ports=ports,
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
            self.store.thaw()
            self.store.kill()
