internal import Negotiation

extension Workloads {
    /// A publisher's offer with the sections and formats of a browser's.
    private static func browserOffer() -> String {
        let feedback = ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"]
        var video: [String] = []
        // Six formats, each followed by its RTX format.
        let formats: [(name: String, parameters: String?)] = [
            ("VP8", nil), ("VP9", "profile-id=0"), ("VP9", "profile-id=2"), ("AV1", "level-idx=5;profile=0;tier=0"),
            ("H264", "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"),
            ("H264", "level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42e01f"),
        ]
        for (index, format) in formats.enumerated() {
            let payloadType = 96 + 2 * index
            video.append("a=rtpmap:\(payloadType) \(format.name)/90000")
            video += feedback.map { "a=rtcp-fb:\(payloadType) \($0)" }
            if let parameters = format.parameters { video.append("a=fmtp:\(payloadType) \(parameters)") }
            video += ["a=rtpmap:\(payloadType + 1) rtx/90000", "a=fmtp:\(payloadType + 1) apt=\(payloadType)"]
        }
        let audio = [
            "a=rtpmap:111 opus/48000/2", "a=rtcp-fb:111 transport-cc", "a=fmtp:111 minptime=10;useinbandfec=1",
        ]
        let digest = Array(repeating: "7B", count: 32).joined(separator: ":")
        func section(_ mid: Int, _ kind: String, _ payloadTypes: [Int], _ lines: [String]) -> [String] {
            let list = payloadTypes.map(String.init).joined(separator: " ")
            return [
                "m=\(kind) 9 UDP/TLS/RTP/SAVPF \(list)", "c=IN IP4 0.0.0.0", "a=rtcp:9 IN IP4 0.0.0.0",
                "a=ice-ufrag:EsAw", "a=ice-pwd:bP+XJMM09aR8AiX1jdukzR6Y", "a=ice-options:trickle",
                "a=fingerprint:sha-256 \(digest)", "a=setup:actpass", "a=mid:\(mid)",
                "a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid",
                "a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
                "a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
                "a=sendonly", "a=msid:- track\(mid)", "a=rtcp-mux", "a=rtcp-rsize",
            ] + lines + ["a=ssrc:\(1_000 + mid) cname:browser", "a=ssrc:\(1_000 + mid) msid:- track\(mid)"]
        }
        let session = ["v=0", "o=- 4611731400430051336 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0 1"]
        let lines = session + section(0, "audio", [111], audio) + section(1, "video", Array(96..<108), video)
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    /// Parses a publisher's offer: what a client that joins costs before it is admitted.
    static func offer() -> Workload {
        let text = browserOffer()
        var parsed = 0
        return Workload(
            "SDP, offer",
            unitsPerRun: 1,
            prepare: { parsed = 0 },
            finish: { guard parsed == 1 else { throw CallError.broken("the offer is refused") } },
            { if (try? PublishOffer(parsing: text)) != nil { parsed += 1 } }
        )
    }
}
