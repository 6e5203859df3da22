"""Traces of joins, as an OpenTelemetry collector gets them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Iterator

import pytest

from harness.load import run_load
from harness.node import LOOPBACK, Node
from harness.waiting import wait_until


class Collector:
    """Takes OTLP/HTTP with JSON encoding at `/v1/traces`, and admits clients at `/auth`."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.resources: list[dict[str, Any]] = []
        self.parents: list[str | None] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/auth":
                    collector.parents.append(self.headers["traceparent"])
                else:
                    assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
                    for resource in body["resourceSpans"]:
                        collector.resources.append(attributes(resource["resource"]))
                        for scope in resource["scopeSpans"]:
                            collector.spans += scope["spans"]
                answer = json.dumps({"allowed": True} if self.path == "/auth" else {}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://{LOOPBACK}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def traces(self, protocol: str) -> list[list[dict[str, Any]]]:
        """The spans of each join over this protocol, the first one first."""
        roots = [span for span in self.spans if attributes(span).get("nagare.protocol") == protocol]
        return [
            sorted((span for span in self.spans if span["traceId"] == root["traceId"]), key=lambda span: span != root)
            for root in roots
        ]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def attributes(holder: dict[str, Any]) -> dict[str, str]:
    return {one["key"]: next(iter(one["value"].values())) for one in holder["attributes"]}


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


def test_a_join_is_one_trace_with_its_phases(own_node: Callable[..., Node], collector: Collector) -> None:
    node = own_node("--otlp-endpoint", collector.url, "--auth-webhook-url", f"{collector.url}/auth")
    run_load(node, "--publishers", "1", "--subscribers", "1", "--video-kbps", "300", "--duration", "5")
    wait_until(
        lambda: collector.traces("whip") and collector.traces("whep"), "the traces", 30, describe=node.log_tail
    )
    common = {"authorization", "reservation", "negotiation", "first_check", "ice", "dtls"}
    for protocol, own in (
        ("whip", {"first_packet_received", "first_frame_received"}),
        ("whep", {"first_packet_sent", "first_frame_sent"}),
    ):
        root, *children = collector.traces(protocol)[0]
        assert root["name"] == "join" and "parentSpanId" not in root and root["status"] == {}
        names = {span["name"] for span in children}
        assert names == common | own | {f"POST /{protocol}/{{channel}}"}
        assert {span["parentSpanId"] for span in children} == {root["spanId"]}
        for span in children:
            start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
            assert int(root["startTimeUnixNano"]) <= start <= end <= int(root["endTimeUnixNano"]), span["name"]
        authorization = next(span for span in children if span["name"] == "authorization")
        assert f"00-{root['traceId']}-{authorization['spanId']}-01" in collector.parents
        assert attributes(root)["nagare.channel"] == "load"
    assert collector.resources[0]["service.name"] == "nagare"
    # The node counts them after the collector's answer.
    wait_until(lambda: node.total("nagare_trace_spans_exported_total") >= 18, "the exported spans", 10)
