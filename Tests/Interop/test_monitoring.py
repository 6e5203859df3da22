"""Metrics, dashboards and alert rules, checked with promtool, which `ops/test` puts in `.build-peers`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Iterator

import httpx
import pytest
import yaml

from conftest import log_path
from harness.certificate import make_certificate
from harness.cluster import Cluster
from harness.load import load_command
from harness.node import ENVIRONMENT, Node, free_tcp_port
from harness.waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
PROMTOOL = REPOSITORY / ".build-peers/promtool"
DASHBOARDS = sorted((REPOSITORY / "ops/grafana").glob("*.json"))
ALERTS = REPOSITORY / "ops/alerts.yml"
TESTS = Path(__file__).with_name("alerts_test.yml")
# Series that there are only during a call over two nodes.
LATE = ("nagare_channel_round_trip_seconds_max", "nagare_channel_loss_ratio_max", "nagare_cluster_link_rtt_seconds")


def promtool(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROMTOOL), *arguments], input=text, capture_output=True, text=True, cwd=REPOSITORY, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The metrics of a node of a cluster during a call, and of a node with HTTPS."""
    folder = tmp_path_factory.mktemp("monitoring")
    cluster = Cluster(folder, lambda suffix: log_path(f"monitoring-{suffix}"), "ab", "--metrics-channels", "5")
    calls: list[subprocess.Popen[bytes]] = []
    try:
        node = cluster["a"]
        for name, publishers in (("a", "1"), ("b", "0")):
            options = ("--publishers", publishers, "--subscribers", "1", "--video-kbps", "300", "--audio")
            command = load_command(cluster[name], *options, "--duration", "140")
            calls.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT))
        # Viewers report about once a second.
        wait_until(lambda: all(name in metrics(node) for name in LATE), "reports of a call", 30, describe=node.log_tail)
        page = metrics(node)
        assert node.total("nagare_setup_phase_seconds_count", "answer") >= 2
        assert node.total("nagare_setup_phase_seconds_count", "first_frame") >= 1
        assert node.total("nagare_join_duration_seconds_count") >= 2
        certificate = make_certificate(folder)
        cluster.links["c"] = free_tcp_port()
        # The keys of tokens cannot be fetched there.
        keys = ["--jwks", "https://127.0.0.1:1/keys"]
        secure = cluster.start("c", "--tls-cert", str(certificate.chain), "--tls-key", str(certificate.key), *keys)
        yield [page, metrics(secure)]
    finally:
        for call in calls:
            call.terminate()
            call.wait(20)
        cluster.close()


def metrics(node: Node) -> str:
    return httpx.get(f"{node.admin}/metrics", timeout=5).text


def test_names_and_types_follow_the_conventions_of_prometheus(pages: list[str]) -> None:
    for page in pages:
        done = promtool("check", "metrics", text=page)
        assert (done.stdout + done.stderr).splitlines() == []


def series(pages: list[str]) -> set[str]:
    """The names that a query can use."""
    names: set[str] = set()
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", "\n".join(pages), flags=re.MULTILINE):
        names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if kind == "histogram" else {name}
    return names


def labels(pages: list[str]) -> dict[str, set[str]]:
    """Each label of the pages with its values."""
    values: dict[str, set[str]] = {}
    for name, value in re.findall(r'[{,](\w+)="([^"]*)"', "\n".join(pages)):
        values.setdefault(name, set()).add(value)
    return values


def expressions(dashboard: dict) -> list[str]:
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    queries = [one["query"] for one in dashboard["templating"]["list"]]
    return found + [one["query"] for one in queries if isinstance(one, dict)]


def rules() -> list[dict]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("path", [*DASHBOARDS, ALERTS], ids=lambda path: path.name)
def test_queries_ask_for_series_that_a_node_has(path: Path, pages: list[str]) -> None:
    dashboards = path.suffix == ".json"
    queries = expressions(json.loads(path.read_text())) if dashboards else [str(rule["expr"]) for rule in rules()]
    assert len(queries) > 5
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    known, values = series(pages), labels(pages)
    for query in queries:
        # Recorded series have colons.
        asked = set(re.findall(r"(?<![\w:])(?:nagare|sora|process)_\w+(?![\w:])", query))
        assert asked <= known, query
        assert set(re.findall(r"\binstance:[\w:]+", query)) <= recorded, query
        for label, value in re.findall(r'(\w+)="(\w+)"', query):
            if label not in ("job", "alertstate"):
                assert value in values.get(label, set()), f"{label} is never {value}: {query}"
        if dashboards:
            checked = query.replace("$__rate_interval", "1m").replace('"$instance"', '"a"').replace('"$channel"', '"a"')
            assert "$" not in checked, query


@pytest.mark.static
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_dashboards_have_valid_queries(path: Path, tmp_path: Path) -> None:
    dashboard = json.loads(path.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    file = tmp_path / "rules.yml"
    recording = [
        {"record": f"panel:{index}", "expr": query.replace("$__rate_interval", "1m")}
        for index, query in enumerate(queries)
    ]
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recording}]}))
    done = promtool("check", "rules", str(file))
    assert done.returncode == 0, done.stderr + done.stdout
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert len({(place["x"], place["y"]) for place in places}) == len(places), "panels overlap"
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)


@pytest.mark.static
def test_dashboards_are_distinct_and_the_first_page_is_one_of_them() -> None:
    assert {path.stem for path in DASHBOARDS} == {"overview", "node", "room", "webhooks", "cluster"}
    uids = {json.loads(path.read_text())["uid"] for path in DASHBOARDS}
    assert len(uids) == len(DASHBOARDS)
    compose = yaml.safe_load((REPOSITORY / "ops/compose.yaml").read_text())["services"]
    home = compose["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert Path(home).name in {path.name for path in DASHBOARDS}


@pytest.mark.static
def test_alert_rules_fire_when_they_should_and_only_then() -> None:
    done = promtool("test", "rules", str(TESTS))
    assert done.returncode == 0, done.stderr + done.stdout
    done = promtool("check", "config", "ops/prometheus.yml")
    assert done.returncode == 0, done.stderr + done.stdout
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert set(re.findall(r'alertname="(\w+)"', TESTS.read_text())) == alerts, "each alert has its test"


@pytest.mark.static
def test_each_alert_has_a_severity_and_a_section_of_the_article() -> None:
    alerts = [rule for rule in rules() if "alert" in rule]
    for rule in alerts:
        assert rule["labels"]["severity"] in ("page", "ticket")
        path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        article = (REPOSITORY / path).read_text()
        assert anchor == rule["alert"] and f"\n### {anchor}\n" in article
    headings = re.findall(r"^### (\w+)$", (REPOSITORY / path).read_text(), flags=re.MULTILINE)
    assert headings == [rule["alert"] for rule in alerts], "the article has the order of the rules"
    anchors = re.findall(r"\]\(#(\w+)\)", (REPOSITORY / path).read_text())
    assert set(anchors) <= set(headings)
