"""The built-in page: layout, accessibility, error messages and reconnection."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Callable

import pytest
from playwright.sync_api import Playwright

from harness.chromium import FLAGS, Chromium, ChromiumPage
from harness.node import Node
from harness.page import watch_and_publish
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]
VIEWPORTS = {"phone": {"width": 360, "height": 740}, "desktop": {"width": 1280, "height": 860}}


def wait_for_text(page: ChromiumPage, *texts: str, seconds: float = 8) -> None:
    wait_until(
        lambda: all(text in page.status_text() for text in texts), f"the texts {texts}", seconds, describe=page.status_text
    )


@pytest.mark.parametrize("size", VIEWPORTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_screen(
    open_page: OpenPage, node: Node, channel: str, artifacts: Path, size: str, scheme: str
) -> None:
    page = open_page(node.origin, viewport=VIEWPORTS[size], color_scheme=scheme)
    overflow = "document.documentElement.scrollWidth - window.innerWidth"
    page.goto(node.origin + "/")
    assert page.evaluate(overflow) <= 0, "the empty page scrolls sideways"
    page.tab.screenshot(path=artifacts / f"{size}-{scheme}-empty.png", full_page=True)
    other = open_page(node.origin)
    for one in (page, other):
        one.open_channel(channel)
    other.publish(source="synthetic")
    page.publish(source="synthetic", size="640x360")
    page.watched()
    time.sleep(3)
    assert page.evaluate(overflow) <= 0, "the page with two pictures scrolls sideways"
    page.tab.screenshot(path=artifacts / f"{size}-{scheme}-live.png", full_page=True)
    for number in ("bitrate", "rtt", "fps", "size", "codec"):
        for cell in page.evaluate(
            f"[...document.querySelectorAll('.tile [data-number={number}]')].map((e) => e.textContent)"
        ):
            assert cell != "–", f"a tile shows no {number}"


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(open_page: OpenPage, node: Node, channel: str) -> None:
    page = open_page(node.origin)
    page.goto(f"{node.origin}/?channel={channel}")
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, button')]"
        ".filter((e) => !e.closest('[hidden]'))"
        ".filter((e) => !(e.labels?.length || e.textContent.trim() || e.getAttribute('aria-label')))"
        ".map((e) => e.outerHTML)"
    )
    assert not nameless
    reached = set()
    for _ in range(20):
        page.tab.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
        if "publish" in reached:
            break
    assert {"channel", "watch", "codec", "size", "publish"} <= reached
    page.tab.keyboard.press("Enter")
    wait_for_text(page, "You are live")
    assert page.evaluate("document.querySelector('#status').getAttribute('aria-live')") == "polite"


def test_the_channel_is_remembered(open_page: OpenPage, node: Node, channel: str) -> None:
    page = open_page(node.origin)
    page.goto(node.origin + "/")
    page.tab.fill("#channel", channel)
    page.click("#watch")
    wait_until(lambda: page.stats()["events"] == "open", "the event stream", 5, describe=page.status_text)
    assert f"channel={channel}" in page.evaluate("location.href")
    page.goto(node.origin + "/")
    assert page.evaluate("document.querySelector('#channel').value") == channel


def test_a_wrong_token_shows_an_error_and_the_right_one_works(
    open_page: OpenPage, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node("--token", "open-sesame")
    page = open_page(node.origin)
    page.goto(f"{node.origin}/?channel={channel}")
    wait_for_text(page, "asks for an access token")
    page.click("summary")
    page.tab.fill("#token", "open-barley")
    page.click("#publish")
    wait_for_text(page, "did not accept the access token")
    assert page.evaluate("document.querySelector('#publish').textContent") == "Publish"
    page.tab.fill("#token", "open-sesame")
    page.click("#publish")
    wait_for_text(page, "You are live")
    viewer = open_page(node.origin)
    viewer.goto(node.origin + "/")
    viewer.click("summary")
    viewer.tab.fill("#token", "open-sesame")
    viewer.tab.fill("#channel", channel)
    viewer.click("#watch")
    viewer.watched()


def test_the_page_reconnects_to_a_restarted_node(open_page: OpenPage, own_node: Callable[..., Node], channel: str) -> None:
    node = own_node()
    viewer, publisher = watch_and_publish(open_page, node.origin, channel, codec="VP8")
    former = set(viewer.stats()["watch"])
    node.close()
    wait_for_text(publisher, "does not answer", "Trying again", seconds=20)
    own_node(ports=node.ports)
    wait_until(
        lambda: (publisher.stats()["publish"] or {}).get("state") == "live",
        "the publisher's return",
        30,
        describe=publisher.status_text,
    )
    # Each page reconnects after its own backoff, and shows the last picture until then.
    wait_until(
        lambda: set(viewer.stats()["watch"]).isdisjoint(former) and viewer.stats()["watch"],
        "the viewer's return",
        20,
        describe=viewer.stats,
    )
    before = viewer.watched(seconds=20)[0]["frames"]
    wait_until(lambda: viewer.watched()[0]["frames"] > before + 20, "a picture that moves", 5, describe=viewer.stats)


def test_an_unreachable_media_port_shows_an_error(
    open_page: OpenPage, own_node: Callable[..., Node], channel: str
) -> None:
    # A loopback address that the node does not listen on.
    node = own_node("--announce", "127.99.0.1")
    page = open_page(node.origin)
    page.open_channel(channel)
    page.publish()
    wait_for_text(page, "UDP media port", "Trying again", seconds=25)


@pytest.fixture
def strict_chromium(playwright: Playwright):
    """Starts Chromium with some of the usual flags removed, so that it has no camera or refuses access to it."""
    browsers: list[Chromium] = []

    def start(*left_out: str, added: tuple[str, ...] = ()) -> Chromium:
        browsers.append(Chromium(playwright, [one for one in FLAGS if not one.startswith(left_out)] + list(added)))
        return browsers[-1]

    yield start
    for one in browsers:
        one.close()


def test_a_refused_permission_offers_the_synthetic_picture(
    strict_chromium: Callable[..., Chromium], node: Node, channel: str
) -> None:
    page = strict_chromium("--use-fake-ui").page(node.origin)
    page.open_channel(channel)
    page.publish(source="camera")
    wait_for_text(page, "Permission for camera and microphone was refused")
    page.click("#remedy")
    wait_for_text(page, "You are live")
    assert page.errors == []


def test_without_a_camera_the_synthetic_picture_is_chosen(
    strict_chromium: Callable[..., Chromium], node: Node, channel: str
) -> None:
    page = strict_chromium("--use-fake").page(node.origin)
    page.open_channel(channel)
    chosen = "document.querySelector('input[name=source]:checked').value"
    wait_until(lambda: page.evaluate(chosen) == "synthetic", "the choice of the synthetic picture", 3)
    page.click("#publish")
    wait_for_text(page, "You are live")


def test_a_button_unmutes_where_autoplay_is_blocked(
    strict_chromium: Callable[..., Chromium], open_page: OpenPage, node: Node, channel: str
) -> None:
    publisher = open_page(node.origin)
    publisher.goto(f"{node.origin}/?channel={channel}")
    publisher.publish(source="synthetic")
    browser = strict_chromium("--autoplay-policy", added=("--autoplay-policy=user-gesture-required",))
    viewer = browser.page(node.origin)
    # The page reports the button by a console message: `evaluate` would count as user activation.
    viewer.tab.add_init_script(
        "addEventListener('DOMContentLoaded', () => { const button = document.querySelector('#unmute');"
        " new MutationObserver(() => { if (!button.hidden) console.log('button shown'); })"
        ".observe(button, { attributes: true }); });"
    )
    with viewer.tab.expect_console_message(lambda message: message.text == "button shown", timeout=10_000):
        viewer.goto(f"{node.origin}/?channel={channel}")
    viewer.watched()
    muted = "document.querySelector('.tile video').muted"
    assert viewer.evaluate(muted) is True
    viewer.click("#unmute")
    assert viewer.evaluate(muted) is False
    assert viewer.evaluate("document.querySelector('.tile video').paused") is False


def test_a_codec_that_the_browser_cannot_play_is_named_on_the_tile(
    open_page: OpenPage, node: Node, channel: str
) -> None:
    viewer, publisher = open_page(node.origin), open_page(node.origin)
    for page in (viewer, publisher):
        page.open_channel(channel)
    # A browser that decodes VP8 only.
    viewer.evaluate(
        "(() => { const add = RTCPeerConnection.prototype.addTransceiver;"
        " RTCPeerConnection.prototype.addTransceiver = function (kind, options) {"
        "   const one = add.call(this, kind, options);"
        "   if (kind === 'video') one.setCodecPreferences(RTCRtpReceiver.getCapabilities('video').codecs"
        "     .filter((codec) => codec.mimeType === 'video/VP8'));"
        "   return one; }; })()"
    )
    publisher.publish("VP9", source="synthetic")
    wait_for_text(viewer, "cannot play VP9", seconds=15)
    publisher.stop_publishing()
    wait_until(lambda: "cannot play" not in viewer.status_text(), "the end of the tile", 10, describe=viewer.status_text)
    publisher.publish("VP8", source="synthetic")
    viewer.watched()
    assert "cannot play" not in viewer.status_text()


def test_a_tile_says_why_its_picture_is_small(open_page: OpenPage, node: Node, channel: str) -> None:
    viewer, other, publisher = (open_page(node.origin) for _ in range(3))
    rates = {"target_bits_per_second": 800_000, "demand_bits_per_second": 2_500_000}
    answer = {"sending": {"state": "steady", "limit": "delay", **rates}}
    viewer.tab.route("**/sessions/*/statistics", lambda route: route.fulfill(json=answer))
    for page in (viewer, other, publisher):
        page.open_channel(channel)
    publisher.publish(source="synthetic")
    viewer.watched()
    why = "document.querySelector('.tile .why:not([hidden])')?.textContent ?? ''"
    sentence = "Your network carries 0.8 of 2.5 Mbit/s."
    wait_until(lambda: viewer.evaluate(why) == sentence, "the sentence", 10, describe=viewer.status_text)
    answer["sending"]["limit"] = "demand"
    wait_until(lambda: viewer.evaluate(why) == "", "the end of the sentence", 15, describe=viewer.status_text)
    other.watched()
    state = "Object.values(window.nagare.stats().watch)[0]?.sending?.state ?? ''"
    wait_until(lambda: other.evaluate(state) != "", "the node's own answer", 10, describe=other.status_text)
