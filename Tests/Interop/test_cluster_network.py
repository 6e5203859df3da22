"""Faults of the network between the nodes of a cluster, and between them and their store."""

from __future__ import annotations

import json
import time
from typing import Callable, Iterator

import pytest
from conftest import log_path
from harness.clocks import assert_clock
from harness.cluster import Cluster
from harness.cluster_network import ClusterNetwork
from harness.load import run_load
from harness.members import Join, SoraMember
from harness.node import Node
from harness.stream import Stream, assert_undisturbed
from harness.waiting import wait_until

pytestmark = pytest.mark.timeout(300)
StartStream = Callable[..., Stream]

STORE_UP = "nagare_cluster_store_up{}"
ABSENT = "nagare_cluster_nodes_absent{}"
# A packet that the line passes on so late comes too late for a repair.
LINE_LATENESS_MAX = 0.05


@pytest.fixture(scope="module")
def network() -> Iterator[ClusterNetwork]:
    one = ClusterNetwork()
    yield one
    one.close()


@pytest.fixture(scope="module")
def cluster(network: ClusterNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all tests: each has to leave it whole."""
    folder = tmp_path_factory.mktemp("network")
    one = Cluster(folder, lambda suffix: log_path(f"cluster-network-{suffix}"), place=network)
    yield one
    one.close()


@pytest.fixture
def node(cluster: Cluster) -> Node:
    return cluster["a"]


@pytest.fixture(autouse=True)
def whole(cluster: Cluster, network: ClusterNetwork) -> Iterator[None]:
    """Ends the faults of a test that failed."""
    yield
    network.heal()
    for node in cluster.nodes.values():
        cluster.await_metric(node, STORE_UP, 1, 30)
        cluster.await_metric(node, ABSENT, 0, 30)


def events(watching: SoraMember, connection: str) -> tuple[int, int]:
    """How often a member was told that a connection was created, and that it was destroyed."""
    created, destroyed = (
        len(watching.notified(f"connection.{event}", connection_id=connection)) for event in ("created", "destroyed")
    )
    return created, destroyed


def call(join: Join, cluster: Cluster) -> dict[str, SoraMember]:
    """A member at each node, who all know of each other."""
    members = {name: join("recvonly", at=cluster[name]).connected() for name in cluster.nodes}
    for name, member in members.items():
        # A member who joins later is told of the earlier ones with its own connection.
        for other in members:
            if other > name:
                member.await_notification("connection.created", connection_id=members[other].connection)
    return members


def test_a_node_without_the_store_goes_on(
    cluster: Cluster, network: ClusterNetwork, join: Join, stream: StartStream, channel: str
) -> None:
    given_up = cluster.given_up()
    members = call(join, cluster)
    running = stream(cluster["a"], cluster["b"], channel)
    cluster.await_members(channel, 5)
    network.cut(("a", "store"))
    cluster.await_metric(cluster["a"], STORE_UP, 0)
    for name in "bc":
        cluster.await_metric(cluster[name], ABSENT, 1, 20)
    # Members come and go at the node, in a channel that it has.
    late = join("recvonly", at=cluster["a"]).connected()
    members["c"].await_notification("connection.created", connection_id=late.connection)
    # A channel that is new there.
    fresh = stream(cluster["a"], cluster["a"], f"{channel}-new")
    assert_undisturbed(fresh.finish())
    cluster.await_members(channel, 6)
    network.heal()
    cluster.await_metric(cluster["a"], STORE_UP, 1, 30)
    wait_until(lambda: cluster.store.knows(f"{channel}-new"), "the new channel in the store", 15)
    cluster.assert_given_up(given_up)
    assert_undisturbed(running.finish())
    assert events(members["b"], late.connection) == (1, 0)
    assert events(members["a"], members["b"].connection) == (1, 0)
    # The later member learned of the earlier one with its own connection.
    assert events(members["b"], members["a"].connection) == (0, 0)


def test_two_nodes_that_do_not_reach_each_other_keep_their_members(
    cluster: Cluster, network: ClusterNetwork, join: Join, stream: StartStream, channel: str
) -> None:
    members = call(join, cluster)
    leaving = join("recvonly", at=cluster["b"]).connected()
    members["a"].await_notification("connection.created", connection_id=leaving.connection)
    given_up = cluster.given_up()
    third = stream(cluster["a"], cluster["c"], channel)
    away = stream(cluster["a"], cluster["b"], f"{channel}-away")
    # Its publisher is known at the other node, and nobody there receives it.
    unseen = f"{channel}-unseen"
    join("sendonly", at=cluster["b"], to=unseen).connected()
    publisher = Stream.run(cluster["a"], unseen, "--subscribers", "0", "--duration", "60")
    cluster.await_members(unseen, 2, at="b")
    network.cut(("a", "b"))
    for name in "ab":
        wait_until(lambda: cluster[name].metrics()["nagare_cluster_links{state=down}"] == 1, "the lost link", 20)
    viewer = Stream.run(cluster["b"], unseen, "--publishers", "0", "--subscribers", "1", "--duration", "20")
    # Longer than it takes to give a node up. The third hears both.
    late = join("recvonly", at=cluster["a"]).connected()
    leaving.end()
    members["c"].await_notification("connection.created", connection_id=late.connection)
    members["c"].await_notification("connection.destroyed", connection_id=leaving.connection)
    time.sleep(4)
    cluster.assert_given_up(given_up)
    network.heal()
    healed = time.monotonic()
    cluster.await_members(channel, 6, 5)
    print(f"The members were equal again after {time.monotonic() - healed:.1f} s.")
    assert_undisturbed(third.finish())
    away.finish()
    again = run_load(
        cluster["b"], "--publishers", "0", "--subscribers", "1", "--duration", "1", channel=f"{channel}-away"
    )
    assert again["window"]["video"]["packetsReceived"] > 0
    # Who came when the track could not be asked for gets it, too.
    out, errors = viewer.communicate(timeout=60)
    assert viewer.returncode == 0 and json.loads(out)["window"]["video"]["packetsReceived"] > 0, errors[-2000:]
    publisher.terminate()
    publisher.communicate(timeout=30)
    # Each was created once, and only who left was destroyed, once.
    members["a"].await_notification("connection.destroyed", connection_id=leaving.connection)
    members["b"].await_notification("connection.created", connection_id=late.connection)
    cluster.assert_given_up(given_up)
    assert events(members["a"], leaving.connection) == (1, 1)
    assert events(members["b"], late.connection) == (1, 0)
    for one, other in ("ab", "ac", "bc"):
        assert events(members[one], members[other].connection) == (1, 0), (one, other)


def test_each_half_of_a_split_cluster_goes_on(
    cluster: Cluster, network: ClusterNetwork, join: Join, stream: StartStream, channel: str
) -> None:
    given_up = cluster.given_up()
    members = call(join, cluster)
    alone = stream(cluster["a"], cluster["a"], channel)
    pair = stream(cluster["b"], cluster["c"], f"{channel}-pair")
    network.cut(("a", "b"), ("a", "c"), ("a", "store"))
    members["b"].await_notification("connection.destroyed", seconds=20, connection_id=members["a"].connection)
    for name in "bc":
        members["a"].await_notification("connection.destroyed", seconds=20, connection_id=members[name].connection)
    # Newcomers in both halves, and in a new channel.
    late = {name: join("recvonly", at=cluster[name]).connected() for name in "ab"}
    members["c"].await_notification("connection.created", connection_id=late["b"].connection)
    both = [stream(cluster[name], cluster[name], f"{channel}-new") for name in "ab"]
    network.heal()
    healed = time.monotonic()
    cluster.await_members(channel, 7, 5)
    print(f"The members were equal again after {time.monotonic() - healed:.1f} s.")
    # A channel that began in both halves is one.
    cluster.await_members(f"{channel}-new", 4, 15, at="ab")
    sessions = lambda: {one["session_id"] for name in "ab" for one in cluster.connections(name, f"{channel}-new")}
    wait_until(lambda: len(sessions()) == 1, "one session", 10, describe=sessions)
    crossing = run_load(cluster["b"], "--publishers", "0", "--subscribers", "1", "--duration", "1", channel=channel)
    assert crossing["window"]["video"]["packetsReceived"] > 0
    for one in (alone, pair, *both):
        assert_undisturbed(one.finish())
    members["a"].await_notification("connection.created", connection_id=late["b"].connection)
    for name in "bc":
        members[name].await_notification("connection.created", connection_id=late["a"].connection)
    time.sleep(1)
    cluster.assert_given_up(given_up, a=2, b=1, c=1)
    for one, other in (("a", "b"), ("b", "a"), ("c", "a"), ("a", "c")):
        created, destroyed = events(members[one], members[other].connection)
        # The earlier member learned of the later one once more.
        assert (created, destroyed) == (2 if one < other else 1, 1), (one, other)
    assert events(members["b"], members["c"].connection) == (1, 0)


def test_viewers_do_not_see_the_loss_on_a_long_line_between_nodes(
    cluster: Cluster, network: ClusterNetwork, stream: StartStream, channel: str
) -> None:
    asked = lambda: cluster["a"].total("nagare_plis_sent_total")
    with network.lengthen(delay=0.02, loss=0.01) as line:
        running = stream(cluster["a"], cluster["b"], channel)
        wait_until(lambda: line.passed > 500, "packets on the line", 30)
        before = asked()
        wait_until(lambda: line.passed > 3_000, "more packets on the line", 40)
        report = running.finish()
        assert line.dropped > 15
        assert cluster["a"].total("nagare_cluster_relay_repairs_total", "asked") > 0
        starved = line.lateness > LINE_LATENESS_MAX
        # On a busy machine, a repair may come too late. Without repairs, each loss would need a key frame.
        key_frames = asked() - before
        seen = f"{key_frames} key frames were asked for; packets were up to {line.lateness:.3f} s late on the line"
        assert_clock(key_frames <= 2, seen, starved or None)
    assert_undisturbed(report, starved)
