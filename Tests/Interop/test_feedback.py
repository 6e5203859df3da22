"""A viewer that reports by RFC 8888 instead of transport-cc: Chromium with a field trial of libwebrtc."""

from __future__ import annotations

from typing import Any, Iterator

import pytest
from playwright.sync_api import Playwright

from harness.chromium import FLAGS, Chromium, ChromiumPage
from harness.node import Node
from harness.waiting import wait_until

TRIAL = "--force-fieldtrials=WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/"


@pytest.fixture(scope="module")
def reporter(playwright: Playwright) -> Iterator[Chromium]:
    browser = Chromium(playwright, [*FLAGS, TRIAL])
    yield browser
    browser.close()


def sending(viewer: ChromiumPage) -> dict[str, Any]:
    """The node's own part of the statistics of the viewer's session."""
    return viewer.evaluate("Object.values(window.nagare.stats().watch)[0]?.sending ?? {}")


def test_a_viewer_reports_by_rfc_8888(reporter: Chromium, chromium: Chromium, node: Node) -> None:
    publisher, plain, viewer = chromium.page(node.origin), chromium.page(node.origin), reporter.page(node.origin)
    for page in (publisher, plain, viewer):
        page.open_channel("feedback")
    publisher.publish(codec="VP8", size="1280x720", simulcast=True)
    viewer.watched(seconds=20)
    wait_until(lambda: sending(viewer).get("feedback") == "ccfb", "reports", 10, describe=lambda: str(sending(viewer)))
    # The start rate is 600 kbit/s.
    wait_until(
        lambda: sending(viewer)["limit"] == "demand" and sending(viewer)["target_bits_per_second"] > 700_000,
        "a target for all that is wanted",
        20,
        describe=lambda: str(sending(viewer)),
    )
    # The same page without the trial, and the publisher, stay with transport-cc.
    plain.watched(seconds=20)
    wait_until(
        lambda: sending(plain).get("feedback") == "transport-cc", "reports", 10, describe=lambda: str(sending(plain))
    )
    for page in (publisher, plain, viewer):
        page.close()
