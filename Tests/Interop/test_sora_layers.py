"""The Sora SDK with simulcast, spotlight and filters."""

from __future__ import annotations

import json

from harness.members import Join
from harness.node import Node
from harness.waiting import wait_until


def test_receivers_get_the_layers_that_they_request(join: Join, node: Node, channel: str) -> None:
    # Three layers need 960 × 540 and feedback about bandwidth.
    sender = join("sendonly", "simulcast", video_codec_type="VP8", video_bit_rate=3000, size="960x540").connected()
    low = join("recvonly", "simulcast", simulcast_rid="r0").connected()
    high = join("recvonly", "simulcast", simulcast_rid="r2").connected()
    low.sees(sender, width=240)
    high.sees(sender, seconds=40, width=960)
    # A layer switch on request: the decoder continues without interruption.
    node.operate(
        "20251217.RequestSimulcastRid", channel_id=channel, receiver_connection_id=low.connection, rid="r1"
    )
    low.sees(sender, seconds=20, width=480)
    told = low.await_notification("simulcast.switched", current_rid="r1")
    assert told["previous_rid"] == "r0"
    high.sees(sender, width=960)
    node.operate(
        "20251217.RequestSimulcastRid", channel_id=channel, receiver_connection_id=low.connection, rid="none"
    )
    wait_until(lambda: low.growth(1)[sender.connection] <= 1, "the end of the picture", 10)
    low.hears(sender)
    node.operate(
        "20251217.RequestSimulcastRid", channel_id=channel, receiver_connection_id=low.connection, rid="r0"
    )
    low.sees(sender, width=240)


def test_the_offer_announces_three_layers(join: Join) -> None:
    offer = join("sendonly", "simulcast", video_codec_type="VP8", size="320x240").connected().offer()
    assert offer["simulcast"] is True
    assert [one["rid"] for one in offer["encodings"]] == ["r0", "r1", "r2"]
    assert "a=simulcast:recv r0;r1;r2" in offer["sdp"]


def test_spotlight_follows_the_speaker(join: Join) -> None:
    options = {"spotlight_number": 1, "size": "320x240", "video_codec_type": "VP8"}
    quiet = join("sendrecv", "spotlight", "simulcast", "silent", **options).connected()
    other = join("sendrecv", "spotlight", "simulcast", "silent", **options).connected()
    viewer = join("recvonly", "spotlight", "simulcast").connected()
    viewer.sees(quiet)
    viewer.sees(other)
    quiet.send_command("unmute")
    viewer.await_notification("spotlight.focused", connection_id=quiet.connection)
    viewer.hears(quiet)
    quiet.send_command("mute")
    other.send_command("unmute")
    viewer.await_notification("spotlight.focused", connection_id=other.connection)
    viewer.await_notification("spotlight.unfocused", connection_id=quiet.connection)
    viewer.hears(other)


def test_an_operator_fixes_the_focus(join: Join, node: Node, channel: str) -> None:
    options = {"spotlight_number": 1, "size": "640x360", "video_codec_type": "VP8", "video_bit_rate": 1500}
    sender = join("sendonly", "spotlight", "simulcast", "silent", **options).connected()
    viewer = join("recvonly", "spotlight", "simulcast").connected()
    small = viewer.sees(sender)
    node.operate("20200807.FocusSpotlightFixed", channel_id=channel, connection_id=sender.connection)
    told = viewer.await_notification("spotlight.focused", connection_id=sender.connection)
    assert told["fixed"] is True
    wait_until(
        lambda: viewer.streams[sender.connection]["width"] > small["width"], "a larger picture", 20,
        describe=viewer.described,
    )  # fmt: skip


def test_a_filter_blocks_a_sender_s_video(join: Join, node: Node, channel: str) -> None:
    rules = [[{"field": "client_id", "operator": "is_in", "values": ["loud"]}, {"field": "kind", "operator": "is_in", "values": ["video"]}]]  # fmt: skip
    sender = join("sendonly", client_id="loud", video_codec_type="VP8").connected()
    filtered = join("recvonly", forwarding_filters=json.dumps([{"action": "block", "rules": rules}])).connected()
    free = join("recvonly").connected()
    free.sees(sender)
    filtered.hears(sender)
    assert filtered.growth(1.5).get(sender.connection, 0) == 0
    node.operate(
        "20230628.DeleteConnectionForwardingFilter", channel_id=channel, connection_id=filtered.connection
    )
    filtered.sees(sender)
