import Negotiation
import Wire

private let simulcastOffer = """
    v=0
    o=- 42 2 IN IP4 127.0.0.1
    s=-
    t=0 0
    a=group:BUNDLE 0 1 2
    a=extmap-allow-mixed
    a=msid-semantic: WMS s
    m=audio 9 UDP/TLS/RTP/SAVPF 111 63
    c=IN IP4 0.0.0.0
    a=rtcp:9 IN IP4 0.0.0.0
    a=ice-ufrag:abcd
    a=ice-pwd:abcdefghijklmnopqrstuvwx
    a=ice-options:trickle
    a=fingerprint:\(Sample.fingerprintText)
    a=setup:actpass
    a=mid:0
    a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
    a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
    a=sendonly
    a=msid:s a
    a=rtcp-mux
    a=rtcp-rsize
    a=rtpmap:111 opus/48000/2
    a=rtcp-fb:111 transport-cc
    a=fmtp:111 minptime=10;useinbandfec=1
    a=rtpmap:63 red/48000/2
    a=fmtp:63 111/111
    a=ssrc:11 cname:c
    m=video 9 UDP/TLS/RTP/SAVPF 96 97 98 99 45 46
    c=IN IP4 0.0.0.0
    b=AS:2000
    a=ice-ufrag:abcd
    a=ice-pwd:abcdefghijklmnopqrstuvwx
    a=candidate:1 1 udp 2113937151 192.0.2.1 50000 typ host generation 0
    a=candidate:2 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active
    a=candidate:3 1 udp 2113937151 0a1b.local 50001 typ host
    a=end-of-candidates
    a=fingerprint:\(Sample.fingerprintText)
    a=setup:actpass
    a=mid:1
    a=extmap:2/sendonly http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
    a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
    a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
    a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id
    a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id
    a=sendonly
    a=rtcp-mux
    a=rtpmap:96 VP8/90000
    a=rtcp-fb:96 nack
    a=rtcp-fb:96 nack pli
    a=rtcp-fb:* ccm fir
    a=rtpmap:97 rtx/90000
    a=fmtp:97 apt=96
    a=rtpmap:98 H264/90000
    a=fmtp:98 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
    a=rtpmap:99 VP9/90000
    a=fmtp:99 profile-id=0
    a=rtpmap:45 AV1/90000
    a=fmtp:45 level-idx=5;profile=0;tier=0
    a=rtpmap:46 H265/90000
    a=fmtp:46 profile-id=1;tier-flag=0;tx-mode=SRST
    a=rid:h send
    a=rid:m send pt=96,98;max-width=640
    a=rid:l send
    a=simulcast:send h;m,~l
    m=application 9 UDP/DTLS/SCTP webrtc-datachannel
    c=IN IP4 0.0.0.0
    a=ice-ufrag:abcd
    a=ice-pwd:abcdefghijklmnopqrstuvwx
    a=fingerprint:\(Sample.fingerprintText)
    a=setup:actpass
    a=mid:2
    a=sctp-port:5000

    """

private let announcedOffer = """
    v=0
    o=server 1 1 IN IP6 ::1
    s=A session
    c=IN IP4 192.0.2.9
    t=0 0
    a=ice-lite
    a=ice-ufrag:efgh
    a=ice-pwd:abcdefghijklmnopqrstuvwx
    a=fingerprint:sha-512 \(Array(repeating: "0A", count: 64).joined(separator: ":"))
    a=group:BUNDLE video
    m=video 50000 UDP/TLS/RTP/SAVPF 120 124
    a=setup:active
    a=mid:video
    a=sendrecv
    a=rtcp-mux
    a=rtpmap:120 VP8/90000
    a=fmtp:120 max-fs=12288;max-fr=60
    a=rtpmap:124 rtx/90000
    a=fmtp:124 apt=120;rtx-time=3000
    a=rtcp-fb:120 goog-remb
    a=rtcp-fb:120 transport-cc
    a=ssrc-group:FID 1 2
    a=ssrc-group:SIM 1 3
    a=ssrc:1 cname:{c}
    a=ssrc:1 msid:s v
    a=ssrc:2 cname:{c}
    a=ssrc:3 cname:{c}

    """

private let fragment = """
    a=group:BUNDLE 0 1
    a=ice-ufrag:EsAw
    a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1
    m=audio 9 UDP/TLS/RTP/SAVPF 0
    a=mid:0
    a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1
    a=candidate:4 1 UDP 8 2001:db8::7 9 typ srflx raddr 192.0.2.1 rport 61764
    a=end-of-candidates

    """

func seedsSDP() -> [(name: String, bytes: [UInt8])] {
    var generator = SeededGenerator(seed: 3)
    var texts = [("simulcast", simulcastOffer), ("announced", announcedOffer)]
    texts.append(("publish", Sample.publishOffer.text))
    texts.append(("watch", Sample.watchOffer.text))
    let layered = ClientOffer.publish(
        transport: Sample.client,
        rids: ["a", "b"].compactMap { RID($0) },
        using: &generator
    )
    texts.append(("layered", layered.text))
    if let result = try? PublishOffer(parsing: layered.text).answer(local: Sample.local, sessionID: 1) {
        texts.append(("publish-answer", result.answer))
    }
    if let result = try? WatchOffer(parsing: Sample.watchOffer.text).answer(
        local: Sample.local,
        streamID: "s",
        sessionID: 1,
        using: &generator
    ) {
        texts.append(("watch-answer", result.answer))
    }
    return texts.map { ($0.0, Array($0.1.utf8)) }
}

func seedsTrickle() -> [(name: String, bytes: [UInt8])] {
    let restart = restartFragment(local: Sample.local, mids: ["0", "1"].compactMap { MID($0) })
    return [
        ("fragment", Array(fragment.utf8)), ("restart", Array(restart.utf8)),
        ("end", Array("a=end-of-candidates\r\n".utf8)),
    ]
}
