"""A network of the test's own: the node on one side, its clients on the other, and a firewall at the node.

Each side is a network namespace, and a link joins the two. Nothing leads to the machine's own network. The thread that makes
the network is on the node's side until `close`, and so are the programs that it starts and the connections that it opens;
`command` starts a program on the clients' side. All this takes root.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

CLONE_NEWNET = 0x40000000
# Addresses for tests of networks (RFC 2544).
NODE_ADDRESS, CLIENT_ADDRESS = "198.18.0.1", "198.18.0.2"
# The same for IPv6 (RFC 5180).
NODE_ADDRESS_6, CLIENT_ADDRESS_6 = "2001:2::1", "2001:2::2"
# Lead clients to the node.
NODE_NAME, NODE_NAME_6 = "node.test", "node6.test"

# What the clients send is dropped on its arrival. The counters of UDP behind that are those of packets that came through.
FIREWALL = """
table inet firewall {
    counter blocked-udp { }
    counter blocked-tcp { }
    counter received-udp { }
    counter received-udp4 { }
    counter sent-udp { }
    set closed { type inet_service; }
    chain arriving {
        type filter hook prerouting priority raw;
        # UDP
        iifname "node" tcp dport @closed counter name blocked-tcp drop
    }
    chain received {
        type filter hook input priority filter;
        iifname "node" meta l4proto udp counter name received-udp
        iifname "node" meta nfproto ipv4 meta l4proto udp counter name received-udp4
    }
    chain sent {
        type filter hook output priority filter;
        oifname "node" meta l4proto udp counter name sent-udp
    }
}
"""

BLOCKED_UDP = 'iifname "node" meta l4proto udp counter name blocked-udp drop'

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, call: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{call}: {os.strerror(error)}. Network namespaces take root")


def enter_new_namespace() -> int:
    """Moves this thread to a network namespace without anything; the namespace's descriptor."""
    check(libc.unshare(CLONE_NEWNET), "unshare")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def run(*command: str, text: str | None = None) -> str:
    ended = subprocess.run(command, input=text, capture_output=True, text=True, timeout=10, check=False)
    assert ended.returncode == 0, f"{' '.join(command)}: {ended.stderr}"
    return ended.stdout


def raise_link(device: str, command: Callable[..., list[str]] = lambda *words: list(words)) -> None:
    """Raises a device without an address of the kernel's own. The kernel takes one into use a second or two later, and a browser
    gives up what it fetches when addresses change."""
    run(*command("ip", "link", "set", device, "addrgenmode", "none"))
    run(*command("ip", "link", "set", device, "up"))


class Network:
    """Clients whose network blocks chosen TCP ports of the node, and all UDP unless `passes_udp`.

    `folder` keeps files of the network.
    """

    def __init__(self, folder: Path, passes_udp: bool = False) -> None:
        self.folder = folder
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{NODE_ADDRESS} {NODE_NAME}\n{NODE_ADDRESS_6} {NODE_NAME_6}\n")
        # Nobody is there: a look-up fails at once.
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            self.clients = enter_new_namespace()
            run("ip", "link", "set", "lo", "up")
            os.close(enter_new_namespace())
            run("ip", "link", "set", "lo", "up")
            run("ip", "link", "add", "node", "type", "veth", "peer", "name", "client", "netns", self._clients_path)
            run("ip", "address", "add", f"{NODE_ADDRESS}/30", "dev", "node")
            # Without the search for duplicates, which takes seconds.
            run("ip", "address", "add", f"{NODE_ADDRESS_6}/64", "dev", "node", "nodad")
            raise_link("node")
            run("nft", "--file", "-", text=FIREWALL if passes_udp else FIREWALL.replace("# UDP", BLOCKED_UDP))
            run(*self.command("ip", "address", "add", f"{CLIENT_ADDRESS}/30", "dev", "client"))
            run(*self.command("ip", "address", "add", f"{CLIENT_ADDRESS_6}/64", "dev", "client", "nodad"))
            raise_link("client", self.command)
            # Browsers find their own address by the way to the Internet.
            for node in (NODE_ADDRESS, NODE_ADDRESS_6):
                run(*self.command("ip", "route", "add", "default", "via", node))
        except BaseException:
            self.close()
            raise

    @property
    def _clients_path(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self.clients}"

    def command(self, *words: str) -> list[str]:
        """A command line that runs `words` on the clients' side, where `NODE_NAME` leads to the node."""
        files = ("hosts", "resolv.conf")
        script = "".join(f'mount --bind "$0/{name}" /etc/{name} && ' for name in files) + 'exec "$@"'
        inside = ["unshare", "--mount", "sh", "-c", script, str(self.folder), *words]
        return ["nsenter", f"--net={self._clients_path}", *inside]

    def program(self, executable: str) -> Path:
        """A program that runs `executable` on the clients' side, with the same arguments."""
        script = self.folder / Path(executable).name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(self.command(executable))} "$@"\n')
        script.chmod(0o755)
        return script

    def close_port(self, port: int) -> None:
        """Blocks a TCP port of the node."""
        run("nft", "add", "element", "inet", "firewall", "closed", f"{{ {port} }}")

    def packets(self) -> dict[str, int]:
        """The packets that the firewall's counters have counted."""
        found = json.loads(run("nft", "--json", "list", "counters"))["nftables"]
        return {one["counter"]["name"]: one["counter"]["packets"] for one in found if "counter" in one}

    def close(self) -> None:
        """Returns to the machine's own network. The test's own ends with the programs in it."""
        check(libc.setns(self.home, CLONE_NEWNET), "setns")
        os.close(self.home)
        if hasattr(self, "clients"):
            os.close(self.clients)
