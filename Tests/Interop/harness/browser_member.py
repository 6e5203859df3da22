"""A participant in a real browser: `member.js` on a blank page of the node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .node import Node
from .page import Page
from .waiting import wait_until

SCRIPT = (Path(__file__).parent / "member.js").read_text()


class BrowserMember:
    """One connection, in a tab of its own."""

    def __init__(self, page: Page, node: Node, channel: str, role: str, **options: object) -> None:
        self.page = page
        # Any page of the node without a content security policy.
        page.goto(f"{node.admin}/healthz")
        page.call("(script) => { (0, eval)(script); }", SCRIPT)
        page.call(
            "async (...given) => { window.member = new Member(...given); await window.member.connect(); }",
            node.signaling,
            channel,
            role,
            options,
        )

    def sample(self) -> dict[str, Any]:
        sample = self.page.evaluate("window.member.sample()")
        assert not sample.get("error"), sample
        return sample

    def connected(self, seconds: float = 15) -> "BrowserMember":
        wait_until(lambda: self.sample()["state"] == "connected", "the connection", seconds, describe=self.sample)
        return self

    @property
    def id(self) -> str:
        return self.sample()["id"]

    def sees(self, sender: str, seconds: float = 15, frames: int = 20) -> dict[str, Any]:
        """Waits until `frames` more frames of a sender are decoded and its audio is received."""
        before = self.sample()["streams"].get(sender, {"frames": 0, "energy": 0})

        def look() -> dict[str, Any] | None:
            stream = self.sample()["streams"].get(sender)
            if not stream or stream["frames"] < before["frames"] + frames or stream["energy"] <= before["energy"]:
                return None
            return stream

        return wait_until(look, f"pictures and sound of {sender}", seconds, describe=self.sample)

    def layers(self) -> dict[str, dict[str, Any]]:
        """The simulcast layers that it sends, by rid."""
        return self.sample()["layers"]

    def active_layers(self) -> dict[str, bool]:
        return {rid: layer["active"] for rid, layer in self.layers().items()}

    def request(self, method: str, **parameters: object) -> dict[str, Any]:
        """Sends a request of the channel extension; its response."""
        return self.page.call("(...given) => window.member.request(...given)", method, parameters)

    def disconnect(self) -> tuple[int, str]:
        """Ends the connection; the code and reason with which the server closed the WebSocket."""
        self.page.evaluate("window.member.disconnect()")
        code, reason = wait_until(lambda: self.sample().get("closed"), "the WebSocket's close", 5)
        return code, reason
