"""Clients whose ICE consent ends (RFC 7675). Each row waits for half a minute, and needs next to no processor."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Callable, Iterator

import pytest

from harness.clocks import assert_clock
from harness.node import Node
from harness.peers import Peer
from harness.waiting import wait_until

StartPeer = Callable[..., Peer]
# ICE consent expires after 30 s (RFC 7675 §5.1).
CONSENT_SECONDS_MAX = 45


@pytest.fixture(scope="module", autouse=True)
def removal(node: Node) -> Iterator[Future[float]]:
    """The seconds from the death of a publisher to its removal. The other tests run during this time."""
    channel = "without-consent"
    publisher = Peer("aiortc", "publish", f"{node.origin}/whip/{channel}")
    try:
        publisher.wait("connected", 10)
        assert len(node.publishing(channel)) == 1
    finally:
        publisher.kill()
    killed = time.monotonic()

    def wait_for_removal() -> float:
        wait_until(lambda: not node.publishing(channel), "the removal of a publisher", CONSENT_SECONDS_MAX)
        return time.monotonic() - killed

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(wait_for_removal)


def packets(node: Node) -> tuple[float, float]:
    """The RTP packets that the node has received and sent."""
    return tuple(node.total(f"nagare_packets_{way}_total", "protocol=rtp") for way in ("received", "sent"))


def test_a_viewer_that_answers_no_checks_is_sent_nothing_after_thirty_seconds(
    peer: StartPeer, node: Node, channel: str
) -> None:
    publisher = peer("aiortc", "publish", f"{node.origin}/whip/{channel}", "VP8", "--size", "160x90")
    publisher.wait("connected", 10)
    viewer = peer("aiortc", "watch", f"{node.origin}/whep/{channel}", "VP8", "--answers-no-checks")
    viewer.wait("connected", 10)
    connected = time.monotonic()
    viewer.wait("stats", 12, frames=20)

    def forwards_nothing() -> bool:
        """Whether the node receives the publisher's media, and sends it to nobody."""
        before = packets(node)
        time.sleep(1)
        received, sent = (after - earlier for after, earlier in zip(packets(node), before))
        return received > 10 and sent == 0

    wait_until(forwards_nothing, "the end of media to a viewer that answers no checks", 60)
    seconds = time.monotonic() - connected - 1
    assert_clock(25 <= seconds <= CONSENT_SECONDS_MAX, f"media ended after {seconds:.1f} s")
    # Nobody else is affected.
    assert len(node.publishing(channel)) == 1
    assert publisher.end()["status"] == 200


def test_a_publisher_without_consent_is_removed(removal: Future[float]) -> None:
    seconds = removal.result()
    assert_clock(seconds <= CONSENT_SECONDS_MAX, f"the removal took {seconds:.1f} s")
