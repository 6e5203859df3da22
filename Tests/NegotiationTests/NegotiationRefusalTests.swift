import TestSupport
import Testing
import Wire

@testable import Negotiation

/// An edit of a good offer that makes it one to refuse.
struct BrokenOffer: CustomTestStringConvertible, Sendable {
    let name: String
    /// `true` for malformed offers, `false` for unsupported ones.
    let isMalformed: Bool
    /// A part of the expected sentence.
    let mention: String
    let edit: @Sendable (String) -> String
    var testDescription: String { name }

    init(_ name: String, malformed: Bool, mention: String, edit: @escaping @Sendable (String) -> String) {
        self.name = name
        isMalformed = malformed
        self.mention = mention
        self.edit = edit
    }
}

private let secondVideo = """
    m=video 9 UDP/TLS/RTP/SAVPF 106
    a=mid:2
    a=sendonly
    a=rtcp-mux
    a=rtpmap:106 H264/90000

    """

private let broken: [BrokenOffer] = [
    BrokenOffer("two video sections", malformed: false, mention: "more than one video") { $0 + secondVideo },
    BrokenOffer("recvonly", malformed: true, mention: "sendonly") {
        $0.replacing(line: "a=sendonly", with: "a=recvonly")
    },
    BrokenOffer("inactive", malformed: true, mention: "inactive") {
        $0.replacing(line: "a=sendonly", with: "a=inactive")
    },
    BrokenOffer("no BUNDLE", malformed: false, mention: "max-bundle") { $0.removing(linesWith: "a=group") },
    BrokenOffer("BUNDLE without video", malformed: false, mention: "max-bundle") {
        $0.replacing(line: "a=group:BUNDLE 0 1", with: "a=group:BUNDLE 0")
    },
    BrokenOffer("unreadable group", malformed: true, mention: "a=group") {
        $0.replacing(line: "a=group:BUNDLE 0 1", with: "a=group:BUNDLE 0 (")
    },
    BrokenOffer("no mid", malformed: true, mention: "a=mid") { $0.removing(linesWith: "a=mid") },
    BrokenOffer("one mid twice", malformed: true, mention: "a=mid:0") {
        $0.replacing(line: "a=mid:1", with: "a=mid:0")
    },
    BrokenOffer("no rtcp-mux", malformed: false, mention: "rtcp-mux") { $0.removing(linesWith: "a=rtcp-mux") },
    BrokenOffer("no fingerprint", malformed: true, mention: "a=fingerprint") {
        $0.removing(linesWith: "a=fingerprint")
    },
    BrokenOffer("SHA-1 only", malformed: false, mention: "sha-256") {
        $0.removing(linesWith: "a=fingerprint").replacing(line: "a=mid:0", with: "a=mid:0\na=fingerprint:sha-1 00:11")
    },
    BrokenOffer("no ICE", malformed: true, mention: "a=ice-ufrag") { $0.removing(linesWith: "a=ice-") },
    BrokenOffer("no password", malformed: true, mention: "a=ice-pwd") { $0.removing(linesWith: "a=ice-pwd") },
    BrokenOffer("short password", malformed: true, mention: "22 to 256") {
        $0.removing(linesWith: "a=ice-pwd").replacing(line: "a=mid:0", with: "a=mid:0\na=ice-pwd:short")
    },
    BrokenOffer("two lite agents", malformed: false, mention: "ice-lite") {
        $0.replacing(line: "t=0 0", with: "t=0 0\na=ice-lite")
    },
    BrokenOffer("holdconn", malformed: false, mention: "setup") {
        $0.replacing(line: "a=setup:passive", with: "a=setup:holdconn")
    },
    BrokenOffer("unknown setup", malformed: true, mention: "setup") {
        $0.replacing(line: "a=setup:passive", with: "a=setup:later")
    },
    BrokenOffer("no audio codec in common", malformed: false, mention: "Opus") {
        $0.replacing(line: "a=rtpmap:111 opus/48000/2", with: "a=rtpmap:111 PCMU/8000")
    },
    BrokenOffer("no video codec in common", malformed: false, mention: "VP8") {
        $0.replacing(line: "a=rtpmap:106 H264/90000", with: "a=rtpmap:106 H261/90000")
    },
    BrokenOffer("interleaved H.264 only", malformed: false, mention: "packetization-mode") {
        $0.replacing(
            line: "a=fmtp:106 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42c01f",
            with: "a=fmtp:106 packetization-mode=2"
        )
    },
    BrokenOffer("plain RTP over SCTP", malformed: false, mention: "SAVPF") {
        $0.replacing(line: "m=audio 9 UDP/TLS/RTP/SAVPF 111", with: "m=audio 9 SCTP 111")
    },
    BrokenOffer("a text section", malformed: false, mention: "m=text") {
        $0.replacing(line: "a=mid:1", with: "a=mid:1\nm=text 9 UDP/TLS/RTP/SAVPF 98\na=mid:2")
    },
    BrokenOffer("one payload type, two codecs", malformed: true, mention: "111") {
        $0.replacing(line: "a=rtpmap:106 H264/90000", with: "a=rtpmap:111 H264/90000")
            .replacing(line: "m=video 9 UDP/TLS/RTP/SAVPF 106 105", with: "m=video 9 UDP/TLS/RTP/SAVPF 111")
    },
    BrokenOffer("one extension id, two extensions", malformed: true, mention: "extmap") {
        $0.replacing(line: "a=mid:0", with: "a=mid:0\na=extmap:1 \(HeaderExtension.mid.uri)")
            .replacing(line: "a=mid:1", with: "a=mid:1\na=extmap:1 \(HeaderExtension.videoOrientation.uri)")
    },
    BrokenOffer("one SSRC, two sections", malformed: true, mention: "900100") {
        $0.replacing(line: "a=mid:1", with: "a=mid:1\na=ssrc:900100 cname:x")
    },
    BrokenOffer("simulcast with an unknown rid", malformed: true, mention: "rid") {
        $0.replacing(line: "a=mid:1", with: "a=mid:1\na=simulcast:send q")
    },
    BrokenOffer("simulcast with one rid twice", malformed: true, mention: "twice") {
        $0.replacing(line: "a=mid:1", with: "a=mid:1\na=rid:q send\na=simulcast:send q;q")
    },
    BrokenOffer("simulcast without extensions", malformed: false, mention: "rtp-stream-id") {
        $0.replacing(line: "a=mid:1", with: "a=mid:1\na=rid:q send\na=rid:h send\na=simulcast:send q;h")
    },
    BrokenOffer("unreadable simulcast", malformed: true, mention: "RFC 8853") {
        $0.replacing(line: "a=mid:1", with: "a=mid:1\na=simulcast: send rid=q;h")
    },
    BrokenOffer("nothing but a data channel", malformed: true, mention: "no audio or video") {
        $0.components(before: "m=") + "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\n"
    },
    BrokenOffer("too many SSRCs", malformed: false, mention: "SSRC") {
        $0 + (1...100).map { "a=ssrc:\($0) cname:x\n" }.joined()
    },
    BrokenOffer("not SDP", malformed: true, mention: "Line 1") { _ in "<html></html>" },
    BrokenOffer("JSON", malformed: true, mention: "Line 1") { _ in #"{"type":"offer","sdp":"v=0"}"# },
    BrokenOffer("nothing", malformed: true, mention: "empty") { _ in "" },
]

@Suite struct NegotiationRefusalTests {
    @Test(arguments: broken)
    func `a broken offer is refused with a sentence about it`(offer: BrokenOffer) {
        let text = offer.edit(PublishOffers.ffmpeg.text)
        #expect(text != PublishOffers.ffmpeg.text, "the edit did something")
        do throws(NegotiationError) {
            _ = try NegotiationServer.publish(text)
            Issue.record("the offer was taken")
        } catch {
            #expect(error.message.contains(offer.mention), "\(error.message)")
            #expect(error.message.hasSuffix("."))
            switch error {
            case .malformed: #expect(offer.isMalformed, "\(error)")
            case .unsupported: #expect(!offer.isMalformed, "\(error)")
            }
        }
    }

    /// A line that fills an offer, and a part of the sentence that refuses it; `nil` where the offer is taken.
    struct Filler: CustomTestStringConvertible, Sendable {
        let line: String
        /// With the lines at the end, which is in a section.
        var inSection: String?
        /// With the lines before the first section.
        var inSession: String?
        var testDescription: String { String(line.prefix(40)) }

        static let all = [
            Filler(line: "a=rtpmap:96 VP8/90000"), Filler(line: "a=fmtp:96 \(String(repeating: "a=1;", count: 30))"),
            Filler(line: "a=rid:a send"), Filler(line: "a=rtcp-fb:* nack"),
            Filler(line: "a=ssrc-group:SIM 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"),
            Filler(line: "a=candidate:1 1 udp 1 192.0.2.1 5000 typ host"), Filler(line: "a=extmap:1 urn:x"),
            Filler(line: "a=fingerprint:sha-256 00"),
            Filler(line: "a=simulcast:send a", inSection: "names a rid that has no a=rid line"),
            Filler(line: "m=audio 0 x 0", inSection: "m= lines", inSession: "m= lines"),
        ]
    }

    /// The sentence that refuses an offer; `nil` when it is taken.
    private func refusal(of text: String) -> String? {
        do throws(NegotiationError) {
            _ = try NegotiationServer.publish(text)
            return nil
        } catch {
            return error.message
        }
    }

    private func expect(_ text: String, isRefusedWith mention: String?, _ location: SourceLocation = #_sourceLocation) {
        let message = refusal(of: text)
        if let mention {
            #expect(message?.contains(mention) == true, "\(message ?? "taken")", sourceLocation: location)
        } else {
            #expect(message == nil, sourceLocation: location)
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: Filler.all)
    func `an offer as large as is read, and full of one line, is taken or refused for that line`(filler: Filler) {
        let head = PublishOffers.ffmpeg.text
        let line = filler.line + "\n"
        let lines = String(repeating: line, count: min(4000, (SDPLimits.bytesMax - head.utf8.count) / line.utf8.count))
        expect(head + lines, isRefusedWith: filler.inSection)
        expect(head.replacing(line: "t=0 0", with: "t=0 0\n" + lines), isRefusedWith: filler.inSession)
    }

    @Test func `an offer that is larger than what is read is refused for its size`() {
        let head = PublishOffers.ffmpeg.text
        expect(head + String(repeating: "x", count: 4_000_000), isRefusedWith: "at most \(SDPLimits.bytesMax) are read")
        let line = "a=x:\(String(repeating: "y", count: 1_000))\n"
        let lines = String(repeating: line, count: (SDPLimits.bytesMax - head.utf8.count) / line.utf8.count + 1)
        expect(head + lines, isRefusedWith: "at most \(SDPLimits.bytesMax) are read")
    }

    @Test func `to watch, an offer must receive`() {
        var generator = SeededGenerator(seed: 1)
        #expect(throws: NegotiationError.self) {
            try WatchOffer(parsing: PublishOffers.chromium.text).answer(
                local: NegotiationServer.local,
                streamID: "s",
                sessionID: 1,
                using: &generator
            )
        }
    }
}
