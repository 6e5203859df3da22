"""Ports of the tests, which no other program of this machine gets.

They lie below the range from which the kernel takes ports for sockets without one. A port is claimed by an abstract socket
that has its number as name: the claim holds in all processes of the tests until this one ends, so that a program that binds
its port late still finds it free.
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
FIRST_PORT, LAST_PORT = 10_000, 19_999
# A node has a loop for each core by default, each with a port of its own. Tests ask for up to four.
MEDIA_PORTS = max(4, os.cpu_count() or 1)

claims: list[socket.socket] = []
# Processes begin at different places, so that they seldom ask for the same port. The kernel's range begins above.
following = itertools.count(os.getpid() * 97)


def ephemeral_range() -> tuple[int, int]:
    """The ports that the kernel gives to sockets without one."""
    first, last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    return int(first), int(last)


def claim(port: int) -> bool:
    """Claims a port until the end of this process. False when a process of the tests has it."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        one.bind(f"\0nagare-test-port-{port}")
    except OSError as error:
        one.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    claims.append(one)
    return True


def is_free(port: int) -> bool:
    """Whether no program has the port, over TCP or UDP, at any address."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            # A listener may follow on one whose connections are still in TIME-WAIT.
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                return False
    return True


def free_ports(count: int) -> int:
    """The first of `count` consecutive free ports. They are this process's until it ends."""
    places = (LAST_PORT - FIRST_PORT + 1) // count
    for _ in range(places):
        first = FIRST_PORT + next(following) % places * count
        before = len(claims)
        if all(is_free(port) and claim(port) for port in range(first, first + count)):
            return first
        while len(claims) > before:
            claims.pop().close()
    raise AssertionError(f"no {count} free ports in a row from {FIRST_PORT} to {LAST_PORT}")


def free_tcp_port() -> int:
    """A free port for one TCP listener."""
    return free_ports(1)


def free_media_port() -> int:
    """The first of `MEDIA_PORTS` free ports for the loops of a node."""
    return free_ports(MEDIA_PORTS)
