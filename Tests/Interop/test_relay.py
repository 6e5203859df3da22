"""Calls of two over the relay (the Ayame protocol), whose media passes the node or its TURN server."""

from __future__ import annotations

import json
from typing import Any, Callable

import httpx
import pytest

from harness.chromium import ChromiumPage
from harness.node import Node
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]

# A call with a moving picture and a tone; what it says of itself is in `window.seen`.
CALL = """(async (given) => {
  const { Call } = await import('/nagare-call.js');
  const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 180 });
  const pen = canvas.getContext('2d');
  setInterval(() => pen.fillRect(0, 0, Math.random() * 300, 150), 50);
  const audio = new AudioContext();
  const tone = audio.createOscillator();
  const sound = audio.createMediaStreamDestination();
  tone.connect(sound);
  tone.start();
  window.seen = [];
  window.call = new Call({ ...given,
    tracks: [...canvas.captureStream(20).getVideoTracks(), ...sound.stream.getAudioTracks()] });
  window.call.addEventListener('status', ({ detail }) => window.seen.push(detail.status));
  return true;
})(%s)"""
# What arrives of each kind, and the port at which the other side of the transport is.
RECEIVED = """(async () => {
  const all = [...(await window.call.peerConnection?.getStats())?.values() ?? []];
  const of = (kind) => all.find((one) => one.type === 'inbound-rtp' && one.kind === kind);
  // The state of the selected pair is not `succeeded` while a check of it is under way.
  const transport = all.find((one) => one.type === 'transport');
  const pair = all.find((one) => one.id === transport?.selectedCandidatePairId)
    ?? all.find((one) => one.type === 'candidate-pair' && one.nominated && one.state === 'succeeded');
  return { frames: of('video')?.framesDecoded ?? 0, audio: of('audio')?.packetsReceived ?? 0,
    lost: of('video')?.packetsLost ?? 0, port: all.find((one) => one.id === pair?.remoteCandidateId)?.port };
})()"""


def call(page: Any, origin: str, **options: Any) -> None:
    page.goto(f"{origin}/nagare.d.ts")
    page.evaluate(CALL % json.dumps(options))


def media_flows(page: Any, seconds: float = 15) -> dict[str, Any]:
    """Waits until picture and sound of the other arrive, and go on arriving."""

    def look() -> dict[str, Any] | None:
        numbers = page.evaluate(RECEIVED)
        return numbers if numbers["frames"] > 20 and numbers["audio"] > 50 else None

    first = wait_until(look, "the other's media", seconds, describe=lambda: page.evaluate(RECEIVED))
    return wait_until(
        lambda: (now := page.evaluate(RECEIVED))["frames"] > first["frames"] + 20 and now, "more frames", 10
    )


@pytest.mark.parametrize("required", [True, False], ids=["by-the-node", "by-a-client"])
def test_two_pages_call_each_other_through_the_node(
    open_page: OpenPage, node: Node, own_node: Callable[..., Node], channel: str, required: bool
) -> None:
    server = own_node("--relay-media", "server") if required else node
    options = {"room": channel} if required else {"room": channel, "media": "server"}
    one, two = open_page(server.origin), open_page(server.origin)
    call(one, server.origin, **options)
    wait_until(lambda: one.evaluate("window.call.status") == "waiting", "the wait for the other", 8)
    wait_until(lambda: len(server.publishing(channel)) == 1, "the first member", 5)
    # The room's first member decides, so the second need not ask.
    call(two, server.origin, room=channel)
    for page in (one, two):
        numbers = media_flows(page)
        assert 0 <= numbers["port"] - server.media_port < 8, "the media does not pass the node"
        assert page.evaluate("window.call.status") == "connected"
        assert page.evaluate("window.call.media") == "server"
    assert len(server.publishing(channel)) == 2
    two.evaluate("window.call.leave()")
    wait_until(lambda: one.evaluate("window.seen.at(-1)") == "waiting", "the wait for the next", 8)
    wait_until(lambda: len(server.publishing(channel)) == 1, "the end of the other's media", 5)
    one.evaluate("window.call.leave()")
    wait_until(lambda: server.publishing(channel) == [], "the end of the call", 5)


def test_firefox_and_chromium_call_each_other_through_the_node(
    open_page: OpenPage, open_firefox: Callable[[str], Any], node: Node, channel: str
) -> None:
    fox, chrome = open_firefox(node.origin), open_page(node.origin)
    for page in (fox, chrome):
        call(page, node.origin, room=channel, media="server")
    for page in (fox, chrome):
        media_flows(page)


def test_an_ice_restart_keeps_a_call_that_passes_the_node(open_page: OpenPage, node: Node, channel: str) -> None:
    one, two = open_page(node.origin), open_page(node.origin)
    for page in (one, two):
        call(page, node.origin, room=channel, media="server")
    before = [media_flows(page) for page in (one, two)]
    credentials = "/a=ice-ufrag:(\\S+)/.exec(window.call.peerConnection.remoteDescription.sdp)[1]"
    first = one.evaluate(credentials)
    one.evaluate("window.call.peerConnection.restartIce()")
    wait_until(lambda: one.evaluate(credentials) != first, "the answer to the restart", 8)
    for page, numbers in zip((one, two), before):
        wait_until(
            lambda: page.evaluate(RECEIVED)["frames"] > numbers["frames"] + 40, "more frames of the same stream", 10
        )
        assert page.evaluate("window.seen.at(-1)") == "connected"
    one.evaluate("window.call.peerConnection.getTransceivers().forEach((each) => { each.direction = 'recvonly'; })")
    answered = "window.call.peerConnection.remoteDescription.sdp.match(/a=sendonly/g)?.length"
    wait_until(lambda: one.evaluate(answered) == 2, "the answer to the change of directions", 8)
    now = one.evaluate(RECEIVED)["frames"]
    wait_until(lambda: one.evaluate(RECEIVED)["frames"] > now + 20, "the other direction", 10)
    assert one.evaluate("window.call.peerConnection.signalingState") == "stable"


def test_an_operator_kicks_a_client_of_a_direct_call(open_page: OpenPage, node: Node, channel: str) -> None:
    page = open_page(node.origin)
    call(page, node.origin, room=channel)
    wait_until(lambda: page.evaluate("window.call.status") == "waiting", "the wait for the other", 8)
    room = httpx.get(f"{node.admin}/v1/relay/{channel}").json()
    assert room["media"] == "direct"
    user = room["registrations"][0]["user_id"]
    kicked = httpx.post(f"{node.admin}/v1/channels/{channel}/members/{user}/kick")
    assert kicked.json() == {"ended": 1}
    wait_until(lambda: page.evaluate("window.call.status") == "ended", "the end", 5)
    assert httpx.get(f"{node.admin}/v1/relay/{channel}").status_code == 404


def test_an_operator_ends_a_call_that_passes_the_node(open_page: OpenPage, node: Node, channel: str) -> None:
    page = open_page(node.origin)
    call(page, node.origin, room=channel, media="server")
    wait_until(lambda: len(node.publishing(channel)) == 1, "the member", 8)
    node.operate("20151104.DisconnectConnection", channel_id=channel, connection_id=node.publishing(channel)[0])
    wait_until(lambda: page.evaluate("window.call.status") == "ended", "the end", 5)


# Sets which candidates connections may use, of the page and of the module, and which of the servers they are told of.
POLICY = """(([policy, pattern]) => {
  const Plain = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Plain {
    constructor(configuration) {
      window.servers = configuration.iceServers;
      const iceServers = configuration.iceServers.map((one) => ({ ...one,
        urls: one.urls.filter((url) => url.includes(pattern)) })).filter((one) => one.urls.length > 0);
      super({ ...configuration, iceServers, iceTransportPolicy: policy });
    }
  };
})(%s)"""
# The kinds of the selected pair's candidates, and what the own one is relayed over.
PAIR = """(async () => {
  const report = await window.call.peerConnection.getStats();
  const all = [...report.values()];
  const transport = all.find((one) => one.type === 'transport');
  const pair = report.get(transport?.selectedCandidatePairId)
    ?? all.find((one) => one.type === 'candidate-pair' && one.nominated && one.state === 'succeeded');
  const local = report.get(pair?.localCandidateId);
  return [local?.candidateType, report.get(pair?.remoteCandidateId)?.candidateType, local?.relayProtocol];
})()"""


def call_with_policy(page: Any, origin: str, room: str, policy: str, server: str = "") -> None:
    page.goto(f"{origin}/nagare.d.ts")
    page.evaluate(POLICY % json.dumps([policy, server]))
    page.evaluate(CALL % json.dumps({"room": room}))


def relayed(node: Node) -> float:
    return node.total("nagare_turn_call_datagrams_total")


@pytest.mark.parametrize("protocols", [("udp", "udp"), ("udp", "tcp")], ids=["udp", "udp-and-tcp"])
def test_two_pages_that_use_relays_only_call_each_other_over_the_nodes_turn_server(
    open_page: OpenPage, own_node: Callable[..., Node], channel: str, protocols: tuple[str, str]
) -> None:
    # Two loops: both members are told of the same one.
    node = own_node("--loops", "2", "--log-level", "trace")
    pages = [open_page(node.origin) for _ in protocols]
    for page, protocol in zip(pages, protocols):
        call_with_policy(page, node.origin, channel, "relay", f"transport={protocol}")
        wait_until(lambda: page.evaluate("window.call.status") in ("waiting", "connecting", "connected"), "the room", 8)
    for page, protocol in zip(pages, protocols):
        media_flows(page, 30)
        kinds = page.evaluate(PAIR)
        assert kinds == ["relay", "relay", protocol], kinds
    assert node.total("nagare_turn_calls{") == 1 and node.total("nagare_turn_call_allocations{") >= 2
    assert relayed(node) > 100 and node.total("nagare_turn_call_bytes_total") > 20_000
    assert node.total("nagare_turn_dropped_total", "over_rate") == 0
    assert httpx.get(f"{node.admin}/v1/relay/{channel}").json()["turn"] is True
    # Each has credentials of its own, which are in no log.
    servers = [page.evaluate("window.servers") for page in pages]
    names = {server["username"] for (server,) in servers}
    log = node.log_path.read_text()
    assert len(names) == 2
    assert not any(server["username"] in log or server["credential"] in log for (server,) in servers)
    pages[1].evaluate("window.call.leave()")
    # The other page waits in a new room, with new credentials.
    wait_until(lambda: pages[0].evaluate("window.seen.at(-1)") == "waiting", "the wait for the next", 8)
    wait_until(lambda: node.total("nagare_turn_call_allocations{") == 0, "the end of the allocations with the room", 5)
    assert pages[0].evaluate("window.servers")[0]["username"] not in names
    pages[0].evaluate("window.call.leave()")
    wait_until(lambda: node.total("nagare_turn_calls{") == 0, "the end of the relay", 5)


def test_pages_that_reach_each_other_do_not_use_the_relay(
    open_page: OpenPage, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node()
    pages = [open_page(node.origin) for _ in range(2)]
    for page in pages:
        call_with_policy(page, node.origin, channel, "all")
        wait_until(lambda: page.evaluate("window.call.status") in ("waiting", "connecting", "connected"), "the room", 8)
    for page in pages:
        media_flows(page, 30)
        kinds = page.evaluate(PAIR)
        assert "relay" not in kinds[:2], kinds
    before = relayed(node)
    frames = pages[0].evaluate(RECEIVED)["frames"]
    wait_until(lambda: pages[0].evaluate(RECEIVED)["frames"] > frames + 60, "more frames", 15)
    # Checks only.
    assert relayed(node) - before < 60


def test_firefox_and_chromium_call_each_other_over_the_nodes_turn_server(
    open_page: OpenPage, open_firefox: Callable[[str], Any], own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node()
    fox, chrome = open_firefox(node.origin), open_page(node.origin)
    for page in (fox, chrome):
        call_with_policy(page, node.origin, channel, "relay", "transport=udp")
        wait_until(lambda: page.evaluate("window.call.status") in ("waiting", "connecting", "connected"), "the room", 8)
    for page in (fox, chrome):
        media_flows(page, 30)
        kinds = page.evaluate(PAIR)
        assert kinds[:2] == ["relay", "relay"], kinds
    assert relayed(node) > 100


def test_a_call_goes_without_a_relay_where_the_node_has_no_turn_server(
    open_page: OpenPage, own_node: Callable[..., Node], channel: str
) -> None:
    node = own_node("--turn", "off")
    page = open_page(node.origin)
    call_with_policy(page, node.origin, channel, "all")
    wait_until(lambda: page.evaluate("window.call.status") == "waiting", "the wait for the other", 8)
    assert page.evaluate("window.servers") == []
    assert httpx.get(f"{node.admin}/v1/relay/{channel}").json()["turn"] is False
