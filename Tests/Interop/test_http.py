"""The requirements of RFC 9725 (WHIP) and draft-ietf-wish-whep that need no media, against a node."""

from __future__ import annotations

import re
import subprocess
from typing import Callable, Iterator
from urllib.parse import urljoin

import httpx
import pytest

from harness.node import BINARY, ENVIRONMENT, Node
from harness.offers import SDP, fragment, offer

FRAGMENT = "application/trickle-ice-sdpfrag"
SIDES = [("whip", "sendonly"), ("whep", "recvonly")]
CANDIDATE = "1 1 udp 2130706431 127.0.0.1 50000 typ host"


@pytest.fixture
def http(node: Node) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=node.origin, timeout=10) as client:
        yield client


@pytest.fixture(params=SIDES, ids=lambda side: side[0])
def session(request: pytest.FixtureRequest, http: httpx.Client, channel: str) -> Iterator[httpx.Response]:
    """The 201 response of a WHIP and of a WHEP session."""
    protocol, direction = request.param
    response = http.post(f"/{protocol}/{channel}", headers=SDP, content=offer(direction))
    assert response.status_code == 201, response.text
    yield response
    http.delete(response.headers["Location"])


def patch(
    http: httpx.Client, session: httpx.Response, body: str, if_match: str | None, **headers: str
) -> httpx.Response:
    conditions = {} if if_match is None else {"If-Match": if_match}
    return http.patch(
        session.headers["Location"], headers={"Content-Type": FRAGMENT, **conditions, **headers}, content=body
    )


# The endpoint.


@pytest.mark.parametrize("protocol, direction", SIDES)
def test_a_post_is_201_with_all_required_headers_and_attributes(
    http: httpx.Client, channel: str, protocol: str, direction: str
) -> None:
    response = http.post(f"/{protocol}/{channel}", headers=SDP, content=offer(direction))
    assert response.status_code == 201, response.text
    assert response.headers["Content-Type"] == "application/sdp"
    assert re.fullmatch(r'"[^"]+"', response.headers["ETag"]), "the ETag is not strong"
    location = urljoin(str(response.url), response.headers["Location"])
    assert re.search(r"[A-Za-z0-9_-]{20,}$", location), "the session's URL can be guessed"
    answer = response.text
    assert answer.startswith("v=0\r\n") and answer.endswith("\r\n")
    assert re.findall(r"^a=(sendonly|recvonly|sendrecv|inactive)\r$", answer, re.M) == (
        ["recvonly" if protocol == "whip" else "sendonly"] * 2
    )
    assert "a=group:BUNDLE 0 1\r\n" in answer
    assert "a=rtcp-mux-only\r\n" in answer
    assert "a=ice-lite\r\n" in answer
    assert re.search(r"^a=candidate:\S+ 1 udp \d+ 127\.0\.0\.1 \d+ typ host", answer, re.M | re.I)
    assert re.search(r"^a=setup:passive\r$", answer, re.M)
    assert re.search(r"^a=fingerprint:sha-256 [0-9A-F]{2}(:[0-9A-F]{2}){31}\r$", answer, re.M)
    if protocol == "whip":
        assert re.fullmatch(r"\S{20,}", response.headers["Nagare-Participant"])
    else:
        streams = set(re.findall(r"^a=msid:(\S+)", answer, re.M))
        assert len(streams) == 1, f"the tracks belong to several streams: {streams}"
    assert http.delete(location).status_code == 200


@pytest.mark.parametrize("protocol, direction", SIDES)
@pytest.mark.parametrize("content_type", ["Application/SDP", "application/sdp; charset=utf-8", "application/sdp;q=1"])
def test_case_and_parameters_of_the_content_type_do_not_matter(
    http: httpx.Client, channel: str, protocol: str, direction: str, content_type: str
) -> None:
    response = http.post(f"/{protocol}/{channel}", headers={"Content-Type": content_type}, content=offer(direction))
    assert response.status_code == 201, response.text
    http.delete(response.headers["Location"])


@pytest.mark.parametrize("protocol, direction", SIDES)
@pytest.mark.parametrize(
    "headers",
    [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/sdpx"}, {"Content-Type": "application/json"}],
)
def test_an_unsupported_content_type_is_415(
    http: httpx.Client, channel: str, protocol: str, direction: str, headers: dict[str, str]
) -> None:
    response = http.post(f"/{protocol}/{channel}", headers=headers, content=offer(direction))
    assert response.status_code == 415, response.text


GARBAGE = {
    "nothing": b"",
    "words": b"hello",
    "bytes": bytes(range(256)),
    "a version only": b"v=0\r\n",
    "no media": b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n",
    "a truncated media line": b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=video\r\n",
    "a NUL byte": offer("sendrecv").encode().replace(b"opus", b"op\0us"),
}


@pytest.mark.parametrize("protocol", ["whip", "whep"])
@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_body_that_is_not_an_offer_is_400(http: httpx.Client, channel: str, protocol: str, body: bytes) -> None:
    response = http.post(f"/{protocol}/{channel}", headers=SDP, content=body)
    assert response.status_code in (400, 422), response.text
    assert response.text.strip(), "the refusal has no reason"


REFUSED = {
    "WHIP, recvonly": ("whip", offer("recvonly")),
    "WHIP, inactive": ("whip", offer("inactive")),
    "WHEP, sendonly": ("whep", offer("sendonly")),
    "WHEP, inactive": ("whep", offer("inactive")),
    "WHIP, two video sections": ("whip", offer("sendonly", ("audio", "video", "video"))),
    "WHIP, two audio sections": ("whip", offer("sendonly", ("audio", "audio", "video"))),
    "WHIP, only an unknown codec": ("whip", offer("sendonly", codec="H261/90000")),
    "WHIP, no fingerprint": ("whip", re.sub(r"a=fingerprint:.*\r\n", "", offer("sendonly"))),
    "WHIP, no ICE credentials": ("whip", re.sub(r"a=ice-(ufrag|pwd):.*\r\n", "", offer("sendonly"))),
    "WHIP, no rtcp-mux": ("whip", offer("sendonly").replace("a=rtcp-mux\r\n", "")),
}


@pytest.mark.parametrize("protocol, body", REFUSED.values(), ids=REFUSED.keys())
def test_an_unacceptable_offer_is_refused_and_leaves_no_session(
    http: httpx.Client, channel: str, protocol: str, body: str
) -> None:
    response = http.post(f"/{protocol}/{channel}", headers=SDP, content=body)
    assert response.status_code in (400, 406, 422), response.text
    assert http.get(f"/api/channels/{channel}").json().get("participants", []) == [], "a participant is left"


@pytest.mark.parametrize("protocol, direction", [("whip", "sendrecv"), ("whep", "sendrecv")])
def test_an_offer_in_both_directions_is_accepted(http: httpx.Client, channel: str, protocol: str, direction: str) -> None:
    response = http.post(f"/{protocol}/{channel}", headers=SDP, content=offer(direction))
    assert response.status_code == 201, response.text
    http.delete(response.headers["Location"])


def test_an_active_client_is_answered_passively_and_a_passive_one_actively(http: httpx.Client, channel: str) -> None:
    for setup, answered in (("active", "passive"), ("passive", "active")):
        response = http.post(f"/whip/{channel}", headers=SDP, content=offer("sendonly", setup=setup))
        assert response.status_code == 201, response.text
        assert set(re.findall(r"^a=setup:(\S+)", response.text, re.M)) == {answered}
        http.delete(response.headers["Location"])


@pytest.mark.parametrize("protocol", ["whip", "whep"])
def test_options_lists_the_accepted_content_type(http: httpx.Client, channel: str, protocol: str) -> None:
    response = http.options(f"/{protocol}/{channel}")
    assert response.status_code in (200, 204)
    assert response.headers["Accept-Post"] == "application/sdp"


@pytest.mark.parametrize("protocol", ["whip", "whep"])
def test_a_preflight_is_answered_for_any_origin(http: httpx.Client, channel: str, protocol: str) -> None:
    preflight = {
        "Origin": "https://studio.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type, if-match",
    }
    response = http.options(f"/{protocol}/{channel}", headers=preflight)
    assert response.status_code in (200, 204)
    assert response.headers["Access-Control-Allow-Origin"] in ("*", "https://studio.example")
    methods = {one.strip() for one in response.headers["Access-Control-Allow-Methods"].split(",")}
    assert {"POST", "GET", "OPTIONS", "PATCH", "DELETE"} <= methods
    allowed = {one.strip().lower() for one in response.headers["Access-Control-Allow-Headers"].split(",")}
    assert {"authorization", "content-type", "if-match", "link", "traceparent"} <= allowed


def test_a_cross_origin_answer_exposes_its_headers(http: httpx.Client, channel: str) -> None:
    origin = {"Origin": "https://studio.example"}
    response = http.post(f"/whip/{channel}", headers={**SDP, **origin}, content=offer("sendonly"))
    assert response.headers["Access-Control-Allow-Origin"] in ("*", "https://studio.example")
    shown = {one.strip().lower() for one in response.headers["Access-Control-Expose-Headers"].split(",")}
    assert {"location", "link", "etag", "retry-after", "accept-post", "www-authenticate"} <= shown
    http.delete(response.headers["Location"])
    refused = http.post(f"/whip/{channel}", headers={**SDP, **origin}, content="v=0")
    assert refused.headers["Access-Control-Allow-Origin"] in ("*", "https://studio.example")


@pytest.mark.parametrize("protocol", ["whip", "whep"])
def test_get_is_an_empty_2xx(http: httpx.Client, channel: str, protocol: str) -> None:
    response = http.get(f"/{protocol}/{channel}")
    assert response.is_success and response.content == b""


def test_head_of_whep_has_the_content_type(http: httpx.Client, channel: str) -> None:
    response = http.head(f"/whep/{channel}")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/sdp"


@pytest.mark.parametrize("protocol", ["whip", "whep"])
@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_an_unsupported_method_is_405_with_allow(http: httpx.Client, channel: str, protocol: str, method: str) -> None:
    response = http.request(method, f"/{protocol}/{channel}")
    assert response.status_code == 405
    assert "POST" in response.headers["Allow"]


def test_watching_an_unknown_participant_is_refused(http: httpx.Client, channel: str) -> None:
    response = http.post(f"/whep/{channel}/{'a' * 26}", headers=SDP, content=offer("recvonly"))
    assert response.status_code in (404, 409), response.text


# The session.


def test_new_candidates_are_204_without_etag(http: httpx.Client, session: httpx.Response) -> None:
    body = fragment("abcd", "abcdefghijklmnopqrstuvwx", CANDIDATE, end=True)
    response = patch(http, session, body, session.headers["ETag"])
    assert (response.status_code, response.content) == (204, b"")
    assert "ETag" not in response.headers


def test_unusable_candidates_are_ignored(http: httpx.Client, session: httpx.Response) -> None:
    body = fragment(
        "abcd",
        "abcdefghijklmnopqrstuvwx",
        "1 1 tcp 1518280447 127.0.0.1 9 typ host tcptype active",
        "2 1 udp 2122260223 8f1c2b6e-0000-4000-8000-000000000000.local 50001 typ host",
        "3 1 quic 1 nowhere.invalid 1 typ host",
        "4 1 udp 2122260223 ::1 50002 typ host",
        CANDIDATE,
    )
    assert patch(http, session, body, session.headers["ETag"]).status_code == 204


def test_patch_without_if_match_is_428(http: httpx.Client, session: httpx.Response) -> None:
    body = fragment("abcd", "abcdefghijklmnopqrstuvwx", CANDIDATE)
    assert patch(http, session, body, None).status_code == 428


@pytest.mark.parametrize("tag", ['"another"', "W/{etag}", "{etag}x"])
def test_patch_with_another_etag_is_412(http: httpx.Client, session: httpx.Response, tag: str) -> None:
    body = fragment("abcd", "abcdefghijklmnopqrstuvwx", CANDIDATE)
    assert patch(http, session, body, tag.format(etag=session.headers["ETag"])).status_code == 412


def test_patch_with_an_unsupported_content_type_is_415(http: httpx.Client, session: httpx.Response) -> None:
    body = fragment("abcd", "abcdefghijklmnopqrstuvwx", CANDIDATE)
    response = http.patch(
        session.headers["Location"], headers={**SDP, "If-Match": session.headers["ETag"]}, content=body
    )
    assert response.status_code == 415


@pytest.mark.parametrize("body", ["", "hello", "a=ice-ufrag:abcd\r\n", "m=audio\r\n"])
def test_a_malformed_fragment_is_400(http: httpx.Client, session: httpx.Response, body: str) -> None:
    assert patch(http, session, body, session.headers["ETag"]).status_code == 400


@pytest.mark.parametrize("star", ["*", '"*"'])
def test_a_restart_is_200_with_new_credentials_and_a_new_etag(
    http: httpx.Client, session: httpx.Response, star: str
) -> None:
    old = session.headers["ETag"]
    response = patch(http, session, fragment("efgh", "zyxwvutsrqponmlkjihgfedc"), star)
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"] == FRAGMENT
    new = response.headers["ETag"]
    assert new != old and re.fullmatch(r'"[^"]+"', new)
    answered = dict(re.findall(r"^a=ice-(ufrag|pwd):(\S+)", response.text, re.M))
    before = dict(re.findall(r"^a=ice-(ufrag|pwd):(\S+)", session.text, re.M))
    assert answered["ufrag"] != before["ufrag"] and answered["pwd"] != before["pwd"]
    assert re.search(r"^a=candidate:\S+ 1 udp \d+ 127\.0\.0\.1 \d+ typ host", response.text, re.M | re.I)
    trickled = fragment("efgh", "zyxwvutsrqponmlkjihgfedc", CANDIDATE)
    assert patch(http, session, trickled, old).status_code == 412
    assert patch(http, session, trickled, new).status_code == 204


def test_delete_ignores_if_match_and_the_second_is_404(http: httpx.Client, session: httpx.Response) -> None:
    location = session.headers["Location"]
    assert http.delete(location, headers={"If-Match": '"no such"'}).status_code == 200
    assert http.delete(location).status_code == 404
    body = fragment("abcd", "abcdefghijklmnopqrstuvwx", CANDIDATE)
    assert patch(http, session, body, session.headers["ETag"]).status_code == 404


def test_get_of_a_session_is_an_empty_2xx(http: httpx.Client, session: httpx.Response) -> None:
    response = http.get(session.headers["Location"])
    assert response.is_success and response.content == b""


def test_an_unsupported_method_on_a_session_is_405_with_allow(http: httpx.Client, session: httpx.Response) -> None:
    response = http.put(session.headers["Location"], headers=SDP, content=b"")
    assert response.status_code == 405
    assert {"PATCH", "DELETE"} <= {one.strip() for one in response.headers["Allow"].split(",")}


# Access.


@pytest.fixture
def guarded(own_node: Callable[..., Node]) -> Iterator[httpx.Client]:
    """A client of a node that requires a token."""
    with httpx.Client(base_url=own_node("--token", "open-sesame").origin, timeout=10) as client:
        yield client


def test_without_the_token_everything_is_401(guarded: httpx.Client, channel: str) -> None:
    right, wrong = {"Authorization": "Bearer open-sesame"}, {"Authorization": "Bearer open-barley"}
    for headers in ({}, wrong, {"Authorization": "Basic b3Blbi1zZXNhbWU="}):
        for protocol, direction in SIDES:
            refused = guarded.post(f"/{protocol}/{channel}", headers={**SDP, **headers}, content=offer(direction))
            assert refused.status_code == 401, refused.text
            assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        assert guarded.get(f"/api/channels/{channel}", headers=headers).status_code == 401
        assert guarded.get(f"/api/channels/{channel}/events", headers=headers).status_code == 401
    session = guarded.post(f"/whip/{channel}", headers={**SDP, **right}, content=offer("sendonly"))
    assert session.status_code == 201, session.text
    for headers in ({}, wrong):
        assert guarded.delete(session.headers["Location"], headers=headers).status_code == 401
        body = fragment("abcd", "abcdefghijklmnopqrstuvwx", CANDIDATE)
        assert patch(guarded, session, body, session.headers["ETag"], **headers).status_code == 401
    assert guarded.delete(session.headers["Location"], headers=right).status_code == 200


def test_a_preflight_needs_no_token(guarded: httpx.Client, channel: str) -> None:
    preflight = {"Origin": "https://studio.example", "Access-Control-Request-Method": "POST"}
    assert guarded.options(f"/whip/{channel}", headers=preflight).status_code in (200, 204)


def test_the_page_needs_no_token(guarded: httpx.Client) -> None:
    assert guarded.get("/").status_code == 200


KEY = ("--jwt-key", "hs256:0123456789abcdef0123456789abcdef")


def signed(channel: str, *options: str) -> dict[str, str]:
    """The header with a token of the channel."""
    command = [str(BINARY), "token", *KEY, "--channel", channel, *options]
    made = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return {"Authorization": f"Bearer {made.stdout.strip()}"}


@pytest.mark.parametrize("protocol, direction", SIDES)
def test_a_session_is_refused_to_all_but_its_owner(
    own_node: Callable[..., Node], channel: str, protocol: str, direction: str
) -> None:
    strangers = {
        "nobody": ({}, 401),
        "another user": (signed(channel, "--client-id", "mallory"), 403),
        "a token without a user that may watch": (signed(channel, "--role", "recvonly"), 403),
        "a token of another channel": (signed("another", "--client-id", "hanako"), 403),
        "the user's token that has expired": (
            signed(channel, "--client-id", "hanako", "--expires", "never", "--claims", '{"exp": 1700000000}'),
            401,
        ),
    }
    with httpx.Client(base_url=own_node(*KEY).origin, timeout=10) as client:
        owner = signed(channel, "--client-id", "hanako")
        session = client.post(f"/{protocol}/{channel}", headers={**SDP, **owner}, content=offer(direction))
        assert session.status_code == 201, session.text
        location = session.headers["Location"]
        restart = fragment("efgh", "zyxwvutsrqponmlkjihgfedc")
        for who, (headers, status) in strangers.items():
            for answer in (
                client.get(location, headers=headers),
                client.get(f"{location}/statistics", headers=headers),
                client.get(f"{location}/events", headers=headers),
                patch(client, session, restart, "*", **headers),
                client.patch(location, headers=headers),
                client.delete(location, headers=headers),
            ):
                assert answer.status_code == status, f"{who}: {answer.request.method} {answer.text}"
        trickled = fragment("abcd", "abcdefghijklmnopqrstuvwx", CANDIDATE)
        assert patch(client, session, trickled, session.headers["ETag"], **owner).status_code == 204, "ICE restarted"
        later = signed(channel, "--client-id", "hanako", "--expires", "2h")
        assert client.patch(location, headers=later).status_code == 204, "a later token did not extend it"
        assert client.delete(location, headers=later).status_code == 200


# The page's own interface.


def test_the_channel_lists_its_participants(http: httpx.Client, node: Node, channel: str) -> None:
    assert http.get(f"/api/channels/{channel}").json()["participants"] == []
    made = http.post(f"/whip/{channel}?name=Ada%20L", headers=SDP, content=offer("sendonly"))
    state = http.get(f"/api/channels/{channel}").json()
    assert state["channel"] == channel
    assert [(one["id"], one["name"]) for one in state["participants"]] == [
        (made.headers["Nagare-Participant"], "Ada L")
    ]
    http.delete(made.headers["Location"])
    assert http.get(f"/api/channels/{channel}").json()["participants"] == []


@pytest.mark.parametrize(
    "path, content_type",
    [("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css"), ("/nagare.js", "text/javascript")],
)
def test_the_page_is_served_with_a_strict_policy(http: httpx.Client, path: str, content_type: str) -> None:
    response = http.get(path)
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith(content_type)
    policy = response.headers["Content-Security-Policy"]
    assert "'unsafe-inline'" not in policy and "'unsafe-eval'" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/nowhere", "/..%2f..%2fetc/passwd", "/whip", "/whip/", "/sessions/unknown", "/%zz"])
def test_an_unknown_path_is_a_4xx(http: httpx.Client, path: str) -> None:
    assert http.get(path).status_code in (400, 404)
