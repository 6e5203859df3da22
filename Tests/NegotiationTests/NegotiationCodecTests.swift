import MediaTypes
import Testing
import Wire

@testable import Negotiation

private func codec(_ name: CodecName, _ format: String = "") -> CodecParameters {
    let line = FormatParametersAttribute("96 \(format)")
    return CodecParameters(
        name: name,
        payloadType: PayloadType(wire: 96),
        format: (line?.parameters ?? []).map { FormatParameter(key: $0.key, value: $0.value) }
    )
}

private func h264(_ profile: String, mode: Int = 1) -> CodecParameters {
    codec(.h264, "profile-level-id=\(profile);packetization-mode=\(mode)")
}

@Suite struct NegotiationCodecTests {
    @Test(
        arguments: [
            ("42e01f", H264Profile.constrainedBaseline), ("42E01F", .constrainedBaseline),
            ("42c01f", .constrainedBaseline),
            ("4d801f", .constrainedBaseline), ("58c01f", .constrainedBaseline), ("42001f", .baseline),
            ("42801f", .baseline), ("58801f", .baseline), ("4d001f", .main), ("4d401f", .main),
            ("640c1f", .constrainedHigh),
            ("640032", .high), ("f4001f", .predictiveHigh444), ("6e001f", nil), ("42e01", nil), ("42e01f0", nil),
            ("zzzzzz", nil), ("+2e01f", nil), ("", nil), ("42ff1f", nil),
        ] as [(String, H264Profile?)]
    )
    func `an H.264 profile has several spellings`(text: String, profile: H264Profile?) {
        #expect(H264Profile(profileLevelID: text) == profile)
    }

    @Test(arguments: [
        (h264("42e01f"), h264("42c02a"), true),
        (h264("42e01f"), h264("42001f"), false),
        (h264("42e01f"), h264("42e01f", mode: 0), false),
        (h264("42e01f"), codec(.h264, "packetization-mode=1"), true),
        (h264("42e01f", mode: 0), codec(.h264, "profile-level-id=42e01f"), true),
        (h264("640c1f"), h264("64001f"), false),
        (h264("nonsense"), h264("nonsense"), false),
        (codec(.vp9), codec(.vp9, "profile-id=0"), true),
        (codec(.vp9), codec(.vp9, "profile-id=2"), false),
        (codec(.av1), codec(.av1, "level-idx=5;profile=0;tier=0"), true),
        (codec(.av1), codec(.av1, "profile=1"), false),
        (codec(.av1), codec(.av1, "tier=1"), false),
        (codec(.h265), codec(.h265, "level-id=93;profile-id=1;tier-flag=0;tx-mode=SRST"), true),
        (codec(.h265), codec(.h265, "profile-id=2"), false),
        (codec(.h265), codec(.h265, "tier-flag=1"), false),
        (codec(.h265), codec(.h265, "tx-mode=MRST"), false),
        (codec(.vp8), codec(.vp8, "max-fs=12288"), true),
        (codec(.opus, "stereo=1"), codec(.opus), true),
        (codec(.vp8), codec(.vp9), false),
        (codec(.opus), codec(.red), false),
    ])
    func `formats match by the parameters that define them`(left: CodecParameters, right: CodecParameters, same: Bool) {
        #expect(matches(left, right) == same)
        #expect(matches(right, left) == same)
    }

    private func slot(_ codecs: [CodecParameters]) throws -> SendTrackParameters {
        SendTrackParameters(
            mid: try #require(MID("0")),
            kind: .video,
            codecs: codecs,
            ssrc: SSRC(rawValue: 1),
            cname: "c"
        )
    }

    @Test func `an equal format is preferred to one that merely plays`() throws {
        let slot = try slot([h264("64001f"), h264("42e01f", mode: 0), h264("42e01f"), codec(.vp8)])
        #expect(payloadFormat(for: h264("42e01f"), in: slot) == h264("42e01f"))
        #expect(payloadFormat(for: h264("42e01f", mode: 0), in: slot) == h264("42e01f", mode: 0))
        #expect(payloadFormat(for: h264("4d001f"), in: slot) == h264("64001f"))
        #expect(payloadFormat(for: codec(.vp8), in: slot) == codec(.vp8))
        #expect(payloadFormat(for: codec(.av1), in: slot) == nil)
    }

    @Test func `a decoder plays what it includes and no more`() throws {
        let constrained = try slot([h264("42e01f")])
        #expect(payloadFormat(for: h264("42001f"), in: constrained) != nil, "Chromium's baseline at Safari")
        #expect(payloadFormat(for: h264("42e01f", mode: 0), in: constrained) != nil)
        #expect(payloadFormat(for: h264("64001f"), in: constrained) == nil)
        #expect(payloadFormat(for: h264("4d001f"), in: constrained) == nil)
        #expect(payloadFormat(for: h264("42e01f", mode: 1), in: try slot([h264("42e01f", mode: 0)])) == nil)
        #expect(payloadFormat(for: h264("64001f"), in: try slot([h264("640c1f")])) == nil)
        #expect(payloadFormat(for: h264("640c1f"), in: try slot([h264("64001f")])) != nil)
        #expect(payloadFormat(for: codec(.h265), in: try slot([codec(.h265, "profile-id=2")])) != nil)
        #expect(payloadFormat(for: codec(.h265, "profile-id=2"), in: try slot([codec(.h265)])) == nil)
        #expect(payloadFormat(for: codec(.h265, "tier-flag=x"), in: try slot([codec(.h265)])) == nil)
        #expect(payloadFormat(for: codec(.av1), in: try slot([codec(.av1, "profile=1;tier=1")])) != nil)
        #expect(payloadFormat(for: codec(.av1, "profile=2"), in: try slot([codec(.av1, "profile=1")])) == nil)
        #expect(payloadFormat(for: codec(.vp9, "profile-id=2"), in: try slot([codec(.vp9)])) == nil)
    }

    @Test func `payload types that look like RTCP, and RED of what is not forwarded, are skipped`() throws {
        let offer = PublishOffers.chromium.text
            .replacing(line: "a=fmtp:63 111/111", with: "a=fmtp:63 0/0")
            .replacing(line: "a=rtpmap:45 AV1/90000", with: "a=rtpmap:72 AV1/90000")
            .replacing(
                line: "m=video 9 UDP/TLS/RTP/SAVPF 96 97 103 104 107 108 109 114 45 46 98 99 100 101 49 50 123 124 125",
                with: "m=video 9 UDP/TLS/RTP/SAVPF 72 96 96 97 500 x"
            )
        let result = try NegotiationServer.publish(offer)
        #expect(result.receive.first?.codecs.map(\.name) == [.opus])
        #expect(result.receive.last?.codecs.map(\.name) == [.vp8])
    }
}
