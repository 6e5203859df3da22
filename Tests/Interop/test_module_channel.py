"""The browser module in channels of a real node: roles, subscriptions, and tokens that expire."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from typing import Callable

import httpx

from harness.builtin import BuiltInPage
from harness.chromium import ChromiumPage
from harness.module import run
from harness.node import BINARY, ENVIRONMENT, Node
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]

JOIN = (
    "window.events = []; const one = window.channel = Nagare.channel(given[0]);"
    "for (const type of ['userOnline', 'userOffline', 'roleChanged', 'authInfoWillExpire', 'authInfoExpired', 'bye'])"
    " one.addEventListener(type, ({ detail }) => window.events.push([type, detail.user?.id ?? detail.role ??"
    " detail.expiresAt ?? detail.reason ?? '', detail.by ?? detail.reason ?? '']));"
    "await one.join();"
)
def member(open_page: OpenPage, node: Node, channel: str, user: str, **options: object) -> ChromiumPage:
    page = open_page(node.origin)
    page.goto(f"{node.origin}/nagare.d.ts")
    # The module keeps its peer connection to itself.
    page.evaluate(
        "(() => { const Base = RTCPeerConnection; window.RTCPeerConnection = class extends Base {"
        " constructor(...all) { super(...all); window.connections = [...window.connections ?? [], this]; } }; })()"
    )
    run(page, JOIN, {"channel": channel, "user": user, **options})
    return page


def events(page: ChromiumPage, kind: str) -> list[list]:
    return [one for one in page.evaluate("window.events") if one[0] == kind]


def frames(page: ChromiumPage) -> int:
    """Video frames that the page has decoded in its newest connection."""
    return page.evaluate(
        "window.connections.at(-1).getStats().then((all) => [...all.values()].filter((one) =>"
        " one.type === 'inbound-rtp' && one.kind === 'video').reduce((sum, one) => sum + (one.framesDecoded ?? 0), 0))"
    )


def media_ends(page: ChromiumPage, kind: str) -> Callable[[], bool]:
    """Whether no more packets of a kind arrive."""
    counts: list[int] = []

    def look() -> bool:
        counts.append(
            page.evaluate(
                "window.connections.at(-1).getStats().then((all) => [...all.values()].filter((one) =>"
                f" one.type === 'inbound-rtp' && one.kind === '{kind}').reduce((sum, one) => sum + one.packetsReceived, 0))"
            )
        )
        return len(counts) > 10 and len(set(counts[-10:])) == 1

    return look


def plays(page: ChromiumPage, what: str) -> None:
    before = frames(page)
    wait_until(lambda: frames(page) > before + 15, what, 10, describe=lambda: page.evaluate("window.events"))


def test_a_member_of_the_audience_becomes_a_host_and_goes_back(
    open_page: OpenPage, node: Node, channel: str
) -> None:
    host = member(open_page, node, channel, "hanako", profile="interactive", role="host")
    guest = member(open_page, node, channel, "otto", profile="interactive", role="audience")
    plays(guest, "the host's picture in the audience")
    assert events(host, "userOnline") == [], "the audience is announced"
    assert len(node.publishing(channel)) == 1

    run(guest, "await window.channel.setRole('host')")
    plays(host, "the new host's picture")
    assert events(host, "userOnline") == [["userOnline", "otto", ""]]
    assert events(guest, "roleChanged") == [["roleChanged", "host", "self"]]
    assert len(node.publishing(channel)) == 2

    run(guest, "await window.channel.setRole('audience')")
    wait_until(lambda: events(host, "userOffline") == [["userOffline", "otto", "became-audience"]], "its end as a host", 5)
    wait_until(lambda: len(node.publishing(channel)) == 1, "one publisher", 5)
    plays(guest, "the host's picture, still")


def test_a_member_receives_what_it_subscribes_to(open_page: OpenPage, node: Node, channel: str) -> None:
    options = {"profile": "interactive", "role": "host"}
    member(open_page, node, channel, "hanako", **options)
    viewer = member(open_page, node, channel, "otto", autoSubscribe=False, autoPublish=False, **options)
    wait_until(lambda: events(viewer, "userOnline") == [["userOnline", "hanako", ""]], "the host", 5)
    wait_until(media_ends(viewer, "video"), "no picture without a subscription", 5)
    assert frames(viewer) == 0

    run(viewer, "await window.channel.subscribe({ user: 'hanako', kind: 'video' })")
    plays(viewer, "the picture that was subscribed to")
    run(viewer, "await window.channel.unsubscribe({ user: 'hanako', kind: 'video' })")
    wait_until(media_ends(viewer, "video"), "the end of the picture", 5)
    run(viewer, "await window.channel.subscribe()")
    plays(viewer, "the picture after a subscription to everybody")
    wait_until(lambda: not media_ends(viewer, "audio")(), "sound", 5)


def operator_mutes(node: Node, channel: str, user: str, is_muted: bool) -> None:
    path = f"{node.admin}/v1/channels/{channel}/members/{user}/mute"
    assert httpx.post(path, json={"kind": "audio", "muted": is_muted}).json() == {"changed": 1}


def test_an_unmute_under_an_operators_mute_is_refused_and_shown(
    open_page: OpenPage, node: Node, channel: str
) -> None:
    page = BuiltInPage(open_page(node.origin))
    page.join(channel, name="Hanako")
    page.shows(f"You are in “{channel}”")
    speaker = member(open_page, node, channel, "otto")
    viewer = member(open_page, node, channel, "zoe", autoPublish=False)
    is_muted = "window.channel.isMuted('audio')"
    wait_until(lambda: speaker.evaluate(is_muted) is False, "the microphone", 5)
    operator_mutes(node, channel, "otto", True)
    wait_until(lambda: speaker.evaluate(is_muted), "the operator's mute", 5)
    run(
        speaker,
        "window.changes = []; window.channel.addEventListener('localTrackChanged', ({ detail }) =>"
        " window.changes.push([detail.kind, detail.muted]))",
    )
    said = "(promise) => promise.then(() => 'SENT', ({ reason, message }) => [reason, message])"
    reason, message = run(speaker, f"return ({said})(window.channel.mute('audio', false))")
    assert reason == "MUTED-BY-OPERATOR" and "operator" in message
    assert speaker.evaluate(is_muted) and not speaker.evaluate("window.channel.microphoneTrack.enabled")
    assert ["audio", False] not in speaker.evaluate("window.changes"), "the module says that it is sent"
    # The same by another way, which opens the device again; the camera is not concerned.
    assert run(speaker, f"return ({said})(window.channel.publish({{ camera: false }}))")[0] == "MUTED-BY-OPERATOR"
    assert speaker.evaluate(is_muted) and not speaker.evaluate("window.channel.isMuted('video')")
    others = "window.channel.users.find((one) => one.id === 'otto')?.connections[0]?.audioMuted"
    wait_until(lambda: viewer.evaluate(others) is True, "the mute at the other", 5)
    operator_mutes(node, channel, "otto", False)
    assert run(speaker, f"return ({said})(window.channel.mute('audio', false))") == "SENT"
    wait_until(lambda: viewer.evaluate(others) is False, "the unmute at the other", 5)
    assert speaker.evaluate("window.channel.microphoneTrack.enabled")
    # In the node's page, the button stays as it is, and the page says why.
    user = page.evaluate("window.nagare.channel.user")
    operator_mutes(node, channel, user, True)
    page.shows("An operator turned your microphone off")
    wait_until(lambda: page.text("#mute") == "Unmute", "the mute", 5)
    page.click("#mute")
    page.shows("only an operator can unmute")
    assert page.text("#mute") == "Unmute"


KEY = ("--jwt-key", "hs256:0123456789abcdef0123456789abcdef")


def token(channel: str, expires: str) -> str:
    command = [str(BINARY), "token", *KEY, "--channel", channel, "--expires", expires]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout.strip()


def expiry(one: str) -> int:
    """When a JWT ends, in seconds since 1970."""
    payload = one.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"]


def test_a_token_that_ends_is_told_and_replaced_while_the_call_goes_on(
    open_page: OpenPage, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node(*KEY)
    # The node warns 30 s before the end, so of these tokens at once.
    tokens = token(channel, "8s"), token(channel, "8s")
    refreshed, left = (member(open_page, node, channel, user, token=one) for user, one in zip(("hanako", "otto"), tokens))
    for page, one in zip((refreshed, left), tokens):
        wait_until(lambda: events(page, "authInfoWillExpire"), "the warning", 5)
        ((_, told, _),) = events(page, "authInfoWillExpire")
        assert told == expiry(one)
    wrong = run(
        refreshed, "return window.channel.refreshAuthInfo(given[0]).catch(({ message }) => message)", token("other", "1h")
    )
    assert isinstance(wrong, str) and wrong, "a token of another channel was accepted"
    until = run(refreshed, "return window.channel.refreshAuthInfo(given[0])", token(channel, "1h"))
    assert until > expiry(tokens[0]) + 3000
    wait_until(lambda: events(left, "authInfoExpired"), "the end of the member with the old token", 15)
    assert time.time() >= expiry(tokens[1]), "the member was put out before its token ended"
    time.sleep(1)
    assert events(refreshed, "authInfoExpired") == events(refreshed, "bye") == []
    assert refreshed.evaluate("window.channel.users.length") == 0
    assert len(node.channel(channel, token(channel, "1h"))["participants"]) == 1


def test_the_page_broadcasts_to_an_audience_whose_members_come_on_stage(
    open_page: OpenPage, node: Node, channel: str
) -> None:
    host, one, two = (BuiltInPage(open_page(node.origin)) for _ in range(3))
    host.join(channel, how="host", name="Hanako")
    for number, page in enumerate((one, two), 1):
        page.join(channel, how="audience", name=f"Guest {number}")
        page.sees(1)
        assert page.titles() == ["Hanako"], "the audience sees others than the host"
    assert host.titles() == ["Hanako (you)"]
    assert len(node.publishing(channel)) == 1

    # Somebody in the audience asks a host. A node without access control obeys the module, too.
    assert one.evaluate("document.querySelector('#role').hidden")
    one.evaluate("window.nagare.channel.setRole('host')")
    host.sees(1)
    two.sees(2)
    assert sorted(host.titles()) == ["Guest 1", "Hanako (you)"]
    one.click("#role")
    wait_until(lambda: host.titles() == ["Hanako (you)"], "the guest's return to the audience", 5, describe=host.titles)
    two.sees(1)
    host.click("#leave")
    wait_until(lambda: one.titles() == two.titles() == [], "an empty stage", 5, describe=one.titles)
