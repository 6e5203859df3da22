"""A cluster of three nodes on one machine: channels over nodes, and what happens when the store or a node is away."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from conftest import log_path
from harness.chromium import ChromiumPage
from harness.cluster import Cluster
from harness.load import load_command, run_load
from harness.members import Join
from harness.node import BINARY, ENVIRONMENT, LOOPBACK, Node, free_media_port, free_tcp_port
from harness.offers import SDP, offer
from harness.peers import Peer
from harness.waiting import wait_until
from test_data_channels import labels, messages, opened

StartPeer = Callable[..., Peer]
REPOSITORY = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for the tests that leave it as it was."""
    yield from running(tmp_path_factory.mktemp("cluster"), "cluster")


@pytest.fixture
def own_cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster for one test alone."""
    yield from running(tmp_path, request.node.name)


def running(folder: Path, name: str) -> Iterator[Cluster]:
    started = Cluster(folder, lambda suffix: log_path(f"{name}-{suffix}"))
    try:
        yield started
    finally:
        started.close()


class Stream:
    """A publisher and a viewer of the load generator at two nodes, whose report tells what the viewer lost."""

    def __init__(self, publisher: Node, viewer: Node, channel: str, seconds: int) -> None:
        self.publisher = self.run(publisher, channel, "--subscribers", "0", "--audio", "--duration", str(seconds + 8))
        wait_until(lambda: publisher.publishing(channel), "the publisher", 15)
        self.viewer = self.run(
            viewer, channel, "--publishers", "0", "--subscribers", "1", "--audio", "--duration", str(seconds)
        )
        wait_until(lambda: len(viewer.channel(channel).get("participants", [])) >= 1, "the viewer's channel", 15)

    @staticmethod
    def run(node: Node, channel: str, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            load_command(node, *options, channel=channel),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )

    def report(self) -> dict:
        """What the viewer received, after its time."""
        out, errors = self.viewer.communicate(timeout=120)
        assert self.viewer.returncode == 0, errors[-2000:] + out[-2000:]
        return json.loads(out)

    def end(self) -> None:
        for one in (self.publisher, self.viewer):
            if one.poll() is None:
                one.send_signal(signal.SIGTERM)
            one.communicate(timeout=30)


@pytest.fixture
def stream() -> Iterator[Callable[..., Stream]]:
    streams: list[Stream] = []

    def start(*arguments: object) -> Stream:
        streams.append(Stream(*arguments))
        return streams[-1]

    yield start
    for one in streams:
        one.end()


def lost(report: dict) -> int:
    """The packets that the viewer did not get."""
    window = report["window"]
    return sum(window[kind]["packetsLost"] for kind in ("video", "audio") if kind in window)


# One channel over three nodes.


def test_viewers_at_other_nodes_see_a_publisher(cluster: Cluster, join: Join, peer: StartPeer, channel: str) -> None:
    early = peer("aiortc", "watch", f"{cluster['b'].origin}/whep/{channel}")
    publisher = peer("aiortc", "publish", f"{cluster['a'].origin}/whip/{channel}")
    publisher.wait("connected", 15)
    member = join("recvonly", at=cluster["c"]).connected()
    late = peer("aiortc", "watch", f"{cluster['c'].origin}/whep/{channel}")
    for viewer in (early, late):
        viewer.wait("stats", 20, frames=30, audio=30)
    wait_until(
        lambda: any(one["frames"] >= 30 for one in member.streams.values()),
        "frames at the Sora client",
        20,
        describe=member.described,
    )
    cluster.await_members(channel, 4)
    # The packets crossed once for each loop with viewers, and nothing was refused.
    assert cluster["a"].total("nagare_packets_dropped_total", "relay") == 0
    assert publisher.end()["status"] == 200
    cluster.await_members(channel, 3)


def test_chromium_plays_chromium_at_another_node(
    cluster: Cluster, open_page: Callable[..., ChromiumPage], channel: str
) -> None:
    publisher, viewer = open_page(cluster["a"].origin), open_page(cluster["b"].origin)
    viewer.open_channel(channel)
    publisher.open_channel(channel)
    publisher.publish("VP8", simulcast=True)
    viewer.watched()


def test_sora_members_learn_of_those_at_other_nodes(cluster: Cluster, join: Join, channel: str) -> None:
    first = join("sendrecv", at=cluster["a"], metadata='{"name":"first"}').connected()
    second = join("sendrecv", at=cluster["b"]).connected()
    seen = first.await_notification("connection.created", connection_id=second.connection)
    assert seen["channel_connections"] == 2
    first.sees(second)
    second.sees(first)
    # An operator asks a node that has neither of them.
    cluster["c"].operate("20151104.DisconnectConnection", channel_id=channel, connection_id=second.connection)
    second.disconnected()
    gone = first.await_notification("connection.destroyed", connection_id=second.connection)
    assert gone["channel_connections"] == 1
    assert len(first.notified("connection.created", connection_id=second.connection)) == 1
    assert len(first.notified("connection.destroyed", connection_id=second.connection)) == 1


def test_messages_reach_members_of_other_nodes(
    cluster: Cluster, join: Join, open_page: Callable[..., ChromiumPage], channel: str
) -> None:
    flags = ("data-channel-signaling",)
    first = join("sendonly", *flags, at=cluster["a"], data_channels=labels(["#chat"])).connected().switched()
    second = join("recvonly", *flags, at=cluster["b"], data_channels=labels(["#chat"])).connected().switched()
    page = open_page(cluster["c"].origin)
    page.goto(f"{cluster['c'].origin}/")
    opened(page, f"/whep/{channel}", "#chat", False)
    cluster.await_members(channel, 3)
    first.send_command("send #chat hello")
    second.gets("#chat", ["hello"])
    wait_until(lambda: messages(page) == ["binary 5"], "the message in Chromium", 10, lambda: messages(page))
    second.send_command("send #chat back")
    first.gets("#chat", ["back"])


def test_a_user_with_a_kick_is_out_of_every_node(cluster: Cluster, join: Join, channel: str) -> None:
    member = join("recvonly", at=cluster["a"], client_id="troll").connected()
    other = join("recvonly", at=cluster["b"]).connected()
    cluster.await_members(channel, 2)
    cluster["c"].operate("20151104.DisconnectClient", channel_id=channel, client_id="troll")
    member.disconnected()
    cluster.await_members(channel, 1)
    assert other.process.poll() is None


def test_a_session_is_ended_through_any_node(cluster: Cluster, channel: str) -> None:
    made = httpx.post(f"{cluster['a'].origin}/whip/{channel}", content=offer("sendonly"), headers=SDP)
    assert made.status_code == 201
    path = urlsplit(made.headers["location"]).path
    cluster.await_members(channel, 1)
    for method, status in (("GET", 204), ("DELETE", 200), ("DELETE", 404)):
        assert httpx.request(method, f"{cluster['b'].origin}{path}").status_code == status, method
    cluster.await_members(channel, 0)


@pytest.mark.timeout(300)
def test_a_web_application_goes_on_at_another_node(
    own_cluster: Cluster, join: Join, open_page: Callable[..., ChromiumPage], channel: str
) -> None:
    cluster = own_cluster
    watching = join("recvonly", at=cluster["c"]).connected()
    # An application's page has a policy of its own; the node's page permits its own cluster's public addresses only.
    page = open_page(cluster["a"].origin, bypass_csp=True)
    page.goto(f"{cluster['a'].origin}/nagare.d.ts")
    addresses = [cluster["a"].signaling, cluster["b"].signaling]
    page.call(
        "async (options) => { const { Nagare } = await import('/nagare.js');"
        " window.channel = await Nagare.join(options); }",
        {"url": addresses, "channel": channel, "user": "ann"},
    )
    cluster.await_members(channel, 2)
    (before,) = [one["connection_id"] for one in cluster.connections("a", channel) if one["role"] != "recvonly"]
    watching.sees(before)
    cluster.kill("a")
    began = time.monotonic()
    cluster.await_members(channel, 2, at="b")
    print(f"The application was back after {time.monotonic() - began:.1f} s.")
    watching.await_notification("connection.destroyed", seconds=6, connection_id=before)
    cluster.await_members(channel, 2)
    (after,) = [one["connection_id"] for one in cluster.connections("b", channel) if one["role"] != "recvonly"]
    assert after != before
    watching.sees(after)
    assert len(watching.notified("connection.destroyed", connection_id=before)) == 1
    assert len(watching.notified("connection.created", connection_id=after)) == 1


def test_the_command_for_a_cluster_on_this_machine_shows_its_nodes() -> None:
    names = ("HTTP", "ADMIN", "MEDIA", "LINK", "STORE")
    first = [*(free_media_port() for _ in range(4)), free_tcp_port()]
    environment = {
        **ENVIRONMENT,
        "NAGARE_BINARY": str(BINARY),
        **{f"NAGARE_CLUSTER_{name}_PORT": str(port) for name, port in zip(names, first)},
    }
    process = subprocess.Popen(
        [REPOSITORY / "ops/cluster"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        line = next(line for line in process.stdout if "clusterz" in line or "error" in line)
        assert "clusterz" in line, line
        address = line.split()[-1]
        wait_until(
            lambda: [one["state"] for one in httpx.get(address).json()["nodes"]] == ["ready"] * 3, "three nodes", 15
        )
        page = httpx.get(address, headers={"Accept": "text/html"})
        assert "text/html" in page.headers["content-type"] and "ready" in page.text
    finally:
        # A runner in the background may have left SIGINT ignored.
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 130


# The store.


@pytest.mark.timeout(300)
def test_calls_and_channels_go_on_while_the_store_is_away(
    own_cluster: Cluster, stream: Callable[..., Stream], channel: str
) -> None:
    cluster = own_cluster
    running = stream(cluster["a"], cluster["b"], channel, 24)
    cluster.await_members(channel, 2)
    cluster.store.freeze()
    for node in cluster.nodes.values():
        cluster.await_metric(node, "nagare_cluster_store_up{}", 0)
    # A channel that the node has: joins as ever, at each node.
    known = run_load(cluster["a"], "--publishers", "0", "--subscribers", "2", "--duration", "2", channel=channel)
    assert lost(known) == 0
    # A new channel over two nodes.
    fresh = stream(cluster["c"], cluster["b"], f"{channel}-new", 4)
    assert lost(fresh.report()) == 0
    fresh.end()
    # It comes back empty.
    cluster.store.kill()
    cluster.store.start()
    for node in cluster.nodes.values():
        cluster.await_metric(node, "nagare_cluster_store_up{}", 1)
    report = running.report()
    assert lost(report) == 0
    wait_until(
        lambda: cluster.store.ask(f"HLEN ng:{{test:{room_hash(cluster, channel)}}}:room:{channel}") not in ("", ":0"),
        "the channel in the store",
        12,
    )


def room_hash(cluster: Cluster, channel: str) -> str:
    """The hash part of a channel's key, which its name decides."""
    keys = socket.create_connection((LOOPBACK, cluster.store.port), 2)
    with keys:
        keys.sendall(f"KEYS *:room:{channel}\r\n".encode())
        text = keys.recv(65536).decode(errors="replace")
    found = [line for line in text.split("\r\n") if line.endswith(f":room:{channel}")]
    return found[0].split("{test:")[1].split("}")[0] if found else "none"


# Nodes that end, hang and return.


@pytest.mark.timeout(300)
def test_a_killed_node_s_members_leave_once_and_the_channel_goes_on(
    own_cluster: Cluster, join: Join, channel: str
) -> None:
    cluster = own_cluster
    watching = join("recvonly", at=cluster["b"]).connected()
    staying = join("sendonly", at=cluster["c"], video_codec_type="VP8").connected()
    lost_member = join("sendonly", at=cluster["a"], video_codec_type="VP8").connected()
    identifier = lost_member.connection
    watching.sees(lost_member)
    killed = cluster.kill("a")
    watching.await_notification("connection.destroyed", seconds=6, connection_id=identifier)
    cluster.await_members(channel, 2)
    # It rejoins at another node, and its node starts again under the same name.
    again = join("sendonly", at=cluster["c"], video_codec_type="VP8").connected()
    watching.sees(again)
    watching.sees(staying)
    cluster.start("a", ports=killed.ports)
    at_a = join("recvonly", at=cluster["a"]).connected()
    at_a.sees(staying)
    cluster.await_members(channel, 4)
    time.sleep(3)
    assert len(watching.notified("connection.destroyed", connection_id=identifier)) == 1
    assert len(watching.notified("connection.created", connection_id=again.connection)) == 1


@pytest.mark.timeout(300)
def test_a_node_that_hangs_loses_nobody_for_good(
    own_cluster: Cluster, stream: Callable[..., Stream], channel: str
) -> None:
    cluster = own_cluster
    running = stream(cluster["a"], cluster["b"], channel, 12)
    cluster.await_members(channel, 2)
    os.kill(cluster["c"].process.pid, signal.SIGSTOP)
    try:
        time.sleep(5)
    finally:
        os.kill(cluster["c"].process.pid, signal.SIGCONT)
    assert lost(running.report()) == 0, "calls of the others do not notice"
    late = run_load(cluster["c"], "--publishers", "0", "--subscribers", "1", "--duration", "2", channel=channel)
    assert late["window"]["video"]["packetsReceived"] > 0


def test_a_node_that_stops_takes_its_members_at_once(own_cluster: Cluster, join: Join, channel: str) -> None:
    cluster = own_cluster
    watching = join("recvonly", at=cluster["b"]).connected()
    leaving = join("sendonly", at=cluster["a"], video_codec_type="VP8").connected()
    identifier = leaving.connection
    watching.sees(leaving)
    stopped = cluster.nodes.pop("a")
    code, _ = stopped.terminate()
    assert code == 0
    watching.await_notification("connection.destroyed", seconds=3, connection_id=identifier)
    cluster.await_members(channel, 1)
    cluster.await_metric(cluster["b"], "nagare_cluster_nodes{state=ready}", 1)


# Strangers.


def test_strangers_at_the_link_listener_and_the_media_port_change_nothing(cluster: Cluster) -> None:
    generator = random.Random(7)
    node = cluster["a"]
    before = node.total("nagare_cluster_link_strangers_total")
    for length in (0, 1, 200, 5000):
        with socket.create_connection((LOOPBACK, cluster.links["a"]), 5) as stranger:
            stranger.sendall(generator.randbytes(length))
            stranger.shutdown(socket.SHUT_WR)
            stranger.settimeout(10)
            try:
                while stranger.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    wait_until(lambda: node.total("nagare_cluster_link_strangers_total") == before + 4, "four strangers", 10)
    dropped = node.total("nagare_packets_dropped_total", "relay")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for kind in (0xD0, 0xD1, 0xD2, 0xD3):
            stranger.sendto(bytes([kind]) + generator.randbytes(200), (LOOPBACK, node.media_port))
    wait_until(lambda: node.total("nagare_packets_dropped_total") > dropped, "counted drops", 10)
    assert node.ready()


def test_a_node_with_another_secret_gets_no_link(own_cluster: Cluster, join: Join, channel: str) -> None:
    cluster = own_cluster
    join("sendonly", at=cluster["a"], video_codec_type="VP8").connected()
    cluster.nodes.pop("c").close()
    cluster.secret.write_text("another secret, of more than thirty-two characters")
    cluster.start("c")
    join("recvonly", at=cluster["c"]).connected()
    wait_until(lambda: cluster["a"].total("nagare_cluster_link_strangers_total") > 0, "a refused link", 10)
    assert cluster["c"].metrics()["nagare_cluster_links{state=up}"] == 0
    assert len(cluster.connections("c", channel)) == 1
