"""Honest clients during attacks: a call with 20 viewers, and clients that join one after the other."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import re
import signal
import ssl
import statistics
import subprocess
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import httpx

from attacks import SECONDS, Attack

from .clocks import ClockMissed, assert_clock
from .load import assert_lossless, is_starved, load_command, media, report_of
from .machine import Wait, WaitMeter, stolen_seconds, waited_by
from .node import ENVIRONMENT, Node
from .offers import SDP, offer
from .verdicts import is_out_of_time
from .waiting import wait_until

VIEWERS = 20
# The run of the call ends after the last attack. It would end by itself after this time.
CALL_SECONDS_MAX = 600
ATTACK_SECONDS_MAX = 30
JOIN_SECONDS_MAX = 0.5
# Of 95 % of the joins during each attack. They take 0.004 s without an attack, and may take 0.1 s more.
USUAL_JOIN_SECONDS_MAX = 0.104
# The 99th percentile of the latency is 1.3 to 3.1 ms without an attack. An attack may add 5 ms to that of its call.
LATENCY_P99_GROWTH_MILLISECONDS_MAX = 5.0
LATENCY_P99_MILLISECONDS_MAX = 8.0
# Where the generator's own timers are this late, latencies measure the machine.
LATENESS_P99_MILLISECONDS_MAX = LATENCY_P99_MILLISECONDS_MAX / 2
# Two pauses of 8 ms, which make the 99th percentile of a second, are 1 % of the time of two processors. The same attacks had 1 to
# 4 ms in seconds that the host left alone, and 6 to 20 ms where it took 10 to 50 %.
QUIET_STEAL_SHARE_MAX = 0.01
# Without an attack the loop of the media waits 0.01 s a second for a processor. Two pauses of the growth that is allowed are as
# much again. Attacks that keep both processors busy make it wait 0.04 to 0.1 s, in turns as long as the scheduler likes.
QUIET_WAIT_SECONDS_MAX = 0.01 + 2 * LATENCY_P99_GROWTH_MILLISECONDS_MAX / 1000
QUIET_SECOND_SECONDS_MAX = 10
# How the threads of the loops that forward media are named.
LOOP = "media-"
# Before the first attack.
UNATTACKED = "no attack yet"
# What a node keeps of what clients made it resident: tables, and what the allocator cannot give back.
KEPT_KIBIBYTES_MAX = 16 * 1024
ALLOCATED_KIBIBYTES_MAX = 1024
KEPT_SECONDS_MAX = 60
# A real attacker has a machine of its own. Here it has a lower priority than the node and the honest clients, so that the
# kernel's scheduling does not affect the result.
ATTACKER_NICENESS = 15
# A processor that is slow at the moment makes an attack longer instead of weaker.
ATTACK_RUNS_MAX = 3


@dataclass(frozen=True)
class Join:
    """A join of a newcomer: when it began, on the monotonic clock, and how long it took."""

    began: float
    seconds: float


@dataclass
class Newcomers:
    """Clients that join and leave over WHIP, ten a second, until `stop`.

    `authority` is what they trust, if the node has a certificate.
    """

    node: Node
    authority: Path | None = None
    joins: list[Join] = field(default_factory=list)
    # When each failure happened, and what it was.
    failures: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        verify = ssl.create_default_context(cafile=self.authority) if self.authority else True
        with httpx.Client(base_url=self.node.origin, timeout=20, verify=verify) as client:
            number = 0
            while not self._stop.wait(0.1):
                number += 1
                began = time.monotonic()
                try:
                    answer = client.post(f"/whip/newcomer-{number % 5}", headers=SDP, content=offer("sendonly"))
                    self.joins.append(Join(began, time.monotonic() - began))
                    if answer.status_code == 201:
                        answer = client.delete(answer.headers["Location"])
                    # A newcomer that the node ended meanwhile has no session to delete.
                    if not answer.is_success:
                        self.failures.append((began, f"{answer.status_code} {answer.text}"))
                except httpx.TransportError as error:
                    self.failures.append((began, repr(error)))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "a newcomer was never answered"


@dataclass
class Attacks:
    """The attacks that ran, one after the other: when each began, and what it delivered."""

    began: dict[str, float] = field(default_factory=dict)
    delivered: dict[str, int] = field(default_factory=dict)
    # How long a thread of the node waited for a processor meanwhile.
    waits: dict[str, Wait] = field(default_factory=dict)

    def at(self, moment: float) -> str:
        """The attack that was running, or the last one before."""
        return next((name for name, began in reversed(self.began.items()) if began <= moment), UNATTACKED)


@dataclass(frozen=True)
class Failure:
    """An attack that failed itself, with the text of its error, and whether that says only that time ran out."""

    text: str
    is_out_of_time: bool


@dataclass(frozen=True)
class Second:
    """A line of the call's load generator, which writes one a second: when it came, and what it says of the second before.

    `stolen` is the share of the machine's processors that its host gave to others meanwhile, and `waited` how many seconds the
    node's loop of the media waited for one.
    """

    at: float
    line: str
    stolen: float
    waited: float

    @property
    def latency(self) -> float | None:
        """The 99th percentile of the latency, in milliseconds: that of the second latest frame, sent to 20 viewers."""
        found = re.search(r" latency p50 [0-9.]+ p99 ([0-9.]+) ms", self.line)
        return float(found[1]) if found else None

    @property
    def timers_late(self) -> float:
        """The 99th percentile of the delay of the generator's timers, in milliseconds."""
        found = re.search(r" timers p99 ([0-9.]+) ms late", self.line)
        return float(found[1]) if found else 0.0

    @property
    def is_quiet(self) -> bool:
        """Whether latencies are the node's."""
        return (
            self.stolen <= QUIET_STEAL_SHARE_MAX
            and self.waited <= QUIET_WAIT_SECONDS_MAX
            and self.timers_late <= LATENESS_P99_MILLISECONDS_MAX
        )

    def __str__(self) -> str:
        return f"{self.line}  steal {self.stolen:.0%}  loop waited {self.waited * 1000:.0f} ms"


@dataclass(frozen=True)
class Latency:
    """The 99th percentile of the latency during an attack: that of its middle second, the worse of two, in milliseconds.

    It is that of all its seconds or of the quiet ones, whichever is less. `was_quiet` says whether at least half were quiet.
    """

    milliseconds: float
    was_quiet: bool

    @staticmethod
    def of(seconds: list[Second]) -> Latency:
        quiet = [one for one in seconds if one.is_quiet]
        medians = [statistics.median_high(one.latency or 0.0 for one in some) for some in (seconds, quiet) if some]
        return Latency(min(medians), len(quiet) * 2 >= len(seconds))

    def __str__(self) -> str:
        return f"{self.milliseconds:.2f}" + ("" if self.was_quiet else " (disturbed)")


class CallProgress:
    """The seconds of a call, as its load generator tells of them."""

    def __init__(self, load: subprocess.Popen[str], node: Node) -> None:
        self.seconds: list[Second] = []
        self._load = load
        self._node = node.process.pid
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        before, stolen, waited = time.monotonic(), stolen_seconds(), waited_by(self._node, LOOP)
        for line in self._load.stderr:
            at, stolen_now, waited_now = time.monotonic(), stolen_seconds(), waited_by(self._node, LOOP)
            share = (stolen_now - stolen) / max(1e-9, at - before) / (os.cpu_count() or 1)
            self.seconds.append(Second(at, line.rstrip(), share, waited_now - waited))
            before, stolen, waited = at, stolen_now, waited_now

    def during(self, attacks: Attacks) -> list[str]:
        return [f"{attacks.at(one.at)}: {one}" for one in self.seconds]

    def late(self, attacks: Attacks) -> dict[str, Latency]:
        """The latency during each attack. What held in a disturbed second held; what did not counts in quiet seconds."""
        found: dict[str, list[Second]] = {}
        for one in self.seconds:
            # A line tells of the second before it.
            if one.latency is not None and attacks.at(one.at - 1) == attacks.at(one.at):
                found.setdefault(attacks.at(one.at), []).append(one)
        return {name: Latency.of(seconds) for name, seconds in found.items()}


@dataclass
class Outcome:
    """What attacks did to honest clients."""

    report: dict
    newcomers: Newcomers
    attacks: Attacks
    progress: list[str]
    # Whether the host of the machine took so much of it for a second that latencies proved nothing.
    was_disturbed: bool
    late: dict[str, Latency]
    # What the node's memory grew by from before the attacks until after the call, in KiB: what is resident, and what is allocated.
    kept_kibibytes: int
    allocated_kibibytes: int


def deliver(act: Callable[[], int], least: int) -> int:
    """Runs an attack until it has delivered as much as makes it one, a few times at most. Returns what it delivered."""
    delivered = runs = 0
    while runs == 0 or (delivered < least and runs < ATTACK_RUNS_MAX):
        delivered += act()
        runs += 1
    return delivered


def _attack(attacks: dict[str, Attack], least: dict[str, int], node: Node,
            results: multiprocessing.connection.Connection) -> None:  # fmt: skip
    os.nice(ATTACKER_NICENESS)
    for name, act in attacks.items():
        results.send((name, time.monotonic()))
        try:
            results.send((name, deliver(lambda: act(node), least.get(name, 1))))
        except BaseException as error:
            results.send((name, Failure(traceback.format_exc(), is_out_of_time(error))))
            raise


def _run_all(attacks: dict[str, Attack], attacker: multiprocessing.process.BaseProcess,
             results: multiprocessing.connection.Connection, seen: Attacks, meter: WaitMeter) -> None:  # fmt: skip
    """Waits until each attack has ended, and writes down when it began and what it delivered."""

    def message(name: str) -> object:
        wait_until(lambda: results.poll() or attacker.exitcode is not None, f"the end of {name}", ATTACK_SECONDS_MAX)
        assert results.poll(), f"the process of the attack {name} ended with {attacker.exitcode}"
        sender, content = results.recv()
        assert sender == name, (sender, name)
        return content

    for name in attacks:
        seen.began[name] = message(name)
        answer = message(name)
        if isinstance(answer, Failure):
            raise (ClockMissed if answer.is_out_of_time else AssertionError)(f"{name} itself failed: {answer.text}")
        seen.delivered[name] = answer
        seen.waits[name] = meter.lap()


def attack_during_a_call(
    node: Node, attacks: dict[str, Attack], least: dict[str, int], authority: Path | None = None
) -> Outcome:
    """Runs attacks one after the other, in a process of their own, during one call.

    `least` is how much makes each an attack. `authority` is what honest clients trust, if the node has a certificate.
    """
    trusted = ("--ca", str(authority)) if authority else ()
    options = ("--subscribers", str(VIEWERS), "--video-kbps", "1000", "--audio", "--duration", str(CALL_SECONDS_MAX))
    command = load_command(node, *options, *trusted, "--join-rate", "50", channel="neighbour")
    load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
    progress, seen = CallProgress(load, node), Attacks()
    context = multiprocessing.get_context("fork")
    results, end = context.Pipe(duplex=False)
    attacker = context.Process(target=_attack, args=(attacks, least, node, end))
    newcomers = None
    try:
        wait_until(lambda: node.total("nagare_slots{") >= 2 * VIEWERS, "the call", 20, describe=node.log_tail)
        # Media is measured before the first attack, too.
        _await_quiet_second(progress)
        resident, allocated = node.resident_kibibytes(), node.allocated_kibibytes()
        # A fork while another thread has a lock of OpenSSL would leave it locked in the child.
        attacker.start()
        newcomers = Newcomers(node, authority)
        _run_all(attacks, attacker, results, seen, WaitMeter(node.process.pid))
        attacker.join(ATTACK_SECONDS_MAX)
        # And after the last one.
        time.sleep(1)
        newcomers.stop()
        load.send_signal(signal.SIGTERM)
        output = load.stdout.read()
        load.wait(30)
    finally:
        if newcomers:
            newcomers.stop()
        if attacker.is_alive():
            attacker.kill()
        if load.poll() is None:
            load.kill()
            load.wait(10)
    lines = progress.during(seen)
    report = report_of(load.returncode, output, "\n".join(lines))
    kept = _kept(node.resident_kibibytes, resident, KEPT_KIBIBYTES_MAX)
    held = _kept(node.allocated_kibibytes, allocated, ALLOCATED_KIBIBYTES_MAX)
    disturbed = any(not one.is_quiet for one in progress.seconds)
    return Outcome(report, newcomers, seen, lines, disturbed, progress.late(seen), kept, held)


def _await_quiet_second(progress: CallProgress) -> None:
    """Waits for a second whose latency is the node's, for a while."""
    end = time.monotonic() + QUIET_SECOND_SECONDS_MAX
    while time.monotonic() < end:
        found = progress.late(Attacks()).get(UNATTACKED)
        if found and found.was_quiet:
            return
        time.sleep(0.1)


def _kept(kibibytes: Callable[[], int], before: int, most: int) -> int:
    """What a figure of the node's memory grew by, in KiB. It has a minute to fall."""
    end = time.monotonic() + KEPT_SECONDS_MAX
    while (kept := kibibytes() - before) > most and time.monotonic() < end:
        time.sleep(1)
    return kept


def assert_unaffected(outcome: Outcome, attacks: dict[str, Attack]) -> None:
    """Asserts that every attack delivered something, that viewers got every packet in time, that newcomers joined in time and were
    not ended, and that the memory came back."""
    attacked, newcomers, report = outcome.attacks, outcome.newcomers, outcome.report
    assert list(attacked.delivered) == list(attacks)
    nothing = [name for name, count in attacked.delivered.items() if not count]
    assert not nothing, f"attacks that delivered nothing: {nothing}; all: {attacked.delivered}"
    assert report["subscribersConnected"] == VIEWERS
    failures = [f"{attacked.at(began)}: {what}" for began, what in newcomers.failures]
    assert not failures, f"{len(newcomers.joins)} newcomers joined, and some failed: {failures[:5]}"
    kept = outcome.kept_kibibytes
    assert kept <= KEPT_KIBIBYTES_MAX, f"the node keeps {kept} KiB of the attacks {list(attacks)}"
    held = outcome.allocated_kibibytes
    assert held <= ALLOCATED_KIBIBYTES_MAX, f"{held} KiB of the attacks {list(attacks)} are still allocated"
    # Every attack had newcomers.
    joined = {attacked.at(one.began) for one in newcomers.joins}
    assert joined >= set(attacks), f"no newcomers during {set(attacks) - joined}"
    try:
        assert_lossless(report)
    except AssertionError:
        print("\n".join(outcome.progress))
        raise
    starved = is_starved(report) or None
    slow = sorted(newcomers.joins, key=lambda one: one.seconds)[-5:]
    seen = [f"{attacked.at(one.began)}: {one.seconds:.2f} s" for one in slow]
    assert_clock(slow[-1].seconds < JOIN_SECONDS_MAX, f"slow joins: {seen}", starved)
    usual = {name: _usual_seconds(newcomers.joins, name, attacked) for name in attacks}
    long = {name: seconds for name, seconds in usual.items() if seconds >= USUAL_JOIN_SECONDS_MAX}
    explained = all(one < USUAL_JOIN_SECONDS_MAX + attacked.waits[name].waited for name, one in long.items())
    assert_clock(not long, f"95 % of the joins, in seconds: {usual}", starved or explained or None)
    unseen = {UNATTACKED, *attacks} - set(outcome.late)
    assert_clock(not unseen, f"no second of {unseen} was measured: {outcome.progress}", starved)
    lateness = report["window"]["generator"]["latenessMilliseconds"]["p99"]
    is_late = lateness > LATENESS_P99_MILLISECONDS_MAX
    before = outcome.late[UNATTACKED].milliseconds
    limit = min(before + LATENCY_P99_GROWTH_MILLISECONDS_MAX, LATENCY_P99_MILLISECONDS_MAX)
    # What was late before the first attack was no attack's doing.
    late = {name: outcome.late[name] for name in attacks if outcome.late[name].milliseconds >= limit}
    # One second is more than a hundredth of a call, so its latencies are the 99th percentile of the whole.
    whole = {kind: figures["latencyMilliseconds"]["p99"] for kind, figures in media(report).items()}
    seen = ", ".join(f"{name} {one}" for name, one in outcome.late.items())
    message = f"99th percentiles of the latency, in milliseconds: {seen}; whole call {whole}; generator's timers {lateness}"
    message = "\n".join([message, *outcome.progress])
    assert_clock(not late, message, starved or is_late or not any(one.was_quiet for one in late.values()) or None)
    assert_clock(max(whole.values()) < limit, message, starved or is_late or outcome.was_disturbed or None)


def assert_attacked(outcome: Outcome, least: dict[str, int]) -> None:
    """Asserts that attacks delivered as much as makes them attacks. A slow attacker proves nothing, whatever slowed it: the row
    runs again, and fails without an attack."""
    for name, count in least.items():
        delivered = outcome.attacks.delivered[name]
        seen = f"{name}: {delivered} in {ATTACK_RUNS_MAX} runs of {SECONDS} s, which is no attack"
        assert_clock(delivered >= count, seen, is_starved=True)


def _usual_seconds(joins: list[Join], attack: str, attacked: Attacks) -> float:
    """The 95th percentile of the seconds of joins during an attack."""
    seconds = sorted(one.seconds for one in joins if attacked.at(one.began) == attack)
    return seconds[len(seconds) * 95 // 100]
