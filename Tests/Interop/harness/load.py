"""Runs of the load generator against a node."""

from __future__ import annotations

import json
import subprocess

from .node import BINARY, ENVIRONMENT, Node

RUN_SECONDS_MAX = 120
# Options of a node whose runs must lose nothing. While the rate is limited, so are retransmissions: on a busy machine a packet
# may stay lost, and what the estimator withholds at the end counts as lost.
SENDS_ALL = ("--bandwidth-estimation", "off")


def load_command(node: Node, *options: str, channel: str = "load") -> list[str]:
    """The command line of a run that writes its report to the standard output."""
    return [str(BINARY), "load", "--url", node.origin, "--channel", channel, "--json", "-", *options]


def run_load(node: Node, *options: str, channel: str = "load") -> dict:
    """The report of a run that must succeed."""
    done = subprocess.run(
        load_command(node, *options, channel=channel),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return json.loads(done.stdout)
