"""The unmodified Sora Python SDK against a node: roles, codecs, joins and leaves, disconnects and refusals."""

from __future__ import annotations

import json
import secrets
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Callable

import httpx
import pytest
import websockets
import websockets.sync.client

from harness.chromium import ChromiumPage
from harness.clocks import assert_clock
from harness.webhooks import WebhookServer
from harness.load import SENDS_ALL, assert_lossless, assert_none_lost, is_starved, run_load
from harness.members import Join
from harness.node import BINARY, Node
from harness.peers import Peer
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]
StartPeer = Callable[..., Peer]
StartNode = Callable[..., Node]


# Publishing and receiving.


@pytest.mark.parametrize("codec", ["VP8", "VP9", "AV1"])
def test_one_sends_and_another_receives(join: Join, codec: str) -> None:
    sender = join("sendonly", video_codec_type=codec, colour="red").connected()
    receiver = join("recvonly").connected()
    seen = receiver.sees(sender, frames=40)
    receiver.hears(sender)
    assert seen["kinds"] == ["audio", "video"]
    red, green, blue = seen["colour"]
    assert red > 130 and green < 110 and blue < 110, seen
    assert (seen["width"], seen["height"]) == (640, 360) or seen["width"] >= 320, seen


def test_the_default_codec_is_vp9(join: Join) -> None:
    sender = join("sendonly").connected()
    sdp = sender.offer()["sdp"]
    assert "VP9/90000" in sdp and "VP8/90000" not in sdp
    assert sender.offer()["mid"].keys() == {"audio", "video"}


def test_the_receiver_may_join_first(join: Join) -> None:
    receiver = join("recvonly").connected()
    time.sleep(1)
    sender = join("sendonly", video_codec_type="VP8").connected()
    receiver.sees(sender)
    receiver.hears(sender)


@pytest.mark.parametrize("kind", ["audio", "video"])
def test_a_sender_of_one_kind(join: Join, kind: str) -> None:
    left_out = "no-video" if kind == "audio" else "no-audio"
    sender = join("sendonly", left_out).connected()
    receiver = join("recvonly").connected()
    if kind == "audio":
        receiver.hears(sender)
    else:
        receiver.sees(sender)
    assert receiver.streams[sender.connection]["kinds"] == [kind]
    assert list(sender.offer()["mid"]) == [kind]


def test_four_members_see_each_other_one_leaves_and_another_joins(join: Join) -> None:
    colours = ["red", "green", "blue", "grey"]
    members = [join("sendrecv", colour=colour, video_codec_type="VP8", size="320x240") for colour in colours]
    for member in members:
        member.connected()
    for member in members:
        for other in members:
            if other is not member:
                member.sees(other, seconds=25)
        assert len(member.streams) == 3, member.streams
    leaver = members.pop(1)
    leaver.end()
    for member in members:
        member.await_notification("connection.destroyed", connection_id=leaver.connection)
        assert leaver.connection not in {n for n, grown in member.growth(1.5).items() if grown > 10}
    newcomer = join("sendrecv", colour="green", video_codec_type="VP8", size="320x240").connected()
    for member in members:
        member.sees(newcomer, seconds=25)
        newcomer.sees(member, seconds=25)
        for other in members:
            if other is not member:
                member.sees(other, frames=10)
    # The newcomer reuses the media section of the member that left.
    green = newcomer.streams[members[0].connection]["colour"]
    assert green[0] > green[1], "the newcomer does not see the first member's red picture"


def test_members_of_one_bundle_do_not_receive_each_other(join: Join) -> None:
    camera = join("sendrecv", bundle_id="desk", client_id="camera", size="320x240").connected()
    screen = join("sendrecv", bundle_id="desk", client_id="screen", size="320x240").connected()
    other = join("sendrecv", size="320x240").connected()
    other.sees(camera)
    other.sees(screen)
    camera.sees(other)
    assert set(camera.streams) == {other.connection}
    assert not camera.notified("connection.created", connection_id=screen.connection)


# Notifications.


def test_members_are_announced_with_their_metadata(join: Join, channel: str) -> None:
    first = join("sendonly", client_id="ann", signaling_notify_metadata='{"name": "Ann", "n": [1, true, null]}').connected()
    second = join("recvonly", client_id="ben").connected()
    told = first.await_notification("connection.created", connection_id=second.connection)
    assert (told["client_id"], told["role"], told["channel_connections"]) == ("ben", "recvonly", 2)
    assert (told["channel_sendonly_connections"], told["channel_recvonly_connections"]) == (1, 1)
    assert told["audio"] is True and told["video"] is True and told["minutes"] == 0
    assert "data" not in told
    own = second.await_notification("connection.created", connection_id=second.connection)
    assert [(one["client_id"], one["authn_metadata"]) for one in own["data"]] == [
        ("ann", {"name": "Ann", "n": [1, True, None]})
    ]
    assert first.offer()["session_id"] == second.offer()["session_id"] == told["session_id"]
    assert first.offer()["channel_id"] == channel
    second.end()
    gone = first.await_notification("connection.destroyed", connection_id=second.connection)
    assert gone["channel_connections"] == 1


# Disconnects.


def test_a_disconnect_closes_the_websocket_cleanly(join: Join, node: Node, channel: str) -> None:
    member = join("sendonly").connected()
    # Seconds by the client's clock, without the end of its process.
    ended = member.end()
    # Without an end the client gives up after 10 s.
    assert_clock(ended["finished"] and ended["seconds"] < 5, ended)
    assert (member.last("closed")["code"], member.last("closed")["reason"]) == (1000, "TYPE-DISCONNECT")
    wait_until(lambda: not node.publishing(channel), "the member's end at the node", 5)


def test_an_operator_disconnects(join: Join, node: Node, channel: str) -> None:
    stays = join("recvonly", client_id="stays").connected()
    goes = join("sendonly", client_id="goes").connected()
    listed = node.operate("20201013.ListChannelConnections", channel_id=channel)
    assert {one["client_id"] for one in listed} == {"stays", "goes"}
    node.operate("20151104.DisconnectConnection", channel_id=channel, connection_id=goes.connection)
    assert goes.closed() == (1000, "DISCONNECTED-API")
    stays.await_notification("connection.destroyed", connection_id=goes.connection)
    node.operate("20151104.DisconnectChannel", channel_id=channel)
    assert stays.closed() == (1000, "DISCONNECTED-API")


def test_a_client_that_vanishes_is_removed(join: Join) -> None:
    watcher = join("recvonly").connected()
    sender = join("sendonly").connected()
    watcher.sees(sender)
    gone = sender.connection
    sender.kill()
    watcher.await_notification("connection.destroyed", 10, connection_id=gone)


def test_a_stopping_node_closes_its_websockets_with_a_reason(own_node: StartNode, join: Join) -> None:
    node = own_node()
    member = join("sendonly", at=node).connected()
    code, _ = node.terminate()
    assert code == 0
    assert member.closed() == (1001, "SERVER-SHUTDOWN")


# Refusals.


def test_a_shared_token_is_required(own_node: StartNode, join: Join, channel: str) -> None:
    node = own_node("--token", "correct-horse")
    refused = join("sendonly", at=node, metadata='{"access_token": "wrong"}')
    assert refused.closed() == (4490, "AUTHENTICATION-FAILURE")
    missing = join("recvonly", at=node)
    assert missing.closed() == (4490, "AUTHENTICATION-FAILURE")
    join("sendonly", at=node, metadata='{"access_token": "correct-horse"}').connected()
    assert "correct-horse" not in node.log_path.read_text()


def test_a_signed_token_is_for_a_channel_and_a_role(
    own_node: StartNode, join: Join, channel: str, tmp_path: Path
) -> None:
    secret = tmp_path / "jwt.secret"
    secret.write_text(secrets.token_urlsafe(40))
    key = f"hs256:@{secret}"
    node = own_node("--jwt-key", key)

    def metadata(*options: str) -> str:
        command = [str(BINARY), "token", "--jwt-key", key, *options]
        token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        return json.dumps({"access_token": token})

    sender = metadata("--channel", channel, "--role", "sendonly", "--claims", '{"client_id": "granted"}')
    wrong_channel = join("sendonly", at=node, metadata=metadata("--channel", "another", "--role", "sendonly"))
    wrong_role = join("recvonly", at=node, metadata=sender)
    right = join("sendonly", at=node, metadata=sender).connected()
    assert right.offer()["client_id"] == "granted"
    for refused in (wrong_channel, wrong_role):
        code, reason = refused.closed()
        assert (code, reason) == (4490, "AUTHENTICATION-FAILURE")


@pytest.mark.parametrize("policy", ["replace", "refuse"])
def test_a_copied_client_id_puts_nobody_out(own_node: StartNode, join: Join, channel: str, policy: str) -> None:
    node = own_node("--duplicate-user", policy)
    first = join("sendonly", at=node, client_id="ann").connected()
    second = join("sendonly", at=node, client_id="ann").connected()
    listed = node.operate("20201013.ListChannelConnections", channel_id=channel)
    assert sorted(one["connection_id"] for one in listed) == sorted([first.connection, second.connection])


def test_a_user_that_a_token_names_takes_its_own_place(own_node: StartNode, join: Join, channel: str) -> None:
    key = "hs256:0123456789abcdef0123456789abcdef"
    node = own_node("--jwt-key", key, "--duplicate-user", "replace")
    command = [str(BINARY), "token", "--jwt-key", key, "--channel", channel, "--client-id", "ann"]
    token = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    metadata = json.dumps({"access_token": token})
    first = join("sendonly", at=node, metadata=metadata).connected()
    second = join("sendonly", at=node, metadata=metadata).connected()
    assert first.closed() == (1000, "USER-REPLACED")
    listed = node.operate("20201013.ListChannelConnections", channel_id=channel)
    assert [one["connection_id"] for one in listed] == [second.connection]


def test_a_role_that_does_not_exist_is_refused(node: Node, channel: str) -> None:
    connect = {"type": "connect", "role": "conductor", "channel_id": channel, "sora_client": "test"}
    with websockets.sync.client.connect(node.signaling) as socket:
        socket.send(json.dumps(connect))
        with pytest.raises(websockets.ConnectionClosedError) as closed:
            socket.recv(timeout=5)
    assert closed.value.rcvd.code == 4490 and closed.value.rcvd.reason.startswith("INVALID-MESSAGE: ")


# Webhooks.


def test_webhooks_authorize_clients_and_receive_events(own_node: StartNode, join: Join, channel: str, hooks: WebhookServer) -> None:
    node = own_node(
        "--auth-webhook-url", hooks.url("auth"), "--event-webhook-url", hooks.url("event"),
        "--session-webhook-url", hooks.url("session"), "--webhook-timeout", "2",
    )  # fmt: skip
    hooks.answers["auth"] = lambda asked: (
        {"allowed": True, "client_id": "from-the-hook", "metadata": {"seat": 7}}
        if asked["metadata"] == {"password": "sesame"}
        else {"allowed": False, "reason": "WRONG-PASSWORD"}
    )
    refused = join("sendonly", at=node, metadata='{"password": "guess"}')
    assert refused.closed() == (4490, "WRONG-PASSWORD")
    member = join("sendonly", at=node, metadata='{"password": "sesame"}').connected()
    assert (member.offer()["client_id"], member.offer()["metadata"]) == ("from-the-hook", {"seat": 7})
    asked = hooks.received["auth"][-1]
    assert (asked["channel_id"], asked["role"]) == (channel, "sendonly")
    told = lambda: [one["type"] for one in hooks.received["event"]]
    wait_until(lambda: "track.first_frame" in told(), "the first key frame", 10, describe=told)
    member.end()
    life = ["connection.created", "publish", "track.first_frame", "publish_done", "connection.destroyed"]
    wait_until(lambda: told() == life, "the events", 10, describe=lambda: hooks.received["event"])
    assert len({one["id"] for one in hooks.received["event"]}) == len(life)
    wait_until(
        lambda: [one["type"] for one in hooks.received["session"]] == ["session.created", "session.destroyed"],
        "the session's events", 10, describe=lambda: hooks.received["session"],
    )  # fmt: skip
    # When the webhook does not answer in time, the node refuses the client. Connected clients are not affected.
    watcher = join("recvonly", at=node, metadata='{"password": "sesame"}').connected()
    hooks.answers["auth"] = lambda asked: time.sleep(4) or {"allowed": True}
    late = join("recvonly", at=node, metadata='{"password": "sesame"}')
    assert late.closed() == (4490, "AUTHENTICATION-INTERNAL-ERROR")
    assert watcher.last("closed") is None


def test_a_node_that_crashed_tells_which_sessions_vanished(
    own_node: StartNode, join: Join, channel: str, hooks: WebhookServer, tmp_path: Path
) -> None:
    options = ("--state-dir", str(tmp_path), "--session-webhook-url", hooks.url("session"))
    node = own_node(*options)
    member = join("sendonly", at=node).connected()
    connection = member.offer()["connection_id"]
    saved = lambda: sqlite3.connect(next(tmp_path.glob("history-*.sqlite"))).execute("SELECT id FROM connections").fetchall()
    wait_until(lambda: (connection,) in saved(), "the connection in the file", 10, describe=saved)
    node.process.kill()
    node.process.wait(10)
    # For the fixture, which expects a graceful end.
    node.process.returncode = 0
    own_node(*options, ports=node.ports)
    told = lambda: [one for one in hooks.received["session"] if one["channel_id"] == channel]
    wait_until(lambda: "session.vanished" in [one["type"] for one in told()], "the report", 10, describe=told)
    created, vanished = told()[:2]
    assert (created["type"], vanished["type"]) == ("session.created", "session.vanished"), told()
    assert created["session_id"] == vanished["session_id"] and created["id"] != vanished["id"], told()


# Many participants.


def load(node: Node, channel: str, *options: str) -> dict:
    """The report of a run over Sora signaling."""
    common = ("--signaling", "sora", "--join-rate", "1000", "--duration", "5")
    return run_load(node, *common, *options, channel=channel)


def test_two_hundred_members_join_at_once(own_node: Callable[..., Node], channel: str) -> None:
    result = load(own_node(*SENDS_ALL), channel, "--publishers", "1", "--subscribers", "199", "--video-kbps", "100")
    assert (result["signaling"], result["publishersConnected"], result["subscribersConnected"]) == ("sora", 1, 199)
    assert result["tracksMissing"] == 0, result
    assert_none_lost(result, "packetsLost")
    times = result["connectMilliseconds"]
    assert_clock(times["max"] < 10_000, times, is_starved(result) or None)


def test_in_a_call_of_sixteen_all_members_receive_all_others(own_node: Callable[..., Node], channel: str) -> None:
    result = load(own_node(*SENDS_ALL), channel, "--conference", "16", "--video-kbps", "100", "--audio")
    assert result["tracksMissing"] == 0 and {"video", "audio"} <= result["window"].keys()
    assert_lossless(result)


# Channels shared by all protocols.


def test_an_sdk_client_watches_a_whip_publisher(join: Join, peer: StartPeer, node: Node, channel: str) -> None:
    publisher = peer("aiortc", "publish", f"{node.origin}/whip/{channel}")
    publisher.wait("connected", 10)
    receiver = join("recvonly").connected()
    name = wait_until(lambda: node.publishing(channel), "the publisher's name", 5)[0]
    receiver.sees(name)
    receiver.hears(name)
    assert publisher.end()["status"] == 200
    receiver.await_notification("connection.destroyed", connection_id=name)


def test_a_browser_with_whip_and_whep_and_an_sdk_client_see_each_other(
    join: Join, open_page: OpenPage, node: Node, channel: str
) -> None:
    page = open_page(node.origin)
    page.open_channel(channel)
    sender = join("sendrecv", video_codec_type="VP8", colour="blue").connected()
    page.watched()
    page.publish("VP8")
    name = wait_until(
        lambda: [one for one in node.publishing(channel) if one != sender.connection], "the page's name", 10
    )[0]
    sender.sees(name)


# Statistics of the admin API.


def test_the_admin_api_returns_statistics_of_a_connection(join: Join, node: Node, channel: str) -> None:
    sender = join("sendonly", video_codec_type="VP8").connected()
    receiver = join("recvonly").connected()
    receiver.sees(sender, frames=60)
    stats = node.operate("20171010.GetStatsReport")
    assert stats["total_ongoing_connections"] >= 2
    assert stats["sora_client"]["total_successful_sora_client_type"]["sora_python_sdk"] >= 2
    figures = node.operate("20170529.GetStatsConnection", channel_id=channel, connection_id=receiver.connection)
    assert figures, figures
    assert httpx.post(f"{node.admin}/", json={}, timeout=5).status_code == 400
    assert node.ask("20231220.StartRecording", channel_id=channel).status_code in (400, 501)
