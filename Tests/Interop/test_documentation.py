"""The documentation: its pages in a browser, and its references against the sources and a running node."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any, Callable, Iterator

import httpx
import pytest

from harness.chromium import ChromiumPage
from harness.installed import REPOSITORY
from harness.node import Node

SIGNALING = REPOSITORY / "Sources/Signaling/Signaling"
# Names that the code puts together from parts.
COMPOSED = {f"{kind}_{what}" for kind in ("audio", "video") for what in ("codec_type", "bit_rate")} | {
    "audio_opus_params", "video_vp9_params", "video_av1_params", "video_h264_params", "video_h265_params",
}


def module(name: str) -> ModuleType:
    """A program of ops/documentation."""
    folder = str(REPOSITORY / "ops/documentation")
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(f"documentation_{name}", f"{folder}/{name}.py")
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages."""
    folder = tmp_path_factory.mktemp("documentation") / "below/a/path"
    done = subprocess.run([REPOSITORY / "ops/docs", folder], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def origin(site: Path) -> Iterator[str]:
    """A plain static server of a folder that has the site below a path."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site.parents[1])))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/a/path"
    server.shutdown()
    server.server_close()
    thread.join()


def heading(page: ChromiumPage, text: str) -> None:
    page.tab.get_by_role("heading", name=text, exact=True, level=1).wait_for(timeout=60_000)


def test_the_pages_are_found_from_any_address(origin: str, open_page: Callable[..., ChromiumPage]) -> None:
    page = open_page(origin)
    missing: list[str] = []
    page.tab.on("response", lambda response: missing.append(response.url) if response.status >= 400 else None)
    page.goto(f"{origin}/")
    heading(page, "Nagare")
    page.tab.get_by_role("link", name="Running a node", exact=True).first.click()
    heading(page, "Running a node")
    page.tab.reload()
    heading(page, "Running a node")
    for address, title in (("metrics/index.html", "Metrics"), ("settings", "Settings")):
        page.goto(f"{origin}/documentation/nagare/{address}")
        heading(page, title)
    assert not missing


def test_a_page_of_the_file_system_says_how_to_read_it(site: Path, open_page: Callable[..., ChromiumPage]) -> None:
    page = open_page("file://")
    page.goto(f"file://{site}/index.html")
    page.tab.get_by_text("In their folder run python3 -m http.server").wait_for(timeout=60_000)


def test_wide_pages_fit_on_a_phone(origin: str, open_page: Callable[..., ChromiumPage]) -> None:
    page = open_page(origin, viewport={"width": 390, "height": 844})
    for name, title in (("operatorsapireference", "Operations of the operators’ API"), ("metrics", "Metrics")):
        page.goto(f"{origin}/documentation/nagare/{name}")
        heading(page, title)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name


@pytest.mark.static
def test_every_article_is_on_the_first_page(site: Path) -> None:
    pages = {path.stem for path in (site / "data/documentation/nagare").glob("*.json")}
    first = json.loads((site / "data/documentation/nagare.json").read_text())
    listed = {name.rsplit("/", 1)[1].lower() for section in first["topicSections"] for name in section["identifiers"]}
    assert listed == pages and len(pages) > 40


@pytest.mark.static
def test_a_broken_link_is_refused_with_its_article(tmp_path: Path, site: Path) -> None:
    catalogue, finish = module("catalogue"), module("finish")
    catalogue.REPOSITORY = tmp_path
    article = tmp_path / "Sources/Some/Some.docc/Article.md"
    article.parent.mkdir(parents=True)
    article.write_text("# Title\n\nSee [this](../Nothing.md).\n")
    catalogue.SOURCES = {}
    with pytest.raises(catalogue.BrokenLink, match=r"Some.docc/Article.md links to ../Nothing.md"):
        catalogue.Catalogue(tmp_path / "work").write()
    data = tmp_path / "site/data/page.json"
    data.parent.mkdir(parents=True)
    references = {str(i): {"url": url} for i, url in enumerate(["#there", "#not", "/documentation/none", "https://x.org"])}
    data.write_text(json.dumps({"primaryContentSections": [{"anchor": "there"}], "references": references}))
    assert sorted(finish.broken_links(tmp_path / "site")) == [
        "page links to #not: there is no heading not", "page links to /documentation/none, which does not exist",
    ]


def test_the_metrics_of_a_node_are_in_the_reference_and_the_other_way_round(own_node: Callable[..., Node]) -> None:
    node = own_node("--turn", "on")
    text = httpx.get(f"{node.admin}/metrics").text
    served = set(re.findall(r"^# TYPE (\w+ \w+)$", text, re.MULTILINE))
    reference = (REPOSITORY / "Sources/nagare/Nagare.docc/Metrics.md").read_text()
    written = {f"{name} {kind}" for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", reference, re.MULTILINE)}
    assert served <= written
    # These exist with a store, with another node, with HTTPS, with channels, and after an error.
    conditional = re.compile(
        r"nagare_cluster_(?!relay_)|nagare_certificate_|nagare_jwks_|nagare_trace_|nagare_channel_"
        r"|sora_connection_error_total"
    )
    assert not {name for name in written - served if not conditional.match(name)}


@pytest.mark.static
def test_the_metrics_that_articles_name_exist() -> None:
    reference = (REPOSITORY / "Sources/nagare/Nagare.docc/Metrics.md").read_text()
    known = re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE)
    for path in REPOSITORY.glob("Sources/**/*.docc/*.md"):
        if path.name == "Metrics.md":
            continue
        for name in re.findall(r"\b(?:nagare|process|sora)_\w+", path.read_text()):
            # Histograms have three series, and an article may name a family of metrics by its beginning.
            name = re.sub(r"_(bucket|sum|count)$", "", name)
            is_family = name.endswith("_") and any(one.startswith(name) for one in known)
            assert name in known or is_family or name in ("sora_client", "sora_version"), f"{path.name} names {name}"


def test_the_api_description_of_a_node_is_that_of_the_site(node: Node, site: Path) -> None:
    assert httpx.get(f"{node.admin}/v1/openapi.json").json() == json.loads((site / "openapi.json").read_text())


def references(value: Any) -> Iterator[str]:
    """The references of a JSON document to its own parts."""
    if isinstance(value, dict):
        yield from [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from references(one)


@pytest.mark.static
def test_the_api_description_names_only_parts_that_it_has() -> None:
    description = json.loads((REPOSITORY / "Sources/nagare/Nagare.docc/openapi.json").read_text())
    names = set(references(description))
    assert names
    for name in names:
        part = description
        for key in name.removeprefix("#/").split("/"):
            assert key in part, name
            part = part[key]
    operations = [operation for path in description["paths"].values() for operation in path.values() if "responses" in operation]
    identifiers = [operation["operationId"] for operation in operations]
    assert len(operations) > 5 and len(set(identifiers)) == len(identifiers)


@pytest.mark.static
def test_the_swift_code_of_the_guide_for_apps_parses(tmp_path: Path) -> None:
    """The adapter needs a library of Apple's platforms, so only its syntax and format can be checked here."""
    article = REPOSITORY / "Sources/NagareClient/NagareClient.docc/SwiftClient.md"
    blocks = re.findall(r"```swift\n(.*?)```", article.read_text(), flags=re.DOTALL)
    assert len(blocks) == 2 and "MediaEngine" in blocks[1]
    configuration = str(REPOSITORY / ".swift-format")
    for block in blocks:
        (file := tmp_path / "Block.swift").write_text(block)
        for command in (
            ["swiftc", "-frontend", "-parse", "-swift-version", "6"],
            ["swift", "format", "lint", "--strict", "--configuration", configuration],
        ):
            done = subprocess.run([*command, file], capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr


# ---- References that are written by hand ----


def source_names(*paths: str) -> set[str]:
    """The members of JSON objects that sources write or read."""
    text = "\n".join((REPOSITORY / path).read_text() for path in paths)
    patterns = (
        r'"([a-z]\w*)":\s', r'\w\["([a-z]\w*)"\] =', r'(?:fields|answer)\.\w+\("([a-z]\w*)"', r'\(\s*fields, "([a-z]\w*)"',
        r'fields\.\w+\(\s*"([a-z]\w*)"',
    )
    return {name for pattern in patterns for name in re.findall(pattern, text)}


def documented_names(article: Path, column: int = 0) -> set[str]:
    """The names in the first column of all tables of an article."""
    rows = re.findall(r"^\| (.*) \|$", article.read_text(), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([a-zA-Z]\w*)`", row.split(" | ")[column])}


@pytest.mark.static
def test_the_bodies_of_webhooks_have_every_field() -> None:
    article = SIGNALING / "Signaling.docc/WebhookBodies.md"
    fields = source_names(
        "Sources/Signaling/Webhooks/WebhookBodies.swift", "Sources/Signaling/Webhooks/WebhookAuthorizer.swift",
        "Sources/Signaling/Webhooks/EventSubscriptions.swift", "Sources/Signaling/Webhooks/CallReport+Events.swift",
        "Sources/Signaling/Webhooks/Webhooks.swift", "Sources/Signaling/Ayame/AyameAdmission.swift",
        "Sources/Room/Access/AccessRequest+JSON.swift", "Sources/Room/Access/Grants+JSON.swift",
        "Sources/Room/Access/StatedOptions.swift",
    )
    # Fields of the log, and members of values.
    fields -= {"participant", "room", "session", "events", "access_token", "urls", "username", "credential"}
    lists = {"forwarding_filters", "forwarding_filter", "data_channels"}
    written = documented_names(article)
    assert not fields - written, "write these fields into WebhookBodies.md"
    assert not written - fields - COMPOSED - lists, "WebhookBodies.md has fields that nothing sends or reads"


@pytest.mark.static
def test_the_admin_api_has_every_operation_argument_and_field() -> None:
    article = SIGNALING / "Signaling.docc/AdminAPI.md"
    text = article.read_text()
    code = (REPOSITORY / "Sources/Signaling/Operators/Admin/AdminAPI.swift").read_text()
    known, unsupported = code.split("static let unsupported")
    operations = set(re.findall(r'^        "(\w+)": \{ ', known, re.MULTILINE))
    refused = set(re.findall(r'"(\w+)": "', unsupported))
    rows = {name for name in documented_names(article) if name[0].isupper()}
    assert len(operations) > 40 and rows == operations
    said = set(re.findall(r"`([A-Za-z]\w*)`", text))
    assert not refused - said
    arguments = source_names(*(f"Sources/Signaling/Operators/Admin/AdminAPI{part}.swift" for part in ("", "+Connections", "+Rooms")))
    assert not {name for name in arguments - said if not name.startswith("channel_")} - {"error_type", "error_reason"}
    fields = source_names(
        "Sources/Signaling/Operators/Admin/ConnectionDocument.swift", "Sources/Signaling/Web/SendingDocument.swift"
    )
    assert not fields - said - {"slots"}, "write these fields into AdminAPI.md"


@pytest.mark.static
def test_the_document_of_a_channel_has_every_field() -> None:
    written = {name for name in documented_names(SIGNALING / "Signaling.docc/ChannelsAPI.md") if not name.isdigit()}
    assert written == source_names("Sources/Signaling/Signaling/HTTP/ChannelDocument.swift")


@pytest.mark.static
def test_every_line_of_the_log_is_in_the_reference() -> None:
    pages = module("pages")
    page = pages.log_page(REPOSITORY)
    for path in REPOSITORY.glob("Sources/*/**/*.swift"):
        if pages.area_of(path.relative_to(REPOSITORY)) is None:
            continue
        for message in re.findall(r'\blogger\.\w+\(\s*(?:level: [^,]*, )?"([^"\\]+)"', path.read_text()):
            assert f"| `{message}` |" in page, f"{path.name} logs {message}"
    assert not re.search(r"`[^`]*\\\(", page), "a message needs an entry in SENTENCES of pages.py"
