"""A server that receives the node's webhooks."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

from .node import LOOPBACK


class WebhookServer:
    """Records the posted bodies by the webhook's name, and answers with `answers[name]`, or with an empty object."""

    def __init__(self) -> None:
        self.received: dict[str, list[dict[str, Any]]] = {"auth": [], "event": [], "session": []}
        self.answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        hooks = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                name = self.path.strip("/")
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hooks.received[name].append(body)
                answer = json.dumps(hooks.answers.get(name, lambda _: {})(body)).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    # The node closed the connection before the answer.
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def url(self, name: str) -> str:
        return f"http://{LOOPBACK}:{self.server.server_port}/{name}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
