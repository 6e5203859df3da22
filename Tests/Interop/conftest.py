"""Fixtures: the node, the browsers, and programs and pages that end with the test."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Callable, Iterator, TypeVar

import pytest
from playwright.sync_api import Playwright, sync_playwright

from harness.certificate import Certificate
from harness.chromium import EXECUTABLE, FLAGS, Chromium, ChromiumPage
from harness.firefox import Firefox, FirefoxPage
from harness.impair import Link
from harness.installed import MINIMAL_SYSTEM, build_packages
from harness.webhooks import WebhookServer
from harness.members import SoraMember
from harness.network import Network
from harness.node import BINARY, Node, running
from harness.page import Page
from harness.peers import Peer, Program
from harness.stream import Stream
from harness.transport import TransportViewer

pytest_plugins = ["harness.verdicts"]

ARTIFACTS = Path(__file__).parent / "artifacts"
AnyProgram = TypeVar("AnyProgram", bound=Program)
numbers = itertools.count(1)


def pytest_sessionstart(session: pytest.Session) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    # `-m static` selects the rows that need no program.
    if session.config.getoption("markexpr") != "static" and not BINARY.is_file():
        pytest.exit(f"there is no program at {BINARY}: build it, or set NAGARE_BINARY", returncode=2)


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """A folder for screenshots and logs, kept after the run."""
    return ARTIFACTS


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of the program under test."""
    folder = tmp_path_factory.mktemp("packages")
    build_packages(folder)
    return folder


@pytest.fixture(scope="session")
def minimal_system() -> Path:
    """A minimal Debian or Ubuntu, without anything of Nagare. Its only source of packages is a folder: no test downloads."""
    assert MINIMAL_SYSTEM.is_dir(), f"there is no {MINIMAL_SYSTEM}: ops/test makes it"
    return MINIMAL_SYSTEM


def log_path(name: str) -> Path:
    path = ARTIFACTS / f"node-{re.sub(r'[^A-Za-z0-9]+', '-', name)}.log"
    path.unlink(missing_ok=True)
    return path


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node for the tests of one file; it must end with 0 on SIGTERM."""
    yield from running(log_path(request.module.__name__))


@pytest.fixture
def own_node(request: pytest.FixtureRequest) -> Iterator[Callable[..., Node]]:
    """Starts nodes for one test alone, with options of its own."""
    nodes: list[Node] = []

    def start(*options: str, **how: object) -> Node:
        nodes.append(Node(log_path(f"{request.node.name}-{len(nodes)}"), *options, **how))
        return nodes[-1]

    yield start
    for one in nodes:
        one.close()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Chromium]:
    browser = Chromium(playwright)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def browser(playwright: Playwright, network: Network, certificate: Certificate) -> Iterator[Chromium]:
    """A browser on the clients' side of the module's network, which trusts the module's certificate."""
    flags = [*FLAGS, f"--ignore-certificate-errors-spki-list={certificate.key_hash}"]
    started = Chromium(playwright, flags, network.program(EXECUTABLE))
    yield started
    started.close()


@pytest.fixture(scope="module")
def firefox() -> Iterator[Firefox]:
    browser = Firefox()
    yield browser
    browser.close()


@pytest.fixture
def open_page(chromium: Chromium) -> Iterator[Callable[..., ChromiumPage]]:
    """Opens Chromium pages; none of them may raise an error or violate the content security policy."""
    pages: list[ChromiumPage] = []

    def make(origin: str, **options: object) -> ChromiumPage:
        pages.append(chromium.page(origin, **options))
        return pages[-1]

    yield make
    errors = [error for page in pages for error in page.errors]
    for page in pages:
        page.close()
    assert not errors, f"the page raised: {errors}"


@pytest.fixture
def open_firefox(firefox: Firefox) -> Iterator[Callable[[str], FirefoxPage]]:
    """Opens Firefox pages."""
    pages: list[FirefoxPage] = []

    def make(origin: str) -> FirefoxPage:
        pages.append(firefox.page(origin))
        return pages[-1]

    yield make
    for page in pages:
        page.close()


@pytest.fixture(params=["chromium", "firefox"])
def open_viewer(request: pytest.FixtureRequest) -> Callable[[str], Page]:
    """Opens pages of one browser."""
    return request.getfixturevalue("open_page" if request.param == "chromium" else "open_firefox")


def starting(make: Callable[..., AnyProgram]) -> Iterator[Callable[..., AnyProgram]]:
    """A function that starts programs with `make`; they are killed at the end of the test."""
    programs: list[AnyProgram] = []

    def start(*arguments: str, **options: object) -> AnyProgram:
        programs.append(make(*arguments, **options))
        return programs[-1]

    yield start
    for one in programs:
        one.kill()


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    """Starts peers that are not browsers."""
    yield from starting(Peer)


# Where a packet was lost: before the node, which then asks for it, in the node, or after it.
LOSS_COUNTS = ("publisher_packets_lost", "nacked_packets", "retransmissions_received", "dropped_total")


@pytest.fixture
def transport(node: Node, channel: str) -> Iterator[Callable[..., TransportViewer]]:
    """Starts viewers that record the packets at their transport. They watch the test's own channel and node, or others.

    What the test's node counted of lost packets is printed with a failure.
    """
    before = node.totals(*LOSS_COUNTS)

    def make(path: str = channel, *options: str, at: Node | None = None) -> TransportViewer:
        return TransportViewer(f"{(at or node).origin}/whep/{path}", *options)

    yield from starting(make)
    print("counted by the node:", {name: count - before[name] for name, count in node.totals(*LOSS_COUNTS).items()})


@pytest.fixture
def join(node: Node, channel: str) -> Iterator[Callable[..., SoraMember]]:
    """Starts Sora SDK clients. They join the test's own channel and node, or the given ones."""

    def make(role: str, *flags: str, at: Node | None = None, to: str | None = None, **options: object) -> SoraMember:
        return SoraMember((at or node).signaling, to or channel, role, *flags, **options)

    yield from starting(make)


@pytest.fixture
def link(node: Node) -> Iterator[Callable[..., Link]]:
    """Starts links with a bottleneck, delay or loss in front of the node."""
    links: list[Link] = []

    def start(*options: str, at: Node | None = None, **conditions: str) -> Link:
        links.append(Link(at or node, *options, **conditions))
        return links[-1]

    yield start
    for one in links:
        one.close()


@pytest.fixture
def stream() -> Iterator[Callable[..., Stream]]:
    """Starts streams from one node of a cluster to another."""
    streams: list[Stream] = []

    def start(*arguments: object) -> Stream:
        streams.append(Stream(*arguments))
        return streams[-1]

    yield start
    for one in streams:
        one.end()


@pytest.fixture
def hooks() -> Iterator[WebhookServer]:
    """A server for webhooks."""
    server = WebhookServer()
    yield server
    server.close()


@pytest.fixture
def channel() -> str:
    """A channel that no other test uses."""
    return f"channel-{next(numbers)}"
