"""Firefox, headless, controlled by WebDriver BiDi over its own debugging port, without a driver program."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from .clocks import ClockMissed
from .page import Page

EXECUTABLE = os.environ.get("NAGARE_FIREFOX", "/usr/bin/firefox-esr")

PREFERENCES: dict[str, Any] = {
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
    "media.autoplay.default": 0,
    "media.autoplay.blocking_policy": 0,
    "media.peerconnection.ice.loopback": True,
    "media.peerconnection.ice.obfuscate_host_addresses": False,
    "permissions.default.camera": 1,
    "permissions.default.microphone": 1,
    "media.getusermedia.insecure.enabled": True,
    "media.devices.insecure.enabled": True,
    # No downloads and no dialogs at the start.
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "browser.aboutwelcome.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "extensions.getAddons.cache.enabled": False,
    "media.gmp-manager.updateEnabled": False,
}

COMMAND_SECONDS = 30


class BiDiError(Exception):
    """The browser answered a command with an error."""


class Firefox:
    """One browser process with a profile of its own, which trusts the certificates of `authority`."""

    def __init__(self, preferences: dict[str, Any] | None = None, authority: Path | None = None) -> None:
        self.profile = Path(tempfile.mkdtemp(prefix="nagare-firefox-"))
        if authority:
            self._trust(authority)
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});"
            for name, value in {**PREFERENCES, **(preferences or {})}.items()
        ]
        (self.profile / "user.js").write_text("\n".join(lines) + "\n")
        self.log = (self.profile / "stderr.log").open("w+b")
        self.process = subprocess.Popen(
            [EXECUTABLE, "--headless", "--no-remote", "--profile", str(self.profile), "--remote-debugging-port", "0"],
            stdout=subprocess.DEVNULL,
            stderr=self.log,
            env={**os.environ, "MOZ_HEADLESS": "1", "HOME": str(self.profile)},
        )
        self.socket = connect(f"{self._address()}/session", max_size=None, open_timeout=COMMAND_SECONDS)
        self.number = 0
        self.answers: "queue.Queue[dict[str, Any]]" = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.send("session.new", {"capabilities": {}})

    def _trust(self, authority: Path) -> None:
        database = ("-d", f"sql:{self.profile}")
        added = ("-A", *database, "-n", "the test's authority", "-t", "C,,", "-i", str(authority))
        for command in (("-N", *database, "--empty-password"), added):
            ended = subprocess.run(["certutil", *command], capture_output=True, text=True, timeout=20, check=False)
            assert ended.returncode == 0, f"certutil {command[0]}: {ended.stderr}"

    def _address(self) -> str:
        """Waits for the log line with the browser's address."""
        deadline = time.monotonic() + COMMAND_SECONDS
        while time.monotonic() < deadline:
            log = (self.profile / "stderr.log").read_text(errors="replace")
            found = re.search(r"WebDriver BiDi listening on (ws://\S+)", log)
            if found:
                return found.group(1)
            if self.process.poll() is not None:
                raise AssertionError(f"Firefox ended during its start ({self.process.returncode}): {log[-500:]}")
            time.sleep(0.1)
        raise ClockMissed(f"Firefox did not start within {COMMAND_SECONDS} s")

    def _listen(self) -> None:
        try:
            for message in self.socket:
                parsed = json.loads(message)
                if "id" in parsed and parsed["id"] is not None:
                    self.answers.put(parsed)
        except Exception:  # The socket ends with the browser.
            pass

    def send(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Sends one command and returns its result."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        try:
            answer = self.answers.get(timeout=COMMAND_SECONDS)
        except queue.Empty:
            raise ClockMissed(f"Firefox did not answer {method} within {COMMAND_SECONDS} s") from None
        if answer.get("type") == "error" or answer["id"] != self.number:
            raise BiDiError(f"{method}: {answer.get('error')}: {answer.get('message')}")
        return answer["result"]

    def page(self, origin: str) -> "FirefoxPage":
        return FirefoxPage(self, self.send("browsingContext.create", {"type": "window"})["context"], origin)

    def close(self) -> None:
        try:
            self.send("browser.close", {})
        except Exception:  # It may close the socket before the answer.
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)


class FirefoxPage(Page):
    """One window."""

    def __init__(self, browser: Firefox, context: str, origin: str) -> None:
        self.browser = browser
        self.context = context
        self.origin = origin

    def goto(self, url: str) -> None:
        self.browser.send("browsingContext.navigate", {"context": self.context, "url": url, "wait": "complete"})

    def evaluate(self, expression: str) -> Any:
        answer = self.browser.send(
            "script.evaluate",
            {
                "expression": f"(async () => JSON.stringify((await ({expression})) ?? null))()",
                "target": {"context": self.context},
                "awaitPromise": True,
                "userActivation": True,
            },
        )
        if answer["type"] == "exception":
            raise BiDiError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def click(self, selector: str) -> None:
        found = self.browser.send(
            "browsingContext.locateNodes",
            {"context": self.context, "locator": {"type": "css", "value": selector}, "maxNodeCount": 1},
        )["nodes"]
        if not found:
            raise AssertionError(f"no element matches {selector}")
        self.call("(selector) => document.querySelector(selector).scrollIntoView({ block: 'center' })", selector)
        origin = {"type": "element", "element": {"sharedId": found[0]["sharedId"]}}
        self.browser.send(
            "input.performActions",
            {
                "context": self.context,
                "actions": [
                    {
                        "type": "pointer",
                        "id": "mouse",
                        "actions": [
                            {"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
                            {"type": "pointerDown", "button": 0},
                            {"type": "pointerUp", "button": 0},
                        ],
                    }
                ],
            },
        )

    def close(self) -> None:
        self.browser.send("browsingContext.close", {"context": self.context})
