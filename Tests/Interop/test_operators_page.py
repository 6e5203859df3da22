"""The operators' page: channels, members, and what became of each connection."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Callable

import httpx

from harness.accessibility import violations
from harness.chromium import Chromium, ChromiumPage
from harness.load import load_command
from harness.node import ENVIRONMENT, Node
from harness.waiting import wait_until

TOKEN = "operators-0123456789"
# Each with the light and the dark colours.
VIEWPORTS = {"desktop": (1280, 800), "phone": (390, 844), "landscape": (844, 390)}
# A picture of another width has text of another size.
CHARTS_FIT = """[...document.querySelectorAll('svg.chart')].every(
  (one) => one.viewBox.baseVal.width === Math.min(Math.max(innerWidth - 60, 300), 1080))"""


def connections(node: Node, **query: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{node.admin}/v1/connections", params=query, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200, answer.text
    return answer.json()["connections"]


def test_operators_see_why_a_call_was_bad(
    own_node: Callable[..., Node], chromium: Chromium, artifacts: Path, tmp_path: Path
) -> None:
    options = ("--admin-token", TOKEN, "--state-dir", str(tmp_path))
    node = own_node(*options)
    load = subprocess.Popen(
        load_command(
            node, "--subscribers", "1", "--audio", "--video-kbps", "800", "--duration", "140",
            "--viewer-link", "delay=40ms,loss=8%",
        ),
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    page = chromium.page(node.admin)
    tab = page.tab
    try:
        # Two samples, and a loss that the client reported.
        wait_until(lambda: any(one["sent_loss"] > 0.02 for one in connections(node, channel="load")), "loss", 40)
        tab.goto(f"{node.admin}/")
        log_in(page)
        tab.click("#view a:text('load')")
        wait_until(lambda: "recvonly" in tab.inner_text("#view"), "the members", 10, describe=lambda: tab.inner_text("body"))
        viewer = next(one["connection_id"] for one in connections(node, channel="load") if one["role"] == "recvonly")
        tab.click(f"#view table:first-of-type a[href='#/connections/{viewer}']")
        wait_until(lambda: "packets to the client were lost" in tab.inner_text("#view"), "the finding", 10,
                   describe=lambda: tab.inner_text("body"))  # fmt: skip
        assert tab.locator("#view svg polyline").count() >= 4
        assert tab.locator("#view svg rect.phase").count() >= 5
    finally:
        load.terminate()
        load.wait(20)
    # The history outlives the connection, and the node.
    wait_until(lambda: not connections(node, outcome="live"), "the end of the connections", 30)
    ports = node.ports
    node.close()
    node = own_node(*options, ports=ports)
    assert {one["outcome"] for one in connections(node)} == {"ended"}
    tab.reload()
    wait_until(lambda: "packets to the client were lost" in tab.inner_text("#view"), "the finding", 10)
    # What has ended does not change, so its text can be selected for longer than the interval of other views.
    tab.evaluate("document.querySelector('#view h1').id = 'mark'")
    tab.wait_for_timeout(3_500)
    assert tab.locator("#mark").count() == 1
    for name in ("", "#/connections", "#/channels/load", f"#/connections/{viewer}"):
        tab.goto(f"{node.admin}/ui/{name}")
        tab.wait_for_selector("#view h1")
        if name in ("#/connections", "#/channels/load"):
            assert "Connections of the last day" in tab.inner_text("#view")
        look(tab, artifacts, f"operators-{name.strip('#/').split('/')[0] or 'start'}-{'one' if viewer in name else 'all'}")
    assert not page.errors
    page.close()


def log_in(page: ChromiumPage) -> None:
    page.tab.fill("#token", "wrong")
    page.tab.press("#token", "Enter")
    wait_until(lambda: "not the admin token" in page.tab.inner_text("#problem"), "the refusal", 5)
    assert violations(page.tab) == []
    page.tab.fill("#token", TOKEN)
    page.tab.press("#token", "Enter")
    wait_until(lambda: "Channels with members" in page.tab.inner_text("#view"), "the channels", 5)


def look(tab: Any, artifacts: Path, name: str) -> None:
    """Takes pictures in each size, and checks that nothing is cut off or hard to use."""
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        for size, (width, height) in VIEWPORTS.items():
            tab.set_viewport_size({"width": width, "height": height})
            wait_until(lambda: tab.evaluate(CHARTS_FIT), "pictures drawn for the width", 5)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, f"{name} {size}"
            tab.screenshot(path=artifacts / f"{name}-{size}-{scheme}.png", full_page=True)
        assert violations(tab) == [], f"{name} {scheme}"
