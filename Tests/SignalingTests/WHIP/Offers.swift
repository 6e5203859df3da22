/// Offers as browsers and tools write them, shortened to what a description needs.
enum Offers {
    private static let fingerprint =
        "a=fingerprint:sha-256 7B:8B:F0:65:5F:78:E2:51:3B:AC:6F:F3:3F:46:1B:35:"
        + "DC:B8:5F:64:1A:24:C2:43:F0:A1:58:D0:A1:2C:19:08"

    static func chromiumAudio(_ direction: String, mid: String = "0") -> String {
        """
        m=audio 9 UDP/TLS/RTP/SAVPF 111 63
        c=IN IP4 0.0.0.0
        a=rtcp:9 IN IP4 0.0.0.0
        a=ice-ufrag:EsAw
        a=ice-pwd:bP+XJMM09aR8AiX1jdukzR6Y
        a=ice-options:trickle
        \(fingerprint)
        a=setup:actpass
        a=mid:\(mid)
        a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
        a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
        a=\(direction)
        \(direction.hasPrefix("send") ? "a=msid:d46fb922 microphone" : "a=msid-semantic: WMS")
        a=rtcp-mux
        a=rtcp-rsize
        a=rtpmap:111 opus/48000/2
        a=rtcp-fb:111 transport-cc
        a=fmtp:111 minptime=10;useinbandfec=1
        a=rtpmap:63 red/48000/2
        a=fmtp:63 111/111

        """
    }

    static func chromiumVideo(_ direction: String, mid: String = "1") -> String {
        """
        m=video 9 UDP/TLS/RTP/SAVPF 96 97 103 104
        c=IN IP4 0.0.0.0
        a=rtcp:9 IN IP4 0.0.0.0
        a=ice-ufrag:EsAw
        a=ice-pwd:bP+XJMM09aR8AiX1jdukzR6Y
        a=ice-options:trickle
        \(fingerprint)
        a=setup:actpass
        a=mid:\(mid)
        a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
        a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
        a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
        a=\(direction)
        \(direction.hasPrefix("send") ? "a=msid:d46fb922 camera" : "a=msid-semantic: WMS")
        a=rtcp-mux
        a=rtcp-rsize
        a=rtpmap:96 VP8/90000
        a=rtcp-fb:96 goog-remb
        a=rtcp-fb:96 transport-cc
        a=rtcp-fb:96 ccm fir
        a=rtcp-fb:96 nack
        a=rtcp-fb:96 nack pli
        a=rtpmap:97 rtx/90000
        a=fmtp:97 apt=96
        a=rtpmap:103 H264/90000
        a=rtcp-fb:103 nack
        a=rtcp-fb:103 nack pli
        a=fmtp:103 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
        a=rtpmap:104 rtx/90000
        a=fmtp:104 apt=103

        """
    }

    static func chromium(_ direction: String, sections: [String]? = nil) -> String {
        let sections = sections ?? [chromiumAudio(direction), chromiumVideo(direction)]
        let mids = (0..<sections.count).map(String.init).joined(separator: " ")
        return crlf(
            """
            v=0
            o=- 4611731400430051336 2 IN IP4 127.0.0.1
            s=-
            t=0 0
            a=group:BUNDLE \(mids)
            a=extmap-allow-mixed
            a=msid-semantic: WMS d46fb922

            """ + sections.joined()
        )
    }

    static func firefox(_ direction: String) -> String {
        let msid = direction.hasPrefix("send") ? "a=msid:{5b8bd1a2} {8e0a7c11}" : "a=rtcp-rsize"
        return crlf(
            """
            v=0
            o=mozilla...THIS_IS_SDPARTA-99.0 3891403567894517236 0 IN IP4 0.0.0.0
            s=-
            t=0 0
            a=sendrecv
            \(fingerprint)
            a=group:BUNDLE 0
            a=ice-options:trickle
            a=msid-semantic:WMS *
            m=video 9 UDP/TLS/RTP/SAVPF 120 124
            c=IN IP4 0.0.0.0
            a=\(direction)
            a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid
            a=extmap:4 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
            a=fmtp:120 max-fs=12288;max-fr=60
            a=fmtp:124 apt=120
            a=ice-pwd:0b2a6e7e6c24a1ae0f5ba2b0b7d3a4f1
            a=ice-ufrag:5d2c8e1f
            a=mid:0
            \(msid)
            a=rtcp-fb:120 nack
            a=rtcp-fb:120 nack pli
            a=rtcp-fb:120 ccm fir
            a=rtcp-fb:120 transport-cc
            a=rtcp-mux
            a=rtpmap:120 VP8/90000
            a=rtpmap:124 rtx/90000
            a=setup:actpass

            """
        )
    }

    static let publish = chromium("sendonly")
    static let watch = chromium("recvonly")

    /// Candidates of the session that `publish` opens.
    static let trickle = fragment(ufrag: "EsAw", password: "bP+XJMM09aR8AiX1jdukzR6Y")
    static let restart = fragment(ufrag: "Nw2b", password: "q8Zr5Tn1xC7vLw0KpYd3HsUe")

    static func fragment(ufrag: String, password: String) -> String {
        crlf(
            """
            a=ice-ufrag:\(ufrag)
            a=ice-pwd:\(password)
            m=audio 9 UDP/TLS/RTP/SAVPF 0
            a=mid:0
            a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag \(ufrag) network-id 1
            a=candidate:2 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active
            a=candidate:3 1 udp 2122260223 8b0e63a4.local 61764 typ host
            a=end-of-candidates

            """
        )
    }

    private static func crlf(_ text: String) -> String {
        text.split(separator: "\n").joined(separator: "\r\n") + "\r\n"
    }
}
