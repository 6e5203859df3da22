"""A cluster of three nodes on one machine: channels over nodes, and what happens when the store or a node is away."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest
import websockets
import websockets.sync.client

from conftest import log_path
from harness.chromium import ChromiumPage
from harness.clocks import assert_clock
from harness.cluster import Cluster
from harness.load import run_load
from harness.members import Join
from harness.node import BINARY, ENVIRONMENT, LOOPBACK, Node, free_tcp_port
from harness.offers import SDP, offer
from harness.peers import Peer
from harness.ports import free_ports
from harness.stream import Stream, assert_undisturbed
from harness.waiting import wait_until
from harness.webhooks import WebhookServer
from test_data_channels import labels, messages, opened
from test_relay import call, media_flows

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
    cluster.await_members(channel, 2)
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


def test_a_ban_holds_at_every_node(cluster: Cluster, join: Join, channel: str) -> None:
    member = join("recvonly", at=cluster["a"], client_id="troll").connected()
    ban = f"/v1/channels/{channel}/bans/troll"
    # It shares no channel with the member's node.
    assert httpx.put(cluster["c"].admin + ban).status_code == 200
    member.disconnected()

    def bans() -> list[int]:
        return [httpx.get(node.admin + ban).status_code for node in cluster.nodes.values()]

    wait_until(lambda: bans() == [200, 200, 200], "the ban at every node", 10, describe=bans)
    assert "BANNED" in join("recvonly", at=cluster["b"], client_id="troll").disconnected()
    assert httpx.delete(cluster["b"].admin + ban).status_code == 204
    wait_until(lambda: bans() == [404, 404, 404], "the end of the ban", 10, describe=bans)
    join("recvonly", at=cluster["a"], client_id="troll").connected()


def test_a_subscription_gets_the_events_of_every_node(
    cluster: Cluster, join: Join, hooks: WebhookServer, channel: str
) -> None:
    kinds = ["member.joined", "member.left", "channel.opened", "channel.closed"]
    wanted = {"url": hooks.url("event"), "channel": channel, "events": kinds}
    made = httpx.post(f"{cluster['a'].admin}/v1/subscriptions", json=wanted)
    assert made.status_code == 201, made.text

    def lists() -> list[list[str]]:
        answers = [httpx.get(f"{node.admin}/v1/subscriptions").json() for node in cluster.nodes.values()]
        return [[one["id"] for one in answer["subscriptions"]] for answer in answers]

    wait_until(lambda: lists() == 3 * [[made.json()["id"]]], "the subscription at every node", 10, describe=lists)

    def counts() -> dict[str, int]:
        return Counter(event["event"] for event in hooks.received["event"])

    members = [join("recvonly", at=cluster[name]).connected() for name in "bc"]
    cluster.await_members(channel, 2)
    wait_until(
        lambda: counts() == {"channel.opened": 1, "member.joined": 2}, "an event of each member", 10, describe=counts
    )
    assert httpx.delete(f"{cluster['a'].admin}/v1/channels/{channel}").status_code == 200
    for member in members:
        member.disconnected()
    wait_until(
        lambda: counts() == dict.fromkeys(kinds, 2) | {"channel.opened": 1, "channel.closed": 1},
        "the end of each member",
        10,
        describe=counts,
    )
    time.sleep(3)
    assert counts()["channel.closed"] == 1, counts()
    assert httpx.delete(f"{cluster['c'].admin}/v1/subscriptions/{made.json()['id']}").status_code == 204
    wait_until(lambda: lists() == [[], [], []], "the end of the subscription", 10, describe=lists)


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
    given_up = cluster.given_up()
    cluster.kill("a")
    began = time.monotonic()
    cluster.await_members(channel, 2, at="b")
    print(f"The application was back after {time.monotonic() - began:.1f} s.")
    watching.await_notification("connection.destroyed", seconds=6, connection_id=before)
    cluster.await_members(channel, 2)
    (after,) = [one["connection_id"] for one in cluster.connections("b", channel) if one["role"] != "recvonly"]
    assert after != before
    watching.sees(after)
    cluster.assert_given_up(given_up, b=1, c=1)
    assert len(watching.notified("connection.destroyed", connection_id=before)) == 1
    assert len(watching.notified("connection.created", connection_id=after)) == 1


def application(open_page: Callable[..., ChromiumPage], cluster: Cluster, channel: str) -> ChromiumPage:
    """A page that joined at node a, knows node b, and writes down its statuses with their reasons."""
    page = open_page(cluster["a"].origin, bypass_csp=True)
    page.goto(f"{cluster['a'].origin}/nagare.d.ts")
    page.call(
        "async (options) => { const { Nagare } = await import('/nagare.js');"
        " const one = window.channel = Nagare.channel(options); window.seen = [];"
        " one.addEventListener('connectionStatus', ({ detail }) => window.seen.push([detail.status, detail.reason]));"
        " await one.join(); }",
        {"url": [cluster["a"].signaling, cluster["b"].signaling], "channel": channel, "user": "ann"},
    )
    # The node tells it about its camera's packets, which is the flow that stops.
    wait_until(lambda: cluster["a"].total("nagare_packets_received_total", "protocol=rtp") > 200, "its media", 15)
    return page


@contextlib.contextmanager
def hanging(*nodes: Node) -> Iterator[None]:
    """The nodes hang, and go on one after the other, the first one first."""
    for node in nodes:
        os.kill(node.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for node in nodes:
            os.kill(node.process.pid, signal.SIGCONT)
            time.sleep(0.5)


@pytest.mark.timeout(300)
def test_a_web_application_leaves_a_node_that_hangs_within_three_seconds(
    own_cluster: Cluster, join: Join, open_page: Callable[..., ChromiumPage], channel: str
) -> None:
    cluster = own_cluster
    watching = join("recvonly", at=cluster["c"]).connected()
    page = application(open_page, cluster, channel)
    before = page.evaluate("window.channel.connectionId")
    watching.sees(before)
    expected = [
        ["connecting", ""], ["connected", ""], ["disconnected", "SIGNALING-SILENT"], ["reconnecting", ""],
        ["connected", ""],
    ]  # fmt: skip
    with hanging(cluster["a"]):
        began = time.monotonic()
        wait_until(lambda: len(page.evaluate("window.seen")) >= len(expected), "the return", 20)
        seconds = time.monotonic() - began
        assert page.evaluate("window.seen") == expected
        after = page.evaluate("window.channel.connectionId")
        assert after != before
        watching.sees(after)
    assert_clock(seconds <= 3, f"The application was back after {seconds:.1f} s.")


@pytest.mark.timeout(300)
def test_a_web_application_whose_network_stops_for_a_moment_stays_at_its_node(
    own_cluster: Cluster, open_page: Callable[..., ChromiumPage], channel: str
) -> None:
    cluster = own_cluster
    page = application(open_page, cluster, channel)
    before = page.evaluate("window.channel.connectionId")
    # It gets nothing from any node, as without a network.
    with hanging(cluster["a"], cluster["b"]):
        time.sleep(1.7)
    received = lambda: cluster["a"].total("nagare_packets_received_total", "protocol=rtp")
    packets = received()
    wait_until(lambda: received() > packets + 200, "its media again", 15)
    assert page.evaluate("window.channel.connectionId") == before
    assert "SIGNALING-SILENT" not in [reason for _, reason in page.evaluate("window.seen")]


def test_the_command_for_a_cluster_on_this_machine_shows_its_nodes() -> None:
    names = ("HTTP", "ADMIN", "MEDIA", "LINK", "STORE")
    # Parts of one free range: ports of HTTP, admin addresses and links for three nodes each, and of two loops a node.
    base = free_ports(16)
    first = [base, base + 3, base + 6, base + 12, free_tcp_port()]
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


# Calls of two.


def registered(cluster: Cluster, name: str, room: str, is_second: bool) -> websockets.sync.client.ClientConnection:
    """A client of the relay in a room."""
    client = websockets.sync.client.connect(cluster[name].origin.replace("http", "ws", 1) + "/relay")
    client.send(json.dumps({"type": "register", "roomId": room}))
    answer = received(client)
    assert (answer["type"], answer.get("isExistClient")) == ("accept", is_second), answer
    return client


def received(client: websockets.sync.client.ClientConnection) -> dict:
    """The next message that is no ping."""
    while (message := json.loads(client.recv(timeout=10)))["type"] == "ping":
        pass
    return message


def test_clients_of_a_room_meet_from_any_node_and_again_after_its_node_is_killed(
    own_cluster: Cluster, channel: str
) -> None:
    cluster = own_cluster
    # A question makes the links, for which newcomers do not wait long.
    for name in "ab":
        assert httpx.get(f"{cluster[name].admin}/v1/relay/{channel}").status_code == 404
        cluster.await_metric(cluster[name], "nagare_cluster_links{state=up}", 2)
    with contextlib.ExitStack() as stack:
        for number in range(40):
            room = f"{channel}-{number}"
            one = stack.enter_context(registered(cluster, "a", room, False))
            listed = httpx.get(f"{cluster['c'].admin}/v1/relay").json()["rooms"]
            if [each["room"] for each in listed] == [room]:
                break
            one.send('{"type":"bye"}')
        two = stack.enter_context(registered(cluster, "b", room, True))
        for node in cluster.nodes.values():
            at = f"{node.admin}/v1/relay/{room}"
            wait_until(lambda: len(httpx.get(at).json().get("registrations", [])) == 2, "both clients", 5)
        for sender, receiver, kind in ((two, one, "offer"), (one, two, "answer"), (two, one, "candidate")):
            sender.send(json.dumps({"type": kind, "sdp": "v=0\r\n"}))
            assert received(receiver) == {"type": kind, "sdp": "v=0\r\n"}
        cluster.kill("c")
        for client in (one, two):
            assert received(client) == {"type": "bye"}
            with pytest.raises(websockets.ConnectionClosed) as closed:
                received(client)
            assert closed.value.rcvd.reason == "NODE-LOST"
        again = [stack.enter_context(registered(cluster, name, room, name == "a")) for name in "ba"]
        again[0].send('{"type":"bye"}')
        assert received(again[1]) == {"type": "bye"}


def test_a_call_whose_media_passes_two_nodes(
    cluster: Cluster, open_page: Callable[..., ChromiumPage], channel: str
) -> None:
    pages = [open_page(cluster[name].origin) for name in "ab"]
    for page, name in zip(pages, "ab"):
        call(page, cluster[name].origin, room=channel, media="server")
    for page in pages:
        media_flows(page, 20)
    cluster.await_members(channel, 2)
    pages[0].evaluate("window.call.leave()")
    wait_until(lambda: pages[1].evaluate("window.seen.at(-1)") == "waiting", "the wait for the next", 8)


# The store.


@pytest.mark.timeout(300)
def test_calls_and_channels_go_on_while_the_store_is_away(
    own_cluster: Cluster, stream: Callable[..., Stream], channel: str
) -> None:
    cluster = own_cluster
    running = stream(cluster["a"], cluster["b"], channel)
    cluster.await_members(channel, 2)
    cluster.store.freeze()
    for node in cluster.nodes.values():
        cluster.await_metric(node, "nagare_cluster_store_up{}", 0)
    # A channel that the node has: joins as ever, at each node.
    known = run_load(cluster["a"], "--publishers", "0", "--subscribers", "2", "--duration", "2", channel=channel)
    assert_undisturbed(known)
    # A new channel over two nodes.
    fresh = stream(cluster["c"], cluster["b"], f"{channel}-new", 4)
    assert_undisturbed(fresh.report())
    fresh.end()
    # It comes back empty.
    cluster.store.kill()
    cluster.store.start()
    for node in cluster.nodes.values():
        cluster.await_metric(node, "nagare_cluster_store_up{}", 1)
    wait_until(lambda: cluster.store.knows(channel), "the channel in the store", 12)
    assert_undisturbed(running.finish())


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
    given_up = cluster.given_up()
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
    cluster.assert_given_up(given_up | {"a": 0}, b=1, c=1)
    assert len(watching.notified("connection.destroyed", connection_id=identifier)) == 1
    assert len(watching.notified("connection.created", connection_id=again.connection)) == 1


@pytest.mark.timeout(300)
def test_a_node_that_hangs_loses_nobody_for_good(
    own_cluster: Cluster, stream: Callable[..., Stream], join: Join, channel: str
) -> None:
    cluster = own_cluster
    running = stream(cluster["a"], cluster["b"], channel)
    watching = join("recvonly", at=cluster["b"]).connected()
    there = join("recvonly", at=cluster["c"]).connected().connection
    cluster.await_members(channel, 4)
    os.kill(cluster["c"].process.pid, signal.SIGSTOP)
    try:
        time.sleep(5)
    finally:
        os.kill(cluster["c"].process.pid, signal.SIGCONT)
    # Its member gets the stream again, although the publisher's node may have given it up.
    sent = lambda: cluster["c"].total("nagare_packets_sent_total", "protocol=rtp")
    before = sent()
    wait_until(lambda: sent() > before + 300, "media at the node that hung", 15, describe=cluster["c"].log_tail)
    assert_undisturbed(running.finish())
    # It was announced to the others once more at most.
    wait_until(lambda: there in [one["connection_id"] for one in cluster.connections("b", channel)], "its member", 10)
    told = lambda: [
        len(watching.notified(f"connection.{event}", connection_id=there)) for event in ("created", "destroyed")
    ]
    wait_until(lambda: told() in ([1, 0], [2, 1]), "one more announcement at most", 5, describe=told)


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
            stranger.settimeout(10)
            # The node may close or reset the connection at any of these steps.
            with contextlib.suppress(OSError):
                stranger.sendall(generator.randbytes(length))
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(4096):
                    pass
    wait_until(lambda: node.total("nagare_cluster_link_strangers_total") == before + 4, "four strangers", 10)
    dropped = node.total("nagare_packets_dropped_total", "relay")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for kind in (0xD0, 0xD1, 0xD2, 0xD3):
            stranger.sendto(bytes([kind]) + generator.randbytes(200), (LOOPBACK, node.media_port))
    wait_until(lambda: node.total("nagare_packets_dropped_total") > dropped, "counted drops", 10)
    assert node.ready()


def test_connections_without_a_hello_keep_no_node_out(own_cluster: Cluster, join: Join, channel: str) -> None:
    cluster = own_cluster
    held: list[socket.socket] = []
    try:
        for name, node in cluster.nodes.items():
            for _ in range(640):
                held.append(socket.create_connection((LOOPBACK, cluster.links[name]), 5, ("127.0.0.66", 0)))
            # Eight of one address stay, until they have been silent for five seconds.
            wait_until(lambda: node.total("nagare_cluster_link_crowded_total") >= 600, "refused connections", 10)
        join("sendonly", at=cluster["a"], video_codec_type="VP8").connected()
        join("recvonly", at=cluster["c"]).connected()
        cluster.await_members(channel, 2, at="ac")
        assert cluster["c"].total("nagare_cluster_links{state=up}") >= 1
    finally:
        for one in held:
            one.close()


def test_a_node_with_another_secret_gets_no_link(own_cluster: Cluster, join: Join, channel: str) -> None:
    cluster = own_cluster
    join("sendonly", at=cluster["a"], video_codec_type="VP8").connected()
    cluster.nodes.pop("c").close()
    cluster.secret.write_text("another secret, of more than thirty-two characters")
    cluster.start("c")
    join("recvonly", at=cluster["c"]).connected()
    # Neither accepts what the other told the store.
    for name, others in (("a", "c"), ("b", "c"), ("c", "ab")):
        cluster.await_metric(cluster[name], "nagare_cluster_nodes_ignored{}", len(others), 20)
    assert cluster["c"].metrics()["nagare_cluster_links{state=up}"] == 0
    assert len(cluster.connections("c", channel)) == 1
    # Both sides say so, whoever dials.
    for name, others in (("a", "c"), ("b", "c"), ("c", "ab")):
        cluster.await_metric(cluster[name], "nagare_cluster_links{state=refused}", len(others))
        nodes = httpx.get(f"{cluster[name].admin}/clusterz").json()["nodes"]
        assert {one["name"] for one in nodes if one.get("link") == "refused"} == set(others)

        def named() -> list[str]:
            """The nodes that the last line about other secrets has."""
            lines = cluster[name].log_path.read_text(errors="replace").splitlines()
            lines = [line for line in lines if "not signed with this node's --cluster-secret" in line]
            assert all(" error " in line for line in lines), lines
            found = re.search(r'other-signature="?([a-c ]+)', lines[-1]) if lines else None
            return sorted(found[1].split()) if found else []

        # A node says it again at most each ten seconds.
        wait_until(lambda: named() == sorted(others), "a line with the others", 15, describe=cluster[name].log_tail)
