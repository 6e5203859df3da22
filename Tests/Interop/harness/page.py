"""The operations of the tests on a page in any browser. A browser provides `goto`, `evaluate`, `click` and `close`.

The page watches and publishes with `whip/sessions.js`, a client of WHIP and WHEP.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Callable, TypeVar

from .waiting import wait_until

AnyPage = TypeVar("AnyPage", bound="Page")


FOLDER = Path(__file__).parent / "whip"
BODY = json.dumps((FOLDER / "body.html").read_text())
SESSIONS = (FOLDER / "sessions.js").read_text().replace("= BODY", f"= {BODY}", 1)


class Page(ABC):
    """One tab."""

    origin: str

    @abstractmethod
    def goto(self, url: str) -> None:
        """Loads `url` and returns when it is loaded."""

    @abstractmethod
    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression as JSON; a promise is awaited."""

    @abstractmethod
    def click(self, selector: str) -> None:
        """Clicks the middle of an element, as a user does."""

    @abstractmethod
    def close(self) -> None:
        """Closes the tab, as a user does."""

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls a JavaScript function (an expression) with JSON arguments."""
        return self.evaluate(f"({function})({', '.join(json.dumps(one) for one in arguments)})")

    def open_sessions(self) -> None:
        """Opens a page of the node's origin, a text without a script of its own, for WHIP and WHEP sessions."""
        self.goto(f"{self.origin}/nagare.d.ts")
        self.evaluate(SESSIONS)

    def open_channel(self, channel: str) -> None:
        """Opens a page that watches `channel`."""
        self.open_sessions()
        self.call("(channel) => { window.nagare.watch(channel); }", channel)
        wait_until(
            lambda: self.stats()["events"] == "open", "the page's event stream", 5, describe=lambda: self.status_text()
        )

    def choose(self, selector: str, value: str) -> None:
        """Selects an option of a select element."""
        self.call(
            "(selector, value) => { const e = document.querySelector(selector); e.value = value;"
            " e.dispatchEvent(new Event('change', { bubbles: true })); }",
            selector,
            value,
        )

    def publish(self, codec: str = "", source: str = "camera", size: str = "640x360", simulcast: bool = False) -> float:
        """Fills in the form, presses Publish, and returns the wall-clock time of the press, in seconds."""
        self.choose("#codec", codec)
        self.choose("#size", size)
        self.call("(value) => { document.querySelector(`input[value=${value}]`).checked = true; }", source)
        self.call("(value) => { document.querySelector('#simulcast').checked = value; }", simulcast)
        pressed = time.time()
        self.click("#publish")
        return pressed

    def stop_publishing(self) -> None:
        """Presses Stop."""
        self.click("#publish")

    def stats(self) -> dict[str, Any]:
        """The page's latest numbers, at most a second old."""
        return self.evaluate("window.nagare.stats()")

    def sample(self) -> dict[str, Any]:
        """The page's numbers, measured now."""
        return self.evaluate("window.nagare.sample()")

    def watched(self, count: int = 1, seconds: float = 10) -> list[dict[str, Any]]:
        """Waits until exactly `count` others are shown with a decoded picture; their numbers, in the page's order."""

        def look() -> list[dict[str, Any]] | None:
            others = list(self.sample()["watch"].values())
            return others if len(others) == count and all((one.get("frames") or 0) > 0 for one in others) else None

        return wait_until(
            look, f"a picture of {count} other(s)", seconds, describe=lambda: (self.status_text(), self.stats())
        )

    def other(self) -> dict[str, Any]:
        """The numbers of the only other participant, measured now."""
        (only,) = self.sample()["watch"].values()
        return only

    def first_frame_at(self) -> int:
        """When the first frame of the only other participant was on the screen, in milliseconds of the browser's clock.

        Waits for that frame: it may be decoded and counted (`watched`) before it is presented.
        """
        return wait_until(lambda: self.other().get("firstFrameAt"), "a frame on the screen", 5, describe=self.stats)

    def published(self) -> dict[str, Any]:
        """The numbers of the page's own publication, measured now."""
        return self.sample()["publish"]

    def status_text(self) -> str:
        """The text that the page shows now."""
        return self.evaluate(
            "[...document.querySelectorAll('#status, #problem, #presence-text, .veil')]"
            ".filter((e) => !e.hidden).map((e) => e.textContent).filter(Boolean).join(' | ')"
        )


def watch_and_publish(
    open_page: Callable[[str], AnyPage], origin: str, channel: str, **publication: Any
) -> tuple[AnyPage, AnyPage]:
    """A page that watches and one that publishes, once the first shows a picture of the second."""
    viewer, publisher = open_page(origin), open_page(origin)
    for page in (viewer, publisher):
        page.open_channel(channel)
    publisher.publish(**publication)
    viewer.watched()
    return viewer, publisher
