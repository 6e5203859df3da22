import Testing

/// An offer as one kind of client writes it.
struct SampleOffer: CustomTestStringConvertible, Sendable {
    let name: String
    let text: String
    var testDescription: String { name }
}

let sampleFingerprint =
    "2B:0C:51:9E:77:A4:13:D8:60:F5:3A:88:CE:04:B9:71:5D:E2:46:9A:0F:33:C7:18:64:AB:F0:29:D5:8E:72:1B"

/// Offers to publish, one of each kind of client that a server meets.
enum PublishOffers {
    static let all = [
        chromium, chromiumSimulcast, firefox, firefoxSimulcast, safari, gstreamer, pion, aiortc, obs, ffmpeg,
        ffmpegAudioOnly, munged,
    ]
}

/// Offers to watch.
enum WatchOffers {
    static let all = [chromium, firefox, safari, gstreamer, pion, aiortc]
}

extension PublishOffers {
    static let chromium = SampleOffer(
        name: "Chromium",
        text: """
            v=0
            o=- 5196723412367512341 2 IN IP4 127.0.0.1
            s=-
            t=0 0
            a=group:BUNDLE 0 1
            a=extmap-allow-mixed
            a=msid-semantic: WMS 6f1c2b0e-43c1-4bd0-9f4e-2a3b1f0d7c55
            m=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126
            c=IN IP4 0.0.0.0
            a=rtcp:9 IN IP4 0.0.0.0
            a=ice-ufrag:mK2p
            a=ice-pwd:Zt8YxqW3nBv5Lr0eHs7JdAfG
            a=ice-options:trickle
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:actpass
            a=mid:0
            a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
            a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
            a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
            a=sendonly
            a=msid:6f1c2b0e-43c1-4bd0-9f4e-2a3b1f0d7c55 audio-track
            a=rtcp-mux
            a=rtcp-rsize
            a=rtpmap:111 opus/48000/2
            a=rtcp-fb:111 transport-cc
            a=fmtp:111 minptime=10;useinbandfec=1
            a=rtpmap:63 red/48000/2
            a=fmtp:63 111/111
            a=rtpmap:9 G722/8000
            a=rtpmap:0 PCMU/8000
            a=rtpmap:8 PCMA/8000
            a=rtpmap:13 CN/8000
            a=rtpmap:110 telephone-event/48000
            a=rtpmap:126 telephone-event/8000
            a=ssrc:3735928559 cname:qWcB1vTz0hJ6mXyP
            a=ssrc:3735928559 msid:6f1c2b0e-43c1-4bd0-9f4e-2a3b1f0d7c55 audio-track
            m=video 9 UDP/TLS/RTP/SAVPF 96 97 103 104 107 108 109 114 45 46 98 99 100 101 49 50 123 124 125
            c=IN IP4 0.0.0.0
            a=rtcp:9 IN IP4 0.0.0.0
            a=ice-ufrag:mK2p
            a=ice-pwd:Zt8YxqW3nBv5Lr0eHs7JdAfG
            a=ice-options:trickle
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:actpass
            a=mid:1
            a=extmap:14 urn:ietf:params:rtp-hdrext:toffset
            a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
            a=extmap:13 urn:3gpp:video-orientation
            a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=extmap:5 http://www.webrtc.org/experiments/rtp-hdrext/playout-delay
            a=extmap:6 http://www.webrtc.org/experiments/rtp-hdrext/video-content-type
            a=extmap:7 http://www.webrtc.org/experiments/rtp-hdrext/video-timing
            a=extmap:8 http://www.webrtc.org/experiments/rtp-hdrext/color-space
            a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
            a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id
            a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id
            a=sendonly
            a=msid:6f1c2b0e-43c1-4bd0-9f4e-2a3b1f0d7c55 video-track
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
            a=rtcp-fb:103 goog-remb
            a=rtcp-fb:103 transport-cc
            a=rtcp-fb:103 ccm fir
            a=rtcp-fb:103 nack
            a=rtcp-fb:103 nack pli
            a=fmtp:103 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f
            a=rtpmap:104 rtx/90000
            a=fmtp:104 apt=103
            a=rtpmap:107 H264/90000
            a=rtcp-fb:107 transport-cc
            a=rtcp-fb:107 nack
            a=rtcp-fb:107 nack pli
            a=fmtp:107 level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42001f
            a=rtpmap:108 rtx/90000
            a=fmtp:108 apt=107
            a=rtpmap:109 H264/90000
            a=rtcp-fb:109 transport-cc
            a=rtcp-fb:109 nack
            a=rtcp-fb:109 nack pli
            a=fmtp:109 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
            a=rtpmap:114 rtx/90000
            a=fmtp:114 apt=109
            a=rtpmap:45 AV1/90000
            a=rtcp-fb:45 transport-cc
            a=rtcp-fb:45 nack
            a=rtcp-fb:45 nack pli
            a=fmtp:45 level-idx=5;profile=0;tier=0
            a=rtpmap:46 rtx/90000
            a=fmtp:46 apt=45
            a=rtpmap:98 VP9/90000
            a=rtcp-fb:98 transport-cc
            a=rtcp-fb:98 nack
            a=rtcp-fb:98 nack pli
            a=fmtp:98 profile-id=0
            a=rtpmap:99 rtx/90000
            a=fmtp:99 apt=98
            a=rtpmap:100 VP9/90000
            a=rtcp-fb:100 transport-cc
            a=rtcp-fb:100 nack pli
            a=fmtp:100 profile-id=2
            a=rtpmap:101 rtx/90000
            a=fmtp:101 apt=100
            a=rtpmap:49 H265/90000
            a=rtcp-fb:49 transport-cc
            a=rtcp-fb:49 nack
            a=fmtp:49 level-id=93;profile-id=1;tier-flag=0;tx-mode=SRST
            a=rtpmap:50 rtx/90000
            a=fmtp:50 apt=49
            a=rtpmap:123 red/90000
            a=rtpmap:124 rtx/90000
            a=fmtp:124 apt=123
            a=rtpmap:125 ulpfec/90000
            a=ssrc-group:FID 2271560481 1146447479
            a=ssrc:2271560481 cname:qWcB1vTz0hJ6mXyP
            a=ssrc:2271560481 msid:6f1c2b0e-43c1-4bd0-9f4e-2a3b1f0d7c55 video-track
            a=ssrc:1146447479 cname:qWcB1vTz0hJ6mXyP
            a=ssrc:1146447479 msid:6f1c2b0e-43c1-4bd0-9f4e-2a3b1f0d7c55 video-track

            """
    )

    static let chromiumSimulcast = SampleOffer(
        name: "Chromium with simulcast and a data channel",
        text: """
            v=0
            o=- 8012345678901234567 2 IN IP4 127.0.0.1
            s=-
            t=0 0
            a=group:BUNDLE 0 1 2
            a=extmap-allow-mixed
            a=msid-semantic: WMS
            m=application 9 UDP/DTLS/SCTP webrtc-datachannel
            c=IN IP4 0.0.0.0
            a=ice-ufrag:Yx3d
            a=ice-pwd:qP9vLkTz2WnR6sHbC4mXjE8a
            a=ice-options:trickle
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:actpass
            a=mid:0
            a=sctp-port:5000
            a=max-message-size:262144
            m=audio 9 UDP/TLS/RTP/SAVPF 111
            c=IN IP4 0.0.0.0
            a=ice-ufrag:Yx3d
            a=ice-pwd:qP9vLkTz2WnR6sHbC4mXjE8a
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:actpass
            a=mid:1
            a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
            a=sendrecv
            a=msid:- a1
            a=rtcp-mux
            a=rtpmap:111 opus/48000/2
            a=fmtp:111 minptime=10;useinbandfec=1;usedtx=1
            m=video 9 UDP/TLS/RTP/SAVPF 96 97
            c=IN IP4 0.0.0.0
            a=ice-ufrag:Yx3d
            a=ice-pwd:qP9vLkTz2WnR6sHbC4mXjE8a
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:actpass
            a=mid:2
            a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
            a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id
            a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id
            a=extmap:12 https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension
            a=sendrecv
            a=msid:- v1
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
            a=rid:q send
            a=rid:h send
            a=rid:f send
            a=simulcast:send q;h;~f

            """
    )

    static let firefox = SampleOffer(
        name: "Firefox",
        text: """
            v=0
            o=mozilla...THIS_IS_SDPARTA-132.0 4611732345678901234 0 IN IP4 0.0.0.0
            s=-
            t=0 0
            a=sendrecv
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=group:BUNDLE 0 1
            a=ice-options:trickle
            a=msid-semantic:WMS *
            m=audio 51213 UDP/TLS/RTP/SAVPF 109 9 0 8 101
            c=IN IP4 203.0.113.40
            a=candidate:0 1 UDP 2122252543 4e1f0b3c-2b1d-4c5e-9f10-77aa01b2c3d4.local 51213 typ host
            a=candidate:3 1 UDP 1686052863 203.0.113.40 51213 typ srflx raddr 0.0.0.0 rport 0
            a=candidate:1 1 TCP 2105524479 198.51.100.7 9 typ host tcptype active
            a=sendonly
            a=end-of-candidates
            a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
            a=extmap:2/recvonly urn:ietf:params:rtp-hdrext:csrc-audio-level
            a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid
            a=fmtp:109 maxplaybackrate=48000;stereo=1;useinbandfec=1
            a=fmtp:101 0-15
            a=ice-pwd:e0c1a94fb7d86352e0c1a94fb7d86352
            a=ice-ufrag:5b2d9c41
            a=mid:0
            a=msid:{0d5f3c1e-91ab-4c55-8a3e-aa9d0f3b6c27} {b1}
            a=rtcp:51214 IN IP4 203.0.113.40
            a=rtcp-mux
            a=rtpmap:109 opus/48000/2
            a=rtpmap:9 G722/8000/1
            a=rtpmap:0 PCMU/8000
            a=rtpmap:8 PCMA/8000
            a=rtpmap:101 telephone-event/8000/1
            a=setup:actpass
            a=ssrc:1809264071 cname:{5a6b7c8d-0000-4444-8888-123456789abc}
            m=video 51213 UDP/TLS/RTP/SAVPF 120 124 121 125 126 127 97 98 123 122 119
            c=IN IP4 203.0.113.40
            a=sendonly
            a=bundle-only
            a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid
            a=extmap:4 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
            a=extmap:5 urn:ietf:params:rtp-hdrext:toffset
            a=extmap:6/recvonly http://www.webrtc.org/experiments/rtp-hdrext/playout-delay
            a=extmap:7 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=fmtp:126 profile-level-id=42e01f;level-asymmetry-allowed=1;packetization-mode=1
            a=fmtp:97 profile-level-id=42e01f;level-asymmetry-allowed=1
            a=fmtp:120 max-fs=12288;max-fr=60
            a=fmtp:124 apt=120
            a=fmtp:121 max-fs=12288;max-fr=60
            a=fmtp:125 apt=121
            a=fmtp:127 apt=126
            a=fmtp:98 apt=97
            a=fmtp:119 apt=122
            a=ice-pwd:e0c1a94fb7d86352e0c1a94fb7d86352
            a=ice-ufrag:5b2d9c41
            a=mid:1
            a=msid:{0d5f3c1e-91ab-4c55-8a3e-aa9d0f3b6c27} {c2}
            a=rtcp-fb:120 nack
            a=rtcp-fb:120 nack pli
            a=rtcp-fb:120 ccm fir
            a=rtcp-fb:120 goog-remb
            a=rtcp-fb:120 transport-cc
            a=rtcp-fb:121 nack
            a=rtcp-fb:121 nack pli
            a=rtcp-fb:121 transport-cc
            a=rtcp-fb:126 nack
            a=rtcp-fb:126 nack pli
            a=rtcp-fb:126 transport-cc
            a=rtcp-fb:97 nack
            a=rtcp-fb:123 nack
            a=rtcp-mux
            a=rtcp-rsize
            a=rtpmap:120 VP8/90000
            a=rtpmap:124 rtx/90000
            a=rtpmap:121 VP9/90000
            a=rtpmap:125 rtx/90000
            a=rtpmap:126 H264/90000
            a=rtpmap:127 rtx/90000
            a=rtpmap:97 H264/90000
            a=rtpmap:98 rtx/90000
            a=rtpmap:123 ulpfec/90000
            a=rtpmap:122 red/90000
            a=rtpmap:119 rtx/90000
            a=setup:actpass
            a=ssrc:2750891426 cname:{5a6b7c8d-0000-4444-8888-123456789abc}
            a=ssrc:998244353 cname:{5a6b7c8d-0000-4444-8888-123456789abc}
            a=ssrc-group:FID 2750891426 998244353

            """
    )

    static let firefoxSimulcast = SampleOffer(
        name: "Firefox with simulcast, SSRCs announced",
        text: """
            v=0
            o=mozilla...THIS_IS_SDPARTA-132.0 777000111222333 0 IN IP4 0.0.0.0
            s=-
            t=0 0
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=group:BUNDLE 0
            a=ice-options:trickle
            m=video 9 UDP/TLS/RTP/SAVPF 120 124
            c=IN IP4 0.0.0.0
            a=sendonly
            a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid
            a=extmap:4 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
            a=extmap:8/sendonly urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id
            a=extmap:9/sendonly urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id
            a=fmtp:124 apt=120
            a=ice-pwd:0123456789abcdef0123456789abcdef
            a=ice-ufrag:89abcdef
            a=mid:0
            a=rid:hi send
            a=rid:lo send
            a=rtcp-fb:120 nack
            a=rtcp-fb:120 nack pli
            a=rtcp-fb:120 goog-remb
            a=rtcp-mux
            a=rtpmap:120 VP8/90000
            a=rtpmap:124 rtx/90000
            a=setup:actpass
            a=simulcast:send hi;lo
            a=ssrc:1111 cname:{x}
            a=ssrc:2222 cname:{x}
            a=ssrc:3333 cname:{x}
            a=ssrc:4444 cname:{x}
            a=ssrc-group:FID 1111 3333
            a=ssrc-group:FID 2222 4444

            """
    )

    static let safari = SampleOffer(
        name: "Safari",
        text: """
            v=0
            o=- 3141592653589793238 2 IN IP4 127.0.0.1
            s=-
            t=0 0
            a=group:BUNDLE 0 1
            a=extmap-allow-mixed
            a=msid-semantic: WMS 9C1E
            m=audio 9 UDP/TLS/RTP/SAVPF 111 9 0 8 110
            c=IN IP4 0.0.0.0
            a=ice-ufrag:S4fA
            a=ice-pwd:Rr1iUu2oPp3aSs4dFf5gHh6j
            a=ice-options:trickle
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:actpass
            a=mid:0
            a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
            a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
            a=sendonly
            a=msid:9C1E A-1
            a=rtcp-mux
            a=rtpmap:111 opus/48000/2
            a=rtcp-fb:111 transport-cc
            a=fmtp:111 minptime=10;useinbandfec=1
            a=rtpmap:9 G722/8000
            a=rtpmap:0 PCMU/8000
            a=rtpmap:8 PCMA/8000
            a=rtpmap:110 telephone-event/48000
            a=ssrc:404142434 cname:aPpLe
            m=video 9 UDP/TLS/RTP/SAVPF 96 97 98 99 100 101 102 103
            c=IN IP4 0.0.0.0
            a=ice-ufrag:S4fA
            a=ice-pwd:Rr1iUu2oPp3aSs4dFf5gHh6j
            a=ice-options:trickle
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:actpass
            a=mid:1
            a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
            a=extmap:13 urn:3gpp:video-orientation
            a=sendonly
            a=msid:9C1E V-1
            a=rtcp-mux
            a=rtcp-rsize
            a=rtpmap:96 H264/90000
            a=rtcp-fb:96 transport-cc
            a=rtcp-fb:96 ccm fir
            a=rtcp-fb:96 nack
            a=rtcp-fb:96 nack pli
            a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=640c1f
            a=rtpmap:97 rtx/90000
            a=fmtp:97 apt=96
            a=rtpmap:98 H264/90000
            a=rtcp-fb:98 transport-cc
            a=rtcp-fb:98 nack pli
            a=fmtp:98 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
            a=rtpmap:99 rtx/90000
            a=fmtp:99 apt=98
            a=rtpmap:100 H265/90000
            a=rtcp-fb:100 transport-cc
            a=fmtp:100 level-id=93;tx-mode=SRST
            a=rtpmap:101 rtx/90000
            a=fmtp:101 apt=100
            a=rtpmap:102 VP8/90000
            a=rtcp-fb:102 transport-cc
            a=rtpmap:103 rtx/90000
            a=fmtp:103 apt=102
            a=ssrc-group:FID 51525354 61626364
            a=ssrc:51525354 cname:aPpLe
            a=ssrc:61626364 cname:aPpLe

            """
    )
}

extension WatchOffers {
    private static func receiving(_ sample: SampleOffer) -> SampleOffer {
        let lines = sample.text.split(separator: "\n", omittingEmptySubsequences: false).compactMap { line in
            switch line {
            case "a=sendonly", "a=sendrecv": "a=recvonly"
            case _ where line.hasPrefix("a=ssrc") || line.hasPrefix("a=msid:"): nil
            default: String(line)
            }
        }
        return SampleOffer(name: sample.name, text: lines.joined(separator: "\n"))
    }

    static let chromium = receiving(PublishOffers.chromium)
    static let firefox = receiving(PublishOffers.firefox)
    static let safari = receiving(PublishOffers.safari)
    static let gstreamer = receiving(PublishOffers.gstreamer)
    static let pion = receiving(PublishOffers.pion)
    static let aiortc = receiving(PublishOffers.aiortc)
}

extension String {
    /// The text before the first line that starts with `marker`; the whole text without one.
    func components(before marker: String) -> String {
        let lines = split(separator: "\n", omittingEmptySubsequences: false)
        return lines.prefix { !$0.hasPrefix(marker) }.joined(separator: "\n") + "\n"
    }

    /// With the first occurrence of a line replaced; `nil` removes it.
    func replacing(line: String, with replacement: String?) -> String {
        var lines = split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard let index = lines.firstIndex(of: line) else { return self }
        lines.replaceSubrange(index...index, with: replacement.map { [$0] } ?? [])
        return lines.joined(separator: "\n")
    }

    /// Without the lines that begin with `prefix`.
    func removing(linesWith prefix: String) -> String {
        split(separator: "\n", omittingEmptySubsequences: false).filter { !$0.hasPrefix(prefix) }
            .joined(separator: "\n")
    }
}
