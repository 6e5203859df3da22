"""Runs of the load generator against a node."""

from __future__ import annotations

import json
import subprocess

from .clocks import ClockMissed
from .node import BINARY, ENVIRONMENT, Node

RUN_SECONDS_MAX = 120
# Options of a node whose runs must lose nothing. While the rate is limited, so are retransmissions: on a busy machine a packet
# may stay lost, and what the estimator withholds at the end counts as lost.
SENDS_ALL = ("--bandwidth-estimation", "off")
# A generator that waits for a core for a larger share of the time measures its machine (the warning of its report).
WAITING_SHARE_MAX = 0.1


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
    return report_of(done.returncode, done.stdout, done.stderr)


def report_of(status: int, output: str, errors: str) -> dict:
    """The report of a run that has ended. Every client has to be connected within the generator's limits of time."""
    report = json.loads(output) if output.startswith("{") else None
    if status == 0 and report:
        return report
    message = errors[-2000:] + output[-2000:]
    reasons = (report or {}).get("failures") or {}
    if reasons and all(" within " in reason for reason in reasons):
        raise ClockMissed(message)
    raise AssertionError(message)


def media(report: dict) -> dict[str, dict]:
    """The figures of picture and sound."""
    return {kind: report["window"][kind] for kind in ("video", "audio") if kind in report["window"]}


def has_dropped(report: dict) -> bool:
    """Whether packets were dropped at the generator's own sockets."""
    generator = report["window"]["generator"]
    return generator["sendDrops"] + generator["receiveDrops"] > 0


def is_starved(report: dict) -> bool:
    """Whether the generator itself lost packets, or waited so long for a processor that its clocks prove nothing."""
    return has_dropped(report) or report["window"]["generator"].get("waitingShare", 0) > WAITING_SHARE_MAX


def assert_none_lost(report: dict, *figures: str, starved: bool = False) -> None:
    """Asserts that `figures`, counts of packets that subscribers did not get, are 0.

    Lost packets are a broken fact, unless packets were dropped at the generator's own sockets, or the test itself (`starved`) has
    evidence of a starved machine: then they prove nothing. What the node withholds from a viewer whose reports come late proves
    nothing of a generator that waited, either.
    """
    counts = {name: sum(one[name] for one in media(report).values()) for name in figures}
    count = sum(counts.values())
    excused = is_starved(report) if not counts.get("packetsLost") else has_dropped(report)
    if count and (starved or excused):
        raise ClockMissed(f"{count} packets were lost on a starved machine: {report['window']}", is_starved=True)
    assert count == 0, f"{count} packets were lost: {report['window']}"


def assert_lossless(report: dict) -> None:
    """Asserts that every subscriber stayed, and got every packet of every track."""
    assert not report["disconnections"] and not report.get("tracksMissing"), report
    for kind, figures in media(report).items():
        assert figures["packetsReceived"] > 0 and figures["subscribersSilent"] == 0, f"{kind}: {figures}"
    assert_none_lost(report, "packetsLost", "packetsWithheld")
