"""The node under test, as a process of its own."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Callable, Iterator

import httpx
from prometheus_client.parser import text_string_to_metric_families

from .clocks import ClockMissed
from .ports import LOOPBACK, free_media_port, free_tcp_port
from .waiting import wait_until

BINARY = Path(
    os.environ.get("NAGARE_BINARY", Path(__file__).resolve().parent.parent / "../../.build/release/nagare")
).resolve()

# Variables that configure the tests are not settings of the node.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("NAGARE_")}

START_SECONDS = 15
# The node's default grace period, and some time for the end of the process.
STOP_SECONDS = 15


class Node:
    """`nagare serve` on free ports, by default of the loopback interface and for development.

    `address` is where clients reach it; the admin API is on loopback anyway. `launch` changes the command that starts it, and
    inside of `reach` the test reaches its loopback interface. With `admin_authority`, the authority of its certificate, the
    admin address is one of https.
    """

    def __init__(
        self,
        log: Path,
        *options: str,
        ports: tuple[int, int, int] | None = None,
        is_development: bool = True,
        address: str = LOOPBACK,
        launch: Callable[..., list[str]] = lambda *words: list(words),
        reach: Callable[[], AbstractContextManager[None]] = nullcontext,
        admin_authority: Path | None = None,
    ) -> None:
        self.verify = ssl.create_default_context(cafile=admin_authority) if admin_authority else True
        self.reach = reach
        self.http_port, self.media_port, self.admin_port = ports or (
            free_tcp_port(),
            free_media_port(),
            free_tcp_port(),
        )
        self.origin = f"http://{address}:{self.http_port}"
        self.signaling = f"ws://{address}:{self.http_port}/signaling"
        self.admin = f"{'https' if admin_authority else 'http'}://{LOOPBACK}:{self.admin_port}"
        self.log_path = log
        self.command = [
            str(BINARY),
            "serve",
            *(["--dev"] if is_development else []),
            "--http",
            f"{address}:{self.http_port}",
            "--media",
            f"{address}:{self.media_port}",
            "--admin",
            f"{LOOPBACK}:{self.admin_port}",
            *options,
        ]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                launch(*self.command), stdout=output, stderr=subprocess.STDOUT, env=ENVIRONMENT
            )
        wait_until(self.ready, "the node's readiness", START_SECONDS, describe=self.log_tail)

    @property
    def ports(self) -> tuple[int, int, int]:
        return self.http_port, self.media_port, self.admin_port

    def ready(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"the node ended with {self.process.returncode}: {self.log_tail()}")
        try:
            with self.reach():
                return httpx.get(f"{self.admin}/readyz", timeout=2, verify=self.verify).status_code == 200
        except httpx.TransportError:
            return False

    def log_tail(self) -> str:
        """The end of the node's log."""
        return self.log_path.read_text(errors="replace")[-3000:]

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by name with labels."""
        with self.reach():
            text = httpx.get(f"{self.admin}/metrics", timeout=5, verify=self.verify).text
        samples: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
                samples[f"{sample.name}{{{labels}}}"] = sample.value
        return samples

    def total(self, *parts: str) -> float:
        """The sum of the samples whose name with labels contains all of `parts`."""
        return sum(value for name, value in self.metrics().items() if all(part in name for part in parts))

    def totals(self, *names: str) -> dict[str, float]:
        """The sum of the samples whose name with labels contains each of `names`, of one moment."""
        samples = self.metrics()
        return {one: sum(value for name, value in samples.items() if one in name) for one in names}

    def wait_for_turn(self, *directions: str) -> None:
        """Waits until TURN has carried more than 60 datagrams each way. The first picture and sound need fewer."""

        def carried() -> list[float]:
            return [self.total("nagare_turn_datagrams_total", f"direction={one}") for one in directions]

        wait_until(lambda: min(carried()) > 60, f"media through TURN, {' and '.join(directions)}", 20, describe=carried)

    def channel(self, name: str, token: str | None = None) -> dict:
        """The node's description of a channel."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.get(f"{self.origin}/api/channels/{name}", headers=headers, timeout=5).json()

    def publishing(self, name: str) -> list[str]:
        """The ids of a channel's publishers."""
        return [one["id"] for one in self.channel(name).get("participants", []) if one.get("publishing", True)]

    def operate(self, operation: str, **body: object) -> object:
        """Calls the admin API; the answer of a call that must succeed."""
        response = self.ask(operation, **body)
        assert response.status_code == 200, f"{operation}: {response.status_code} {response.text}"
        return response.json()

    def ask(self, operation: str, **body: object) -> httpx.Response:
        """Calls the admin API."""
        with self.reach():
            return httpx.post(f"{self.admin}/", headers={"x-sora-target": f"Sora_{operation}"}, json=body, timeout=5)

    def resident_kibibytes(self) -> int:
        """The resident memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    def allocated_kibibytes(self) -> int:
        """The memory that the program has allocated and not freed. Unlike the resident memory it does not depend on how the C
        library's arenas were used."""
        return int(self.total("nagare_allocated_bytes")) // 1024

    def await_allocated(self, before: int, most: int, seconds: float = 60) -> None:
        """Waits until at most `most` KiB more are allocated than before."""
        wait_until(
            lambda: self.allocated_kibibytes() - before <= most,
            "the return of what was allocated",
            seconds,
            describe=lambda: f"{before} KiB before, and now {self.allocated_kibibytes()}",
        )

    def terminate(self) -> tuple[int, float]:
        """Sends SIGTERM; the exit code and the seconds until the end of the process."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)
            raise ClockMissed(f"the node was still there {STOP_SECONDS} s after SIGTERM: {self.log_tail()}") from None
        return code, time.monotonic() - began

    def close(self) -> None:
        """Stops the node as a service manager does; its exit code must be 0."""
        if self.process.poll() is None:
            code, _ = self.terminate()
            assert code == 0, f"the node ended with {code} after SIGTERM: {self.log_tail()}"
        else:
            assert self.process.returncode == 0, f"the node ended with {self.process.returncode}: {self.log_tail()}"


def running(log: Path, *options: str) -> Iterator[Node]:
    """A node for the length of a fixture."""
    node = Node(log, *options)
    try:
        yield node
    finally:
        node.close()
