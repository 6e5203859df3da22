"""The forwarding path: SRTP backends, segmentation offload, and rooms over several loops."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Callable

import pytest

from harness.clocks import assert_clock
from harness.load import SENDS_ALL, assert_lossless, is_starved, load_command, run_load
from harness.node import BINARY, ENVIRONMENT, Node
from harness.waiting import wait_until


def backends() -> list[str]:
    """The SRTP backends of this machine, from the error message for an unknown name."""
    refused = subprocess.run(
        [str(BINARY), "serve", "--dev", "--srtp-backend", "none-such"],
        capture_output=True,
        text=True,
        timeout=15,
        env=ENVIRONMENT,
        check=False,
    )
    return [name for name in ("libsrtp2", "openssl", "ipsec-mb") if name in refused.stderr]


# The unit tests compare the bytes of each backend with each profile (`BackendTests`).
@pytest.mark.parametrize("backend, profile", [("libsrtp2", "gcm"), ("openssl", "gcm256"), ("ipsec-mb", "cm")])
def test_every_backend_and_every_profile_work(own_node: Callable[..., Node], backend: str, profile: str) -> None:
    assert backend in backends(), "the test machine must have all three backends"
    node = own_node("--srtp-backend", backend, *SENDS_ALL)
    assert node.total("nagare_srtp_backend_info", f"backend={backend}") == 1
    report = run_load(
        node,
        *("--subscribers", "20", "--video-kbps", "1500", "--audio", "--duration", "2"),
        *("--srtp-profile", profile, "--srtp-backend", "openssl"),
    )
    assert_lossless(report)
    assert report["subscribersConnected"] == 20
    assert node.total("nagare_packets_sent", "protocol=rtp") > 20 * 2 * 150


@pytest.mark.parametrize("options", [("--udp-gso", "off"), ("--udp-gro", "off"), ("--udp-gso", "off", "--udp-gro", "off")])
def test_without_segmentation_offload_no_packet_is_lost(own_node: Callable[..., Node], options: tuple[str, ...]) -> None:
    node = own_node(*options, *SENDS_ALL)
    options = ("--subscribers", "30", "--video-kbps", "1500", "--audio", "--duration", "2")
    assert_lossless(run_load(node, *options))


def test_a_run_that_expects_every_packet_fails_after_a_loss(own_node: Callable[..., Node]) -> None:
    # A link that carries a fifth of the picture.
    options = ("--subscribers", "1", "--video-kbps", "1500", "--duration", "2", "--viewer-link", "rate=300k")
    command = load_command(own_node(), *options, "--expect-lossless")
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=ENVIRONMENT, check=False)
    assert done.returncode == 1 and "Something was lost" in done.stderr, done.stderr
    report = json.loads(done.stdout)
    assert report["subscribersConnected"] == 1
    with pytest.raises(AssertionError):
        assert_lossless(report)


def test_two_loops_share_a_room(own_node: Callable[..., Node]) -> None:
    node = own_node("--loops", "2", *SENDS_ALL)
    options = ("--subscribers", "60", "--video-kbps", "1500", "--audio", "--duration", "8")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_load, node, *options)
        wait_until(lambda: node.total("nagare_slots{") == 2 * 60, "the last viewer", 20, describe=node.log_tail)
        slots = [node.total("nagare_slots{", f"loop={loop}") for loop in (0, 1)]
        report = running.result()
    assert report["subscribersConnected"] == 60
    assert_lossless(report)
    # A loop that the machine held up takes fewer newcomers meanwhile.
    starved = is_starved(report) or None
    assert_clock(min(slots) >= 0.9 * max(slots), f"tracks that each loop's viewers receive: {slots}", starved)
    assert node.total("nagare_relay_records") > 0
