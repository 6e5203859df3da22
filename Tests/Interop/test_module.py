"""The browser module without the page: its types, wrong input, tokens, and the screen."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import re
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Playwright

from harness.chromium import FLAGS, Chromium, ChromiumPage
from harness.module import run
from harness.node import LOOPBACK, Node
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]
GUIDE = Path(__file__).resolve().parents[2] / "Sources/Signaling/Signaling/Signaling.docc/BrowserModule.md"


@pytest.fixture
def tab(open_page: OpenPage, node: Node) -> Callable[[], ChromiumPage]:
    """Opens pages of the node's origin without a script of their own."""

    def make() -> ChromiumPage:
        page = open_page(node.origin)
        page.goto(f"{node.origin}/nagare.d.ts")
        return page

    return make


@contextlib.contextmanager
def application(page: str) -> Iterator[str]:
    """The address of a server with this page, of another origin than the node's."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Keeps requests out of the output."""

    with http.server.ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}/"
        finally:
            server.shutdown()


def first_example(node: Node, channel: str) -> str:
    """The article's first example as it stands, except for the address, the channel and the token."""
    (example,) = re.findall(r"```html\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    for written, here in (
        ("https://sfu.example.com:8080", node.origin), ('"room"', json.dumps(channel)), (', token: "…"', "")
    ):  # fmt: skip
        assert written in example
        example = example.replace(written, here)
    return example


# Of each video: whether it has a picture, its tracks, and whether it is without sound.
SHOWN = (
    "[...document.querySelectorAll('video')].filter((one) => one.srcObject)"
    ".map((one) => [one.videoWidth > 0, one.srcObject.getTracks().length, one.muted]).sort((a, b) => a[1] - b[1])"
)
OWN, OTHER = [True, 1, True], [True, 2, False]


def test_the_first_example_shows_the_own_picture_and_those_who_are_there_and_come(
    open_page: OpenPage, tab: Callable[[], ChromiumPage], node: Node, channel: str
) -> None:
    pages = [open_page(node.origin) for _ in range(2)]
    with application(first_example(node, channel)) as address:
        for number, page in enumerate(pages, start=1):
            page.goto(address)
            wait_until(lambda: len(node.publishing(channel)) == number, "the member", 15)
    for page in pages:
        look = lambda: page.evaluate(SHOWN)
        wait_until(lambda: look() == [OWN, OTHER], "the own picture, and the other's with sound", 15, describe=look)
        assert page.evaluate("document.querySelector('#sound').hidden")
    sharer = tab()
    run(
        sharer,
        "window.channel = await Nagare.join(given[0]); const canvas = document.createElement('canvas');"
        "const pen = canvas.getContext('2d'); setInterval(() => pen.fillRect(0, 0, Math.random() * 300, 150), 100);"
        "await window.channel.publishScreen({ stream: canvas.captureStream(10) })",
        {"channel": channel, "camera": False},
    )
    count = "document.querySelectorAll('video').length"
    for page in pages:
        # The sharer's microphone has a video without a picture.
        wait_until(lambda: page.evaluate(count) == 4, "the screen", 15, describe=lambda: page.evaluate(SHOWN))
    sharer.evaluate("window.channel.unpublishScreen()")
    for page in pages:
        wait_until(lambda: page.evaluate(count) == 3, "the end of the screen", 10, describe=lambda: page.evaluate(SHOWN))
    sharer.evaluate("window.channel.leave()")
    pages[0].goto("about:blank")
    wait_until(lambda: pages[1].evaluate(SHOWN) == [OWN], "the end of the others", 25, lambda: pages[1].evaluate(SHOWN))


def test_the_first_example_asks_for_a_click_where_the_browser_refuses_sound(
    playwright: Playwright, open_page: OpenPage, node: Node, channel: str
) -> None:
    # Without a microphone: browsers play sound on a page that uses one.
    strict = Chromium(playwright, [one for one in FLAGS if not one.startswith(("--autoplay-policy", "--use-fake"))])
    try:
        with application(first_example(node, channel)) as address:
            open_page(node.origin).goto(address)
            wait_until(lambda: len(node.publishing(channel)) == 1, "the other member", 15)
            page = strict.page(node.origin)
            # A script of the test would count as a gesture of the user, so the page reports by itself.
            page.tab.add_init_script(
                "addEventListener('DOMContentLoaded', () => { const sound = document.querySelector('#sound');"
                " new MutationObserver(() => console.log('sound is off')).observe(sound, { attributeFilter: ['hidden'] });"
                " if (!sound.hidden) console.log('sound is off'); })"
            )
            with page.tab.expect_console_message(lambda message: message.text == "sound is off", timeout=20_000):
                page.goto(address)
            look = lambda: page.evaluate(SHOWN)
            wait_until(lambda: look() == [[True, 2, True]], "a picture without sound", 10, describe=look)
            page.click("#sound")
            wait_until(lambda: look() == [OTHER], "the sound", 5, describe=look)
            assert page.evaluate("[document.querySelector('#sound').hidden, document.querySelector('video').paused]") == [True, False]
    finally:
        strict.close()


def test_the_types_name_every_member_of_the_module(tab: Callable[[], ChromiumPage], node: Node) -> None:
    page = tab()
    types = page.evaluate("document.body.textContent")
    members = run(
        page,
        "const of = (one) => Object.getOwnPropertyNames(one.prototype);"
        "const channel = new Channel({ channel: 'x', user: 'u' });"
        "return [...of(Channel), ...Object.keys(channel), ...of(User), ...Object.keys(new User('u')),"
        " ...of(RemoteConnection), ...Object.keys(new RemoteConnection('c', null)), ...Object.keys(Nagare)]"
        " .filter((name) => name !== 'constructor');",
    )
    assert len(members) > 40
    assert [name for name in members if name not in types] == []


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({}, "“channel” is missing"),
        ("nonsense", "“channel” is missing"),
        ({"channel": "x", "role": "king"}, "“role” must be host or audience"),
        ({"channel": "x", "profile": "live"}, "“profile” must be"),
        ({"channel": "x", "url": "ftp://example.com"}, "must start with wss://"),
        ({"channel": "x", "appId": "a", "timestamp": 1}, "“token” is missing"),
        ({"channel": "x", "appId": "a", "token": "t", "timestamp": "soon"}, "“timestamp” must be"),
        ({"channel": "x", "messages": ["chat"]}, "“messages” must be"),
        ({"channel": "x", "messages": "#chat"}, "“messages” must be"),
        ({"channel": "x", "messages": ["#a", "#a"]}, "“messages” must be"),
        ({"channel": "other", "token": "APP"}, "for another channel"),
        ({"user": "other", "token": "APP"}, "for another user"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(
    tab: Callable[[], ChromiumPage], options: Any, sentence: str
) -> None:
    fields = {"appid": "a", "channelid": "room", "userid": "hanako", "nonce": "", "timestamp": 9, "token": "0"}
    if isinstance(options, dict) and options.get("token") == "APP":
        options = {**options, "token": base64.b64encode(json.dumps(fields).encode()).decode()}
    error = run(
        tab(),
        "return Nagare.join(given[0]).then(() => null, ({ name, code, message }) => ({ name, code, message }))",
        options,
    )
    assert error["name"] == "NagareError" and sentence in error["message"] and error["code"] == 16974081


def test_a_token_in_one_parameter_names_channel_and_user(tab: Callable[[], ChromiumPage]) -> None:
    fields = {"appid": "a", "channelid": "room", "userid": "hanako", "nonce": "", "timestamp": 9, "token": "0"}
    token = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
    assert run(tab(), "const one = Nagare.channel(given[0]); return [one.name, one.user]", token) == ["room", "hanako"]


def test_a_screen_is_a_second_connection_of_its_user(tab: Callable[[], ChromiumPage], channel: str) -> None:
    sharer, viewer = tab(), tab()
    run(viewer, "window.channel = await Nagare.join(given[0])", {"channel": channel, "autoPublish": False})
    run(
        sharer,
        "window.channel = await Nagare.join(given[0]); const canvas = document.createElement('canvas');"
        "const pen = canvas.getContext('2d'); setInterval(() => pen.fillRect(0, 0, Math.random() * 300, 150), 100);"
        "window.screenStream = canvas.captureStream(10); await window.channel.publishScreen({ stream: window.screenStream })",
        {"channel": channel, "displayName": "Hanako", "camera": False},
    )
    look = "window.channel.users.map((one) => [one.name, one.connections.map((each) => Boolean(each.videoTrack)).length])"
    wait_until(lambda: viewer.evaluate(look) == [["Hanako", 2]], "two connections of one user", 10)
    assert len(sharer.evaluate("window.channel.users")) == 1, "the user sees its own screen as another user"
    # The browser's own button ends the track.
    sharer.evaluate(
        "(() => { const [track] = window.screenStream.getTracks(); track.stop(); track.dispatchEvent(new Event('ended')); })()"
    )
    wait_until(lambda: viewer.evaluate(look) == [["Hanako", 1]], "the end of the screen", 5)
    sharer.evaluate("window.channel.leave()")
    wait_until(lambda: viewer.evaluate(look) == [], "the user's end", 5)


# `window.heard` has who sent what. The first messages may come before the others can receive: `greet` has them repeated.
LISTEN = (
    "window.heard = []; window.greeted = new Set();"
    "window.channel.addEventListener('message', ({ detail: { user, label, text, data } }) => {"
    " if (text === 'greeting') window.greeted.add(user.id);"
    " else window.heard.push([user.id, user.name, user.role, label, text, data.length]); });"
)


def greet(*pages: Any) -> None:
    """Waits until the node passes messages on between all pages."""

    def all_hear() -> bool:
        for page in pages:
            page.evaluate("window.channel.sendMessage('greeting').catch(() => {})")
        return all(page.evaluate("window.greeted.size") == len(pages) - 1 for page in pages)

    wait_until(all_hear, "greetings between all pages", 10)


def test_messages_name_their_sender_and_come_once(tab: Callable[[], ChromiumPage], channel: str) -> None:
    host, eve = tab(), tab()
    options = {"channel": channel, "profile": "interactive", "messages": True, "autoPublish": False}
    for page, own in (
        (host, {"user": "hanako", "displayName": "Hanako", "role": "host"}),
        (eve, {"user": "eve", "displayName": "Eve", "role": "audience"}),
    ):
        run(page, f"window.channel = await Nagare.join(given[0]); {LISTEN}", {**options, **own})
    greet(host, eve)
    run(
        host,
        "const canvas = document.createElement('canvas'); const pen = canvas.getContext('2d');"
        "setInterval(() => pen.fillRect(0, 0, Math.random() * 300, 150), 100);"
        "await window.channel.publishScreen({ stream: canvas.captureStream(10) })",
    )
    screen = "window.channel.users.flatMap((one) => one.connections.map((each) => each.source))"
    wait_until(lambda: "screen" in eve.evaluate(screen), "the screen", 10, describe=lambda: eve.evaluate(screen))
    # The audience is not announced, and its messages say who it is all the same, whatever their text claims.
    claim = '{"user_id":"hanako","display_name":"Hanako"}'
    for text in (claim, "花", "last"):
        run(eve, "await window.channel.sendMessage(given[0])", text)
    expected = [["eve", "Eve", "audience", "#chat", text, len(text.encode())] for text in (claim, "花", "last")]
    heard = "window.heard"
    wait_until(lambda: host.evaluate(heard) == expected, "each message once", 5, describe=lambda: host.evaluate(heard))
    assert host.evaluate("[window.channel.users.length, window.channel.screenPeerConnection.sctp]") == [0, None]
    run(host, "await window.channel.sendMessage(new Uint8Array([104, 105]), { label: '#chat' })")
    expected = [["hanako", "Hanako", "host", "#chat", "hi", 2]]
    wait_until(lambda: eve.evaluate(heard) == expected, "the bytes", 5, describe=lambda: eve.evaluate(heard))
    assert eve.evaluate("window.channel.messageLabels") == ["#chat"]


def test_messages_go_on_after_a_lost_connection(tab: Callable[[], ChromiumPage], channel: str) -> None:
    one, two = tab(), tab()
    routes: list[tuple[Any, Any]] = []
    one.tab.route_web_socket("**/signaling", lambda socket: routes.append((socket, socket.connect_to_server())))
    for page, user in ((one, "one"), (two, "two")):
        options = {"channel": channel, "user": user, "messages": True, "autoPublish": False}
        run(page, f"window.channel = await Nagare.join(given[0]); {LISTEN}", options)
    greet(one, two)
    run(
        one,
        "window.isBack = false; window.channel.addEventListener('joined', () => { window.isBack = true; });"
        "window.greeted.clear();",
    )
    two.evaluate("window.greeted.clear()")
    page_side, server_side = routes[-1]
    server_side.close()
    page_side.close(code=4000, reason="")
    wait_until(lambda: one.evaluate("window.isBack"), "the return", 10, lambda: one.evaluate("window.channel.status"))
    greet(one, two)


def test_messages_that_cannot_be_sent_are_rejected(tab: Callable[[], ChromiumPage], channel: str) -> None:
    page = tab()
    reasons = run(
        page,
        "const reason = (promise) => promise.then(() => 'SENT', (error) => error.reason);"
        "const one = Nagare.channel({ ...given[0], messages: ['#a'] }); const reasons = [await reason(one.sendMessage('x'))];"
        "await one.join(); reasons.push(await reason(one.sendMessage('x', { label: '#a' })),"
        " await reason(one.sendMessage('x', { label: '#b' })), await reason(one.sendMessage('x')),"
        " await reason(one.sendMessage({}, { label: '#a' })),"
        " await reason(one.sendMessage('x'.repeat(262144), { label: '#a' })));"
        "one.leave(); reasons.push(await reason(one.sendMessage('x', { label: '#a' })), one.messageLabels.length);"
        "const plain = await Nagare.join(given[0]);"
        "return [...reasons, await reason(plain.sendMessage('x')), plain.peerConnection.sctp]",
        {"channel": channel, "autoPublish": False},
    )
    assert reasons == [
        "NOT-CONNECTED", "SENT", "UNSUPPORTED", "UNSUPPORTED", "BAD-PARAMETER", "MESSAGE-TOO-LONG", "NOT-CONNECTED", 0,
        "UNSUPPORTED", None,
    ]  # fmt: skip


def test_events_of_the_extension_change_the_users(tab: Callable[[], ChromiumPage], channel: str) -> None:
    page = tab()
    sockets: list[Any] = []
    requests: list[dict[str, Any]] = []

    def notify(event_type: str, **members: Any) -> None:
        sockets[-1].send(json.dumps({"type": "notify", "event_type": event_type, **members}))

    def from_page(server: Any, text: str) -> None:
        message = json.loads(text)
        if message["type"] != "request":
            server.send(text)
            return
        requests.append(message)
        refusal = {"code": 7, "reason": "NO", "message": "Not now."}
        answer = {"error": refusal} if message["method"] == "subscribe" else {"result": {}}
        sockets[-1].send(json.dumps({"type": "response", "id": message["id"], **answer}))

    def from_server(socket: Any, text: str) -> None:
        # The events of this test come in place of the node's own.
        if '"channel.joined"' in text or '"network.quality"' in text:
            return
        socket.send(text)
        if '"connection.created"' in text:
            camera = {"connection_id": "C1", "source": "camera", "audio": True, "video": True}
            users = [{"user_id": "otto", "display_name": "Otto", "role": "host", "connections": [camera]}]
            notify("channel.joined", profile="interactive", role="host", resume_token="R", grace=10, users=users)

    def route(socket: Any) -> None:
        sockets.append(socket)
        server = socket.connect_to_server()
        socket.on_message(lambda text: from_page(server, text))
        server.on_message(lambda text: from_server(socket, text))

    page.tab.route_web_socket("**/signaling", route)
    run(
        page,
        "window.seen = []; const one = window.channel = Nagare.channel(given[0]);"
        "for (const type of ['userOnline', 'userOffline', 'trackChanged', 'roleChanged', 'bye', 'networkQuality'])"
        " one.addEventListener(type, ({ detail }) => window.seen.push([type, detail.user?.name ?? '', detail.reason ??"
        " detail.role ?? detail.uplink ?? '']));"
        "await one.join();",
        {"channel": channel, "user": "hanako", "profile": "interactive", "role": "host", "autoPublish": False},
    )
    notify("user.online", user_id="zoe", display_name="Zoë", role="host")
    notify("track.changed", user_id="zoe", connection_id="C2", source="screen", audio=False, video=True)
    notify("user.offline", user_id="otto", reason="became-audience")
    notify("network.quality", uplink=2, downlink=5)
    notify("user.online", user_id="ivy", display_name="Ivy", role="host")
    notify("user.offline", user_id="ivy", reason="channel-expired")
    seen = "window.seen.filter(([type]) => type !== 'trackChanged')"
    expected = [["userOnline", "Otto", ""], ["userOnline", "Zoë", ""], ["userOffline", "Otto", "became-audience"]]
    expected += [["networkQuality", "", 2], ["userOnline", "Ivy", ""], ["userOffline", "Ivy", "channel-expired"]]
    wait_until(lambda: page.evaluate(seen) == expected, "the events", 5, describe=lambda: page.evaluate("window.seen"))
    assert page.evaluate("window.channel.networkQuality") == {"uplink": 2, "downlink": 5}
    sources = "window.channel.users.map((one) => [one.name, one.connections.map((each) => each.source)])"
    assert page.evaluate(sources) == [["Zoë", ["screen"]]]
    assert {(one["method"], one["params"]["kind"]) for one in requests} == {("setMuted", "audio"), ("setMuted", "video")}
    refusal = run(page, "return window.channel.subscribe({ user: 'zoe' }).catch(({ reason, code }) => [reason, code])")
    assert refusal == ["NO", 7]
    run(page, "await window.channel.setRole('audience')")
    assert page.evaluate("window.channel.role") == "audience"
    sockets[-1].close(code=1000, reason="KICKED")
    wait_until(lambda: page.evaluate("window.seen.at(-1)") == ["bye", "", "kicked"], "the bye", 5)
    assert len(sockets) == 1, "the module came back after it was kicked"


def test_firefox_and_chromium_see_each_other(
    tab: Callable[[], ChromiumPage], open_firefox: Callable[[str], Any], node: Node, channel: str
) -> None:
    fox, chrome = open_firefox(node.origin), tab()
    fox.goto(f"{node.origin}/nagare.d.ts")
    join = (
        "const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 180 });"
        "const pen = canvas.getContext('2d'); setInterval(() => pen.fillRect(0, 0, Math.random() * 300, 150), 50);"
        "window.channel = await Nagare.join({ ...given[0], microphone: false, messages: true,"
        f" camera: canvas.captureStream(20).getVideoTracks()[0] }}); {LISTEN} return true"
    )
    for page, name in ((fox, "fox"), (chrome, "chrome")):
        run(page, join, {"channel": channel, "user": name, "codec": "VP8"})
    frames = (
        "Promise.all(window.channel.users.map(async (user) => [...(await user.connections[0]?.receivers.video"
        "?.getStats())?.values() ?? []].find((one) => one.type === 'inbound-rtp')?.framesDecoded ?? 0))"
    )
    for page in (fox, chrome):
        wait_until(lambda: [one > 0 for one in page.evaluate(frames)] == [True], "the other's picture", 10)
    greet(fox, chrome)


# Records when the page closes its WebSockets and peer connections; a timer of `given[0]` ms never ends.
RECORD = """
window.ends = [];
const note = (prototype, name) => {
  const { close } = prototype;
  prototype.close = function (...rest) { window.ends.push([name, performance.now()]); return close.apply(this, rest); };
};
note(WebSocket.prototype, 'socket');
note(RTCPeerConnection.prototype, 'media');
const later = window.setTimeout;
window.setTimeout = (act, ms, ...rest) => (ms === given[0] ? 0 : later(act, ms, ...rest));
"""


def test_a_lost_connection_is_resumed_before_others_miss_the_user(tab: Callable[[], ChromiumPage], channel: str) -> None:
    viewer, sharer = tab(), tab()
    routes: list[tuple[Any, Any]] = []

    def route(socket: Any) -> None:
        routes.append((socket, socket.connect_to_server()))

    sharer.tab.route_web_socket("**/signaling", route)
    run(
        viewer,
        "window.seen = []; const one = window.channel = Nagare.channel(given[0]);"
        "for (const type of ['userOnline', 'userInterrupted', 'userResumed', 'userOffline'])"
        " one.addEventListener(type, () => window.seen.push(type));"
        "await one.join(); window.video = document.createElement('video'); window.video.muted = true;",
        {"channel": channel, "user": "viewer", "autoPublish": False},
    )
    # However slow the machine is, the user is back before the old media ends.
    run(sharer, RECORD, 1000)
    run(sharer, "window.channel = await Nagare.join(given[0])", {"channel": channel, "user": "hanako"})
    size = (
        "(() => { const track = window.channel.users[0]?.connections[0]?.videoTrack; if (!track) return 'no track';"
        " if (window.video.srcObject?.getTracks()[0] !== track) { window.video.srcObject = new MediaStream([track]);"
        " window.video.play().catch(() => {}); }"
        " return window.video.getVideoPlaybackQuality().totalVideoFrames; })()"
    )

    def frames() -> int:
        count = viewer.evaluate(size)
        return count if isinstance(count, int) else 0

    wait_until(lambda: frames() > 5, "the picture", 10)
    page_side, server_side = routes[-1]
    server_side.close()
    page_side.close(code=4000, reason="")
    expected = ["userOnline", "userInterrupted", "userResumed"]
    wait_until(lambda: viewer.evaluate("window.seen") == expected, "the return", 10, lambda: viewer.evaluate("window.seen"))
    before = frames()
    wait_until(lambda: frames() > before + 5, "the picture after the return", 10)
    assert viewer.evaluate("window.seen") == expected and len(routes) == 2


def test_a_member_that_is_kicked_while_it_is_interrupted_is_told_when_it_resumes(
    open_page: OpenPage, own_node: Callable[..., Node], channel: str
) -> None:
    # However slow the machine is, the place is kept until the kick.
    node = own_node("--resume-grace", "300")
    page = open_page(node.origin)
    page.goto(f"{node.origin}/nagare.d.ts")
    member = f"{node.admin}/v1/channels/{channel}/members/hanako"
    routes: list[tuple[Any, Any]] = []
    kicks: list[Any] = []

    def states() -> list[str]:
        return [one["state"] for one in httpx.get(member).json().get("connections", [])]

    def route(socket: Any) -> None:
        if routes:
            wait_until(lambda: states() == ["interrupted"], "the interruption", 10, states)
            kicks.append(httpx.post(f"{member}/kick").json())
        routes.append((socket, socket.connect_to_server()))

    page.tab.route_web_socket("**/signaling", route)
    # The media of the lost connection does not end by itself.
    run(page, RECORD, 1000)
    run(
        page,
        "window.seen = []; const one = window.channel = Nagare.channel(given[0]);"
        "one.addEventListener('bye', ({ detail }) => window.seen.push(detail.reason)); await one.join();",
        {"channel": channel, "user": "hanako"},
    )
    page_side, server_side = routes[-1]
    server_side.close()
    page_side.close(code=4000, reason="")
    wait_until(lambda: page.evaluate("window.seen") == ["kicked"], "the bye", 10, lambda: (kicks, page.evaluate("window.seen")))
    assert kicks == [{"ended": 1}] and len(routes) == 2
    assert httpx.get(member).status_code == 404


def route_half_open(page: ChromiumPage, is_half_open: bool) -> list[Any]:
    """Passes the page's WebSockets on. Closes of the first one are lost if `is_half_open`."""
    sockets: list[Any] = []

    def route(socket: Any) -> None:
        server = socket.connect_to_server()
        if is_half_open and not sockets:
            for side in (socket, server):
                side.on_close(lambda code, reason: None)
        sockets.append(socket)

    page.tab.route_web_socket("**/signaling", route)
    return sockets


@pytest.mark.parametrize("is_half_open", [True, False])
def test_the_media_ends_after_the_socket_or_a_second_later(
    tab: Callable[[], ChromiumPage], channel: str, is_half_open: bool
) -> None:
    page = tab()
    sockets = route_half_open(page, is_half_open)
    run(page, RECORD, None if is_half_open else 1000)
    run(page, "window.channel = await Nagare.join(given[0])", {"channel": channel, "autoPublish": False})
    # A message that cannot be read ends the connection from this side.
    sockets[0].send("{")
    closed = wait_until(
        lambda: [one for one in page.evaluate("window.ends") if one[0] == "media"] and page.evaluate("window.ends"),
        "the end of the media",
        10,
    )
    assert [name for name, _ in closed[:2]] == ["socket", "media"]
    if is_half_open:
        assert closed[1][1] - closed[0][1] >= 900


def test_a_half_open_socket_does_not_make_the_user_leave(tab: Callable[[], ChromiumPage], channel: str) -> None:
    viewer, sharer = tab(), tab()
    sockets = route_half_open(sharer, True)
    run(
        viewer,
        "window.seen = []; const one = window.channel = Nagare.channel(given[0]);"
        "for (const type of ['userOnline', 'userInterrupted', 'userResumed', 'userOffline'])"
        " one.addEventListener(type, () => window.seen.push(type)); await one.join();",
        {"channel": channel, "user": "viewer", "autoPublish": False},
    )
    # However slow the machine is, the user is back before the old media ends.
    run(sharer, RECORD, 1000)
    run(sharer, "window.channel = await Nagare.join(given[0])", {"channel": channel, "user": "hanako"})
    wait_until(lambda: viewer.evaluate("window.seen") == ["userOnline"], "the user", 10)
    sockets[0].send("{")
    expected = ["userOnline", "userInterrupted", "userResumed"]
    wait_until(lambda: viewer.evaluate("window.seen") == expected, "the return", 10, lambda: viewer.evaluate("window.seen"))


def test_the_modules_parts_come_from_the_same_address(tab: Callable[[], ChromiumPage], node: Node) -> None:
    page = tab()
    requests: list[str] = []
    page.tab.on("request", lambda request: requests.append(request.url))
    names = run(page, "return Object.keys(await import('/nagare.js')).sort()")
    assert names == ["Channel", "Nagare", "NagareError", "RemoteConnection", "User", "backoffSeconds", "default"]
    assert requests and all(url.startswith(f"{node.origin}/nagare") for url in requests)
    assert f"{node.origin}/nagare-link.js" in requests


def test_a_refused_token_has_its_result_code(open_page: OpenPage, own_node: Callable[..., Node]) -> None:
    node = own_node("--app", "live:0123456789abcdef")
    fields = {"appid": "live", "channelid": "room", "userid": "hanako", "nonce": "", "timestamp": 4_000_000_000}
    refused = "return Nagare.join(given[0]).then(() => null, ({ reason, code, message }) => [code, message])"
    page = open_page(node.origin)
    page.goto(f"{node.origin}/nagare.d.ts")
    for changed, code, sentence in (
        ({"token": "0" * 64}, 0x02010205, "hash"),
        ({"token": "0" * 64, "appid": "other"}, 0x02010201, "app"),
    ):
        token = base64.b64encode(json.dumps({**fields, **changed}).encode()).decode()
        result = run(page, refused, {"token": token, "autoPublish": False})
        assert result[0] == code and sentence in result[1] and "0x" not in result[1], result


def test_another_profile_than_the_channels_is_refused(tab: Callable[[], ChromiumPage], channel: str) -> None:
    page = tab()
    options = {"channel": channel, "autoPublish": False}
    run(page, "window.channel = await Nagare.join(given[0])", {**options, "profile": "communication"})
    refused = "return Nagare.join(given[0]).then(() => null, ({ reason, code }) => [reason, code])"
    result = run(page, refused, {**options, "profile": "interactive", "role": "audience"})
    assert result == ["CHANNEL-PROFILE-MISMATCH", 33622275]


def test_a_join_that_nobody_answers_times_out(tab: Callable[[], ChromiumPage], channel: str) -> None:
    page = tab()
    page.tab.route_web_socket("**/signaling", lambda socket: None)
    result = run(
        page,
        "const channel = Nagare.channel(given[0]); const code = ({ reason, code }) => [reason, code];"
        "const first = channel.join().catch(code); return [await channel.join().catch(code), await first]",
        {"channel": channel, "autoPublish": False, "joinTimeout": 0.5},
    )
    assert result == [["ALREADY-JOINED", 16843521], ["JOIN-TIMEOUT", 16908804]]


@pytest.mark.parametrize(
    "close, bye, code",
    [
        ("CHANNEL-TERMINATED", "terminated", 0),
        ("CHANNEL-EXPIRED", "terminated", 0x02010203),
        ("USER-REPLACED", "replaced", 0),
        ("KICKED", "kicked", 0x02010105),
        ("BANNED", "banned", 0x01030202),
    ],
)
def test_a_close_that_is_a_bye_ends_the_channel(
    tab: Callable[[], ChromiumPage], channel: str, close: str, bye: str, code: int
) -> None:
    page = tab()
    sockets: list[Any] = []
    page.tab.route_web_socket("**/signaling", lambda socket: sockets.append(socket))
    seen = run(
        page,
        "window.seen = []; const one = window.channel = Nagare.channel(given[0]);"
        "one.addEventListener('bye', ({ detail }) => window.seen.push(detail.reason, Boolean(detail.text)));"
        "window.end = one.join().catch(({ reason, code }) => [reason, code]);",
        {"channel": channel, "autoPublish": False},
    )
    assert seen is None
    wait_until(lambda: sockets, "the socket", 5)
    sockets[0].close(code=1000, reason=close)
    assert page.evaluate("window.end") == [close, code]
    assert page.evaluate("[window.seen, window.channel.status]") == [[bye, True], "disconnected"]
    assert len(sockets) == 1, "the module came back after a bye"
