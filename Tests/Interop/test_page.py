"""The built-in page: joining, what people see and press, error messages and reconnection."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from playwright.sync_api import Playwright

from harness.accessibility import violations
from harness.builtin import BuiltInPage
from harness.chromium import FLAGS, Chromium, ChromiumPage
from harness.impair import Link
from harness.node import Node
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]
VIEWPORTS = {
    "desktop": {"width": 1280, "height": 800},
    "phone": {"width": 390, "height": 844},
    "landscape": {"width": 844, "height": 390},
}
# Whether everything that is shown lies inside the window.
FITS = """(() => {
  const { scrollWidth, scrollHeight } = document.documentElement;
  const inside = (e) => { const r = e.getBoundingClientRect(); return r.top >= -1 && r.left >= -1 &&
    r.right <= innerWidth + 1 && r.bottom <= innerHeight + 1 && r.width > 60 && r.height > 40; };
  return scrollWidth <= innerWidth && scrollHeight <= innerHeight
    && [...document.querySelectorAll('.tile')].every(inside);
})()"""


@pytest.fixture
def open_builtin(open_page: OpenPage, node: Node) -> Callable[..., BuiltInPage]:
    def make(origin: str | None = None, **options: Any) -> BuiltInPage:
        return BuiltInPage(open_page(origin or node.origin, **options))

    return make


OpenBuiltIn = Callable[..., BuiltInPage]


def test_two_people_see_and_hear_each_other_until_one_leaves(open_builtin: OpenBuiltIn, channel: str) -> None:
    one, two = open_builtin(), open_builtin()
    one.join(channel, name="Hanako Yamada", source="camera")
    two.join(channel, name="Otto")
    for page in (one, two):
        page.sees(1)
        wait_until(lambda: "2 people" in page.text("#presence-text"), "the count of people", 5)
    assert two.titles() == ["Otto (you)", "Hanako Yamada"]
    assert two.evaluate("document.querySelector('.tile:not(.own) video').ariaLabel") == "Video of Hanako Yamada"
    assert two.evaluate("document.querySelector('.tile:not(.own) .sound-toggle').ariaLabel") == "Mute Hanako Yamada"
    track = one.evaluate_handle("window.nagare.channel.cameraTrack")
    one.click("#leave")
    wait_until(lambda: two.titles() == ["Otto (you)"], "the end of the other's picture", 5, describe=two.titles)
    assert track.evaluate("(track) => track.readyState") == "ended", "the camera is still on"
    assert one.evaluate("document.body.dataset.view") == "form"


def test_a_camera_that_is_off_shows_initials(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    page.join(channel, name="Hanako Yamada", source="camera")
    wait_until(lambda: page.stats()["publish"]["hasPicture"], "the own picture", 5, describe=page.stats)
    camera = page.evaluate_handle("window.nagare.channel.cameraTrack")
    for button, name in (("#mute", "Unmute"), ("#camera-off", "Start video")):
        page.click(button)
        wait_until(lambda: page.text(button) == name, f"“{name}”", 3)
    assert camera.evaluate("(track) => track.readyState") == "ended", "the camera's light is still on"
    assert page.evaluate("window.nagare.channel.microphoneTrack.enabled") is False
    assert page.text(".tile.own .initials") == "HY"
    assert page.evaluate("getComputedStyle(document.querySelector('.tile.own .initials')).display") != "none"
    assert page.evaluate("document.querySelector('.tile.own .silent').checkVisibility()")
    page.click("#camera-off")
    wait_until(lambda: page.stats()["publish"]["hasPicture"], "the picture again", 5, describe=page.stats)


@pytest.mark.parametrize("size", VIEWPORTS)
def test_six_people_fit_the_window(open_builtin: OpenBuiltIn, channel: str, artifacts: Path, size: str) -> None:
    page = open_builtin(viewport=VIEWPORTS[size])
    page.open()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the form scrolls sideways"
    page.join(channel, name="Hanako", size="640x360")
    # Members of one browser page, without pictures.
    other = open_builtin()
    other.open()
    other.evaluate(
        "(async () => { const { Nagare } = await import('/nagare.js'); await Promise.all([1, 2, 3, 4, 5].map((n) =>"
        f" Nagare.join({{ channel: '{channel}', displayName: `Guest ${{n}}`, autoPublish: false }}))); }})()"
    )
    wait_until(lambda: len(page.titles()) == 6, "six tiles", 10, describe=page.titles)
    wait_until(lambda: page.evaluate(FITS), "a layout that fits", 3)
    page.tab.screenshot(path=artifacts / f"{size}-six.png")
    wait_until(lambda: "6 people" in page.text("#presence-text"), "the count of people", 5)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_and_the_call_are_accessible(open_builtin: OpenBuiltIn, channel: str, scheme: str) -> None:
    page, other = open_builtin(color_scheme=scheme), open_builtin()
    page.open(channel)
    assert violations(page.tab) == []
    other.join(channel, name="Otto")
    page.join(None, name="Hanako Yamada")
    page.sees(1)
    assert violations(page.tab) == []
    page.click("#chat")
    assert violations(page.tab) == [], "chat"
    for button in ("#people", "#devices", "#keys"):
        page.click_in_menu(button)
        assert violations(page.tab) == [], button
        page.tab.keyboard.press("Escape")


def test_every_control_has_a_name_and_enter_in_the_token_field_joins(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    page.open(channel)
    page.send("synthetic")
    page.give_token("")
    page.tab.keyboard.press("Enter")
    wait_until(lambda: f"You are in “{channel}”" in page.status_text(), "the channel", 8, describe=page.status_text)
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, button')]"
        ".filter((e) => !e.hidden && !(e.labels?.length || e.textContent.trim() || e.getAttribute('aria-label')))"
        ".map((e) => e.outerHTML)"
    )
    assert not nameless
    assert page.evaluate("document.querySelector('#status').getAttribute('aria-live')") == "polite"


def test_a_wrong_token_shows_an_error_and_the_right_one_works(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node("--token", "open-sesame")
    page = open_builtin(node.origin)
    page.join(channel)
    page.shows("asks for an access token")
    assert page.evaluate("document.body.dataset.view") == "form"
    page.tab.fill("#token", "open-barley")
    page.click("#join")
    page.shows("did not accept the access token")
    page.tab.fill("#token", "open-sesame")
    page.click("#join")
    page.shows(f"You are in “{channel}”")


def test_the_page_returns_to_a_restarted_node(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node()
    one, two = open_builtin(node.origin), open_builtin(node.origin)
    one.join(channel, name="Hanako", size="640x360")
    two.join(channel, how="watch")
    two.sees(1)
    node.close()
    two.shows("Trying again", seconds=5)
    own_node(ports=node.ports)
    wait_until(lambda: two.stats()["connections"] == 2, "the return", 30, describe=two.stats)
    wait_until(lambda: two.titles() == ["Hanako"], "the other's return", 20, describe=two.titles)
    before = two.sees(1, seconds=20)[0]["frames"]
    wait_until(lambda: two.sees(1)[0]["frames"] > before, "a picture that moves", 5, describe=two.stats)


def test_an_unreachable_media_port_shows_an_error(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    # A loopback address that the node does not listen on.
    page = open_builtin(own_node("--announce", "127.99.0.1").origin)
    page.join(channel)
    # Chromium takes 15 s and more to give up.
    page.shows("media port", "Trying again", seconds=60)


def test_a_member_whom_an_operator_disconnects_does_not_return(
    open_builtin: OpenBuiltIn, node: Node, channel: str
) -> None:
    page = open_builtin()
    page.join(channel)
    page.shows(f"You are in “{channel}”")
    identifier = page.evaluate("window.nagare.channel.connectionId")
    node.operate("20151104.DisconnectConnection", channel_id=channel, connection_id=identifier)
    page.shows("An operator ended your connection")
    time.sleep(1)
    assert page.evaluate("document.body.dataset.view") == "form", "the page joined again"


def test_a_call_of_two_goes_from_browser_to_browser(open_builtin: OpenBuiltIn, node: Node, channel: str) -> None:
    one, two, three = (open_builtin() for _ in range(3))
    one.join(channel, how="call", name="Hanako")
    one.shows("waiting for the other")
    two.join(channel, how="call", name="Otto")
    for page in (one, two):
        page.sees(1)
        page.shows("2 people, directly")
    assert node.publishing(channel) == [], "the media passes the node"
    three.join(channel, how="call")
    three.shows("Two people are in this call already")
    two.click("#leave")
    one.shows("waiting for the other")


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


def test_a_refused_permission_offers_the_test_pattern(
    strict_chromium: Callable[..., Chromium], node: Node, channel: str
) -> None:
    page = BuiltInPage(strict_chromium("--use-fake-ui").page(node.origin))
    page.join(channel, source="camera")
    page.shows("Permission for camera and microphone was refused")
    page.click("#remedy")
    wait_until(lambda: page.stats()["publish"]["hasPicture"], "the test pattern", 5, describe=page.stats)


def test_a_codec_that_the_browser_cannot_play_is_named_on_the_tile(open_builtin: OpenBuiltIn, channel: str) -> None:
    viewer, publisher = open_builtin(), open_builtin()
    viewer.open(channel)
    # A browser that decodes VP8 only.
    viewer.evaluate(
        "(() => { const describe = RTCPeerConnection.prototype.setRemoteDescription;"
        " RTCPeerConnection.prototype.setRemoteDescription = async function (offer) {"
        "   await describe.call(this, offer);"
        "   for (const one of this.getTransceivers()) if (one.receiver.track.kind === 'video')"
        "     one.setCodecPreferences(RTCRtpReceiver.getCapabilities('video').codecs"
        "       .filter((codec) => codec.mimeType === 'video/VP8')); }; })()"
    )
    viewer.join(None, how="watch")
    publisher.join(channel, codec="VP9", name="Hanako")
    wait_until(lambda: "cannot play VP9" in viewer.text(".veil"), "the sentence", 10, describe=viewer.titles)


def why(page: BuiltInPage) -> str:
    """The sentence on the other's picture; empty without one."""
    return page.evaluate("document.querySelector('.tile:not(.own) .why:not([hidden])')?.textContent ?? ''")


def test_a_picture_that_is_small_for_the_network_says_so(
    open_builtin: OpenBuiltIn, link: Callable[..., Link], channel: str
) -> None:
    slow = link(down="rate=500k,delay=20ms")
    open_builtin().join(channel, name="Hanako", size="1280x720")
    viewer = open_builtin(slow.origin)
    viewer.join(channel, how="watch")
    sentence = re.compile(r"Your network carries (\d+\.\d) of (\d+\.\d) Mbit/s\.")

    def is_said() -> bool:
        found = sentence.fullmatch(why(viewer))
        return found is not None and float(found[1]) < float(found[2])

    wait_until(is_said, "the sentence", 90, describe=lambda: (why(viewer), viewer.stats()))


def test_a_picture_that_stands_still_says_so_until_it_moves(open_builtin: OpenBuiltIn, channel: str) -> None:
    viewer, publisher = open_builtin(), open_builtin()
    viewer.join(channel, how="watch")
    publisher.open()
    publisher.evaluate(
        "(async () => { const { Nagare } = await import('/nagare.js');"
        " const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 180 });"
        " const pen = canvas.getContext('2d'); window.isMoving = true;"
        " setInterval(() => { if (window.isMoving) pen.fillRect(0, 0, Math.random() * 300, 150); }, 50);"
        " window.member = await Nagare.join({ channel: '" + channel + "', microphone: false, codec: 'VP8',"
        " camera: canvas.captureStream(20).getVideoTracks()[0] }); })()"
    )
    viewer.sees(1)
    for is_moving, text in (("false", "No picture arrives now."), ("true", "")):
        publisher.evaluate(f"window.isMoving = {is_moving}")
        wait_until(lambda: why(viewer) == text, repr(text), 10, describe=lambda: (why(viewer), viewer.stats()))


def test_a_browser_that_forbids_sound_shows_a_button_for_it(
    strict_chromium: Callable[..., Chromium], open_builtin: OpenBuiltIn, node: Node, channel: str
) -> None:
    open_builtin().join(channel, name="Hanako")
    viewer = BuiltInPage(strict_chromium("--autoplay-policy").page(node.origin))
    # The page joins by itself and reports by itself: a script of the test would count as a gesture of the user.
    viewer.tab.add_init_script(
        "addEventListener('load', () => {"
        " new MutationObserver(() => console.log('sound is off'))"
        "   .observe(document.querySelector('#unmute'), { attributeFilter: ['hidden'] });"
        " document.querySelector('#join-form').requestSubmit(); })"
    )
    with viewer.tab.expect_console_message(lambda message: message.text == "sound is off", timeout=20_000):
        viewer.page.goto(f"{node.origin}/?channel={channel}&how=watch")
    assert viewer.text("#unmute") == "Sound is off. Turn it on"
    is_muted = "document.querySelector('.tile video').muted"
    assert viewer.evaluate(is_muted) is True
    viewer.sees(1)
    viewer.click("#unmute")
    wait_until(lambda: viewer.evaluate(is_muted) is False, "sound", 5)
    assert viewer.evaluate("document.querySelector('#unmute').hidden"), "the button is still there"


def test_the_quality_of_the_network_is_an_icon_with_words(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    sockets: list[Any] = []

    def route(socket: Any) -> None:
        sockets.append(socket)
        server = socket.connect_to_server()
        # The messages of this test come in place of the node's own.
        server.on_message(lambda text: None if '"network.quality"' in text else socket.send(text))

    page.tab.route_web_socket("**/signaling", route)
    page.join(channel)
    page.shows(f"You are in “{channel}”")
    look = "(() => { const e = document.querySelector('#quality'); return e.hidden ? null : [e.dataset.bars, e.ariaLabel]; })()"
    assert page.evaluate(look) is None
    for uplink, downlink, expected in (
        (1, 2, ["3", "Your network: sending excellent, receiving good"]),
        (5, 0, ["1", "Your network: sending very bad"]),
        (0, 6, ["0", "Your network: receiving disconnected"]),
        (0, 0, None),
    ):
        message = {"type": "notify", "event_type": "network.quality", "uplink": uplink, "downlink": downlink}
        sockets[-1].send(json.dumps(message))
        wait_until(lambda: page.evaluate(look) == expected, f"{expected}", 5, describe=lambda: page.evaluate(look))


# The chat.

CHAT = """[...document.querySelectorAll('#chat-log .said')]
  .map((one) => [one.querySelector('.author').textContent, one.querySelector('.text').textContent])"""

PANEL = "document.querySelector('#chat-panel').getBoundingClientRect()"
CHAT_FITS = (
    f"(({{ left, top, right, bottom }}, form) => left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight"
    f" && form.scrollWidth <= form.clientWidth)({PANEL}, document.querySelector('#chat-form'))"
)


def chat(page: BuiltInPage) -> list[list[str]]:
    """The messages on the page: who wrote what."""
    return page.evaluate(CHAT)


def write(page: BuiltInPage, text: str) -> None:
    page.tab.fill("#chat-text", text)
    page.tab.press("#chat-text", "Enter")


def pass_messages(*pages: BuiltInPage) -> None:
    """Waits until the node passes messages on between all pages: whoever has no data channel yet gets none.

    The page shows no blank messages.
    """
    for page in pages:
        page.evaluate(
            "(() => { window.heard = new Set(); window.nagare.channel.addEventListener('message',"
            " ({ detail }) => window.heard.add(detail.user.id)); })()"
        )

    def all_hear() -> bool:
        for page in pages:
            page.evaluate("window.nagare.channel.sendMessage(' ').catch(() => {})")
        return all(page.evaluate("window.heard.size") == len(pages) - 1 for page in pages)

    wait_until(all_hear, "messages between all pages", 10)


def test_two_people_chat(open_builtin: OpenBuiltIn, channel: str, artifacts: Path) -> None:
    one, two = open_builtin(), open_builtin(viewport=VIEWPORTS["phone"])
    for page, name in ((one, "Hanako"), (two, "Otto")):
        page.join(channel, name=name)
        page.shows(f"You are in “{channel}”")
    pass_messages(one, two)
    assert (two.text("#chat-count"), chat(two)) == ("", [])
    one.click("#chat")
    assert one.evaluate("document.activeElement.id") == "chat-text"
    write(one, "Hello Otto")
    wait_until(lambda: chat(one) == [["You", "Hello Otto"]], "the own message", 5, describe=lambda: chat(one))
    assert one.evaluate("document.querySelector('#chat-text').value") == ""
    unread = lambda: two.text("#chat-count")
    wait_until(lambda: unread() == "1", "the number of unread messages", 5, describe=unread)
    assert two.evaluate("document.querySelector('#chat').ariaLabel") == "Chat, 1 unread message"
    two.click("#chat")
    assert unread() == ""
    wait_until(lambda: chat(two) == [["Hanako", "Hello Otto"]], "the message", 5, describe=lambda: chat(two))
    write(two, "Hello Hanako")
    both = [["You", "Hello Otto"], ["Otto", "Hello Hanako"]]
    wait_until(lambda: chat(one) == both, "the answer", 5, describe=lambda: chat(one))
    assert one.evaluate("document.querySelector('#chat-log').role") == "log"
    assert one.evaluate("document.querySelector('#stage').getBoundingClientRect().right") <= one.evaluate(f"{PANEL}.left")
    for page, size in ((one, "desktop"), (two, "phone"), (two, "landscape")):
        page.tab.set_viewport_size(VIEWPORTS[size])
        wait_until(lambda: page.evaluate(FITS) and page.evaluate(CHAT_FITS), f"a chat that fits a {size}", 5)
        page.tab.screenshot(path=artifacts / f"{size}-chat.png")
    two.tab.keyboard.press("Escape")
    assert two.evaluate("[document.querySelector('#chat-panel').hidden, document.activeElement.id]") == [True, "chat"]
    one.click("#leave")
    assert chat(one) == []


def test_what_others_write_is_shown_as_text_and_not_without_end(open_builtin: OpenBuiltIn, channel: str) -> None:
    page, other = open_builtin(), open_builtin()
    page.join(channel, name="Hanako")
    page.shows(f"You are in “{channel}”")
    page.click("#chat")
    other.open()
    other.evaluate(
        "(async () => { const { Nagare } = await import('/nagare.js'); window.nagare = { channel: await Nagare.join("
        f"{{ channel: '{channel}', displayName: '<i>Eve</i>', autoPublish: false, messages: true }}) }}; }})()"
    )
    pass_messages(page, other)
    mark = "<img src=x onerror='window.isHacked = true'><b>bold</b>"
    for text in (mark, "x" * 100_000, "two\nlines"):
        other.evaluate(f"window.nagare.channel.sendMessage({json.dumps(text)})")
    expected = [["<i>Eve</i>", text] for text in (mark, f"{'x' * 2000} …", "two lines")]
    wait_until(lambda: chat(page) == expected, "the messages", 5, describe=lambda: chat(page))
    elements = "document.querySelectorAll('#chat-log :is(img, b, i)').length"
    assert page.evaluate(f"[{elements}, window.isHacked ?? false]") == [0, False]
    assert "Only its start is shown" in page.text("#chat-log .note")
    # What is too long is not sent.
    write(page, "y" * 2001)
    wait_until(lambda: "at most 2,000 characters. This one has 2,001." in page.text("#chat-note"), "the sentence", 3)
    assert page.evaluate("document.querySelector('#chat-text').value.length") == 2001 and len(chat(page)) == 3
    page.tab.fill("#chat-text", "short")
    assert page.text("#chat-note") == ""
    other.evaluate("(async () => { for (let n = 1; n <= 400; n += 1) await window.nagare.channel.sendMessage(`${n}`); })()")
    last = "document.querySelector('#chat-log').lastElementChild.querySelector('.text').textContent"
    wait_until(lambda: page.evaluate(last) == "400", "the last of many messages", 10, describe=lambda: page.evaluate(last))
    assert len(chat(page)) == 300


def test_a_server_without_data_channels_has_no_chat(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    page = open_builtin(own_node("--data-channels", "off").origin)
    page.join(channel)
    page.shows(f"You are in “{channel}”")
    page.click("#chat")
    wait_until(lambda: "There is no chat here" in page.text("#chat-note"), "the sentence", 5)
    assert page.evaluate("document.querySelector('#chat-send').disabled") is True


# The speaker.

# Members without a camera. `speak(user)` lets one of them be heard.
VOICES = """(async (channel, users) => {
  const { Nagare } = await import('/nagare.js');
  const audio = new AudioContext();
  const tone = audio.createOscillator();
  tone.start();
  const gains = new Map();
  for (const user of users) {
    const [gain, end] = [audio.createGain(), audio.createMediaStreamDestination()];
    gain.gain.value = 0;
    tone.connect(gain).connect(end);
    gains.set(user, gain);
    await Nagare.join({ channel, user, camera: false, microphone: end.stream.getAudioTracks()[0] });
  }
  window.speak = (one) => { for (const [user, { gain }] of gains) gain.value = user === one ? 0.5 : 0; };
})"""
LARGE = "document.querySelector('.tile.large')?.dataset.user ?? null"


def test_the_picture_of_who_speaks_is_large(open_builtin: OpenBuiltIn, channel: str, artifacts: Path) -> None:
    page, others = open_builtin(), open_builtin()
    page.join(channel, how="watch")
    others.open()
    users = ["ann", "ben", "cleo", "dora"]
    others.evaluate(f"{VOICES}({json.dumps(channel)}, {json.dumps(users)})")
    wait_until(lambda: len(page.titles()) == 4, "four tiles", 10, describe=page.titles)
    assert page.evaluate(LARGE) is None
    page.evaluate(
        "(() => { window.moves = []; new MutationObserver(() => { const user = " + LARGE + ";"
        " if (user !== window.moves.at(-1)) window.moves.push(user); })"
        " .observe(document.querySelector('#tiles'), { subtree: true, attributeFilter: ['class'] }); })()"
    )
    for user in ("ann", "ben"):
        others.evaluate(f"window.speak('{user}')")
        wait_until(lambda: page.evaluate(LARGE) == user, f"a large {user}", 15, lambda: page.evaluate("window.moves"))
    assert page.evaluate("window.moves") == ["ann", "ben"]
    for size, viewport in VIEWPORTS.items():
        page.tab.set_viewport_size(viewport)
        wait_until(lambda: page.evaluate(FITS) and page.evaluate(LARGE) == "ben", f"a layout that fits a {size}", 5)
        page.tab.screenshot(path=artifacts / f"{size}-speaker.png")
    # Others may be wanted large, or nobody.
    pin = "document.querySelector('[data-user=cleo] .pin').click()"
    page.evaluate(pin)
    assert page.evaluate(LARGE) == "cleo"
    page.evaluate(pin)
    assert (page.evaluate(LARGE), page.text("#layout")) == ("ben", "Same size for all")
    page.click_in_menu("#layout")
    assert (page.evaluate(LARGE), page.text("#layout")) == (None, "Speaker large")
    page.click_in_menu("#layout")
    assert page.evaluate(LARGE) == "ben"


def test_the_large_picture_does_not_flap(open_builtin: OpenBuiltIn) -> None:
    page = open_builtin()
    page.open()

    def shown(*spans: tuple[float, dict[str, float]]) -> list[tuple[str | None, float]]:
        """Whose picture is large from which second on. Each span has its length in seconds, and how loud each person is."""
        steps = [levels for seconds, levels in spans for _ in range(round(seconds / 0.25))]
        changes = page.evaluate(
            "(async (steps) => { const { Speaker } = await import('/speaker.js'); const speaker = new Speaker();"
            " const changes = []; steps.forEach((levels, index) => { const before = speaker.shown;"
            " speaker.hear(new Map(Object.entries(levels)), 1e6 + index * 250);"
            " if (speaker.shown !== before) changes.push([speaker.shown, index / 4]); }); return changes; })"
            f"({json.dumps(steps)})"
        )
        return [tuple(one) for one in changes]

    silence, a, b = {"a": 0, "b": 0, "c": 0}, {"a": 0.5, "b": 0, "c": 0}, {"a": 0, "b": 0.5, "c": 0}
    both, louder = {"a": 0.5, "b": 0.4, "c": 0}, {"a": 0.4, "b": 0.5, "c": 0}
    assert shown((2, silence)) == []
    assert shown((1, silence), (1, a), (9, silence)) == [("a", 1)], "it stays in a silence"
    assert shown((4, a), *[(0.25, both), (0.25, louder)] * 20) == [("a", 0)], "two who interrupt each other"
    assert shown((0.5, a), (5, b)) == [("a", 0), ("b", 2)], "not before two seconds"
    assert shown((5, a), (5, b)) == [("a", 0), ("b", 5.75)], "after a pause of the first"
    assert shown((5, a), (5, louder)) == [("a", 0), ("b", 7)], "somebody louder for two seconds"
    assert shown((5, a), (3, silence), (0.25, b), (3, silence)) == [("a", 0)], "a short noise"
    assert shown((5, a), (3, {"b": 0, "c": 0}), (1, {"b": 0, "c": 0.3})) == [("a", 0), (None, 5), ("c", 8)], "the first left"
