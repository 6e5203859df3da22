"""Browsers that behave like Sora's JavaScript SDK."""

from __future__ import annotations

from typing import Callable

import httpx

from harness.browser_member import BrowserMember
from harness.chromium import ChromiumPage
from harness.firefox import Firefox
from harness.members import Join
from harness.node import Node
from harness.waiting import wait_until

OpenPage = Callable[..., ChromiumPage]


def test_three_chromium_members_see_each_other_and_one_rejoins(
    open_page: OpenPage, node: Node, channel: str
) -> None:
    def member() -> BrowserMember:
        return BrowserMember(open_page(node.origin), node, channel, "sendrecv", video={"codec_type": "VP8"})

    members = [member().connected() for _ in range(3)]
    for one in members:
        for other in members:
            if other is not one:
                one.sees(other.id)
    sections = members[0].sample()["sections"]
    assert members.pop().disconnect() == (1000, "TYPE-DISCONNECT")
    wait_until(
        lambda: any(n["event_type"] == "connection.destroyed" for n in members[0].sample()["notifications"]),
        "the notification that a member left", 10,
    )  # fmt: skip
    newcomer = member().connected()
    for one in members:
        one.sees(newcomer.id)
        newcomer.sees(one.id)
    members[0].sees(members[1].id)
    assert members[0].sample()["sections"] <= sections + 2
    wait_until(lambda: members[0].sample()["pings"] > 0, "a ping", 10)
    node.operate("20160711.PushChannel", channel_id=channel, data={"hello": ["world", 1]})
    wait_until(lambda: newcomer.sample()["pushed"] == {"hello": ["world", 1]}, "the operator's push message", 5)


def test_two_chromium_members_see_each_other_in_h264(open_page: OpenPage, node: Node, channel: str) -> None:
    members = [
        BrowserMember(open_page(node.origin), node, channel, "sendrecv", video={"codec_type": "H264"}).connected()
        for _ in range(2)
    ]
    for one, other in (members, members[::-1]):
        one.sees(other.id)
    listed = node.operate("20201013.ListChannelConnections", channel_id=channel)
    assert [one["video_codec_type"] for one in listed] == ["H264", "H264"], listed


def test_a_browser_s_three_layers(open_page: OpenPage, join: Join, node: Node, channel: str) -> None:
    sender = BrowserMember(
        open_page(node.origin), node, channel, "sendonly",
        video={"codec_type": "VP8", "bit_rate": 3000}, simulcast=True, size=[1280, 720],
    ).connected()  # fmt: skip
    low = join("recvonly", simulcast_rid="r0").connected()
    low.sees(sender.id, width=320)
    high = join("recvonly", simulcast_rid="r2").connected()
    high.sees(sender.id, seconds=40, width=1280)


def test_layers_that_nobody_wants_rest_until_somebody_wants_them(
    open_page: OpenPage, join: Join, node: Node, channel: str
) -> None:
    sender = BrowserMember(
        open_page(node.origin), node, channel, "sendonly",
        video={"codec_type": "VP8", "bit_rate": 3000}, simulcast=True, size=[1280, 720],
    ).connected()  # fmt: skip
    viewer = join("recvonly", simulcast_rid="r0").connected()
    viewer.sees(sender.id, width=320)
    wait_until(
        lambda: sender.active_layers() == {"r0": True, "r1": False, "r2": False}, "the pause of two layers", 15,
        describe=sender.layers,
    )  # fmt: skip
    # The encoder may finish frames that it had begun.
    viewer.sees(sender.id, width=320)
    paused = sender.layers()
    viewer.sees(sender.id, width=320)
    assert sender.layers()["r2"]["frames"] == paused["r2"]["frames"]
    node.operate(
        "20251217.RequestSimulcastRid", channel_id=channel, receiver_connection_id=viewer.connection, rid="r2"
    )
    wait_until(
        lambda: sender.layers()["r2"]["frames"] > paused["r2"]["frames"], "frames of the layer that is wanted", 10,
        describe=sender.layers,
    )  # fmt: skip
    viewer.sees(sender.id, seconds=40, width=1280)


def test_firefox_sends_and_receives_as_a_member(firefox: Firefox, join: Join, node: Node, channel: str) -> None:
    other = join("sendrecv", video_codec_type="VP8").connected()
    page = firefox.page(node.origin)
    member = BrowserMember(page, node, channel, "sendrecv", video={"codec_type": "VP8"}).connected(20)
    member.sees(other.connection)
    other.sees(member.id)
    # One participant leaves and another joins: the new one reuses the media section.
    third = join("sendrecv", video_codec_type="VP8", colour="red").connected()
    member.sees(third.connection)
    third.end()
    fourth = join("sendrecv", video_codec_type="VP8", colour="blue").connected()
    member.sees(fourth.connection)
    member.sees(other.connection)
    assert member.disconnect() == (1000, "TYPE-DISCONNECT")
    page.close()


def test_a_plain_client_sees_a_member_of_the_audience_become_host_and_audience_again(
    open_page: OpenPage, join: Join, node: Node, channel: str
) -> None:
    plain = join("sendrecv", video_codec_type="VP8", size="320x240").connected()
    guest = BrowserMember(
        open_page(node.origin), node, channel, "sendrecv", video={"codec_type": "VP8"},
        nagare={"profile": "interactive", "role": "audience"},
    ).connected()  # fmt: skip
    guest.sees(plain.connection)
    assert not plain.notified("connection.created", connection_id=guest.id)
    for _ in range(2):
        assert guest.request("setRole", role="host")["result"] == {"role": "host"}
        plain.sees(guest.id)
        told = plain.notified("connection.created", connection_id=guest.id)[-1]
        assert (told["role"], told["channel_sendrecv_connections"]) == ("sendrecv", 2)
        assert guest.request("setRole", role="audience")["result"] == {"role": "audience"}
        count = len(plain.notified("connection.created", connection_id=guest.id))
        wait_until(
            lambda: len(plain.notified("connection.destroyed", connection_id=guest.id)) == count, "its end", 5,
        )  # fmt: skip
    guest.sees(plain.connection)
    assert guest.sample()["sections"] == 4, "a role change needs no new media section at the member itself"

    # What an operator decides holds.
    def operate(role: str) -> None:
        path = f"/v1/channels/{channel}/members/{guest.id}/role"
        response = httpx.post(f"{node.admin}{path}", json={"role": role})
        assert response.status_code == 200, response.text

    operate("audience")
    refused = guest.request("setRole", role="host")["error"]
    assert (refused["reason"], refused["code"]) == ("ROLE-SET-BY-OPERATOR", 0x01020201)
    operate("host")
    plain.sees(guest.id)
    guest.request("setRole", role="audience")
    assert guest.request("setRole", role="host")["result"] == {"role": "host"}
    wait_until(
        lambda: [n for n in guest.sample()["notifications"] if n["event_type"] == "network.quality"][1:],
        "the quality of the network, twice", 15,
    )  # fmt: skip
