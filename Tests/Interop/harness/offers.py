"""SDP offers for tests that send no media."""

from __future__ import annotations

# The header of a request with an offer.
SDP = {"Content-Type": "application/sdp"}
FINGERPRINT = "sha-256 " + ":".join(["AB"] * 32)


def offer(
    direction: str,
    media: tuple[str, ...] = ("audio", "video"),
    setup: str = "actpass",
    ufrag: str = "abcd",
    password: str = "abcdefghijklmnopqrstuvwx",
    codec: str = "VP8/90000",
) -> str:
    """An offer with one section for each of `media`, shorter than a browser's."""
    lines = [
        "v=0",
        "o=- 4611731400430051336 2 IN IP4 127.0.0.1",
        "s=-",
        "t=0 0",
        "a=group:BUNDLE " + " ".join(str(index) for index in range(len(media))),
        "a=msid-semantic: WMS *",
    ]
    for index, kind in enumerate(media):
        payload = 111 if kind == "audio" else 96
        lines += [
            f"m={kind} 9 UDP/TLS/RTP/SAVPF {payload}",
            "c=IN IP4 0.0.0.0",
            "a=rtcp:9 IN IP4 0.0.0.0",
            f"a=ice-ufrag:{ufrag}",
            f"a=ice-pwd:{password}",
            "a=ice-options:trickle",
            f"a=fingerprint:{FINGERPRINT}",
            f"a=setup:{setup}",
            f"a=mid:{index}",
            "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid",
            f"a={direction}",
            "a=rtcp-mux",
            "a=rtcp-rsize",
        ]
        if kind == "audio":
            lines += ["a=rtpmap:111 opus/48000/2", "a=fmtp:111 minptime=10;useinbandfec=1"]
        else:
            lines += [f"a=rtpmap:96 {codec}", "a=rtcp-fb:96 nack", "a=rtcp-fb:96 nack pli"]
        if direction in ("sendonly", "sendrecv"):
            lines += [
                "a=msid:stream track" + str(index),
                f"a=ssrc:{1000 + index} cname:test",
            ]
    return "\r\n".join(lines) + "\r\n"


def fragment(ufrag: str, password: str, *candidates: str, kind: str = "audio", end: bool = False) -> str:
    """A trickle-ice-sdpfrag (RFC 8840)."""
    lines = [
        "a=group:BUNDLE 0 1",
        f"m={kind} 9 UDP/TLS/RTP/SAVPF 111",
        "a=mid:0",
        f"a=ice-ufrag:{ufrag}",
        f"a=ice-pwd:{password}",
        *(f"a=candidate:{one}" for one in candidates),
    ]
    return "\r\n".join(lines + (["a=end-of-candidates"] if end else [])) + "\r\n"
