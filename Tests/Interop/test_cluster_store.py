"""Faults of a cluster's store: slow, full, and replaced by its Sentinels."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Callable, Iterator

import pytest
from conftest import log_path
from harness.cluster import Cluster, Store
from harness.load import run_load
from harness.store_faults import Sentinels, FaultyStore
from harness.stream import Stream, assert_undisturbed
from harness.waiting import wait_until

pytestmark = pytest.mark.timeout(300)
StartStream = Callable[..., Stream]

STORE_UP = "nagare_cluster_store_up{}"


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyStore]:
    store = Store(tmp_path_factory.mktemp("store"))
    one = FaultyStore(store)
    yield one
    one.close()
    store.close()


@pytest.fixture(scope="module")
def cluster(faulty: FaultyStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose store is behind a line."""
    folder = tmp_path_factory.mktemp("nodes")
    one = Cluster(folder, lambda suffix: log_path(f"store-{suffix}"), "abc", store=faulty.store, url=faulty.url)
    yield one
    one.close()


def await_store(cluster: Cluster, is_up: bool) -> None:
    for node in cluster.nodes.values():
        cluster.await_metric(node, STORE_UP, int(is_up), 30)


def use(cluster: Cluster, stream: StartStream, known: str, new: str) -> None:
    """Joins to a channel that all nodes have, and a new channel over two nodes."""
    for node in cluster.nodes.values():
        report = run_load(node, "--publishers", "0", "--subscribers", "1", "--duration", "1", channel=known)
        assert_undisturbed(report)
    fresh = stream(cluster["c"], cluster["b"], new)
    cluster.await_members(new, 2)
    assert_undisturbed(fresh.finish())


def test_a_slow_store_and_a_full_one_cost_nothing(
    cluster: Cluster, faulty: FaultyStore, stream: StartStream, channel: str
) -> None:
    running = stream(cluster["a"], cluster["b"], channel)
    third = stream(cluster["a"], cluster["c"], channel)
    cluster.await_members(channel, 4)
    with faulty.full():
        with faulty.slow(2.0):
            await_store(cluster, False)
            asked = faulty.channels
            use(cluster, stream, channel, f"{channel}-slow")
            # Nobody waits for it.
            assert faulty.channels == asked
        # It answers at once, and refuses what writes.
        refused = faulty.refused
        wait_until(lambda: faulty.refused >= refused + 3, "refused heartbeats", 20)
        use(cluster, stream, channel, f"{channel}-full")
        assert all(node.metrics()[STORE_UP] == 0 for node in cluster.nodes.values())
        assert faulty.channels == asked
    await_store(cluster, True)
    # The publisher of the new channel is still there.
    wait_until(lambda: faulty.store.knows(f"{channel}-full"), "the new channel in the store", 30)
    for one in (running, third):
        assert_undisturbed(one.finish())


@pytest.fixture
def sentinels(tmp_path: Path) -> Iterator[Sentinels]:
    one = Sentinels(tmp_path)
    yield one
    one.close()


def test_channels_begin_while_sentinels_replace_the_store(
    sentinels: Sentinels, stream: StartStream, tmp_path: Path, channel: str
) -> None:
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    log = lambda suffix: log_path(f"sentinels-{suffix}")
    cluster = Cluster(nodes, log, "ab", store=sentinels.primary, url=sentinels.url)
    joining = []
    try:
        running = stream(cluster["a"], cluster["b"], channel)
        cluster.await_members(channel, 2)
        # Publishers of ten channels at each node, of which some begin while there is no store.
        many = ("--channels", "10", "--publishers", "10", "--subscribers", "0", "--video-kbps", "50")
        for name in "ab":
            joining.append(Stream.run(cluster[name], f"{channel}-{name}", *many, "--join-rate", "4", "--duration", "100"))
            wait_until(lambda: cluster[name].publishing(f"{channel}-{name}-1"), "the first channel", 15)
        sentinels.primary.kill()
        channels = [f"{channel}-{name}-{number}" for name, number in itertools.product("ab", range(1, 11))]
        wait_until(lambda: "master" in sentinels.replica.answer("ROLE"), "the new primary", 30)
        await_store(cluster, True)
        for one in channels:
            wait_until(lambda: sentinels.replica.knows(one), f"{one} in the store", 30)
            # The node that does not have it finds it.
            other = "b" if f"{channel}-a-" in one else "a"
            cluster.await_members(one, 1, at=other)
        assert_undisturbed(running.finish())
    finally:
        for one in joining:
            one.kill()
            one.communicate(timeout=30)
        cluster.close()
