"""Start, start errors, shutdown, and metrics."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Callable

import httpx
import pytest

from harness.chromium import ChromiumPage
from harness.clocks import assert_clock
from harness.node import BINARY, ENVIRONMENT, LOOPBACK, STOP_SECONDS, Node, free_media_port, free_tcp_port
from harness.offers import SDP, offer
from harness.page import watch_and_publish
from harness.threads import stopped
from harness.waiting import wait_until

GRACE_SECONDS_MAX = 5.0


def fail_to_start(*options: str) -> str:
    """Runs a node that must not start; its error output."""
    result = subprocess.run(
        [str(BINARY), "serve", "--dev", *options],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )
    assert (
        result.returncode > 0
    ), f"exit code {result.returncode} (a signal is negative): {result.stdout}{result.stderr}"
    errors = result.stderr.strip()
    assert errors, "the node failed without a message"
    for trap in ("Fatal error", "Backtrace", "crashed"):
        assert trap not in errors, errors
    return errors


def ports() -> dict[str, str]:
    return {
        "--http": f"{LOOPBACK}:{free_tcp_port()}",
        "--media": f"{LOOPBACK}:{free_media_port()}",
        "--admin": f"{LOOPBACK}:{free_tcp_port()}",
    }


def flat(options: dict[str, str]) -> list[str]:
    return [part for pair in options.items() for part in pair]


@pytest.mark.parametrize("flag", ["--http", "--admin", "--media"])
def test_a_port_in_use_is_named_in_one_sentence(flag: str) -> None:
    options = ports()
    port = int(options[flag].rpartition(":")[2])
    kind = socket.SOCK_DGRAM if flag == "--media" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as holder:
        holder.bind((LOOPBACK, port))
        if kind == socket.SOCK_STREAM:
            holder.listen()
        errors = fail_to_start(*flat(options))
    assert str(port) in errors, errors
    assert len(errors.splitlines()) == 1, f"more than one sentence: {errors}"


INVALID = {
    "an unknown flag": (["--bogus"], "--bogus"),
    "an invalid port": (["--http", "127.0.0.1:99999"], "99999"),
    "an invalid address": (["--media", "nowhere:7000"], "nowhere"),
    "a missing value": (["--http"], "--http"),
    "an invalid number": (["--loops", "many"], "many"),
    "zero loops": (["--loops", "0"], "--loops"),
    "an invalid announced address": (["--announce", "here"], "here"),
    "a missing file": (["--config", "/nonexistent/nagare.yaml"], "/nonexistent/nagare.yaml"),
    "a missing certificate": (["--tls-cert", "/nonexistent/c.pem", "--tls-key", "/nonexistent/k.pem"], "/nonexistent/"),
    "a certificate without its key": (["--tls-cert", "/nonexistent/c.pem"], "tls-key"),
    "an invalid log level": (["--log-level", "loud"], "loud"),
}


@pytest.mark.parametrize("options, named", INVALID.values(), ids=INVALID.keys())
def test_an_invalid_setting_is_named(options: list[str], named: str) -> None:
    assert named in fail_to_start(*options)


@pytest.mark.parametrize("text", ["http: [", "bogus: 1\n", "loops: many\n", "\0\1\2"])
def test_an_invalid_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "nagare.yaml"
    path.write_text(text)
    assert "nagare.yaml" in fail_to_start("--config", str(path))


def test_a_file_that_is_a_folder_is_named(tmp_path: Path) -> None:
    assert str(tmp_path) in fail_to_start("--config", str(tmp_path))


def test_sigterm_during_a_call_stops_the_node_cleanly(
    open_page: Callable[..., ChromiumPage], own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node()
    viewer, publisher = watch_and_publish(open_page, node.origin, channel, codec="VP8")
    code, seconds = node.terminate()
    assert code == 0, node.log_tail()
    assert_clock(seconds <= GRACE_SECONDS_MAX, f"it took {seconds:.1f} s")
    log = node.log_tail()
    assert "stopped" in log and "the grace period is over" not in log, log
    wait_until(
        lambda: "does not answer" in publisher.status_text(),
        "an error message on the publisher's page",
        10,
        describe=publisher.status_text,
    )


def test_sigterm_waits_for_the_clients_before_the_drain_deadline(own_node: Callable[..., Node]) -> None:
    node = own_node("--drain-deadline", "600")
    with httpx.Client(base_url=node.origin) as client:
        present = client.post("/whip/drain", headers=SDP, content=offer("sendonly"))
        assert present.status_code == 201, present.text
        node.process.send_signal(signal.SIGTERM)
        wait_until(lambda: httpx.get(f"{node.admin}/readyz").status_code == 503, "a node that is not ready", 5)
        assert httpx.get(f"{node.admin}/livez").status_code == 200
        refused = client.post("/whep/drain", headers=SDP, content=offer("recvonly"))
        assert refused.status_code == 503 and "Retry-After" in refused.headers, refused.text
        assert client.delete(present.headers["Location"]).status_code == 200
    assert node.process.wait(STOP_SECONDS) == 0, node.log_tail()
    assert "drained" in node.log_tail() and "stopped" in node.log_tail(), node.log_tail()


@pytest.mark.parametrize("ends_by", ["deadline", "signal"])
def test_a_drain_ends_with_clients(own_node: Callable[..., Node], ends_by: str) -> None:
    node = own_node("--drain-deadline", "2" if ends_by == "deadline" else "600")
    present = httpx.post(f"{node.origin}/whip/drain", headers=SDP, content=offer("sendonly"))
    assert present.status_code == 201, present.text
    node.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "draining" in node.log_tail(), "the drain in the log", 5)
    if ends_by == "signal":
        node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(STOP_SECONDS) == 0, node.log_tail()
    assert "stopped" in node.log_tail(), node.log_tail()


def test_a_second_signal_leaves_the_history_of_the_calls(
    own_node: Callable[..., Node], tmp_path: Path
) -> None:
    options = ("--state-dir", str(tmp_path), "--grace", "600")
    node = own_node(*options)
    present = httpx.post(f"{node.origin}/whip/forced", headers=SDP, content=offer("sendonly"))
    assert present.status_code == 201, present.text
    # A request that does not end keeps the listener open.
    with socket.create_connection((LOOPBACK, node.http_port)) as request:
        head = b"POST /whip/forced HTTP/1.1\r\nHost: a\r\nContent-Type: application/sdp\r\nContent-Length: 9\r\n\r\n"
        request.sendall(head + b"v=0")
        # Nothing tells that the node has the first part of a request.
        time.sleep(0.5)
        for _ in range(2):
            node.process.send_signal(signal.SIGTERM)
            wait_until(lambda: "shutting down" in node.log_tail(), "the shutdown in the log", 5)
        assert node.process.wait(STOP_SECONDS) == 128 + signal.SIGTERM, node.log_tail()
    # For the fixture, which expects a graceful end.
    node.process.returncode = 0
    again = own_node(*options, ports=node.ports)
    (call,) = httpx.get(f"{again.admin}/v1/connections").json()["connections"]
    assert call["channel"] == "forced" and call["reason"] == "SHUTDOWN", call


def test_sigterm_closes_everything(own_node: Callable[..., Node]) -> None:
    node = own_node()
    assert node.terminate()[0] == 0
    for port in (node.http_port, node.admin_port):
        with pytest.raises(OSError):
            socket.create_connection((LOOPBACK, port), timeout=2).close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
        again.bind((LOOPBACK, node.media_port))


def test_a_second_node_can_use_the_same_ports_immediately(own_node: Callable[..., Node]) -> None:
    first = own_node()
    assert first.terminate()[0] == 0
    assert own_node(ports=first.ports).ready()


def test_health_and_readiness_are_served(node: Node) -> None:
    assert httpx.get(f"{node.admin}/healthz").status_code == 200
    assert httpx.get(f"{node.admin}/readyz").status_code == 200
    assert httpx.get(f"{node.origin}/metrics").status_code == 404, "the public port shows the metrics"


@pytest.mark.parametrize("thread", ["media-1", "control-0"])
def test_a_loop_that_hangs_is_no_longer_alive_and_feeds_no_watchdog(
    thread: str, own_node: Callable[..., Node], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setitem(ENVIRONMENT, "NOTIFY_SOCKET", str(tmp_path / "notify"))
        node = own_node("--loops", "2")

        def status(probe: str) -> int:
            return httpx.get(f"{node.admin}/{probe}", timeout=20).status_code

        def messages() -> set[bytes]:
            """What has come since the last call."""
            seen = set()
            try:
                while True:
                    seen.add(manager.recv(100, socket.MSG_DONTWAIT))
            except BlockingIOError:
                return seen

        wait_until(lambda: b"WATCHDOG=1" in messages(), "a message for the watchdog", 20)
        with stopped(node.process.pid, thread):
            wait_until(lambda: status("livez") == 503, "the end of /livez", 30)
            assert status("readyz") == 503
            messages()
            # Three messages are missing.
            time.sleep(3)
            assert messages() == set()
            assert thread in node.log_tail(), "the log does not name the loop"
        wait_until(lambda: b"WATCHDOG=1" in messages(), "a message after the loop goes on", 20)
        assert status("livez") == 200


def test_metrics_are_valid_and_complete(node: Node) -> None:
    response = httpx.get(f"{node.admin}/metrics")
    assert response.headers["Content-Type"].startswith(("text/plain", "application/openmetrics-text"))
    names = {name.partition("{")[0] for name in node.metrics()}
    assert all(name.startswith(("nagare_", "process_", "sora_")) for name in names), names
    for part in (
        "build_info",
        "datagrams_received",
        "datagrams_sent",
        "dropped",
        "nack",
        "pli",
        "retransmission",
        "dtls",
        "ice",
        "rooms",
        "publishers",
        "viewers",
        "loop_turn_duration_seconds_bucket",
        "forwarding_latency_seconds_bucket",
    ):
        assert any(part in name for name in names), f"no metric for {part}: {sorted(names)}"
    lines = response.text.splitlines()
    helped = {line.split()[2] for line in lines if line.startswith("# HELP ")}
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
    assert helped == typed, helped ^ typed


def test_metrics_follow_a_call(open_page: Callable[..., ChromiumPage], node: Node, channel: str) -> None:
    before = node.metrics()
    viewer, publisher = watch_and_publish(open_page, node.origin, channel, codec="VP8")
    wait_until(lambda: node.total("nagare_publishers") >= 1, "a counted publisher", 3)
    assert node.total("nagare_viewers") >= 1
    assert node.total("nagare_dtls_connected_total") >= 2
    for name, value in node.metrics().items():
        if "_total{" in name:
            assert value >= before.get(name, 0), f"the counter {name} fell"
    publisher.stop_publishing()
    viewer.click("#watch")
    wait_until(
        lambda: node.total("nagare_publishers") == node.total("nagare_viewers") == 0,
        "an empty node",
        5,
        describe=node.metrics,
    )
