"""The operators' page: channels, members, and what became of each connection."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Callable

import httpx

from harness.accessibility import violations
from harness.chromium import Chromium, ChromiumPage
from harness.load import load_command
from harness.node import BINARY, ENVIRONMENT, Node
from harness.waiting import wait_until

TOKEN = "operators-0123456789"
READ_TOKEN = "readers-0123456789"
KEY = ("--jwt-key", "hs256:0123456789abcdef0123456789abcdef")
LONG = "x" * 128
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
        wait_until(lambda: "audience" in tab.inner_text("#view"), "the members", 10, describe=lambda: tab.inner_text("body"))
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


def publish(node: Node, channel: str, user: str) -> subprocess.Popen[bytes]:
    """A publisher with a token for a user."""
    command = [str(BINARY), "token", *KEY, "--channel", channel, "--client-id", user]
    token = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout.strip()
    options = ("--publishers", "1", "--subscribers", "0", "--audio", "--video-kbps", "100", "--duration", "200", "--token", token)
    return subprocess.Popen(
        load_command(node, *options, channel=channel), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def test_operators_act_on_members_and_readers_do_not(
    own_node: Callable[..., Node], chromium: Chromium, artifacts: Path
) -> None:
    node = own_node("--admin-token", TOKEN, "--admin-read-token", READ_TOKEN, *KEY)
    publishers = [publish(node, "lobby", user) for user in (LONG, "bob")]
    try:
        page = chromium.page(node.admin)
        tab = page.tab
        tab.on("dialog", lambda dialog: dialog.accept())

        def enter(token: str) -> None:
            tab.goto(f"{node.admin}/ui/")
            tab.evaluate("sessionStorage.clear()")
            tab.goto(f"{node.admin}/ui/#/channels/lobby")
            tab.reload()
            tab.fill("#token", token)
            tab.press("#token", "Enter")
            wait_until(lambda: LONG in tab.inner_text("#view"), "the members", 10, describe=lambda: tab.inner_text("body"))

        enter(READ_TOKEN)
        assert tab.locator("#view button").count() == 0
        assert "host" in tab.inner_text("#view table:first-of-type")
        enter(TOKEN)
        look(tab, artifacts, "operators-actions")
        tab.set_viewport_size({"width": 1280, "height": 800})
        row = tab.locator("#view table:first-of-type tr", has_text="bob")
        row.get_by_role("button", name="Stop forwarding").click()
        wait_until(lambda: "audio and video muted" in row.inner_text(), "the mute", 10, describe=row.inner_text)
        row.get_by_role("button", name="Forward the media again").click()
        wait_until(lambda: "muted" not in row.inner_text(), "the end of the mute", 10, describe=row.inner_text)
        # The channel of WHIP clients has no roles, which the operator is told.
        row.get_by_role("button", name="Let it only receive").click()
        wait_until(lambda: "interactive" in tab.inner_text("#problem"), "the refusal", 10)
        tab.check("#bad-only")
        wait_until(lambda: "No connection is bad now." in tab.inner_text("#view"), "the filter", 10)
        tab.uncheck("#bad-only")
        wait_until(lambda: row.count() == 1, "all members", 10)
        row.get_by_role("button", name="Remove").click()
        wait_until(lambda: row.count() == 0, "the end of the member", 10, describe=lambda: tab.inner_text("body"))
        wait_until(lambda: "What the words" in tab.inner_text("#view"), "the legend", 10)
        tab.click("#view details.legend summary")
        assert "An operator removed the user" in tab.inner_text("#view details.legend")
        page.close()
    finally:
        for publisher in publishers:
            publisher.terminate()
            publisher.wait(20)


def test_the_verdict_says_that_nothing_arrived_only_when_nothing_did(
    own_node: Callable[..., Node], chromium: Chromium
) -> None:
    node = own_node("--admin-token", TOKEN)
    page = chromium.page(node.admin)
    page.tab.goto(f"{node.admin}/ui/")
    columns = ("received_bps", "sent_bps", "sent_loss", "received_loss", "uplink", "downlink", "round_trip_ms", "paused", "reduced",
               "freezes", "frozen_ms")  # fmt: skip

    def found(role: str, **sample: float) -> str:
        timeline = {name: [sample.get(name, 0)] for name in columns} | {"at_s": [5], "limit": ["demand"]}
        connection = {"role": role, "outcome": "ended", "reason": "LEFT", "events": [], "setup_ms": 1, "timeline": timeline,
                      "without_picture_ms": sample.get("without", 0)}  # fmt: skip
        module = "import('/ui/verdict.js').then((module) => module.findings(connection).join(' '))"
        return page.tab.evaluate(f"(connection) => {module}", connection)

    assert "Nothing arrived from the client" in found("sendonly", uplink=6)
    assert "Nothing arrived" not in found("sendonly", uplink=6, received_bps=20_000)
    assert "Nothing arrived" not in found("recvonly", uplink=6, downlink=1), "it sends nothing"
    assert "Nothing arrived at the client" in found("recvonly", downlink=6, sent_bps=1e6, sent_loss=1)
    assert "Nothing arrived" not in found("recvonly", downlink=6, sent_bps=1e6, sent_loss=0.1)
    assert "Nothing arrived" not in found("sendonly", downlink=6, received_bps=20_000)
    assert found("sendrecv", uplink=1, downlink=1, received_bps=1, sent_bps=1) == ""
    assert "no moving picture for 0:07" in found("recvonly", downlink=1, sent_bps=1, without=7_000)
    page.close()
