"""The built-in page before a call: the own picture, names of channels, invitations, failures in words, languages."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from typing import Any, Callable

import pytest
from playwright.sync_api import Playwright

from harness.accessibility import violations
from harness.builtin import BuiltInPage
from harness.chromium import FLAGS, Chromium, ChromiumPage
from harness.node import Node
from harness.waiting import wait_until

OpenBuiltIn = Callable[..., BuiltInPage]
SECRET = "0123456789abcdef0123456789abcdef"
KEY = ("--jwt-key", f"hs256:{SECRET}")
PREVIEW = "document.querySelector('#preview-video').srcObject?.getVideoTracks()[0]"
FOCUS = "document.activeElement.id"


@pytest.fixture
def open_builtin(open_page: Callable[..., ChromiumPage], node: Node) -> OpenBuiltIn:
    def make(origin: str | None = None, **options: Any) -> BuiltInPage:
        return BuiltInPage(open_page(origin or node.origin, **options))

    return make


@pytest.fixture
def start_chromium(playwright: Playwright):
    """Starts Chromium with some of the usual flags removed."""
    browsers: list[Chromium] = []

    def start(*left_out: str) -> Chromium:
        browsers.append(Chromium(playwright, [one for one in FLAGS if not one.startswith(left_out)]))
        return browsers[-1]

    yield start
    for one in browsers:
        one.close()


def view(page: BuiltInPage) -> str:
    return page.evaluate("document.body.dataset.view")


def has_preview(page: BuiltInPage) -> None:
    wait_until(lambda: page.evaluate("document.querySelector('#preview-video').videoWidth > 0"), "the own picture", 8)


# The own picture and sound.


def test_people_see_and_hear_themselves_before_they_join(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    page.open(channel)
    has_preview(page)
    level = "Number(document.querySelector('#meter').ariaValueNow)"
    page.tab.fill("#name", "Hanako Yamada")
    wait_until(lambda: page.evaluate(level) > 0, "the sound of the microphone", 8)
    assert page.evaluate("document.querySelector('#microphone').options.length") > 0
    shown = page.evaluate_handle(PREVIEW)
    page.click("#join")
    wait_until(lambda: page.evaluate("window.nagare.channel?.cameraTrack?.readyState") == "live", "the camera", 8)
    assert shown.evaluate("(track) => track.readyState") == "ended", "the camera is open twice"
    sent = page.evaluate_handle("window.nagare.channel.cameraTrack")
    page.click("#leave")
    assert sent.evaluate("(track) => track.readyState") == "ended", "the camera is still on"
    assert page.evaluate(f"{PREVIEW} ?? null") is None, "the camera is on again"
    # The picture returns when it is asked for.
    page.click("#preview-start")
    has_preview(page)


def test_what_is_turned_off_before_joining_is_not_sent(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    page.open(channel)
    has_preview(page)
    assert page.tab.get_attribute("#preview-camera", "aria-label") == "Turn camera off"
    camera = page.evaluate_handle(PREVIEW)
    page.click("#preview-camera")
    assert camera.evaluate("(track) => track.readyState") == "ended", "the camera's light is still on"
    assert page.tab.get_attribute("#preview-camera", "aria-label") == "Turn camera on"
    assert page.text("#preview-note") == "Your camera is off"
    page.tab.fill("#name", "Hanako Yamada")
    assert page.text("#preview-initials") == "HY"
    page.evaluate(
        "(() => { window.opened = []; const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);"
        " navigator.mediaDevices.getUserMedia = (what) => {"
        " window.opened.push(Object.keys(what)); return open(what); }; })()"
    )
    page.click("#join")
    muted = "['audio', 'video'].map((kind) => window.nagare.channel?.isMuted(kind))"
    wait_until(lambda: page.evaluate(muted) == [False, True], "the microphone alone", 8, lambda: page.evaluate(muted))
    assert page.evaluate("window.opened") == [["audio"]]
    page.click("#camera-off")
    wait_until(lambda: page.evaluate(muted) == [False, False], "the camera", 8, lambda: page.evaluate(muted))
    # The page remembers it.
    page.open(channel)
    wait_until(lambda: page.text("#preview-note") == "Your camera is off", "the camera that stays off", 5)


def test_nothing_is_opened_before_it_is_asked_for(
    start_chromium: Callable[..., Chromium], node: Node, channel: str
) -> None:
    page = BuiltInPage(start_chromium("--use-fake-ui").page(node.origin))
    page.tab.add_init_script(
        "window.asked = 0; const open = navigator.mediaDevices?.getUserMedia;"
        " if (open) navigator.mediaDevices.getUserMedia = function (...all) {"
        " window.asked += 1; return open.apply(this, all); };"
    )
    page.open()
    wait_until(lambda: page.tab.is_visible("#preview-start"), "the button that opens the camera", 5)
    assert page.evaluate("window.asked") == 0
    # Whoever follows an invitation is about to talk.
    page.open(channel)
    refused = "Permission for camera and microphone was refused"
    wait_until(lambda: refused in page.text("#preview-note"), "the sentence", 8)
    assert "address bar" in page.text("#preview-note") and page.text("#preview-start") == "Try again"
    page.click("#preview-pattern")
    assert page.evaluate("document.querySelector('input[name=source]:checked').value") == "synthetic"
    page.click("#join")
    wait_until(lambda: (page.stats()["publish"] or {}).get("hasPicture"), "the test pattern", 8, describe=page.stats)


def test_without_devices_the_page_says_so_and_offers_a_test_pattern(
    start_chromium: Callable[..., Chromium], node: Node, channel: str
) -> None:
    page = BuiltInPage(start_chromium("--use-fake").page(node.origin))
    page.open(channel)
    wait_until(lambda: "No camera or microphone was found" in page.text("#preview-note"), "the sentence", 5)
    page.click("#preview-pattern")
    assert "test pattern" in page.text("#preview-note")
    page.click("#join")
    wait_until(lambda: (page.stats()["publish"] or {}).get("hasPicture"), "the test pattern", 8, describe=page.stats)


def test_the_name_is_first_and_the_rest_is_advanced(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    page.open(channel)
    assert page.evaluate(FOCUS) == "name"
    visible = page.evaluate(
        "[...document.querySelectorAll('.entry :is(input, select, button)')]"
        ".filter((e) => e.checkVisibility()).map((e) => e.id)"
    )
    assert visible == ["name", "join"]
    assert page.text("#lobby-title") == f"Join “{channel}”"
    page.tab.fill("#name", "Hanako")
    page.open(channel)
    assert page.evaluate("[document.querySelector('#name').value, document.activeElement.id]") == ["Hanako", "join"]


def test_a_new_channel_has_a_name_that_cannot_be_guessed(open_builtin: OpenBuiltIn) -> None:
    page = open_builtin()
    names = set()
    for _ in range(3):
        page.open()
        names.add(page.evaluate("document.querySelector('#channel').value"))
    assert len(names) == 3
    # 30 letters: twelve of them are 58 bits.
    assert all(re.fullmatch(r"[a-hjkmnp-tv-z2-9]{4}(-[a-hjkmnp-tv-z2-9]{4}){2}", one) for one in names), names
    assert page.tab.is_visible("#channel") and page.text("#lobby-title") == "Start a call"


def test_a_publisher_sends_several_sizes_without_being_asked(open_builtin: OpenBuiltIn, channel: str) -> None:
    page, viewer = open_builtin(), open_builtin()
    page.join(channel, name="Hanako")
    viewer.join(channel, how="watch")
    viewer.sees(1)
    rids = (
        "window.nagare.channel.peerConnection.getSenders().find((one) => one.track?.kind === 'video')"
        ".getParameters().encodings.map((one) => one.rid)"
    )
    assert page.evaluate(rids) == ["r0", "r1", "r2"]


# Invitations.


def test_an_invitation_carries_the_token_where_no_server_and_no_history_sees_it(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node("--token", "open+sesame/=")
    page = open_builtin(node.origin)
    requested: list[str] = []
    page.tab.on("request", lambda request: requested.append(request.url))
    page.tab.on("websocket", lambda socket: requested.append(socket.url))
    page.page.goto(f"{node.origin}/?channel={channel}#token=open+sesame/%3D")
    assert page.evaluate("location.href") == f"{node.origin}/?channel={channel}"
    page.send("synthetic")
    page.click("#join")
    page.shows(f"You are in “{channel}”")
    assert requested and not any("sesame" in one for one in requested[1:]), "the token was sent in an address"
    page.tab.go_back(wait_until="commit")
    page.tab.go_forward(wait_until="commit")
    assert "sesame" not in page.evaluate("location.href")


def test_a_link_to_a_broadcast_leads_to_the_audience(open_builtin: OpenBuiltIn, node: Node, channel: str) -> None:
    host, guest = open_builtin(), open_builtin()
    host.join(channel, how="host", name="Hanako")
    host.shows(f"You are in “{channel}”")
    link = invitation(host)
    assert link == f"{node.origin}/?channel={channel}&role=audience"
    host.tab.check("input[name=invite-role][value=host]")
    assert host.tab.input_value("#invite-link") == f"{node.origin}/?channel={channel}&role=host"
    guest.page.goto(link)
    assert guest.text("#lobby-title") == f"Watch “{channel}”" and guest.text("#join") == "Watch"
    assert not guest.tab.is_visible("#preview")
    assert guest.evaluate(f"{PREVIEW} ?? null") is None, "the camera of a viewer is on"
    guest.click("#join")
    guest.sees(1)
    assert guest.evaluate("[window.nagare.channel.role, window.nagare.channel.profile]") == ["audience", "interactive"]


def invitation(page: BuiltInPage) -> str:
    """Presses the button of the link, which may be among those of a menu; the link that the dialog shows."""
    if not page.tab.is_visible("#share"):
        page.click("#more")
    page.click("#share")
    return page.tab.input_value("#invite-link")


def test_the_host_decides_whether_a_link_carries_the_token(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node("--token", "open-sesame")
    page = open_builtin(node.origin)
    page.open(channel)
    page.give_token("open-sesame")
    page.join(None, name="Hanako")
    page.shows(f"You are in “{channel}”")
    assert invitation(page) == f"{node.origin}/?channel={channel}"
    assert "needs an access token" in page.text("#invite-note")
    assert violations(page.tab) == []
    page.tab.check("#invite-token")
    assert page.tab.input_value("#invite-link") == f"{node.origin}/?channel={channel}#token=open-sesame"
    assert "people whom you trust" in page.text("#invite-note")


def test_a_token_that_names_a_person_is_not_passed_on(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    page = open_builtin(own_node(*KEY).origin)
    page.open(channel)
    page.give_token(jwt(channel, time.time() + 3600, sub="hanako"))
    page.join(None, name="Hanako")
    page.shows(f"You are in “{channel}”")
    assert "#token" not in invitation(page)
    assert "access token names you" in page.text("#invite-note") and not page.tab.is_visible("#invite-token")


def test_without_a_token_the_cursor_is_in_its_field(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node("--token", "open-sesame")
    page = open_builtin(node.origin)
    page.join(channel, name="Hanako")
    page.shows("asks for an access token")
    assert page.evaluate(FOCUS) == "token" and page.tab.is_visible("#token")
    # The next time, before it is refused.
    page.open(channel)
    assert page.evaluate(FOCUS) == "token" and page.tab.is_visible("#token")
    page.tab.fill("#token", "open-barley")
    page.send("synthetic")
    page.click("#join")
    page.shows("did not accept the access token")
    assert page.evaluate(FOCUS) == "token"
    page.tab.fill("#token", "open-sesame")
    page.tab.keyboard.press("Enter")
    page.shows(f"You are in “{channel}”")


def jwt(channel: str, expires: float, **claims: Any) -> str:
    """A token that the node with `KEY` accepts until it expires."""

    def encoded(data: bytes) -> bytes:
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    body = {"channel_id": channel, "exp": int(expires), **claims}
    signed = encoded(b'{"alg":"HS256"}') + b"." + encoded(json.dumps(body).encode())
    return (signed + b"." + encoded(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest())).decode()


def test_an_expired_invitation_says_until_when_it_was_valid(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node(*KEY)
    page = open_builtin(node.origin, timezone_id="Asia/Tokyo", locale="en-GB")
    # Far enough from midnight, and from the time zone of the machine.
    expired = time.time() - 60
    said = time.strftime("%H:%M", time.gmtime(expired + 9 * 3600)).lstrip("0")
    page.page.goto(f"{node.origin}/?channel={channel}#token={jwt(channel, expired)}")
    page.send("synthetic")
    page.click("#join")
    page.shows("Your invitation has expired at")
    assert said in page.text("#problem") and str(int(expired)) not in page.text("#problem")
    # One that is valid says so before.
    page.open()
    until = time.time() + 3600
    page.page.goto(f"{node.origin}/?channel={channel}#token={jwt(channel, until)}")
    assert "is valid until" in page.text("#lobby-note")
    page.send("synthetic")
    page.click("#join")
    page.shows(f"You are in “{channel}”")


# Failures.


def test_a_full_channel_is_said_to_be_full_and_the_camera_is_released(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node("--limit", "channel-participants=1")
    first, page = open_builtin(node.origin), open_builtin(node.origin)
    first.join(channel)
    first.shows(f"You are in “{channel}”")
    sockets: list[str] = []
    page.tab.on("websocket", lambda socket: sockets.append(socket.url))
    page.open(channel)
    page.evaluate(
        "(() => { window.tracks = []; const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);"
        " navigator.mediaDevices.getUserMedia = async (what) => { const stream = await open(what);"
        " window.tracks.push(...stream.getTracks());"
        # A camera that is slower than the server.
        " await new Promise((go) => { setTimeout(go, 1500); }); return stream; }; })()"
    )
    page.click("#join")
    page.shows("This call is full.")
    assert view(page) == "form" and page.evaluate(FOCUS) == "join"
    released = "window.tracks.length === 2 && window.tracks.every((one) => one.readyState === 'ended')"
    wait_until(lambda: page.evaluate(released), "the end of camera and microphone", 5)
    assert len(sockets) == 1, "the page tried again by itself"


def test_the_page_stops_trying_after_some_minutes(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node()
    page = open_builtin(node.origin)
    page.join(channel)
    page.shows(f"You are in “{channel}”")
    # The pauses pass at once.
    page.evaluate("(() => { const set = window.setTimeout; window.setTimeout = (act, ms) => set(act, ms / 1000); })()")
    node.close()
    page.shows("This page stopped trying", seconds=20)
    assert view(page) == "form"


def test_names_that_no_channel_can_have_are_refused_in_the_form(open_builtin: OpenBuiltIn) -> None:
    page = open_builtin()
    page.open()
    for name, sentence in {
        " ": "Enter the name of a channel",
        ".": "cannot be called",
        "..": "cannot be called",
        "あ" * 86: "is too long",
    }.items():
        page.tab.fill("#channel", name)
        page.click("#join")
        page.shows(sentence)
        assert (view(page), page.evaluate(FOCUS)) == ("form", "channel")


def test_a_close_that_the_page_does_not_know_is_said_in_plain_words(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    said = {
        "INVALID-MESSAGE": "Something went wrong",
        "0x02010203 You have not paid.": "The server says: You have not paid.",
    }
    reasons = iter(said)

    def refuse(socket: Any) -> None:
        socket.on_message(lambda _: socket.close(code=4490, reason=next(reasons)))

    page.tab.route_web_socket("**/signaling", refuse)
    page.open(channel)
    page.send("synthetic")
    for reason, sentence in said.items():
        page.click("#join")
        page.shows(sentence)
        assert reason not in page.status_text()


# Languages.


@pytest.mark.parametrize(
    "locale, query, language, join",
    [
        ("ja-JP", "", "ja", "参加"),
        ("en-US", "", "en", "Join"),
        ("fr-FR", "", "en", "Join"),
        ("en-US", "&lang=ja", "ja", "参加"),
        ("ja-JP", "&lang=en", "en", "Join"),
        ("ja-JP", "&lang=constructor", "ja", "参加"),
    ],
)
def test_the_page_speaks_the_language_of_the_browser(
    open_builtin: OpenBuiltIn, node: Node, channel: str, locale: str, query: str, language: str, join: str
) -> None:
    page = open_builtin(locale=locale)
    page.page.goto(f"{node.origin}/?channel={channel}{query}")
    assert page.evaluate("document.documentElement.lang") == language
    assert page.text("#join") == join
    empty = page.evaluate(
        "[...document.querySelectorAll('[data-text]')]"
        ".filter((e) => !e.textContent || e.textContent === e.dataset.text).map((e) => e.dataset.text)"
    )
    assert empty == []
    page.send("synthetic")
    page.click("#join")
    page.shows(f"「{channel}」" if language == "ja" else f"You are in “{channel}”")
    # A reload speaks the same.
    assert ("lang=" in page.evaluate("location.search")) == bool(query)


@pytest.mark.parametrize("locale", ["en-US", "ja-JP"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_is_accessible(open_builtin: OpenBuiltIn, channel: str, locale: str, scheme: str) -> None:
    page = open_builtin(color_scheme=scheme, locale=locale)
    page.open(channel)
    has_preview(page)
    assert violations(page.tab) == []
    page.click("#advanced summary")
    assert violations(page.tab) == [], "advanced"
    page.click("#preview-camera")
    page.tab.fill("#name", "Hanako Yamada")
    page.tab.set_viewport_size({"width": 390, "height": 844})
    assert violations(page.tab) == [], "a phone, without a picture"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the form scrolls sideways"
    page.page.goto(f"{page.page.origin}/?channel={channel}&role=audience")
    assert violations(page.tab) == [], "an invitation to a broadcast"
