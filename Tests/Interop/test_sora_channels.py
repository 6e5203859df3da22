"""The semantics of channels for the unmodified Sora Python SDK: `nagare` in its metadata, methods of `rpc`, events as notifications."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Callable

import pytest

from harness.members import Join, SoraMember
from harness.node import BINARY, Node
from harness.waiting import wait_until

StartNode = Callable[..., Node]
KEY = "hs256:0123456789abcdef0123456789abcdef"
METHODS = [
    "nagare/setRole", "nagare/setMuted", "nagare/raiseHand", "nagare/muteOthers", "nagare/removeUser", "nagare/subscribe",
    "nagare/unsubscribe", "nagare/statistics", "nagare/listMembers", "nagare/refreshToken",
]  # fmt: skip


def token(channel: str, user: str, seconds: int = 600, *options: str) -> str:
    command = [str(BINARY), "token", "--jwt-key", KEY, "--channel", channel, "--client-id", user, "--expires", f"{seconds}s"]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def enter(own_node: StartNode, join: Join, channel: str) -> Callable[..., SoraMember]:
    """Joins a node with tokens as a user, with these options in the metadata."""
    node = own_node("--jwt-key", KEY, "--resume-grace", "6")

    def entered(
        user: str, connected_as: str = "sendrecv", seconds: int = 600, moderates: bool = False, **options: object
    ) -> SoraMember:
        signed = token(channel, user, seconds, *(["--claims", '{"nagare": {"moderate": true}}'] if moderates else []))
        metadata = json.dumps({"access_token": signed, "nagare": options})
        return join(connected_as, "data-channel-signaling", at=node, metadata=metadata, video_codec_type="VP8")

    return entered


def test_a_member_of_the_audience_becomes_host_and_is_muted(enter: Callable[..., SoraMember]) -> None:
    host = enter("hana", profile="interactive", role="host").connected().switched()
    guest = enter("gen", role="audience").connected().switched()
    assert guest.offer()["rpc_methods"] == METHODS
    joined = guest.await_notification("channel.joined")
    assert (joined["profile"], joined["role"], joined["user_id"]) == ("interactive", "audience", "gen")
    assert [user["user_id"] for user in joined["users"]] == ["hana"]
    guest.sees(host)
    assert not host.notified("user.online"), "the audience is not announced"
    assert guest.call("nagare/setRole", role="host")["result"] == {"role": "host"}
    guest.await_notification("role.changed", role="host", by="self")
    host.await_notification("user.online", user_id="gen", role="host")
    host.await_notification("track.changed", user_id="gen", audio=True, video=True)
    host.sees(guest)
    assert guest.call("nagare/setMuted", kind="audio", muted=True)["result"] == {}
    host.await_notification("track.changed", user_id="gen", audio_muted=True, video_muted=False)
    assert guest.call("nagare/setRole", role="audience")["result"] == {"role": "audience"}
    host.await_notification("user.offline", user_id="gen", reason="became-audience")
    refused = guest.call("nagare/setRole", role="king")["error"]
    assert refused["code"] == -32602 and refused["data"] == {"reason": "PARAMETERS-INVALID", "code": 0x01030101}


def test_a_moderator_lets_in_mutes_and_removes(enter: Callable[..., SoraMember]) -> None:
    host = enter("hana", moderates=True, profile="interactive", role="host").connected().switched()
    guest = enter("gen", role="audience").connected().switched()
    assert host.await_notification("channel.joined")["moderator"] is True
    assert "moderator" not in guest.await_notification("channel.joined")
    refused = guest.call("nagare/muteOthers", kind="audio")["error"]
    assert refused["data"]["reason"] == "NOT-A-MODERATOR"
    assert guest.call("nagare/raiseHand", raised=True)["result"] == {}
    host.await_notification("hand.changed", user_id="gen", raised=True)
    assert host.call("nagare/setRole", role="host", user_id="gen")["result"] == {"role": "host"}
    guest.await_notification("role.changed", role="host", by="moderator")
    host.await_notification("hand.changed", user_id="gen", raised=False)
    host.sees(guest)
    assert host.call("nagare/setMuted", kind="video", muted=True, user_id="gen")["result"] == {}
    guest.await_notification("muted", kind="video", muted=True, by="moderator")
    host.await_notification("track.changed", user_id="gen", video_muted=True)

    def stands_still() -> bool:
        return host.growth(1)[guest.connection] == 0

    # The SDK sends on: the node does not forward it.
    wait_until(stands_still, "the end of the muted picture", 10, describe=host.described)
    assert guest.call("nagare/setMuted", kind="video", muted=False)["result"] == {}
    host.sees(guest)
    assert host.call("nagare/setRole", role="host", user_id="nobody")["error"]["data"]["reason"] == "USER-UNKNOWN"
    assert host.call("nagare/removeUser", user_id="gen")["result"] == {}
    host.await_notification("user.offline", user_id="gen", reason="kicked")


def test_a_member_chooses_what_it_receives_and_asks_who_is_there(enter: Callable[..., SoraMember]) -> None:
    sender = enter("sen", role="host").connected().switched()
    viewer = enter("vera", subscribe="manual").connected().switched()
    time.sleep(2)
    assert sum(stream["frames"] for stream in viewer.streams.values()) == 0, "nothing before the first subscription"
    assert viewer.call("nagare/subscribe", user_id="sen")["result"] == {}
    viewer.sees(sender)
    assert viewer.call("nagare/unsubscribe", user_id="sen", kind="video")["result"] == {}

    def stands_still() -> bool:
        return viewer.growth(1)[sender.connection] == 0

    wait_until(stands_still, "the end of the picture", 10, describe=viewer.described)
    listed = viewer.call("nagare/listMembers")["result"]
    assert (listed["user_id"], listed["profile"]) == ("vera", "communication")
    [user] = listed["users"]
    assert user["user_id"] == "sen" and [one["connection_id"] for one in user["connections"]] == [sender.connection]
    assert user["connections"][0] | {"audio": True, "video": True, "interrupted": False} == user["connections"][0]
    assert "sending" in viewer.call("nagare/statistics")["result"]
    quality = viewer.await_notification("network.quality")
    assert 0 <= quality["uplink"] <= 6 and 0 <= quality["downlink"] <= 6


def test_a_new_token_extends_all_connections_of_a_user(enter: Callable[..., SoraMember], channel: str) -> None:
    camera = enter("kei", seconds=32).connected().switched()
    screen = enter("kei", "sendonly", seconds=32, source="screen").connected().switched()
    for one in (camera, screen):
        one.await_notification("token.expiring", 20)
    refused = camera.call("nagare/refreshToken", access_token=token(channel, "other"))["error"]
    assert refused["data"] == {"reason": "TOKEN-INVALID", "code": 0x02010205} and "user" in refused["message"]
    granted = camera.call("nagare/refreshToken", access_token=token(channel, "kei"))["result"]
    assert granted["expires_at"] > time.time() + 500
    # The first tokens end meanwhile.
    time.sleep(max(0.0, camera.notified("token.expiring")[0]["expires_at"] + 3 - time.time()))
    for one in (camera, screen):
        assert not [report for report in one.reports if report["event"] in ("closed", "disconnected")]


def test_a_lost_member_is_interrupted_and_resumes(enter: Callable[..., SoraMember]) -> None:
    viewer = enter("vera").connected().switched()
    lost = enter("leo").connected().switched()
    viewer.sees(lost)
    place = lost.await_notification("channel.joined")
    assert place["grace"] == 6
    lost.process.kill()
    viewer.await_notification("user.interrupted", 40, user_id="leo", connection_id=lost.connection)
    back = enter("leo", resume=place["resume_token"])
    assert back.connection == lost.connection
    viewer.await_notification("user.resumed", user_id="leo", connection_id=lost.connection)
    viewer.sees(back)
    assert not viewer.notified("user.offline")
    back.switched().process.kill()
    viewer.await_notification("user.offline", 50, user_id="leo", reason="timed-out")
