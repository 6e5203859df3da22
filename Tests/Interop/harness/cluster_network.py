"""A network of the test's own for a cluster: each node, and the clients with the store, in a network namespace.

A bridge on the clients' side joins them. Its firewall cuts pairs of members off from each other, and `lengthen` leads what
the nodes send each other over a long and lossy line. The thread that makes the network is on the clients' side until `close`,
and so are the programs that it starts. Nothing leads to the machine's own network. All this takes root.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time
from typing import Iterator

from .cluster import Place
from .network import CLONE_NEWNET, check, enter_new_namespace, libc, raise_link, run

# Addresses for tests of networks (RFC 2544).
SUBNET, PREFIX = "198.18.1", 24
CLIENTS, STORE = f"{SUBNET}.254", f"{SUBNET}.100"

# What one member of a pair sends the other is dropped on the bridge, without an answer.
FIREWALL = """
table bridge firewall {
    counter dropped { }
    set cut { type ipv4_addr . ipv4_addr; }
    chain arriving {
        type filter hook prerouting priority 0;
        ip saddr . ip daddr @cut counter name dropped drop
    }
    chain sent {
        type filter hook output priority 0;
        ip saddr . ip daddr @cut counter name dropped drop
    }
}
"""

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


class Line:
    """Passes IP packets between tunnel devices with a delay and random loss, in a thread of its own."""

    def __init__(self, devices: dict[bytes, int], delay: float, loss: float, seed: int) -> None:
        self.devices = devices
        self.delay = delay
        self.loss = loss
        self.random = random.Random(seed)
        self.passed = self.dropped = 0
        # The most seconds by which a packet was late, because this thread had no processor.
        self.lateness = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._pass, daemon=True)
        self._thread.start()

    def _pass(self) -> None:
        due: list[tuple[float, int, int, bytes]] = []
        while not self._stopping.is_set():
            wait = min(0.1, max(0.0, due[0][0] - time.monotonic())) if due else 0.1
            for device in select.select(list(self.devices.values()), [], [], wait)[0]:
                packet = os.read(device, 65536)
                # The destination of an IPv4 packet.
                to = self.devices.get(packet[16:20])
                if to is None:
                    continue
                if self.random.random() < self.loss:
                    self.dropped += 1
                    continue
                self.passed += 1
                heapq.heappush(due, (time.monotonic() + self.delay, self.passed, to, packet))
            while due and due[0][0] <= time.monotonic():
                at, _, to, packet = heapq.heappop(due)
                self.lateness = max(self.lateness, time.monotonic() - at)
                os.write(to, packet)

    def close(self) -> None:
        """Ends the line: the devices and their routes are gone."""
        self._stopping.set()
        self._thread.join(5)
        for device in self.devices.values():
            os.close(device)


class ClusterNetwork(Place):
    """The nodes `names` and the place of the clients and the store."""

    store = STORE
    is_development = False

    def __init__(self, names: str = "abc") -> None:
        self.names = names
        self.spaces: dict[str, int] = {}
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            for name in names:
                self.spaces[name] = enter_new_namespace()
                run("ip", "link", "set", "lo", "up")
            os.close(enter_new_namespace())
            for command in (
                "link set lo up",
                "link add hub type bridge",
                f"address add {CLIENTS}/{PREFIX} dev hub",
                f"address add {STORE}/{PREFIX} dev hub",
            ):
                run("ip", *command.split())
            raise_link("hub")
            for name in names:
                peer = ("peer", "name", "node", "netns", self._path(name))
                run("ip", "link", "add", f"to-{name}", "type", "veth", *peer)
                run("ip", "link", "set", f"to-{name}", "master", "hub")
                raise_link(f"to-{name}")
                with self.at(name):
                    run("ip", "address", "add", f"{self.address(name)}/{PREFIX}", "dev", "node")
                    raise_link("node")
            run("nft", "--file", "-", text=FIREWALL)
        except BaseException:
            self.close()
            raise

    def _path(self, name: str) -> str:
        return f"/proc/{os.getpid()}/fd/{self.spaces[name]}"

    def address(self, name: str) -> str:
        return STORE if name == "store" else f"{SUBNET}.{self.names.index(name) + 1}"

    def command(self, name: str, *words: str) -> list[str]:
        return ["nsenter", f"--net={self._path(name)}", *words]

    @contextlib.contextmanager
    def at(self, name: str) -> Iterator[None]:
        outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            check(libc.setns(self.spaces[name], CLONE_NEWNET), "setns")
            yield
        finally:
            check(libc.setns(outside, CLONE_NEWNET), "setns")
            os.close(outside)

    def cut(self, *pairs: tuple[str, str]) -> None:
        """From now on, nothing passes between the members of the pairs: nodes, or `store`."""
        for pair in pairs:
            one, other = map(self.address, pair)
            run("nft", "add", "element", "bridge", "firewall", "cut", f"{{ {one} . {other}, {other} . {one} }}")

    def heal(self) -> None:
        """Everything passes again."""
        run("nft", "flush", "set", "bridge", "firewall", "cut")

    @contextlib.contextmanager
    def lengthen(self, delay: float, loss: float, seed: int = 1) -> Iterator[Line]:
        """Inside, what a node sends another one takes `delay` seconds, and the share `loss` of the packets is lost."""
        devices: dict[bytes, int] = {}
        for name in self.names:
            with self.at(name):
                device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
                fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH14x", b"line", IFF_TUN | IFF_NO_PI))
                run("ip", "link", "set", "line", "up")
                for other in self.names.replace(name, ""):
                    run("ip", "route", "add", f"{self.address(other)}/32", "dev", "line")
            devices[bytes(map(int, self.address(name).split(".")))] = device
        line = Line(devices, delay, loss, seed)
        try:
            yield line
        finally:
            line.close()

    def close(self) -> None:
        """Returns to the machine's own network. The test's own ends with the programs in it."""
        check(libc.setns(self.home, CLONE_NEWNET), "setns")
        os.close(self.home)
        for space in self.spaces.values():
            os.close(space)
