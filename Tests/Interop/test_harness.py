"""Tests of the checks in `harness`: faults of the node fail on any machine, and a starved browser proves nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Callable

import pytest

from harness.clocks import ClockMissed, assert_clock
from harness.impair import Timeline, assert_plays
from harness.load import assert_lossless, report_of
from harness.machine import DropMeter, PatientClock, Wait, WaitMeter
from harness.neighbours import UNATTACKED, Attacks, CallProgress, Latency, Second
from harness.network import CLIENT_ADDRESS_6, Network, run
from harness.node import Node
from harness.peers import Peer
from harness.playback import Playback, assert_smooth, clocks_missed, facts_broken, observe
from harness.ports import LOOPBACK
from harness.proxy import Proxy
from harness.transport import Arrivals, Packet, SenderReport, TransportViewer
from harness.waiting import wait_until

# A small picture, because aiortc's sender reports have the time of encoding, and encoding takes long on a busy machine.
SMALL = ("--size", "160x90")
# The wait in a second for a processor on two cores, next to two programs that are always busy.
BUSY = 0.5


def call(seconds: float = 4.0) -> tuple[list[Packet], list[SenderReport]]:
    """A call without faults: 50 audio packets and 30 frames of 3 packets a second, with numbers that wrap around."""
    packets: list[Packet] = []
    reports: list[SenderReport] = []
    for number in range(int(seconds * 50)):
        at = number / 50
        packets.append(Packet("audio", 1, (65500 + number) % 2**16, (2**32 - 9600 + 960 * number) % 2**32, 100 + at))
    for number in range(int(seconds * 90)):
        at = (number // 3) / 30
        packets.append(Packet("video", 2, (65400 + number) % 2**16, 7000 + 3000 * (number // 3), 100.004 + at))
    for second in range(1, int(seconds)):
        reports.append(SenderReport(1, 5000 + second, (2**32 - 9600 + 48000 * second) % 2**32))
        reports.append(SenderReport(2, 5000 + second, 7000 + 90000 * second))
    return sorted(packets, key=lambda one: one.arrival), reports


Call = tuple[list[Packet], list[SenderReport]]


def lose_a_run(packets: list[Packet], reports: list[SenderReport]) -> Call:
    return [one for one in packets if not (one.kind == "video" and 101 <= one.arrival < 101.2)], reports


def repeat_one(packets: list[Packet], reports: list[SenderReport]) -> Call:
    return packets[:50] + [packets[49]] + packets[50:], reports


def reorder_two(packets: list[Packet], reports: list[SenderReport]) -> Call:
    sound = [index for index, one in enumerate(packets) if one.kind == "audio"]
    first, second = sound[20], sound[21]
    packets[first], packets[second] = packets[second], packets[first]
    return packets, reports


def hold_back_for_two_seconds(packets: list[Packet], reports: list[SenderReport]) -> Call:
    return [replace(one, arrival=max(one.arrival, 103.0)) if one.arrival > 101 else one for one in packets], reports


def falsify_the_audio_clock(packets: list[Packet], reports: list[SenderReport]) -> Call:
    return packets, [replace(one, ntp=one.ntp + 0.2) if one.ssrc == 1 else one for one in reports]


def delay_the_audio(packets: list[Packet], reports: list[SenderReport]) -> Call:
    return [replace(one, arrival=one.arrival + 0.2) if one.kind == "audio" else one for one in packets], reports


def remove_the_reports(packets: list[Packet], _: list[SenderReport]) -> Call:
    return packets, []


def change_the_stream(packets: list[Packet], reports: list[SenderReport]) -> Call:
    return [replace(one, ssrc=3) if one.kind == "video" and one.arrival > 102 else one for one in packets], reports


def remove_the_audio(packets: list[Packet], reports: list[SenderReport]) -> Call:
    return [one for one in packets if one.kind == "video"], reports


def test_a_call_without_a_fault_passes() -> None:
    arrivals = Arrivals.of(4, *call())
    assert arrivals.faults() == [] and arrivals.misses() == []
    assert arrivals.frames_per_second == 30
    assert arrivals.skew == pytest.approx(0.004, abs=1e-6)


@pytest.mark.parametrize(
    "mutation, fault",
    [
        (lose_a_run, "video lost"),
        (repeat_one, "repeated"),
        (reorder_two, "audio reordered"),
        (falsify_the_audio_clock, "picture +204 ms after the sound"),
        (delay_the_audio, "picture -196 ms after the sound"),
        (remove_the_reports, "no sender reports"),
        (change_the_stream, "2 streams of video"),
        (remove_the_audio, "0 streams of audio"),
    ],
)
def test_faults_of_the_node_are_found(mutation: Callable[..., Call], fault: str) -> None:
    faults = Arrivals.of(4, *mutation(*call())).faults()
    assert any(fault in one for one in faults), faults


def test_an_encoder_without_a_processor_explains_sender_reports_of_its_own_time() -> None:
    arrivals = Arrivals.of(4, *falsify_the_audio_clock(*call()))
    assert not [one for one in arrivals.faults(has_capture_clock=False) if "after the sound" in one]
    assert [one.is_starved for one in arrivals.skew_misses(0.0)] == [False]
    assert [one.is_starved for one in arrivals.skew_misses(BUSY)] == [True]
    assert Arrivals.of(4, *call()).skew_misses(BUSY) == []


def test_a_stall_beyond_the_wait_for_a_processor_is_found_on_a_busy_machine_too() -> None:
    for wait in (0.0, BUSY):
        missed = Arrivals.of(4, *hold_back_for_two_seconds(*call())).misses(wait)
        assert missed and not any(one.is_starved for one in missed), missed


def test_a_publisher_that_catches_up_is_not_live() -> None:
    packets, reports = call()
    behind = [replace(one, arrival=103 + (one.arrival - 103) / 2) if one.arrival < 103 else one for one in packets]
    assert all(one.speed == pytest.approx(1, abs=0.01) for one in Arrivals.of(4, packets, reports).streams)
    assert all(one.speed > 1.3 for one in Arrivals.of(4, behind, reports).streams)


def test_a_stall_within_the_wait_for_a_processor_proves_nothing() -> None:
    packets, reports = call()
    late = [replace(one, arrival=max(one.arrival, 101.5)) if one.arrival > 101 else one for one in packets]
    arrivals = Arrivals.of(4, late, reports)
    assert [one.is_starved for one in arrivals.misses(0.0)] == [False, False]
    assert [one.is_starved for one in arrivals.misses(BUSY)] == [True, True]


def playback(waited: float = 0.0, **changes: object) -> Playback:
    """Ten seconds of good playback."""
    numbers: dict[str, object] = {
        **{"seconds": 10.0, "frames": 300, "frames_received": 300, "freezes": 0, "unexcused_freezes": 0, "lost": 0},
        **{"energy": 1.0, "samples": 480_000, "concealed": 0, "skew": 0.03, "last": {}, "kernel_drops": 0},
        **{"waits": [Wait(1.0, waited)] * 10, "sent_per_second": 30.0},
    }
    return Playback(**{**numbers, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"frames": 120, "frames_received": 300},
        {"samples": 300_000},
        {"concealed": 100_000},
    ],
)
def test_bad_rendering_is_inconclusive_only_with_waits_for_a_processor(changes: dict[str, object]) -> None:
    assert facts_broken(playback(0, **changes)) == []
    assert [one.is_starved for one in clocks_missed(playback(0, **changes))] == [False]
    assert [one.is_starved for one in clocks_missed(playback(BUSY, **changes))] == [True]


def test_concealed_sound_explains_skew_only_with_waits_for_a_processor_and_the_row_tells_otherwise() -> None:
    def apart(waited: float, concealed: int, skew: float = 0.45) -> list[bool | None]:
        missed = clocks_missed(playback(waited, skew=skew, concealed=concealed))
        return [one.is_starved for one in missed if "apart" in one.what]

    assert apart(BUSY, 0, skew=0.3) == apart(BUSY, 0, skew=-0.3) == [True]
    assert apart(0, 24_000) == [None]
    assert apart(0.1, 24_000) == [True]
    # The waits of the interval do not explain it; those before it may.
    assert apart(0.1, 0) == [None]


@pytest.mark.parametrize(
    ("changes", "starved"),
    [
        ({"skew": 0.45}, None),
        ({"skew": 0.45, "concealed": 100_000}, False),
        ({"concealed": 100_000}, False),
    ],
)
def test_a_miss_without_a_wait_decides_over_one_that_the_row_has_to_tell(
    changes: dict[str, object], starved: bool | None
) -> None:
    with pytest.raises(ClockMissed) as raised:
        assert_smooth(playback(0, **changes))
    assert raised.value.is_starved is starved


@pytest.mark.parametrize("changes", [{"lost": 3}, {"energy": 0.0}])
def test_missing_media_is_a_fact(changes: dict[str, object]) -> None:
    assert facts_broken(playback(BUSY, **changes))


def test_a_wait_at_the_end_explains_the_frames_of_its_time() -> None:
    # Frames of 1.5 s have not come.
    assert [one.is_starved for one in clocks_missed(playback(0.1, frames_received=255))] == [False]
    assert [one.is_starved for one in clocks_missed(playback(0.6, frames_received=255))] == [True]


@pytest.mark.parametrize(
    ("busy", "starved"),
    [
        # The queues were empty after the seconds at the start, and a wait of one second holds the frames of one second.
        ([1.0] * 4 + [0.1] * 6, False),
        ([0.1] * 9 + [1.0], False),
        ([0.1] * 7 + [1.0] * 3, True),
        ([1.0] * 10, True),
    ],
)
def test_the_waits_that_reach_to_the_end_explain_the_frames_of_their_time(busy: list[float], starved: bool) -> None:
    # Frames of 2.4 s have not come.
    seen = playback(frames_received=228, waits=[Wait(1.0, one) for one in busy])
    assert [one.is_starved for one in clocks_missed(seen)] == [starved]


def test_no_wait_explains_a_freeze_of_a_second_without_one() -> None:
    seen = playback(BUSY, freezes=2, unexcused_freezes=1)
    assert [one.is_starved for one in clocks_missed(seen)] == [False]


def test_packets_that_the_kernel_dropped_prove_nothing() -> None:
    dropped = playback(0, lost=3, kernel_drops=3)
    assert facts_broken(dropped) == []
    assert [one.is_starved for one in clocks_missed(dropped)] == [True]
    assert facts_broken(playback(0, lost=4, kernel_drops=3))


def test_drops_count_at_the_sockets_of_the_tests_own_programs_only() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as full, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        full.bind((LOOPBACK, 0))
        with subprocess.Popen(["sleep", "60"]) as other:
            here, there = DropMeter(), DropMeter(other.pid)
            for _ in range(100):
                sender.sendto(bytes(1_000), full.getsockname())
            assert 90 <= here.read() < 100
            assert there.read() == 0
            other.kill()


def test_a_gap_that_the_kernel_made_before_the_interval_is_seen_in_it() -> None:
    """A viewer that waits for a processor reads past a full socket's gap seconds after the kernel dropped the packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as full, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        full.bind((LOOPBACK, 0))
        for _ in range(20):
            sender.sendto(bytes(1_000), full.getsockname())
        dropped = DropMeter().earlier
        assert 10 <= dropped < 20

        def lost(before: int, after: int) -> list[str]:
            looks = iter([{"packetsLost": before}, {"packetsLost": after}])
            return facts_broken(replace(observe(lambda: {"at": 0, "audioEnergy": 1} | next(looks), 0.04), energy=1.0))

        assert lost(2, dropped) == []
        assert lost(2, dropped + 1) and lost(dropped, dropped + 1)


def timeline(waited: float = 0.0, frames: int = 15, frozen: float = 0.0, concealed: int = 0) -> Timeline:
    """Ten seconds of a viewer's numbers, with so many frames and so much concealed sound in each half second."""
    samples = [
        {
            **{"at": number * 500, "frames": number * frames, "freezeSeconds": frozen * number / 20},
            **{"audioSamples": number * 24_000, "concealedSamples": number * concealed},
        }
        for number in range(21)
    ]
    return Timeline(samples, [waited / 2] * 21)


@pytest.mark.parametrize("changes", [{"frames": 8}, {"frozen": 3.0}, {"concealed": 6_000}])
def test_waits_explain_a_bad_timeline_and_the_row_tells_otherwise(changes: dict[str, float]) -> None:
    assert_plays(timeline())
    for waited, is_starved in ((0.0, None), (BUSY, True)):
        with pytest.raises(ClockMissed) as missed:
            assert_plays(timeline(waited, **changes))
        assert missed.value.is_starved is is_starved


def report(lost: int = 0, withheld: int = 0, waiting: float = 0.0, drops: int = 0, **changes: object) -> dict:
    """The report of a run of the load generator."""
    video = {"packetsReceived": 900, "packetsLost": lost, "packetsWithheld": withheld, "subscribersSilent": 0}
    generator = {"waitingShare": waiting, "sendDrops": 0, "receiveDrops": drops}
    return {"disconnections": {}, "failures": {}, "window": {"video": video, "generator": generator}, **changes}


@pytest.mark.parametrize(
    "given, is_fact",
    [
        (report(lost=1), True),
        (report(lost=1, waiting=0.2), True),
        (report(withheld=1), True),
        (report(withheld=1, waiting=0.2), False),
        (report(lost=1, withheld=1, waiting=0.2), True),
        (report(lost=1, drops=1), False),
        (report(waiting=0.2), None),
        (report(waiting=0.2, disconnections={"TIMEOUT": 1}), True),
        (report(waiting=0.2, tracksMissing=1), True),
    ],
)
def test_lost_packets_prove_nothing_only_on_a_starved_machine(given: dict, is_fact: bool | None) -> None:
    with nullcontext() if is_fact is None else pytest.raises(AssertionError) as found:
        assert_lossless(given)
    assert is_fact is None or isinstance(found.value, ClockMissed) is not is_fact


@pytest.mark.parametrize(
    "failures, is_fact",
    [
        ({"No connection within 30 s: the server's UDP candidates do not answer.": 2}, False),
        ({"The server answered 401.": 1}, True),
        ({"The server answered 401.": 1, "No connection within 30 s: …": 1}, True),
        ({}, True),
    ],
)
def test_clients_that_a_limit_of_time_ended_missed_a_clock(failures: dict[str, int], is_fact: bool) -> None:
    with pytest.raises(AssertionError) as found:
        report_of(1, json.dumps(report(failures=failures)), "")
    assert isinstance(found.value, ClockMissed) is not is_fact


def test_seconds_that_the_host_took_say_nothing_about_an_attack() -> None:
    node = SimpleNamespace(process=SimpleNamespace(pid=os.getpid()))
    progress = CallProgress(SimpleNamespace(stderr=[]), node)
    given = [(1, "3.21", 0.0), (2, "9.90", 0.0), (3, "2.00", 0.0), (4, "2.50", 0.01), (5, "18.00", 0.2), (6, "4.00", 0.2)]
    progress.seconds = [Second(at, f"{at} s  latency p50 0.56 p99 {p99} ms", stolen, 0.01) for at, p99, stolen in given]
    # The second line tells of a second in which the attack began.
    before = Latency(3.21, was_quiet=True)
    late = progress.late(Attacks(began={"mutes": 1.5}))
    assert late == {UNATTACKED: before, "mutes": Latency(2.5, was_quiet=True)}
    # A generator whose timers are late measures the machine.
    slow = Second(7, "7 s  latency p50 0.56 p99 19.00 ms  generator 3 %, timers p99 4.10 ms late", 0.0, 0.01)
    in_time = replace(slow, line=slow.line.replace("4.10", "3.90"))
    assert not slow.is_quiet and in_time.is_quiet
    # A loop that waited as long for a processor as the packets were late measures it, too.
    assert not replace(in_time, waited=0.03).is_quiet
    assert replace(slow, line="7 s  0 missing  generator 3 %, timers p99 4.10 ms late").latency is None
    # What held in disturbed seconds held.
    late = progress.late(Attacks(began={"mutes": 1.5, "bombs": 4.5}))
    assert late == {UNATTACKED: before, "mutes": Latency(2.5, was_quiet=True), "bombs": Latency(4.0, was_quiet=False)}


def test_a_publisher_with_a_wrong_clock_is_found(
    peer: Callable[..., Peer], transport: Callable[..., TransportViewer], node: Node, channel: str
) -> None:
    """Sender reports with an audio clock that is 300 ms off, as from a broken node."""
    for seconds in (0.0, 0.3):
        receiver = transport()
        options = ("--audio-clock-seconds", str(seconds), *SMALL)
        publisher = peer("aiortc", "publish", f"{node.origin}/whip/{channel}", "VP8", *options)
        wait_until(receiver.receives_both, "packets and reports of both", 10)
        receiver.wait_until_live()
        receiver.take(0)
        meter = WaitMeter()
        time.sleep(4)
        arrivals, wait = receiver.take(4), meter.lap()
        assert arrivals.skew is not None, arrivals
        # A sender without a free processor is late: its reports are then wrong by more than their clock.
        error = abs(arrivals.skew - seconds)
        message = f"a skew of {arrivals.skew} s instead of {seconds} s, {wait}"
        assert_clock(error <= 0.1, message, error <= 0.1 + wait.waited or None)
        skewed = [one for one in arrivals.faults() if "after the sound" in one]
        assert len(skewed) == (1 if seconds else 0), arrivals.faults()
        publisher.end()
        receiver.end()


def test_packets_that_a_node_drops_are_found(
    peer: Callable[..., Peer], transport: Callable[..., TransportViewer], own_node: Callable[..., Node], channel: str
) -> None:
    """A proxy between the node and one of two viewers drops a run of packets each second."""
    # With one loop the node has one media port, so that the proxy reaches every session.
    node = own_node("--loops", "1")
    with Proxy(node.media_port) as proxy:
        intact, broken = transport(at=node), transport(channel, "--proxy-port", str(proxy.port), at=node)
        publisher = peer("aiortc", "publish", f"{node.origin}/whip/{channel}", "VP8", *SMALL)
        for receiver in (intact, broken):
            wait_until(receiver.receives_both, "packets and reports of both", 10)
            receiver.take(0)
        proxy.drop(run=10, every=1.0)
        time.sleep(4)
        whole, missing = intact.take(4), broken.take(4)
    assert proxy.dropped >= 20
    assert [one for one in whole.faults() if "lost" in one] == []
    assert any("lost" in one for one in missing.faults()), missing.faults()
    publisher.end()


def test_a_clock_for_limits_runs_slower_under_pressure_and_never_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pressure = [100.0], [50.0]
    monkeypatch.setattr("harness.machine.time.monotonic", lambda: now[0])
    monkeypatch.setattr("harness.machine.pressure_seconds", lambda: pressure[0])
    clock = PatientClock()
    now[0] += 1
    assert clock.now() == pytest.approx(1.0)
    now[0], pressure[0] = now[0] + 1, pressure[0] + 1
    assert clock.now() == pytest.approx(1.25)
    now[0], pressure[0] = now[0] + 1, pressure[0] - 5
    assert clock.now() == pytest.approx(2.25)


def test_a_network_has_no_address_that_the_kernel_takes_into_use_later(tmp_path: Path) -> None:
    network = Network(tmp_path)
    try:
        found = json.loads(run(*network.command("ip", "-json", "-6", "address", "show", "dev", "client")))
        assert [one["local"] for one in found[0]["addr_info"]] == [CLIENT_ADDRESS_6]
    finally:
        network.close()
