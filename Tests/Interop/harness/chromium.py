"""Debian's Chromium, headless, driven by Playwright."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Playwright
from playwright.sync_api import Page as Tab

from .page import Page

EXECUTABLE = os.environ.get("NAGARE_CHROMIUM", "/usr/bin/chromium")

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--use-fake-device-for-media-stream=fps=30",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    # Timers run at full speed in hidden windows and background tabs.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
]


class ChromiumPage(Page):
    """A tab in its own browser context, with separate storage."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.origin = origin
        self.context = context
        self.tab: Tab = context.new_page()
        self.errors: list[str] = []
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("console", self._note)

    def _note(self, message: Any) -> None:
        if message.type == "error" and "Content Security Policy" in message.text:
            self.errors.append(message.text)

    def goto(self, url: str) -> None:
        self.tab.goto(url, wait_until="load")

    def evaluate(self, expression: str) -> Any:
        return self.tab.evaluate(f"async () => {expression}" if not expression.startswith("{") else expression)

    def click(self, selector: str) -> None:
        self.tab.click(selector, timeout=5000)

    def close(self) -> None:
        self.tab.close(run_before_unload=False)
        self.context.close()


class Chromium:
    """One browser process; the pages share no state."""

    def __init__(
        self, playwright: Playwright, flags: list[str] | None = None, executable: str | Path = EXECUTABLE
    ) -> None:
        self.browser: Browser = playwright.chromium.launch(
            executable_path=executable,
            args=FLAGS if flags is None else flags,
            # Playwright mutes audio by default. Chromium does not decode muted audio, and its energy stays 0.
            ignore_default_args=["--mute-audio", "--headless"],
        )

    def page(self, origin: str, **options: Any) -> ChromiumPage:
        return ChromiumPage(self.browser.new_context(**options), origin)

    def close(self) -> None:
        self.browser.close()
