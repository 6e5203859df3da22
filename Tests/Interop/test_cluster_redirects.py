"""Clients that a node of a cluster sends to another one."""

from __future__ import annotations

from typing import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from conftest import log_path
from harness.chromium import ChromiumPage
from harness.cluster import Cluster, Store
from harness.load import run_load
from harness.members import Join
from harness.node import LOOPBACK, Node, free_tcp_port
from harness.offers import SDP, offer
from harness.peers import Peer
from harness.waiting import wait_until

pytestmark = pytest.mark.timeout(300)
# A channel of more members stays where it is.
SMALL_CHANNEL_MAX = 8
# Where nobody may be sent.
ELSEWHERE = "https://elsewhere.example.com"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes that tell clients of each other."""
    folder = tmp_path_factory.mktemp("redirects")
    one = Cluster(folder, lambda suffix: log_path(f"redirects-{suffix}"), "ab", is_public=True)
    yield one
    one.close()


@pytest.fixture
def node(cluster: Cluster) -> Node:
    return cluster["a"]


@pytest.fixture(autouse=True)
def empty(cluster: Cluster) -> Iterator[None]:
    """Members of a test must not be counted in the next one."""
    for node in cluster.nodes.values():
        wait_until(lambda: members(node) == 0, "an empty node", 15, describe=node.log_tail)
    yield


def members(node: Node) -> float:
    return node.total("nagare_peers{")


def post(node: Node, path: str, direction: str) -> httpx.Response:
    return httpx.post(f"{node.origin}{path}", content=offer(direction), headers=SDP)


def leave(node: Node, response: httpx.Response) -> None:
    assert response.status_code == 201, response.text
    assert httpx.delete(f"{node.origin}{urlsplit(response.headers['location']).path}").status_code == 200


def test_whip_and_whep_clients_follow_to_the_node_of_a_small_channel(
    cluster: Cluster, peer: Callable[..., Peer], channel: str
) -> None:
    publisher = peer("aiortc", "publish", f"{cluster['a'].origin}/whip/{channel}")
    publisher.wait("connected", 15)
    # The other node's first look at a channel makes the link, and may come too late to redirect.
    cluster.await_members(channel, 1)
    asked = post(cluster["b"], f"/whep/{channel}?height=90", "recvonly")
    assert asked.status_code == 307
    assert asked.headers["location"] == f"{cluster['a'].origin}/whep/{channel}?height=90&redirected=1"
    viewer = peer("aiortc", "watch", f"{cluster['b'].origin}/whep/{channel}")
    viewer.wait("stats", 20, frames=30, audio=30)
    # The load generator follows too.
    load = run_load(cluster["b"], "--publishers", "0", "--subscribers", "1", "--duration", "1", channel=channel)
    assert load["subscribersConnected"] == 1
    assert (members(cluster["a"]), members(cluster["b"])) == (2, 0)
    for one in (viewer, publisher):
        assert one.end()["status"] == 200


def test_a_sora_client_follows_to_the_node_of_a_small_channel(cluster: Cluster, join: Join, channel: str) -> None:
    first = join("sendonly", at=cluster["a"], video_codec_type="VP8").connected()
    cluster.await_members(channel, 1)
    second = join("recvonly", at=cluster["b"]).connected()
    second.sees(first)
    assert (members(cluster["a"]), members(cluster["b"])) == (2, 0)
    for one in (second, first):
        one.end()


def test_a_page_may_connect_to_the_node_that_it_is_sent_to(
    cluster: Cluster, open_page: Callable[..., ChromiumPage], channel: str
) -> None:
    pages = [open_page(cluster[name].origin) for name in "ab"]
    for page in pages:
        # The node's own page, with its policy.
        page.goto(f"{page.origin}/")
        page.call(
            "async (channel) => { const { Nagare } = await import('/nagare.js');"
            " window.channel = await Nagare.join({ channel }); }",
            channel,
        )
    assert (members(cluster["a"]), members(cluster["b"])) == (2, 0)
    seen = "[...window.channel.users].flatMap((user) => user.connections).filter((one) => one.hasPicture).length"
    for page in pages:
        wait_until(lambda: page.evaluate(seen) == 1, "the other's picture", 20)
    # Those that it may not connect to are still refused.
    policy = httpx.get(f"{cluster['b'].origin}/").headers["content-security-policy"]
    (allowed,) = [part for part in policy.split(";") if part.strip().startswith("connect-src")]
    assert allowed.split() == ["connect-src", "'self'", cluster["a"].signaling.removesuffix("/signaling")]


def test_a_greater_channel_is_joined_at_any_node(cluster: Cluster, channel: str) -> None:
    held = [post(cluster["a"], f"/whep/{channel}", "recvonly") for _ in range(SMALL_CHANNEL_MAX)]
    cluster.await_members(channel, SMALL_CHANNEL_MAX)
    assert post(cluster["b"], f"/whep/{channel}", "recvonly").status_code == 307
    held.append(post(cluster["a"], f"/whep/{channel}", "recvonly"))
    # A client that was sent here already stays, and so do those of a greater channel.
    more = [post(cluster["b"], f"/whep/{channel}{query}", "recvonly") for query in ("?redirected=1", "")]
    for node, responses in ((cluster["a"], held), (cluster["b"], more)):
        for one in responses:
            leave(node, one)


def test_a_draining_node_sends_newcomers_away(cluster: Cluster, join: Join, channel: str) -> None:
    drain = f"{cluster['a'].admin}/v1/drain"
    assert httpx.put(drain, json={"deadline_seconds": 600, "admit_seconds": 0}).status_code == 200
    try:
        asked = post(cluster["a"], f"/whip/{channel}", "sendonly")
        assert asked.status_code == 307, asked.text
        assert asked.headers["location"] == f"{cluster['b'].origin}/whip/{channel}?redirected=1"
        member = join("recvonly", at=cluster["a"]).connected()
        assert (members(cluster["a"]), members(cluster["b"])) == (0, 1)
        assert member.end()["finished"]
    finally:
        assert httpx.delete(drain).status_code == 200
    cluster.await_metric(cluster["b"], "nagare_cluster_nodes{state=ready}", 1)


def forge(store: Store, incarnations: dict[str, str]) -> None:
    """Writes records to the store as somebody who may write there and does not have the cluster's secret."""
    changes = int(store.answer("HGET ng:{test}:meta rev")[1])
    for name, incarnation in incarnations.items():
        changes += 1
        record = f'{incarnation} {{"s":"ready","k":"{LOOPBACK}:9","u":"{ELSEWHERE}"}}'
        assert store.ask(f"HSET ng:{{test}}:node {name} '{record}'") in (":0", ":1")
        assert store.ask(f"ZADD ng:{{test}}:chg {changes} {name}") in (":0", ":1")
    assert store.ask(f"HSET ng:{{test}}:meta rev {changes}") == ":0"


def test_whoever_writes_to_the_store_sends_no_client_elsewhere(cluster: Cluster, channel: str) -> None:
    # A node that does not exist, and another address for one that does.
    incarnation = cluster.store.answer("HGET ng:{test}:node b")[1].split(" ")[0]
    forge(cluster.store, {"elsewhere": incarnation, "b": incarnation})
    for node in cluster.nodes.values():
        listed: list[dict] = []

        def is_ignored() -> bool:
            listed[:] = httpx.get(f"{node.admin}/clusterz").json()["nodes"]
            # The node b tells the store of itself again.
            return [one["name"] for one in listed if one["ignored"]] == ["elsewhere"]

        wait_until(is_ignored, "only the node that does not exist to be ignored", 10, describe=lambda: listed)
        assert node.metrics()["nagare_cluster_nodes_ignored{}"] >= 1
        assert ELSEWHERE not in {one.get("address") for one in listed}
        assert sorted(one["name"] for one in listed if not one["ignored"]) == ["a", "b"]
        line = "not signed with this node's --cluster-secret"
        wait_until(lambda: line in node.log_path.read_text(), "the line in the log", 20, describe=node.log_tail)
    drain = f"{cluster['a'].admin}/v1/drain"
    assert httpx.put(drain, json={"deadline_seconds": 600, "admit_seconds": 0}).status_code == 200
    try:
        for _ in range(20):
            asked = post(cluster["a"], f"/whip/{channel}", "sendonly")
            assert asked.status_code == 307 and asked.headers["location"].startswith(cluster["b"].origin), asked.headers
    finally:
        assert httpx.delete(drain).status_code == 200
        # The nodes tell an empty store again what they are.
        assert cluster.store.ask("FLUSHALL") == "+OK"
    for node in cluster.nodes.values():
        cluster.await_metric(node, "nagare_cluster_nodes_ignored{}", 0, 40)
        cluster.await_metric(node, "nagare_cluster_nodes{state=ready}", 1, 40)


def test_of_two_nodes_with_one_name_the_earlier_takes_no_new_channels(cluster: Cluster, channel: str) -> None:
    earlier, link = cluster["b"], cluster.links["b"]
    present = post(earlier, f"/whip/{channel}", "sendonly")
    cluster.links["b"] = free_tcp_port()
    later = cluster.start("b")
    try:
        cluster.await_metric(earlier, "nagare_cluster_replaced{}", 1)
        readiness = httpx.get(f"{earlier.admin}/readyz")
        assert readiness.status_code == 503 and "--node-name" in readiness.text
        assert earlier.metrics()["nagare_ready{}"] == 0
        # What it has goes on.
        more = post(earlier, f"/whep/{channel}", "recvonly")
        for one in (more, present):
            leave(earlier, one)
        # Nobody would find a new channel there.
        asked: list[httpx.Response] = []

        def is_sent_away() -> bool:
            asked.append(post(earlier, f"/whip/{channel}-new", "sendonly"))
            return asked[-1].status_code == 307

        # It may still take the other node for one that drains.
        wait_until(is_sent_away, "the way to the other node", 10, describe=lambda: asked[-1].text)
        assert {one.status_code for one in asked} <= {307, 503}
        assert asked[-1].headers["location"].startswith(cluster["a"].origin)
        # The later one is the cluster's node.
        held = [(cluster["a"], post(cluster["a"], f"/whip/{channel}-new", "sendonly"))]
        held.append((later, post(later, f"/whep/{channel}-new?redirected=1", "recvonly")))
        cluster.await_members(f"{channel}-new", 2)
        for one, response in held:
            leave(one, response)
        assert later.metrics()["nagare_cluster_replaced{}"] == 0
        assert httpx.get(f"{later.admin}/readyz").status_code == 200
    finally:
        later.close()
        cluster.nodes["b"], cluster.links["b"] = earlier, link
    # Without the later one it is the cluster's node again, and what begins there is found from elsewhere.
    cluster.await_metric(earlier, "nagare_cluster_replaced{}", 0, 20)
    wait_until(lambda: httpx.get(f"{earlier.admin}/readyz").status_code == 200, "readiness", 5, describe=earlier.log_tail)
    cluster.await_metric(cluster["a"], "nagare_cluster_nodes{state=ready}", 1, 15)
    again = post(earlier, f"/whip/{channel}-again", "sendonly")
    found = post(cluster["a"], f"/whep/{channel}-again?redirected=1", "recvonly")
    cluster.await_members(f"{channel}-again", 2)
    leave(cluster["a"], found)
    leave(earlier, again)
