"""The built-in page during a call: its bar, warnings, people, chat, keys, and calls of two."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Callable

import pytest

from harness.accessibility import violations
from harness.builtin import BuiltInPage
from harness.chromium import ChromiumPage
from harness.firefox import FirefoxPage
from harness.node import Node
from harness.waiting import wait_until

OpenBuiltIn = Callable[..., BuiltInPage]
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
SMALL_PHONE = {"width": 320, "height": 640}
LANDSCAPE = {"width": 844, "height": 390}
# All that was said for a moment.
RECORD_NOTICES = """addEventListener('DOMContentLoaded', () => {
  window.notices = [];
  const notice = document.querySelector('#notice');
  if (notice) new MutationObserver(() => window.notices.push(notice.textContent)).observe(notice, { childList: true });
})"""


@pytest.fixture
def open_builtin(open_page: Callable[..., ChromiumPage], node: Node) -> OpenBuiltIn:
    def make(origin: str | None = None, **options: Any) -> BuiltInPage:
        page = BuiltInPage(open_page(origin or node.origin, **options))
        page.tab.add_init_script(RECORD_NOTICES)
        return page

    return make


class Signaling:
    """Sits between a page and the node: adds to what the node says, and answers what moderators request.

    `history` is the chat of before; `joined` are members of `channel.joined`; `requests` has what the page requested of the named methods.
    """

    METHODS = ("raiseHand", "muteOthers", "removeUser")

    def __init__(self, page: BuiltInPage, history: list[dict[str, Any]] | None = None, **joined: Any) -> None:
        self.history = history
        self.joined = joined
        self.requests: list[list[Any]] = []
        self.user = ""
        self.socket: Any = None
        self.error: dict[str, Any] | None = None
        self.silent: tuple[str, ...] = ()
        page.tab.route_web_socket("**/signaling", self._route)

    def _route(self, socket: Any) -> None:
        self.socket = socket
        server = socket.connect_to_server()

        def to_page(text: str) -> None:
            message = json.loads(text)
            if message.get("event_type") in self.silent:
                return
            if message.get("event_type") == "channel.joined":
                self.user = message["user_id"]
                text = json.dumps({**message, **self.joined})
            socket.send(text)
            if message.get("event_type") == "channel.joined" and self.history is not None:
                self.notify("chat.history", messages=self.history)

        def to_node(text: str) -> None:
            message = json.loads(text)
            params = message.get("params") or {}
            if message["type"] == "request" and (message["method"] in self.METHODS or "user_id" in params):
                self.requests.append([message["method"], params])
                answer = {"error": self.error} if self.error else {"result": {}}
                socket.send(json.dumps({"type": "response", "id": message["id"], **answer}))
            else:
                server.send(text)

        server.on_message(to_page)
        socket.on_message(to_node)

    def notify(self, event: str, **members: Any) -> None:
        self.socket.send(json.dumps({"type": "notify", "event_type": event, **members}))


MEMBERS = """(async (given) => {
  const { Nagare } = await import('/nagare.js');
  window.members ??= new Map();
  for (const options of given) {
    const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 180 });
    const pen = canvas.getContext('2d');
    setInterval(() => { pen.fillStyle = `hsl(${window.members.size * 70} 40% 40%)`; pen.fillRect(0, 0, 320, 180);
      pen.fillStyle = '#fff'; pen.fillRect(Math.random() * 300, 60, 20, 60); }, 100);
    const channel = await Nagare.join({ microphone: false, codec: 'VP8', bitRate: 150,
      camera: canvas.captureStream(10).getVideoTracks()[0], ...options });
    window.members.set(options.user, channel);
  }
})"""


def add_members(page: BuiltInPage, channel: str, *names: str, **options: Any) -> None:
    """Members of one browser page, each with a picture; the user is the name in small letters."""
    if not page.tab.url.endswith("/nagare.d.ts"):
        page.page.goto(f"{page.page.origin}/nagare.d.ts")
    given = [{"channel": channel, "user": one.lower(), "displayName": one, **options} for one in names]
    page.evaluate(f"{MEMBERS}({json.dumps(given)})")


def joined(page: BuiltInPage, channel: str, **how: Any) -> None:
    page.join(channel, **how)
    page.shows(f"You are in “{channel}”")


def notice(page: BuiltInPage, text: str) -> None:
    said = lambda: page.evaluate("window.notices")
    wait_until(lambda: text in said(), f"“{text}”", 8, describe=said)


# The bar.


def test_icons_and_labels_say_what_a_press_does_next(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    joined(page, channel, name="Hanako Yamada", source="camera")
    camera = page.evaluate_handle("window.nagare.channel.cameraTrack")
    icon = "document.querySelector('{} use').getAttribute('href')"
    for button, names, icons in (
        ("#mute", ["Mute", "Unmute", "Mute"], ["microphone", "microphone-off", "microphone"]),
        ("#camera-off", ["Stop video", "Start video", "Stop video"], ["camera", "camera-off", "camera"]),
    ):
        for index, (name, picture) in enumerate(zip(names, icons)):
            wait_until(lambda: page.text(button) == name, f"“{name}”", 5, describe=lambda: page.text(button))
            assert page.evaluate(icon.format(button)) == f"#icon-{picture}"
            # A name that changes is enough: a state beside it would say the opposite.
            assert page.pressed(button) is None
            if index < 2:
                page.click(button)
    assert camera.evaluate("(track) => track.readyState") == "ended", "the camera was on while the video was stopped"


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE, SMALL_PHONE, LANDSCAPE], ids=lambda one: f"{one['width']}")
def test_the_bar_is_one_row_with_leave_in_it(
    open_builtin: OpenBuiltIn, channel: str, artifacts: Path, viewport: dict[str, int]
) -> None:
    page = open_builtin(viewport=viewport)
    joined(page, channel, name="Hanako")
    shown = (
        "[...document.querySelectorAll('#bar button')].filter((e) => e.checkVisibility())"
        ".map((e) => { const r = e.getBoundingClientRect(); return [e.id, r.top, r.left, r.right, r.bottom, r.width, r.height]; })"
    )
    buttons = page.evaluate(shown)
    tops = {one[0]: one[1] for one in buttons}
    assert tops["leave"] == tops["mute"] == min(tops.values()), f"Leave is not in the first row: {buttons}"
    for name, top, left, right, bottom, width, height in buttons:
        assert left >= 0 and top >= 0 and right <= viewport["width"] and bottom <= viewport["height"], name
        assert width >= 36 and height >= 44, f"{name} is {width} by {height}"
    if viewport is not LANDSCAPE:
        assert len(set(tops.values())) == 1, f"several rows: {buttons}"
    # What is not in the row is in the menu, which lies inside the window, too.
    page.click("#more")
    for name, top, left, right, bottom, *_ in page.evaluate(shown):
        assert left >= 0 and top >= 0 and right <= viewport["width"] and bottom <= viewport["height"], name
    page.tab.screenshot(path=artifacts / f"menu-{viewport['width']}.png")
    page.tab.keyboard.press("Escape")
    assert page.evaluate("[document.activeElement.id, document.querySelector('#devices').checkVisibility()]") == ["more", False]


def test_the_first_control_is_the_first_stop_of_the_tab_key(open_builtin: OpenBuiltIn, channel: str) -> None:
    page, other = open_builtin(), open_builtin()
    joined(page, channel, name="Hanako")
    add_members(other, channel, "Ann", "Ben", "Cleo")
    page.sees(3)
    page.evaluate("(() => { document.activeElement.blur(); getSelection().collapse(document.body, 0); })()")
    stops = []
    while len(stops) < 4 and not (stops and page.evaluate("document.activeElement.closest('#bar') !== null")):
        page.tab.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.id"))
    assert len(stops) <= 3 and stops[-1] == "mute", stops


def test_keys_press_the_buttons_and_a_list_tells_them(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    joined(page, channel, name="Hanako")
    keys = page.tab.keyboard
    keys.press("m")
    wait_until(lambda: page.text("#mute") == "Unmute", "the key for the microphone", 3)
    keys.press("Control+m")
    keys.press("c")
    wait_until(lambda: page.evaluate("document.activeElement.id") == "chat-text", "the chat", 3)
    # Letters that are written press nothing.
    keys.type("mvcp")
    assert page.evaluate("document.querySelector('#chat-text').value") == "mvcp" and page.text("#mute") == "Unmute"
    keys.press("Escape")
    keys.press("?")
    wait_until(lambda: page.evaluate("document.querySelector('#keys-dialog').open"), "the list of keys", 3)
    assert page.evaluate("[...document.querySelectorAll('#keys-list kbd')].map((e) => e.textContent)") == list("MVSHCPLF?")
    assert violations(page.tab) == []
    # Single keys can be switched off.
    page.tab.uncheck("#keys-on")
    keys.press("Escape")
    keys.press("m")
    page.evaluate("new Promise((resolve) => { setTimeout(resolve, 300); })")
    assert page.text("#mute") == "Unmute"


# The pictures.


INTERSECTIONS = """(() => {
  const box = (e) => e.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const shown = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility() && box(e).width > 2);
  const names = shown('.tile .caption');
  const over = [...shown('.tile .marks > p, .tile .numbers, .tile .veil'), ...shown('.tile.corner')];
  return names.flatMap((name) => over.filter((one) => !one.contains(name) && !one.matches('.veil') && meet(box(name), box(one)))
    .map((one) => [name.textContent.trim(), one.className]));
})()"""


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE, LANDSCAPE], ids=lambda one: f"{one['width']}")
def test_two_people_fill_the_window_and_the_own_picture_is_small(
    open_builtin: OpenBuiltIn, channel: str, artifacts: Path, viewport: dict[str, int]
) -> None:
    page, other = open_builtin(viewport=viewport), open_builtin()
    signaling = Signaling(page)
    joined(page, channel, name="Hanako")
    add_members(other, channel, "Somebody with a name that is longer than any picture is wide, and a little longer")
    page.sees(1)
    (user,) = page.evaluate("window.nagare.channel.users.map((one) => one.id)")
    signaling.notify("hand.changed", user_id=user, display_name="x", raised=True)
    wait_until(lambda: page.evaluate("document.querySelector('.tile:not(.own) .mark-hand').hidden === false"), "the hand", 3)
    size = (
        "((selector) => { const { width, height } = document.querySelector(selector).getBoundingClientRect();"
        " return [width / innerWidth, height / innerHeight]; })"
    )
    width, height = page.evaluate(f"{size}('.tile:not(.own)')")
    assert height > 0.7 and width > (0.8 if viewport is not LANDSCAPE else 0.7)
    width, height = page.evaluate(f"{size}('.tile.own')")
    assert width < 0.3 and height < 0.25
    wait_until(lambda: page.evaluate(INTERSECTIONS) == [], "free names", 3, describe=lambda: page.evaluate(INTERSECTIONS))
    page.tab.screenshot(path=artifacts / f"two-{viewport['width']}.png")


def test_who_joins_and_leaves_is_said_for_a_moment(open_builtin: OpenBuiltIn, channel: str) -> None:
    page, first, others = open_builtin(), open_builtin(), open_builtin()
    add_members(first, channel, "Early")
    joined(page, channel, name="Hanako")
    assert page.evaluate("window.notices.filter(Boolean)") == [], "those who are there already did not join"
    add_members(others, channel, "Otto")
    notice(page, "Otto joined.")
    assert page.evaluate("document.querySelector('#notice').role") == "status"
    others.evaluate("window.members.get('otto').leave()")
    notice(page, "Otto left.")
    wait_until(lambda: page.text("#notice") == "", "the end of the notice", 12)


def test_many_who_join_at_once_are_one_sentence(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    signaling = Signaling(page)
    joined(page, channel)
    for name in ("Ann", "Ben", "Cleo"):
        signaling.notify("user.online", user_id=name, display_name=name, role="host")
    notice(page, "Ann and 2 others joined.")


# Warnings.


def imported(page: BuiltInPage, names: str, body: str, *given: Any) -> Any:
    """The result of a function with names of the page's own modules."""
    module = "/numbers.js" if names == "summarise" else "/warnings.js"
    return page.evaluate(f"(async (given) => {{ const {{ {names} }} = await import('{module}'); {body} }})({json.dumps(given)})")


def test_a_busy_device_is_not_called_a_bad_network(open_builtin: OpenBuiltIn) -> None:
    page = open_builtin()
    page.open()

    def warning(uplink: int, downlink: int, busy: bool = False, sending: Any = None) -> list[Any]:
        return imported(
            page, "warningOf", "const [quality, busy, sending] = given; const found = warningOf(quality, busy, sending);"
            " return [found.cause, found.text, Math.max(found.uplink, found.downlink)]",
            {"uplink": uplink, "downlink": downlink}, busy, sending,
        )  # fmt: skip

    limited = {"state": "limited", "limit": "network", "target_bits_per_second": 500_000, "demand_bits_per_second": 2_000_000}
    assert warning(1, 2) == ["", "", 2], "a sentence beside full bars"
    assert warning(1, 2, sending=limited) == ["", "", 2], "a sentence beside full bars"
    assert warning(0, 0) == ["", "", 0]
    assert warning(3, 1) == ["network", "Your network is weak now.", 3]
    assert warning(1, 5) == ["network", "Your network is bad now.", 5]
    assert warning(1, 6) == ["network", "Your network is interrupted.", 6]
    assert warning(1, 4, sending=limited) == ["network", "Your network carries 0.5 of 2.0 Mbit/s.", 4]
    assert warning(4, 1, sending=limited) == ["network", "Your network is bad now.", 4], "the server speaks of the other way"
    # In a call of two the page measures by itself.
    for loss, round_trip, level in ((0, 10, 1), (2, 100, 2), (0, 300, 3), (0, 600, 4), (20, 0, 5), (50, 0, 6), (None, 9, 0)):
        given = (loss, round_trip) if loss is not None else ()
        assert imported(page, "levelOf", "return levelOf(...given)", *given) == level, (loss, round_trip)
    for uplink, downlink in ((1, 1), (1, 5), (6, 6)):
        assert warning(uplink, downlink, True, limited) == ["processor", "This device is too busy for smooth pictures.", 0]


def test_a_device_is_busy_when_its_timers_are_late_or_frames_are_dropped(open_builtin: OpenBuiltIn) -> None:
    page = open_builtin()
    page.open()

    def busy(*spans: tuple[int, float, bool]) -> list[bool]:
        """Whether the device counts as busy after each span of so many seconds with ticks that are so many seconds late."""
        return imported(
            page, "DeviceLoad, tickMilliseconds", "const load = new DeviceLoad(); let now = 1e6; return given[0].map("
            "([seconds, late, isHidden]) => { const end = now + seconds * 1000; while (now < end) {"
            " now += tickMilliseconds + late * 1000; load.tick(now, isHidden); } return load.isBusy; })", spans,
        )  # fmt: skip

    assert busy((20, 0.01, False), (20, 0.05, False)) == [False, False]
    assert busy((10, 0.5, False), (20, 0, False)) == [True, False]
    assert busy((20, 0, False), (1, 3600, False)) == [False, False], "a device that slept"
    assert busy((30, 0.8, True), (3, 0, False)) == [False, False], "timers of a hidden page are slow"

    def is_busy(publishing: bool, before: dict[str, Any], after: dict[str, Any], lost: int = 0) -> bool:
        kind = "outbound-rtp" if publishing else "inbound-rtp"
        reports = [
            [{"id": "v", "type": kind, "kind": "video", "packetsReceived": 1000 * n, "packetsLost": lost * n, **one}]
            for n, one in enumerate((before, after))
        ]
        return imported(
            page, "summarise", "const of = (list) => new Map(list.map((one) => [one.id, one])); const [reports, publishing] = given;"
            " const before = summarise(of(reports[0]), undefined, publishing); before.at -= 1000;"
            " return summarise(of(reports[1]), before, publishing).isBusy", reports, publishing,
        )  # fmt: skip

    frames = lambda received, dropped, seconds=0.1: {
        "framesReceived": received, "framesDropped": dropped, "framesDecoded": received - dropped, "totalDecodeTime": seconds,
    }  # fmt: skip
    assert not is_busy(False, frames(0, 0, 0), frames(30, 1))
    assert is_busy(False, frames(0, 0, 0), frames(30, 10)), "dropped frames"
    assert not is_busy(False, frames(0, 0, 0), frames(30, 10), lost=100), "lost packets are the network's"
    assert is_busy(False, frames(0, 0, 0), frames(30, 0, 0.95)), "a decoder without a pause"
    assert is_busy(True, {}, {"qualityLimitationReason": "cpu"})
    assert not is_busy(True, {}, {"qualityLimitationReason": "bandwidth"})


def test_a_bad_network_is_said_once_with_a_mark_on_the_picture_that_it_concerns(
    open_builtin: OpenBuiltIn, channel: str
) -> None:
    page, other = open_builtin(), open_builtin()
    signaling = Signaling(page)
    signaling.silent = ("network.quality", "user.network_quality")
    joined(page, channel, name="Hanako")
    add_members(other, channel, "Otto")
    page.sees(1)
    look = """(() => { const visible = (e) => e.checkVisibility() && e.getBoundingClientRect().width > 4;
      const words = [...document.querySelectorAll('p, span')].filter((e) => !e.children.length && visible(e)
        && /network/.test(e.textContent)).map((e) => e.textContent);
      const mark = (selector) => { const e = document.querySelector(`${selector} .why:not([hidden])`); return e && e.textContent; };
      return { bars: document.querySelector('#quality').dataset.bars, words, own: mark('.tile.own'), other: mark('.tile:not(.own)') };
    })()"""
    (connection,) = page.evaluate("window.nagare.channel.users.flatMap((one) => one.connections.map((each) => each.id))")
    bad, weak = "Your network is bad now.", "Your network is weak now."
    for uplink, downlink, expected in (
        (1, 1, {"bars": "4", "words": [], "own": None, "other": None}),
        (5, 1, {"bars": "1", "words": [bad], "own": bad, "other": None}),
        (3, 1, {"bars": "2", "words": [weak], "own": weak, "other": None}),
        (1, 4, {"bars": "1", "words": [bad], "own": None, "other": bad}),
        (2, 1, {"bars": "3", "words": [], "own": None, "other": None}),
    ):
        signaling.notify("network.quality", uplink=uplink, downlink=downlink)
        wait_until(lambda: page.evaluate(look) == expected, f"{expected}", 15, describe=lambda: page.evaluate(look))
    # The other's own network concerns the other's picture, and is no warning of this one's.
    signaling.notify("user.network_quality", user_id="otto", connection_id=connection, uplink=5, downlink=1)
    expected = {"bars": "3", "words": [], "own": None, "other": "The network of Otto is bad now."}
    wait_until(lambda: page.evaluate(look) == expected, f"{expected}", 15, describe=lambda: page.evaluate(look))


def test_an_interrupted_user_is_told_beside_the_name(open_builtin: OpenBuiltIn, channel: str) -> None:
    page, other = open_builtin(), open_builtin()
    signaling = Signaling(page)
    joined(page, channel)
    add_members(other, channel, "Otto")
    page.sees(1)
    signaling.notify("user.interrupted", user_id="otto")
    happens = ".tile:not(.own) .happens"
    wait_until(lambda: page.text(happens) == "connection interrupted", "the words", 5, describe=lambda: page.text(happens))
    assert page.evaluate(f"document.querySelector('.tile:not(.own) .caption').contains(document.querySelector('{happens}'))")
    assert page.evaluate("document.querySelector('.tile:not(.own) .veil').hidden")
    signaling.notify("user.resumed", user_id="otto")
    wait_until(lambda: page.text(happens) == "", "the end of the interruption", 5)


# Hands and moderators. The node's part is played by `Signaling`; the last test of this part needs the node's own.


def test_the_audience_asks_to_speak_and_a_host_lets_it_in(open_builtin: OpenBuiltIn, channel: str, artifacts: Path) -> None:
    host, guest = open_builtin(color_scheme="dark"), open_builtin(viewport=PHONE)
    above, below = Signaling(host, moderator=True), Signaling(guest)
    joined(host, channel, how="host", name="Hanako")
    joined(guest, channel, how="audience", name="Otto")
    assert guest.text("#hand") == "Ask to speak"
    assert guest.evaluate("['mute', 'camera-off', 'screen', 'role'].every((id) => document.getElementById(id).hidden)")
    guest.click("#hand")
    wait_until(lambda: below.requests == [["raiseHand", {"raised": True}]], "the request", 3, lambda: below.requests)
    wait_until(lambda: guest.text("#hand") == "Stop asking", "the other label", 3)

    above.notify("hand.changed", user_id=below.user, display_name="Otto", raised=True)
    notice(host, "Otto asks to speak.")
    assert host.text("#hands-count") == "1"
    assert violations(host.tab) == []
    host.click("#people")
    row = "[...document.querySelectorAll('#people-list .person')].map((e) => e.querySelector('.name').textContent)"
    assert host.evaluate(row) == ["Otto", "Hanako (you)"]
    assert violations(host.tab) == []
    host.tab.screenshot(path=artifacts / "people.png")
    host.click("[data-action=let-in]")
    wait_until(lambda: above.requests == [["setRole", {"user_id": below.user, "role": "host"}]], "the request", 3)
    above.notify("hand.changed", user_id=below.user, display_name="Otto", raised=False)
    wait_until(lambda: host.evaluate(row) == ["Hanako (you)"], "the end of the hand", 3)
    assert host.text("#hands-count") == ""

    # The guest is told by whom, and may go down by itself and come back.
    guest.evaluate("window.nagare.channel.setRole('host')")
    below.notify("role.changed", role="audience", by="moderator")
    guest.shows("A host moved you to the audience.")
    assert guest.text("#hand") == "Ask to speak"


def test_a_moderator_mutes_moves_and_removes(open_builtin: OpenBuiltIn, channel: str) -> None:
    host, others = open_builtin(), open_builtin()
    signaling = Signaling(host, moderator=True)
    joined(host, channel, how="host", name="Hanako")
    add_members(others, channel, "Otto", profile="interactive", role="host", microphone=True)
    host.sees(1)
    host.click("#people")
    button = lambda action: f"[data-key=otto] [data-action={action}]"
    wait_until(lambda: host.evaluate(f"document.querySelector('{button('mute')}') !== null"), "the button", 5)
    label = host.evaluate(f"document.querySelector('{button('mute')}').ariaLabel")
    assert label == "Mute Otto"
    for action in ("mute", "camera", "move-down"):
        host.click(button(action))
    # Removing takes a second press.
    host.click(button("remove"))
    assert host.text(button("remove")) == "Remove?"
    host.click(button("remove"))
    host.click("#mute-others")
    expected = [
        ["setMuted", {"user_id": "otto", "kind": "audio", "muted": True}],
        ["setMuted", {"user_id": "otto", "kind": "video", "muted": True}],
        ["setRole", {"user_id": "otto", "role": "audience"}],
        ["removeUser", {"user_id": "otto"}],
        ["muteOthers", {"kind": "audio"}],
    ]
    wait_until(lambda: signaling.requests == expected, "the requests", 5, describe=lambda: signaling.requests)
    # The list keeps the focus where it is while it changes.
    host.tab.focus(button("camera"))
    signaling.notify("hand.changed", user_id="otto", display_name="Otto", raised=True)
    wait_until(lambda: host.evaluate("document.querySelector('[data-key=otto].asks') !== null"), "the hand", 3)
    assert host.evaluate("document.activeElement.dataset.action") == "camera"
    # A refusal is a sentence.
    signaling.error = {"code": 0, "reason": "USER-UNKNOWN", "message": "There is no such user."}
    host.click(button("mute"))
    host.shows("not in this call any more")


def test_others_have_no_such_buttons(open_builtin: OpenBuiltIn, channel: str) -> None:
    page, others = open_builtin(), open_builtin()
    Signaling(page, moderator=False)
    joined(page, channel, name="Hanako")
    add_members(others, channel, "Otto")
    page.sees(1)
    page.click("#people")
    assert page.evaluate("[...document.querySelectorAll('#people-list button, #mute-others')].filter((e) => !e.hidden).length") == 0


def test_who_is_muted_or_removed_is_told_by_whom(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    signaling = Signaling(page)
    joined(page, channel, name="Hanako")
    wait_until(lambda: page.text("#mute") == "Mute", "the microphone", 5)
    signaling.notify("muted", kind="audio", muted=True, by="moderator")
    page.shows("A host muted you. You can unmute yourself.")
    wait_until(lambda: page.text("#mute") == "Unmute", "the mute", 3)
    page.click("#mute")
    wait_until(lambda: page.text("#mute") == "Mute", "the own unmute", 3)
    signaling.socket.close(code=1000, reason="KICKED")
    page.shows("You were removed from this call.")
    assert page.evaluate("document.body.dataset.view") == "form"


def test_the_module_tells_of_hands_and_moderators(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    signaling = Signaling(page, moderator=True, hands=[{"user_id": "zoe", "display_name": "Zoe"}], history=[
        {"user_id": "zoe", "display_name": "Zoe", "text": "early", "sent_at": 1_700_000_000}
    ])  # fmt: skip
    page.page.goto(f"{page.page.origin}/nagare.d.ts")
    page.evaluate(
        "(async () => { const { Nagare } = await import('/nagare.js'); window.seen = []; const channel = window.channel ="
        f" Nagare.channel({{ channel: '{channel}', user: 'hanako', displayName: 'Hanako', profile: 'interactive',"
        " autoPublish: false }); for (const type of ['history', 'joined', 'handChanged', 'roleChanged']) {"
        " channel.addEventListener(type, ({ detail }) => window.seen.push([type, detail.messages ?? detail.role ??"
        " [detail.user ?? '', detail.raised ?? '']])); } await channel.join(); })()"
    )
    seen = lambda: page.evaluate("window.seen")
    history = [{"user": "zoe", "name": "Zoe", "text": "early", "sentAt": 1_700_000_000}]
    wait_until(lambda: len(seen()) == 3, "the history", 3, describe=seen)
    assert seen() == [["handChanged", ["zoe", True]], ["joined", ["", ""]], ["history", history]]
    facts = "[window.channel.isModerator, window.channel.handIsRaised, [...window.channel.hands]]"
    assert page.evaluate(facts) == [True, False, [["zoe", "Zoe"]]]
    page.evaluate("window.channel.raiseHand()")
    # The node's event after the answer tells nothing new.
    signaling.notify("hand.changed", user_id="hanako", display_name="Hanako", raised=True)
    signaling.notify("hand.changed", user_id="zoe", display_name="Zoe", raised=False)
    wait_until(lambda: len(seen()) == 5, "the events", 3, describe=seen)
    assert seen()[3:] == [["handChanged", ["hanako", True]], ["handChanged", ["zoe", False]]]
    assert page.evaluate(facts) == [True, True, [["hanako", "Hanako"]]]
    # A change of the role lowers the hand.
    page.evaluate("window.channel.setRole('audience')")
    assert page.evaluate("window.channel.handIsRaised") is False
    page.evaluate(
        "Promise.all([window.channel.setUserRole('zoe', 'host'), window.channel.muteUser({ id: 'zoe' }, 'video'),"
        " window.channel.muteOthers('audio'), window.channel.removeUser('zoe')])"
    )
    assert sorted(one[0] for one in signaling.requests) == ["muteOthers", "raiseHand", "removeUser", "setMuted", "setRole"]
    signaling.error = {"code": 0, "reason": "NOT-A-MODERATOR", "message": "Only moderators can do that."}
    reason = "window.channel.removeUser('zoe').then(() => null, (error) => error.reason)"
    assert page.evaluate(reason) == "NOT-A-MODERATOR"


def test_a_broadcast_from_the_question_to_the_removal(open_builtin: OpenBuiltIn, channel: str) -> None:
    """Without access control every host is a moderator."""
    host, guest, third = (open_builtin() for _ in range(3))
    joined(host, channel, how="host", name="Hanako")
    joined(guest, channel, how="audience", name="Otto")
    joined(third, channel, how="audience", name="Ann")
    guest.click("#hand")
    notice(host, "Otto asks to speak.")
    host.click("#people")
    host.click("[data-action=let-in]")
    guest.shows("A host let you in: you are on stage now.")
    host.sees(1)
    third.sees(2)
    assert host.text("#hands-count") == "", "the hand is still up"
    user = guest.evaluate("window.nagare.channel.user")
    row = f"[data-key='{user}']"
    wait_until(lambda: host.evaluate(f"document.querySelector(\"{row} [data-action=mute]\") !== null"), "the button", 5)
    host.click(f"{row} [data-action=mute]")
    guest.shows("A host muted you. You can unmute yourself.")
    is_muted = f"window.nagare.channel.users.find((one) => one.id === '{user}').connections[0].audioMuted"
    wait_until(lambda: third.evaluate(is_muted) is True, "the mute at the audience", 5)
    guest.click("#mute")
    wait_until(lambda: third.evaluate(is_muted) is False, "the own unmute", 5)
    host.click("#mute-others")
    wait_until(lambda: third.evaluate(is_muted) is True, "the mute of all", 5)
    host.click(f"{row} [data-action=move-down]")
    guest.shows("A host moved you to the audience.")
    wait_until(lambda: host.titles() == ["Hanako (you)"], "the guest's picture to go", 5, describe=host.titles)
    guest.click("#hand")
    wait_until(lambda: host.text("#hands-count") == "1", "the hand", 5)
    host.click("[data-action=remove]")
    host.click("[data-action=remove]")
    guest.shows("You were removed from this call.")
    # A guest cannot do any of this.
    for call in ("setUserRole('x', 'host')", "muteUser('x', 'audio')", "muteOthers('audio')", "removeUser('x')"):
        reason = third.evaluate(f"window.nagare.channel.{call}.then(() => null, (error) => error.reason)")
        assert reason == "NOT-A-MODERATOR", call


# How a node is told to keep messages.
CHAT_HISTORY = ("--limit", "chat-history=50")


def test_the_node_keeps_the_chat_for_those_who_join_late(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    origin = own_node(*CHAT_HISTORY).origin
    one, two = open_builtin(origin), open_builtin(origin)
    joined(one, channel, name="Hanako")
    one.click("#chat")
    for text in ("First", "Second"):
        one.tab.fill("#chat-text", text)
        one.tab.press("#chat-text", "Enter")
        wait_until(lambda: ["You", text] in one.evaluate(CHAT), "the own message", 10)
    joined(two, channel, name="Otto")
    two.click("#chat")
    expected = [["Hanako", "First"], ["Hanako", "Second"]]
    wait_until(lambda: two.evaluate(CHAT) == expected, "the history", 5, describe=lambda: two.evaluate(CHAT))


# The chat.


CHAT = """[...document.querySelectorAll('#chat-log .said')]
  .map((one) => [one.querySelector('.author').textContent, one.querySelector('.text').textContent])"""
LINKS = "[...document.querySelectorAll('#chat-log .said:last-child a')].map((one) => one.getAttribute('href'))"


def test_addresses_of_the_web_are_links_and_nothing_else_is(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    joined(page, channel, name="Hanako")
    page.click("#chat")
    for number, (text, links) in enumerate((
        ("Look at https://example.com/a?b=c#d, and at http://example.org.", ["https://example.com/a?b=c#d", "http://example.org"]),
        ("(https://example.com/x) https://en.example.com/wiki/A_(b)", ["https://example.com/x", "https://en.example.com/wiki/A_(b)"]),
        ("会議は「https://example.com/予定」です。", ["https://example.com/予定"]),
        ("javascript:alert(1) data:text/html,x ftp://example.com www.example.com", []),
        ("https://bank.example@evil.example/ https://", []),
        ('https://example.com/"onmouseover="x <a href="https://example.com/y">z</a>', ["https://example.com/", "https://example.com/y"]),
    ), start=1):  # fmt: skip
        page.tab.fill("#chat-text", text)
        page.tab.press("#chat-text", "Enter")
        wait_until(lambda: len(page.evaluate(CHAT)) == number, "the message", 5)
        assert page.evaluate(CHAT)[-1] == ["You", text]
        assert page.evaluate(LINKS) == links
    every = "[...document.querySelectorAll('#chat-log a')]"
    assert page.evaluate(f"{every}.every((one) => one.textContent === one.getAttribute('href') && one.target === '_blank')")
    assert page.evaluate(f"{every}.every((one) => one.relList.contains('noopener') && one.relList.contains('noreferrer'))")
    assert page.evaluate("document.querySelectorAll('#chat-log [onmouseover]').length") == 0
    assert violations(page.tab) == []


def test_who_joins_late_reads_what_was_written_before(open_builtin: OpenBuiltIn, channel: str) -> None:
    page = open_builtin()
    now = int(time.time())
    history = [
        {"user_id": "ann", "display_name": "Ann", "text": "Yesterday", "sent_at": now - 86_400},
        {"user_id": "ben", "display_name": "", "text": "<b>Hello</b>", "sent_at": now - 60},
    ]
    signaling = Signaling(page, history=history)
    joined(page, channel, name="Hanako")
    wait_until(lambda: page.text("#chat-count") == "2", "the count", 5)
    page.click("#chat")
    expected = [["Ann", "Yesterday"], ["ben", "<b>Hello</b>"]]
    wait_until(lambda: page.evaluate(CHAT) == expected, "the history", 5, describe=lambda: page.evaluate(CHAT))
    when = page.evaluate("[...document.querySelectorAll('#chat-log time')].map((one) => Date.parse(one.dateTime) / 1000)")
    assert when == [now - 86_400, now - 60]
    page.tab.fill("#chat-text", "Mine")
    page.tab.press("#chat-text", "Enter")
    expected.append(["You", "Mine"])
    wait_until(lambda: page.evaluate(CHAT) == expected, "the own message", 5)
    # After a lost connection only what was missed is new.
    history += [
        {"user_id": signaling.user, "display_name": "Hanako", "text": "Mine", "sent_at": int(time.time())},
        {"user_id": "ann", "display_name": "Ann", "text": "Missed", "sent_at": int(time.time())},
    ]
    signaling.socket.close(code=3000, reason="")
    expected.append(["Ann", "Missed"])
    wait_until(lambda: page.evaluate(CHAT) == expected, "what was missed", 20, describe=lambda: page.evaluate(CHAT))


# Calls of two.


SCREEN = """(() => { navigator.mediaDevices.getDisplayMedia = async () => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 640, height: 360 });
  const pen = canvas.getContext('2d');
  setInterval(() => pen.fillRect(0, 0, Math.random() * 600, 300), 100);
  window.shared = canvas.captureStream(10);
  return window.shared; }; })()"""


def test_the_two_of_a_call_know_each_other(open_builtin: OpenBuiltIn, channel: str, artifacts: Path) -> None:
    one, two = open_builtin(), open_builtin(viewport=PHONE)
    one.join(channel, how="call", name="Hanako")
    one.shows("waiting for the other")
    two.join(channel, how="call", name="Otto")
    for page, other in ((one, "Otto"), (two, "Hanako")):
        page.sees(1)
        wait_until(lambda: other in page.titles(), "the other's name", 5, describe=page.titles)
        assert page.evaluate("['hand', 'role'].every((id) => document.getElementById(id).hidden)")
    notice(one, "Otto joined.")
    # Mutes.
    silent = "document.querySelector('.tile:not(.own) .silent').hidden"
    assert one.evaluate(silent)
    two.click("#mute")
    two.click("#camera-off")
    wait_until(lambda: not one.evaluate(silent), "the mute", 5)
    picture = "document.querySelector('.tile:not(.own)').dataset.picture"
    wait_until(lambda: one.evaluate(picture) == "off", "the initials", 5)
    # The chat.
    one.click("#chat")
    one.tab.fill("#chat-text", "Hello https://example.com")
    one.tab.press("#chat-text", "Enter")
    wait_until(lambda: two.text("#chat-count") == "1", "an unread message", 5)
    two.click("#chat")
    wait_until(lambda: two.evaluate(CHAT) == [["Hanako", "Hello https://example.com"]], "the message", 5)
    two.click("#chat-close")
    # The screen.
    one.evaluate(SCREEN)
    one.click("#screen")
    wait_until(lambda: "Screen of Hanako" in two.titles(), "the screen", 5, describe=two.titles)
    assert one.titles() == ["Hanako (you)", "Otto", "Your screen"] and one.text("#screen") == "Stop sharing"
    wait_until(lambda: two.evaluate("document.querySelector('.tile.screen video').videoWidth") == 640, "the screen's size", 10)
    two.tab.screenshot(path=artifacts / "call-screen.png")
    # The browser's own button ends the track.
    one.evaluate("(() => { const [track] = window.shared.getTracks(); track.stop(); track.dispatchEvent(new Event('ended')); })()")
    wait_until(lambda: two.titles() == ["Otto (you)", "Hanako"], "the end of the screen", 5, describe=two.titles)
    assert violations(one.tab) == [] and violations(two.tab) == []
    two.click("#leave")
    notice(one, "Otto left.")
    wait_until(lambda: one.titles() == ["Hanako (you)"], "the other's end", 5, describe=one.titles)


def test_a_call_through_the_node_says_that_it_has_no_chat(
    open_builtin: OpenBuiltIn, own_node: Callable[..., Node], channel: str
) -> None:
    origin = own_node("--relay-media", "server").origin
    one, two = open_builtin(origin), open_builtin(origin)
    for page, name in ((one, "Hanako"), (two, "Otto")):
        page.join(channel, how="call", name=name)
    for page in (one, two):
        page.sees(1)
        page.shows("through the server")
    assert one.titles() == ["Hanako (you)", "The other"]
    one.click("#chat")
    wait_until(lambda: one.text("#chat-note") == "The other takes no messages.", "the sentence", 5)


PEER = """(async (room) => {
  const { Call } = await import('/nagare-call.js');
  window.call = new Call({ room, displayName: 'Hanako' });
  window.said = [];
  window.call.addEventListener('message', ({ detail }) => window.said.push([detail.name, detail.text]));
})"""


def test_firefox_and_chromium_tell_each_other_who_they_are(
    open_page: Callable[..., ChromiumPage], open_firefox: Callable[[str], FirefoxPage], node: Node, channel: str
) -> None:
    pages = [open_page(node.origin), open_firefox(node.origin)]
    for page in pages:
        page.goto(f"{node.origin}/nagare.d.ts")
        page.evaluate(f"{PEER}({json.dumps(channel)})")
    for page in pages:
        wait_until(lambda: page.evaluate("window.call.other?.name ?? ''") == "Hanako", "the other's name", 20)
    pages[0].evaluate("window.call.sendMessage('from Chromium')")
    pages[1].evaluate("window.call.sendMessage('from Firefox')")
    pages[0].evaluate("window.call.setState({ audioMuted: true })")
    said = lambda page: page.evaluate("window.said")
    wait_until(lambda: said(pages[1]) == [["Hanako", "from Chromium"]], "a message", 5, describe=lambda: said(pages[1]))
    wait_until(lambda: said(pages[0]) == [["Hanako", "from Firefox"]], "a message", 5, describe=lambda: said(pages[0]))
    wait_until(lambda: pages[1].evaluate("window.call.other.audioMuted"), "the mute", 5)


def test_what_the_other_of_a_call_sends_is_checked(open_builtin: OpenBuiltIn, channel: str) -> None:
    page, other = open_builtin(), open_builtin()
    page.join(channel, how="call", name="Hanako")
    page.shows("waiting for the other")
    other.open()
    # A peer that writes what it likes into the data channel.
    other.evaluate(
        "(async () => { const create = RTCPeerConnection.prototype.createDataChannel;"
        " RTCPeerConnection.prototype.createDataChannel = function (...given) {"
        "   const data = create.apply(this, given); data.send = ((send) => (text) => { window.data = data;"
        "     window.write = send; send(text); })(data.send.bind(data)); return data; };"
        " const { Call } = await import('/nagare-call.js');"
        f" window.call = new Call({{ room: '{channel}', displayName: 'Otto' }}); }})()"
    )
    wait_until(lambda: "Otto" in page.titles(), "the other", 15, describe=page.titles)
    for text in ("{", "null", "[]", '{"type":"message","text":{}}', '{"type":"message"}', "x" * 20_000):
        other.evaluate(f"window.write({json.dumps(text)})")
    other.evaluate("""window.write(JSON.stringify({ type: 'state', name: 'x'.repeat(5000), audioMuted: 'yes', videoMuted: 1 }))""")
    other.evaluate("""window.write(JSON.stringify({ type: 'state', name: ['a'] }))""")
    other.evaluate("""window.write(JSON.stringify({ type: 'message', text: '<img src=x>' }))""")
    page.click("#chat")
    wait_until(lambda: page.evaluate(CHAT) == [["The other", "<img src=x>"]], "the message", 5, lambda: page.evaluate(CHAT))
    assert page.titles() == ["Hanako (you)", "The other"]


# The page in Japanese.


def test_a_call_in_japanese_is_accessible(open_builtin: OpenBuiltIn, channel: str, artifacts: Path) -> None:
    page, other = open_builtin(locale="ja-JP", viewport=PHONE), open_builtin()
    page.join(channel, name="花子")
    wait_until(lambda: "参加しました" in page.status_text(), "the channel", 8, describe=page.status_text)
    add_members(other, channel, "Otto")
    page.sees(1)
    assert page.text("#mute") == "ミュート" and page.titles() == ["花子（あなた）", "Otto"]
    page.click("#more")
    page.tab.screenshot(path=artifacts / "call-japanese.png")
    assert violations(page.tab) == []
