@testable import Negotiation

/// Answers as clients built on libwebrtc write them, with `{audio}` and `{video}` for the names of the lines.
enum NativeAnswers {
    private static let transport = """
        c=IN IP4 0.0.0.0
        a=rtcp:9 IN IP4 0.0.0.0
        a=ice-ufrag:Zk4w
        a=ice-pwd:mZr0bT9yLq3XeV7uHs1kNc5J
        a=ice-options:trickle
        a=fingerprint:sha-256 \(sampleFingerprint)
        a=setup:active
        """
    private static let head = """
        v=0
        o=- 4711000811000815 2 IN IP4 127.0.0.1
        s=-
        t=0 0
        a=group:BUNDLE {audio} {video}
        """
    private static let audioFormats = """
        a=rtcp-mux
        a=rtpmap:109 opus/48000/2
        a=rtcp-fb:109 transport-cc
        a=fmtp:109 minptime=10;useinbandfec=1
        """
    private static let videoFormats = """
        a=rtcp-mux
        a=rtcp-rsize
        a=rtpmap:120 VP9/90000
        a=rtcp-fb:120 goog-remb
        a=rtcp-fb:120 transport-cc
        a=rtcp-fb:120 ccm fir
        a=rtcp-fb:120 nack
        a=rtcp-fb:120 nack pli
        a=fmtp:120 profile-id=0
        a=rtpmap:124 rtx/90000
        a=fmtp:124 apt=120
        """
    private static let audioExtensions = """
        a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
        a=extmap:5 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
        a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
        """
    private static let videoExtensions = """
        a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
        a=extmap:3 urn:3gpp:video-orientation
        a=extmap:5 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
        a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
        """
    private static let layerExtensions = """
        a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id
        a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id
        """

    private static func audio(_ direction: String, _ tail: String = "") -> String {
        "m=audio 9 UDP/TLS/RTP/SAVPF 109\n\(transport)\na=mid:{audio}\n\(audioExtensions)\n\(direction)\n\(audioFormats)"
            + tail
    }

    private static func video(_ direction: String, extensions: String = "", _ tail: String = "") -> String {
        "m=video 9 UDP/TLS/RTP/SAVPF 120 124\n\(transport)\na=mid:{video}\n\(videoExtensions)\(extensions)\n\(direction)\n"
            + videoFormats + tail
    }

    /// A camera and a microphone.
    static let sender = SampleOffer(
        name: "sender",
        text: head + "\na=msid-semantic: WMS hT+3kWq9sD0aPzXy\n"
            + audio(
                "a=sendonly\na=msid:hT+3kWq9sD0aPzXy 6f6b5a38-11d2-4f0e-8f52-7c1f0c1f3a01",
                "\na=ssrc:3051867422 cname:qW8vR2nLx0TzKf1M"
            ) + "\n"
            + video(
                "a=sendonly\na=msid:hT+3kWq9sD0aPzXy 0d0e41c7-9a1b-4c53-b7a8-2f9c51f0de02",
                """

                a=ssrc-group:FID 1750334401 2880164539
                a=ssrc:1750334401 cname:qW8vR2nLx0TzKf1M
                a=ssrc:2880164539 cname:qW8vR2nLx0TzKf1M
                """
            ) + "\n"
    )

    /// The same with three layers: no sources are announced for these.
    static let simulcast = SampleOffer(
        name: "simulcast",
        text: head + "\na=msid-semantic: WMS hT+3kWq9sD0aPzXy\n"
            + audio(
                "a=sendonly\na=msid:hT+3kWq9sD0aPzXy 6f6b5a38-11d2-4f0e-8f52-7c1f0c1f3a01",
                "\na=ssrc:3051867422 cname:qW8vR2nLx0TzKf1M"
            ) + "\n"
            + video(
                "a=sendonly\na=msid:hT+3kWq9sD0aPzXy 0d0e41c7-9a1b-4c53-b7a8-2f9c51f0de02",
                extensions: "\n" + layerExtensions,
                "\na=rid:r0 send\na=rid:r1 send\na=rid:r2 send\na=simulcast:send r0;r1;~r2"
            ) + "\n"
    )

    /// Somebody else's camera and microphone are received.
    static let receiver = SampleOffer(
        name: "receiver",
        text: head + "\na=msid-semantic: WMS\n" + audio("a=recvonly") + "\n"
            + video("a=recvonly", extensions: "\n" + layerExtensions) + "\n"
    )

    static let all = [sender, simulcast, receiver]
}

extension SampleOffer {
    /// The answer to an offer of two lines with these names.
    func naming(_ mids: [String]) -> String {
        text.replacing("{audio}", with: mids[0]).replacing("{video}", with: mids[1])
    }
}
