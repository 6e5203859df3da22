"""The built-in page, as people use it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import JSHandle

from .chromium import ChromiumPage
from .waiting import wait_until


class BuiltInPage:
    """One tab with the node's page."""

    def __init__(self, page: ChromiumPage) -> None:
        self.page = page
        self.tab = page.tab
        self.evaluate = page.evaluate
        self.click = page.click

    def open(self, channel: str | None = None) -> None:
        self.page.goto(self.page.origin + ("/" if channel is None else f"/?channel={channel}"))

    def join(
        self,
        channel: str | None,
        how: str = "member",
        name: str = "",
        source: str = "synthetic",
        size: str = "640x360",
        codec: str = "VP8",
    ) -> None:
        """Fills in the form and presses Join. Without a channel, the page is open already."""
        if channel is not None:
            self.open(channel)
        self.tab.fill("#name", name)
        self.page.choose("#how", how)
        if how not in ("watch", "audience"):
            self.send(source)
            self.page.choose("#size", size)
            self.page.choose("#codec", codec)
        self.click("#join")

    def send(self, source: str) -> None:
        """Chooses what is sent: `camera` or `synthetic`, which is the test pattern."""
        self.page.call(
            "(source) => { const e = document.querySelector(`input[value=${source}]`);"
            " if (!e.checked) { e.checked = true; e.dispatchEvent(new Event('change', { bubbles: true })); } }",
            source,
        )

    def give_token(self, token: str) -> None:
        """Types an access token. Its field is among the advanced ones until the server asks for it."""
        if not self.tab.is_visible("#token"):
            self.tab.click("#advanced summary")
        self.tab.fill("#token", token)

    def click_in_menu(self, selector: str) -> None:
        """Presses a button of the bar, and opens its menu first where the button is in there."""
        if not self.tab.is_visible(selector):
            self.click("#more")
        self.click(selector)

    def evaluate_handle(self, expression: str) -> JSHandle:
        return self.tab.evaluate_handle(expression)

    def stats(self) -> dict[str, Any]:
        return self.evaluate("window.nagare.stats()")

    def text(self, selector: str) -> str:
        """What an element says; empty without one."""
        return self.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''")

    def pressed(self, selector: str) -> str | None:
        return self.evaluate(f"document.querySelector({selector!r}).getAttribute('aria-pressed')")

    def titles(self) -> list[str]:
        """The names on the tiles, in the page's order."""
        return self.evaluate("[...document.querySelectorAll('.tile .who')].map((e) => e.textContent)")

    def status_text(self) -> str:
        """The messages that the page shows now."""
        return self.evaluate(
            "[...document.querySelectorAll('#status, #problem, #presence-text')].filter((e) => !e.hidden)"
            ".map((e) => e.textContent).filter(Boolean).join(' | ')"
        )

    def shows(self, *texts: str, seconds: float = 8) -> None:
        """Waits for messages."""
        wait_until(
            lambda: all(text in self.status_text() for text in texts), f"{texts}", seconds, describe=self.status_text
        )

    def sees(self, count: int, seconds: float = 10) -> list[dict[str, Any]]:
        """Waits until exactly `count` others are shown with a decoded picture; their numbers.

        Chromium may decode a frame before the picture's element can show it, which then waits for the next one.
        """

        def look() -> list[dict[str, Any]] | None:
            others = list(self.evaluate("window.nagare.sample()")["watch"].values())
            is_shown = all((one.get("frames") or 0) > 0 and one["hasPicture"] for one in others)
            return others if len(others) == count and is_shown else None

        return wait_until(look, f"a picture of {count} other(s)", seconds, describe=self.stats)
