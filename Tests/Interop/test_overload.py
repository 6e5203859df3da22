"""A node that gets too little of a processor: it drops video layers, keeps its calls, and recovers by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Callable, Iterator

import pytest

from harness.load import SENDS_ALL, load_command
from harness.node import ENVIRONMENT, Node
from harness.waiting import wait_until

# As many as need more than the least share of a processor that the kernel gives beside others.
VIEWERS = 60


PROCESSOR = {0}


def schedule(process: int, niceness: int, processors: set[int]) -> None:
    """Gives all threads of a process a priority and processors. 19 is the lowest: 15 parts of 1,024 beside a busy program."""
    for thread in map(int, os.listdir(f"/proc/{process}/task")):
        os.sched_setaffinity(thread, processors)
        os.setpriority(os.PRIO_PROCESS, thread, niceness)


@pytest.fixture
def rivals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Programs that are always busy on that processor, once a test has added them."""
    running: list[subprocess.Popen[bytes]] = []
    yield running
    end(running)


def rival() -> subprocess.Popen[bytes]:
    busy = f"import os; os.sched_setaffinity(0, {PROCESSOR})\nwhile True: pass"
    return subprocess.Popen([sys.executable, "-c", busy])


def end(rivals: list[subprocess.Popen[bytes]]) -> None:
    for one in rivals:
        one.kill()
        one.wait()


def test_an_overloaded_node_drops_layers_and_restores_them(
    own_node: Callable[..., Node], rivals: list[subprocess.Popen[bytes]]
) -> None:
    # Otherwise the estimate of each viewer's network takes layers first: to it a node without processor is a slow path.
    node = own_node("--loops", "1", *SENDS_ALL)
    options = ("--subscribers", str(VIEWERS), "--simulcast", "--video-kbps", "2500", "--audio", "--duration", "90")
    load = subprocess.Popen(
        load_command(node, *options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    )
    try:
        wait_until(lambda: node.total("nagare_slots{") >= 2 * VIEWERS, "the call", 20, describe=node.log_tail)
        assert node.total("nagare_overload_layers") == 0
        schedule(node.process.pid, 19, PROCESSOR)
        rivals.extend(rival() for _ in range(3))
        wait_until(lambda: node.total("nagare_overload_shed_total") > 0, "layers that the node drops", 30)
        assert node.total("nagare_overloads_total") > 0
        end(rivals)
        schedule(node.process.pid, 0, os.sched_getaffinity(0))
        wait_until(
            lambda: node.total("nagare_loop_overloaded") == node.total("nagare_overload_layers") == 0,
            "the layers' return",
            40,
            describe=lambda: node.total("nagare_overload_layers"),
        )
        sent = node.total("nagare_packets_sent", "protocol=rtp")
        wait_until(lambda: node.total("nagare_packets_sent", "protocol=rtp") > sent + 1000, "media again", 10)
        load.terminate()
        report = json.loads(load.communicate(timeout=30)[0])
    finally:
        if load.poll() is None:
            load.kill()
            load.communicate()
    assert report["subscribersConnected"] == VIEWERS
    assert not report["disconnections"], report["disconnections"]
