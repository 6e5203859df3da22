"""Many clients whose node drains or dies: who was told, where they are afterwards, and what the others learned."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from typing import Any, Callable, Iterator

import httpx
import pytest
from conftest import log_path
from harness.chromium import ChromiumPage
from harness.clocks import assert_clock
from harness.cluster import Cluster
from harness.load import load_command, report_of
from harness.members import Join, SoraMember
from harness.node import ENVIRONMENT, Node
from harness.peers import Peer
from harness.ports import MEDIA_PORTS
from harness.waiting import wait_until

pytestmark = pytest.mark.timeout(300)
CLIENTS, CHANNELS = 20, 5

JOIN = """async ({ urls, channel, clients, channels }) => {
  const { Nagare } = await import('/nagare.js');
  window.crowd = Array.from({ length: clients }, (_, index) => {
    const one = { events: [], channel: Nagare.channel({ url: urls, channel: `${channel}-${index % channels}`,
      user: `user-${index}`, canPublish: false, joinTimeout: 60 }) };
    one.channel.addEventListener('connectionStatus', ({ detail }) => {
      one.events.push([performance.now(), detail.status, detail.reason]);
    });
    return one;
  });
  for (let first = 0; first < clients; first += channels) {
    await Promise.all(window.crowd.slice(first, first + channels).map((one) => one.channel.join()));
  }
}"""

# Of each client: its connection, the media port of its node, and what it was told.
LOOK = """() => window.crowd.map(({ channel, events }) => {
  const { sdp } = channel.peerConnection?.remoteDescription ?? {};
  const port = Number(/ udp \\d+ \\S+ (\\d+) /.exec(sdp)?.[1]);
  return { id: channel.connectionId, port, status: channel.status, events };
})"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("crowd")
    one = Cluster(folder, lambda suffix: log_path(f"crowd-{suffix}"))
    yield one
    one.close()


@pytest.fixture
def node(cluster: Cluster) -> Node:
    return cluster["a"]


class Crowd:
    """The clients of `/nagare.js` in one page, which know the node `a` first."""

    def __init__(self, cluster: Cluster, page: ChromiumPage, watching: SoraMember, channel: str) -> None:
        self.cluster = cluster
        self.page = page
        self.watching = watching
        page.goto(f"{cluster['c'].origin}/nagare.d.ts")
        self.given_up = cluster.given_up()
        urls = [cluster[name].signaling for name in "abc"]
        page.call(JOIN, {"urls": urls, "channel": channel, "clients": CLIENTS, "channels": CHANNELS})
        self.before = self.look()
        # On a busy machine, a few went to another node after 4 s.
        self.left = [index for index, one in enumerate(self.before) if self.is_at(one, "a")]
        assert_clock(len(self.left) >= CLIENTS / 2, self.before)

    def is_at(self, client: dict[str, Any], name: str) -> bool:
        first = self.cluster[name].media_port
        return first <= client["port"] < first + MEDIA_PORTS

    def look(self) -> list[dict[str, Any]]:
        return self.page.call(LOOK)

    def returned(self, **given_up: int) -> list[dict[str, Any]]:
        """Waits until all clients of `a` have a connection to another node; what they were told since they left it.

        `given_up` says how many nodes each node gives up meanwhile.
        """

        def all_back() -> list[dict[str, Any]] | None:
            now = self.look()
            for index in self.left:
                one = now[index]
                if one["status"] != "connected" or not (self.is_at(one, "b") or self.is_at(one, "c")):
                    return None
            return now

        after = wait_until(all_back, "the return of all clients", 40, describe=lambda: self.look()[:5])
        told = []
        for index in self.left:
            events = after[index]["events"][len(self.before[index]["events"]) :]
            told.append({**after[index], "events": events})
        noticed, back = (one([event[0] for client in told for event in client["events"]]) for one in (min, max))
        print(f"{len(told)} clients were back {(back - noticed) / 1000:.1f} s after the first one noticed.")
        self.check_news(after, given_up)
        return told

    def check_news(self, after: list[dict[str, Any]], given_up: dict[str, int]) -> None:
        """The member that watches the first channel learned once of each old and each new connection."""
        for index in [index for index in self.left if index % CHANNELS == 0]:
            before, now = self.before[index]["id"], after[index]["id"]
            for event, identifier in (("created", before), ("destroyed", before), ("created", now)):
                self.watching.await_notification(f"connection.{event}", connection_id=identifier)
        self.cluster.assert_given_up(self.given_up, **given_up)
        for event in ("created", "destroyed"):
            told = Counter(one["connection_id"] for one in self.watching.notified(f"connection.{event}"))
            assert set(told.values()) <= {1}, (event, told)


@pytest.fixture
def crowd(cluster: Cluster, open_page: Callable[..., ChromiumPage], join: Join, channel: str) -> Iterator[Crowd]:
    watching = join("recvonly", at=cluster["c"], to=f"{channel}-0").connected()
    one = Crowd(cluster, open_page(cluster["c"].origin, bypass_csp=True), watching, channel)
    yield one


def test_a_drain_tells_everybody_and_all_go_elsewhere(
    crowd: Crowd, cluster: Cluster, peer: Callable[..., Peer], channel: str
) -> None:
    viewer = peer("aiortc", "watch", f"{cluster['a'].origin}/whep/{channel}-1")
    viewer.wait("connected", 20)
    drain = f"{cluster['a'].admin}/v1/drain"
    assert httpx.put(drain, json={"deadline_seconds": 2, "admit_seconds": 0}).status_code == 200
    try:
        after = crowd.returned()
        # The end of the DTLS association tells clients without signaling.
        viewer.wait("closed", 20)
        wait_until(lambda: cluster["a"].total("nagare_peers{") == 0, "an empty node", 15)
        for one in after:
            assert [event[2] for event in one["events"] if event[1] == "disconnected"][:1] == ["SERVER-SHUTDOWN"], one
        state = httpx.get(drain).json()
        assert state["clients"] == 0, state
    finally:
        assert httpx.delete(drain).status_code == 200
    cluster.await_metric(cluster["b"], "nagare_cluster_nodes{state=ready}", 2)


def test_the_clients_of_a_killed_node_return_to_others(crowd: Crowd, cluster: Cluster) -> None:
    killed = cluster.kill("a")
    began = time.monotonic()
    try:
        crowd.returned(b=1, c=1)
        print(f"All were back {time.monotonic() - began:.1f} s after the end of their node.")
    finally:
        cluster.start("a", ports=killed.ports)


# Clients of the load generator, of which the machine carries more than of a browser's.


class LoadCrowd:
    """Publishers and viewers of many channels at the node `a`, which return to the others when their sessions end."""

    channels, viewers = 25, 475
    clients = channels + viewers

    def __init__(self, cluster: Cluster, channel: str) -> None:
        self.cluster = cluster
        self.channel = channel
        others = [option for name in "bc" for option in ("--rejoin", cluster[name].origin)]
        sizes = [f"--channels={self.channels}", f"--publishers={self.channels}", f"--subscribers={self.viewers}"]
        options = ["--signaling", "sora", "--video-kbps", "0", "--audio", "--join-rate", "100", "--duration", "5"]
        command = load_command(cluster["a"], *others, *sizes, *options, channel=channel)
        self.progress = cluster.folder / f"{channel}.progress"
        with self.progress.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=ENVIRONMENT)

    def joined(self) -> None:
        all_joined = f"{self.clients}/{self.clients} connected"
        wait_until(lambda: all_joined in self.progress.read_text(), "the join of all clients", 60)

    def returned(self) -> dict[str, Any]:
        """The report of the run, in which everybody was back once."""
        output, _ = self.process.communicate(timeout=120)
        report = report_of(self.process.returncode, output, self.progress.read_text())
        assert not report["failures"], report["failures"]
        # A client may be sent away twice.
        assert report["returned"] >= self.clients, report
        print(f"{self.clients} clients: media again after {report['returnMilliseconds']} ms.")
        return report

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)


@pytest.fixture
def load_crowd(cluster: Cluster, channel: str) -> Iterator[LoadCrowd]:
    cluster.await_metric(cluster["c"], "nagare_cluster_nodes{state=ready}", 2, 20)
    one = LoadCrowd(cluster, channel)
    yield one
    one.close()


def test_hundreds_of_clients_of_a_killed_node_return(load_crowd: LoadCrowd, cluster: Cluster) -> None:
    load_crowd.joined()
    killed = cluster.kill("a")
    try:
        load_crowd.returned()
    finally:
        cluster.start("a", ports=killed.ports)


def test_hundreds_of_clients_of_a_draining_node_go_elsewhere(load_crowd: LoadCrowd, cluster: Cluster) -> None:
    load_crowd.joined()
    drain = f"{cluster['a'].admin}/v1/drain"
    assert httpx.put(drain, json={"deadline_seconds": 2, "admit_seconds": 0}).status_code == 200
    try:
        load_crowd.returned()
        assert cluster["a"].total("nagare_peers{") == 0
    finally:
        assert httpx.delete(drain).status_code == 200
