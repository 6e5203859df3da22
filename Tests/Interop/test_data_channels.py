"""Data channels: signaling and messages of Sora clients, and channels that browsers open over WHIP and WHEP."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Coroutine

import pytest

from attacks.data import BOMB, PLAIN, Member, flood_others
from attacks.sctp import (
    SKIPS_PER_PACKET,
    Association,
    Packets,
    halves_backwards,
    skips,
    stream_resets,
    withheld,
)
from harness.chromium import ChromiumPage
from harness.clocks import assert_clock
from harness.members import Join
from harness.node import Node
from harness.page import Page
from harness.peers import Peer
from harness.waiting import wait_until
from harness.webhooks import WebhookServer

OpenPage = Callable[..., ChromiumPage]

SIGNALING = ["notify", "push", "signaling", "stats"]
# A viewer or publisher of its own, with one data channel. `window.peer` has what the test looks at.
PEER = """async ({ endpoint, label, sends }) => {
    const peer = { connection: new RTCPeerConnection(), messages: [], states: [] };
    window.peer = peer;
    if (sends) {
        const context = new AudioContext();
        const [track] = context.createMediaStreamDestination().stream.getTracks();
        peer.connection.addTransceiver(track, { direction: "sendonly" });
    } else {
        peer.connection.addTransceiver("audio", { direction: "recvonly" });
    }
    peer.channel = peer.connection.createDataChannel(label, { ordered: true });
    peer.channel.binaryType = "arraybuffer";
    peer.channel.onmessage = (event) => {
        const isText = typeof event.data === "string";
        peer.messages.push(isText ? `text ${event.data}` : `binary ${event.data.byteLength}`);
    };
    const opened = new Promise((resolve) => { peer.channel.onopen = () => resolve(true); });
    await peer.connection.setLocalDescription();
    const answer = await fetch(endpoint, {
        method: "POST", headers: { "content-type": "application/sdp" }, body: peer.connection.localDescription.sdp,
    });
    await peer.connection.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    return Promise.race([opened, new Promise((resolve) => setTimeout(() => resolve(false), 10000))]);
}"""


def opened(page: Page, endpoint: str, label: str, sends: bool) -> None:
    assert page.evaluate(f"({PEER})({json.dumps({'endpoint': endpoint, 'label': label, 'sends': sends})})")


def messages(page: Page) -> list[str]:
    return page.evaluate("window.peer.messages")


def labels(channels: list[str]) -> str:
    """`data_channels` of these labels, in both directions."""
    return json.dumps([{"label": label, "direction": "sendrecv"} for label in channels])


def in_a_thread(work: Coroutine[Any, Any, Any], seconds: float = 120) -> Any:
    """Runs a coroutine in a thread, because browsers of other tests keep an event loop in this one; its result."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result(seconds)


# Signaling.


def test_signaling_moves_to_data_channels(join: Join, node: Node, channel: str) -> None:
    viewer = join("recvonly", "data-channel-signaling").connected().switched()
    offer = viewer.offer()
    assert offer["data_channel_signaling"] is True and offer["ignore_disconnect_websocket"] is False
    assert sorted(one["label"] for one in offer["data_channels"]) == SIGNALING
    assert viewer.last("switched")["ignore_disconnect_websocket"] is False
    sender = join("sendonly", "data-channel-signaling", video_codec_type="VP8").connected().switched()
    # The re-offer and the notification came over data channels.
    viewer.await_notification("connection.created", connection_id=sender.connection)
    viewer.sees(sender)
    assert sender.end()["finished"]
    assert (sender.last("closed")["code"], sender.last("closed")["reason"]) == (1000, "TYPE-DISCONNECT")
    viewer.await_notification("connection.destroyed", connection_id=sender.connection)
    wait_until(lambda: not node.publishing(channel), "the sender's end at the node", 5)


def test_a_connection_goes_on_without_its_websocket(join: Join, node: Node, channel: str) -> None:
    flags = ("data-channel-signaling", "ignore-disconnect-websocket")
    viewer = join("recvonly", *flags).connected().switched()
    viewer.wait("closed", 10)
    sender = join("sendonly", *flags, video_codec_type="VP8").connected().switched()
    sender.wait("closed", 10)
    viewer.sees(sender)
    viewer.await_notification("connection.created", connection_id=sender.connection)
    time.sleep(1)
    assert len(node.operate("20201013.ListChannelConnections", channel_id=channel)) == 2
    # Seconds by the client's clock, without the end of its process. The node closes the data channels.
    ended = sender.end()
    # Without an end the client gives up after 10 s.
    assert_clock(ended["finished"] and ended["seconds"] < 5, ended)
    viewer.await_notification("connection.destroyed", connection_id=sender.connection)
    node.operate("20151104.DisconnectConnection", channel_id=channel, connection_id=viewer.connection)
    viewer.disconnected()
    wait_until(lambda: not node.operate("20201013.ListChannelConnections", channel_id=channel), "both ends", 5)


def test_an_undemanded_or_disabled_feature_leaves_the_websocket(join: Join, own_node: Callable[..., Node]) -> None:
    plain = join("recvonly").connected()
    assert plain.offer()["data_channel_signaling"] is False and "m=application" not in plain.offer()["sdp"]
    node = own_node("--data-channels", "off")
    member = join("recvonly", "data-channel-signaling", at=node).connected()
    assert member.offer()["data_channel_signaling"] is False and "m=application" not in member.offer()["sdp"]


def test_a_message_where_a_client_only_receives_ends_it(node: Node, channel: str) -> None:
    async def run() -> tuple[int | None, str | None]:
        member = await Member.join(node, channel)
        await member.flood("push", BOMB, time.monotonic() + 20, 100)
        await asyncio.wait_for(member.socket.wait_closed(), 20)
        await member.leave()
        return member.socket.close_code, member.socket.close_reason

    code, reason = in_a_thread(run())
    assert code == 4490 and reason.startswith("INVALID-MESSAGE: ") and "only receives" in reason
    wait_until(lambda: "only receives" in node.log_tail(), "a line of the log", 5)


# Packets that no data channel needs.

ENDED = "nagare_data_associations_ended_total"


@pytest.mark.parametrize(
    "packets, reason, words",
    [
        (halves_backwards, "work", "caused more work"),
        (skips(SKIPS_PER_PACKET), "flood", "more control chunks"),
        (stream_resets, "flood", "more control chunks"),
    ],
    ids=["work", "FORWARD-TSN", "RE-CONFIG"],
)
def test_a_client_that_floods_its_association_is_ended_alone(
    node: Node, channel: str, packets: Packets, reason: str, words: str
) -> None:
    async def run() -> tuple[bool, bool]:
        attacker, other = Association(await Member.join(node, channel)), await Member.join(node, channel, (PLAIN,))
        await attacker.flood(packets, time.monotonic() + 20)
        # The end of the association is that of its member.
        await asyncio.wait_for(attacker.member.socket.wait_closed(), 20)
        is_open = other.is_open
        for member in (attacker.member, other):
            await member.leave()
        return attacker.has_ended, is_open

    def ends() -> tuple[float, float]:
        return node.total(ENDED), node.total(ENDED, f"reason={reason}")

    def named() -> bool:
        return any(words in line and f"channel={channel} " in line for line in node.log_tail().splitlines())

    all_before, before = ends()
    has_ended, is_open = in_a_thread(run())
    assert_clock(has_ended, "20 s of the flood did not end its association")
    assert is_open, "another member lost a data channel"
    wait_until(lambda: ends() == (all_before + 1, before + 1), f"one end, for {reason}", 5)
    wait_until(named, "a line of the log", 5)


@pytest.mark.timeout(300)
def test_clients_that_acknowledge_all_but_one_chunk_are_ended_and_free_their_memory(
    own_node: Callable[..., Node]
) -> None:
    pairs = 10

    async def withhold(count: int, seconds: float) -> tuple[list[bool], list[bool]]:
        """Whether the node ends the association of each receiver within some seconds, and whether each sender stays."""
        made = await asyncio.gather(*(withheld(node, bytes(16_384), 60, 3) for _ in range(count)))
        end = time.monotonic() + seconds
        while time.monotonic() < end and not all(one.has_ended for one, _, _ in made):
            await asyncio.sleep(0.2)
        ended = [one.has_ended for one, _, _ in made]
        stay = [sender.is_open for _, senders, _ in made for sender in senders]
        for association, senders, _ in made:
            for member in (association.member, *senders):
                await member.leave()
        return ended, stay

    # The history of ended connections grows up to its own bound.
    node = own_node("--history-hours", "0")
    # The first clients make resident what the node keeps for good.
    in_a_thread(withhold(1, 0))
    before = peak = node.resident_kibibytes()
    # Tables grow to what so many pairs need.
    in_a_thread(withhold(pairs, 0))
    allocated = node.allocated_kibibytes()
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(asyncio.run, withhold(pairs, 75))
        while not running.done():
            peak = max(peak, node.resident_kibibytes())
            time.sleep(0.1)
    ended, stay = running.result()
    assert_clock(all(ended), f"of {pairs} associations without progress {sum(ended)} have ended")
    assert all(stay), "a sender lost a data channel"
    wait_until(lambda: node.total(ENDED, "reason=stalled") == pairs, f"{pairs} ends without progress", 5)
    # A connection, 1 MiB of data in both directions, and what waits for it.
    assert peak - before <= pairs * 4 * 1024, f"{peak - before} KiB for {pairs} pairs"
    wait_until(
        lambda: node.resident_kibibytes() - before <= 16 * 1024,
        "the return of the memory",
        60,
        describe=lambda: f"{before} KiB before, at most {peak}, and now {node.resident_kibibytes()}",
    )
    node.await_allocated(allocated, 256)


# Messages.


def test_messages_go_to_the_others_with_the_label(join: Join) -> None:
    chat = {"label": "#chat", "direction": "sendrecv"}
    signaling = "data-channel-signaling"
    first = join("sendonly", signaling, data_channels=json.dumps([chat])).connected().switched()
    second = join("recvonly", signaling, data_channels=json.dumps([dict(chat, compress=True)])).connected().switched()
    header = [{"type": "sender_connection_id"}]
    third = join(
        "recvonly", signaling, data_channels=json.dumps([dict(chat, direction="recvonly", header=header)])
    ).connected().switched()
    outside = join("recvonly", signaling, data_channels=labels(["#other"])).connected().switched()
    first.send_command("send #chat hello")
    second.gets("#chat", ["hello"])
    second.send_command("send #chat " + "long " * 3000)
    first.gets("#chat", [("long " * 3000).strip()])
    first.send_command("send #chat bye")
    second.gets("#chat", ["hello", "bye"])
    long = second.connection + ("long " * 3000).strip()
    third.gets("#chat", [first.connection + "hello", long, first.connection + "bye"])
    assert outside.messages("#chat") == [] and outside.messages("#other") == []


def test_a_flood_of_one_client_closes_no_channel_of_another(
    join: Join, node: Node, channel: str, peer: Callable[..., Peer]
) -> None:
    member = join("recvonly", "data-channel-signaling", data_channels=labels(["#chat"])).connected().switched()
    publisher = peer("data", "publish", f"{node.origin}/whip/{channel}", "VP8", "--label", "#chat")
    publisher.wait("opened", 20)
    dropped, overflowed = node.total("nagare_messages_dropped_total"), node.total("nagare_data_channels_overflowed_total")
    assert in_a_thread(flood_others(node, channel, 1, 5)) > 100
    assert node.total("nagare_messages_dropped_total") > dropped
    assert node.total("nagare_data_channels_overflowed_total") == overflowed
    member.send_command("send #chat still here")
    texts = lambda: [report["text"] for report in list(publisher.reports) if report["event"] == "message"]
    wait_until(lambda: "still here" in texts(), "a message after the flood", 20)
    assert not publisher.last("closed") and not member.last("disconnected")
    assert publisher.end()["status"] in (200, 204)


def test_messages_with_limited_reliability(join: Join) -> None:
    channels = [
        {"label": "#fast", "direction": "sendrecv", "ordered": False, "max_retransmits": 0},
        {"label": "#timed", "direction": "sendrecv", "ordered": True, "max_packet_life_time": 500, "protocol": "p"},
    ]
    members = [
        join("recvonly", "data-channel-signaling", data_channels=json.dumps(channels)).connected().switched()
        for _ in range(2)
    ]
    for label in ("#fast", "#timed"):
        members[0].send_command(f"send {label} a message")
        members[1].gets(label, ["a message"])


# Methods.


def test_methods_over_the_channel_of_calls(
    own_node: Callable[..., Node], join: Join, hooks: WebhookServer, channel: str
) -> None:
    names = ["RequestSimulcastRid", "ResetSpotlightRid", "PutSignalingNotifyMetadata", "PutSignalingNotifyMetadataItem"]
    methods = [f"2025.2.0/{name}" for name in names]
    hooks.answers["auth"] = lambda _: {"allowed": True, "rpc_methods": methods}
    node = own_node("--auth-webhook-url", hooks.url("auth"))
    sender = join("sendonly", "data-channel-signaling", "simulcast", at=node, video_codec_type="VP8")
    viewer = join("recvonly", "data-channel-signaling", at=node, signaling_notify_metadata='{"name": "Anna"}')
    for member in (sender, viewer):
        member.connected().switched()
    assert viewer.offer()["rpc_methods"] == methods
    assert {"label": "rpc", "direction": "sendrecv", "compress": True} in viewer.offer()["data_channels"]
    own = {"channel_id": channel, "receiver_connection_id": viewer.connection}
    wait_until(lambda: viewer.streams.get(sender.connection, {}).get("frames", 0) > 5, "video", 15)
    response = viewer.call("RequestSimulcastRid", rid="none", sender_connection_id=sender.connection)
    assert response["result"] == dict(own, rid="none", sender_connection_id=sender.connection)
    wait_until(lambda: viewer.growth(0.5)[sender.connection] == 0, "the end of the sender's video", 10)
    assert "result" in viewer.call("RequestSimulcastRid", rid="r0", sender_connection_id=sender.connection)
    viewer.sees(sender)
    # Errors.
    assert viewer.call("RequestSimulcastRid", rid="r9")["error"]["code"] == -32602
    assert sender.call("RequestSimulcastRid", rid="r0")["error"]["code"] == -32602, "it receives nothing"
    assert viewer.call("RequestSpotlightRid")["error"]["code"] == -32601, "not granted"
    assert viewer.call("ResetSpotlightRid")["error"]["code"] == -32000, "no spotlight"
    # Metadata: members are pushed the change, and newcomers find it.
    put = {"type": "signaling_notify_metadata_ext", "connection_id": viewer.connection}
    response = viewer.call("PutSignalingNotifyMetadataItem", key="hand", value=True, push=True)
    assert response["result"] == {"name": "Anna", "hand": True}
    for member in (sender, viewer):
        member.pushed(dict(put, action="PutMetadataItem", key="hand", value=True))
    assert sender.call("PutSignalingNotifyMetadata", metadata=[1])["result"] == [1]
    newcomer = join("recvonly", at=node).connected()
    created = newcomer.await_notification("connection.created", connection_id=newcomer.connection)
    assert {one["connection_id"]: one["metadata"] for one in created["data"]} == {
        sender.connection: [1], viewer.connection: {"name": "Anna", "hand": True},
    }  # fmt: skip


# Other clients.


@pytest.mark.parametrize("kind", ["data", "gstreamer", "pion"], ids=["aiortc", "usrsctp", "pion"])
def test_clients_of_other_stacks_exchange_messages(
    join: Join, node: Node, channel: str, peer: Callable[..., Peer], kind: str
) -> None:
    member = join("recvonly", "data-channel-signaling", data_channels=labels(["#chat"])).connected().switched()
    publisher = peer(kind, "publish", f"{node.origin}/whip/{channel}", "VP8", "--label", "#chat")
    viewer = peer(kind, "watch", f"{node.origin}/whep/{channel}", "VP8", "--label", "#chat")
    for one in (publisher, viewer):
        one.wait("opened", 20)
    texts = lambda one: [report["text"] for report in list(one.reports) if report["event"] == "message"]
    member.send_command("send #chat from the SDK")
    publisher.process.stdin.write("from the publisher\n")
    publisher.process.stdin.flush()
    member.gets("#chat", ["from the publisher"])
    for one, expected in ((viewer, {"from the SDK", "from the publisher"}), (publisher, {"from the SDK"})):
        wait_until(lambda: set(texts(one)) == expected, f"{expected}", 10, describe=lambda: texts(one))
    # A message of many packets.
    viewer.process.stdin.write("long " * 10_000 + "\n")
    viewer.process.stdin.flush()
    expected = ("long " * 10_000).strip()
    member.gets("#chat", ["from the publisher", expected])
    wait_until(lambda: expected in texts(publisher), "the long message", 10)
    for one in (publisher, viewer):
        assert one.end()["status"] in (200, 204)


# Browsers.


def test_browsers_open_channels_over_whip_and_whep(
    join: Join, node: Node, channel: str, open_viewer: Callable[[str], Page], open_page: OpenPage
) -> None:
    member = join("recvonly", "data-channel-signaling", data_channels=labels(["#chat"])).connected().switched()
    publisher, viewer = open_viewer(node.origin), open_page(node.origin)
    for page in (publisher, viewer):
        page.goto(node.origin)
    opened(publisher, f"{node.origin}/whip/{channel}", "#chat", True)
    opened(viewer, f"{node.origin}/whep/{channel}", "#chat", False)
    viewer.evaluate("window.peer.channel.send('from the viewer')")
    wait_until(lambda: messages(publisher) == ["text from the viewer"], "text at the publisher", 10)
    member.gets("#chat", ["from the viewer"])
    member.send_command("send #chat from-the-SDK")
    wait_until(lambda: "binary 12" in messages(viewer), "a message of the SDK at the viewer", 10)
    publisher.evaluate("window.peer.channel.send(new Uint8Array(200000))")
    wait_until(lambda: "binary 200000" in messages(viewer), "a long message at the viewer", 10)
    publisher.evaluate("window.peer.channel.close()")
    closed = "window.peer.channel.readyState"
    wait_until(lambda: publisher.evaluate(closed) == "closed", "the channel's end", 5)
    before = len(messages(publisher))
    viewer.evaluate("window.peer.channel.send('later')")
    wait_until(lambda: member.messages("#chat")[-1] == "later", "the last message", 10)
    assert len(messages(publisher)) == before
