/// Offers of clients that are not browsers, and edited ones.
extension PublishOffers {
    static let gstreamer = SampleOffer(
        name: "GStreamer webrtcbin",
        text: """
            v=0
            o=- 1234987612349876123 0 IN IP4 0.0.0.0
            s=-
            t=0 0
            a=ice-options:trickle
            a=group:BUNDLE video0 audio1
            m=video 9 UDP/TLS/RTP/SAVPF 96 97
            c=IN IP4 0.0.0.0
            a=setup:actpass
            a=ice-ufrag:gQ7xW2cB1nM5vZ8k
            a=ice-pwd:aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY
            a=rtcp-mux
            a=rtcp-rsize
            a=sendonly
            a=rtpmap:96 H264/90000
            a=rtcp-fb:96 nack
            a=rtcp-fb:96 nack pli
            a=rtcp-fb:96 ccm fir
            a=rtcp-fb:96 transport-cc
            a=fmtp:96 packetization-mode=1;profile-level-id=42c01f;sprop-parameter-sets=Z0LAH9oBQBbsBEA=,aM48gA==
            a=rtpmap:97 rtx/90000
            a=fmtp:97 apt=96
            a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid
            a=ssrc-group:FID 700800900 700800901
            a=ssrc:700800900 msid:user55@host-ab webrtctransceiver0
            a=ssrc:700800900 cname:user55@host-ab
            a=ssrc:700800901 msid:user55@host-ab webrtctransceiver0
            a=ssrc:700800901 cname:user55@host-ab
            a=mid:video0
            a=fingerprint:sha-256 \(sampleFingerprint)
            m=audio 0 UDP/TLS/RTP/SAVPF 98
            c=IN IP4 0.0.0.0
            a=setup:actpass
            a=ice-ufrag:gQ7xW2cB1nM5vZ8k
            a=ice-pwd:aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY
            a=bundle-only
            a=rtcp-mux
            a=rtcp-rsize
            a=sendonly
            a=rtpmap:98 OPUS/48000/2
            a=rtcp-fb:98 transport-cc
            a=fmtp:98 sprop-maxcapturerate=48000;sprop-stereo=1
            a=extmap:1 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=ssrc:700800902 msid:user55@host-ab webrtctransceiver1
            a=ssrc:700800902 cname:user55@host-ab
            a=mid:audio1
            a=fingerprint:sha-256 \(sampleFingerprint)

            """
    )

    static let pion = SampleOffer(
        name: "Pion",
        text: """
            v=0
            o=- 6129484611666145821 1732155612 IN IP4 0.0.0.0
            s=-
            t=0 0
            a=msid-semantic:WMS*
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=extmap-allow-mixed
            a=group:BUNDLE 0 1
            m=video 9 UDP/TLS/RTP/SAVPF 96 97 102 103 45 46
            c=IN IP4 0.0.0.0
            a=setup:actpass
            a=mid:0
            a=ice-ufrag:PqRsTuVwXyZaBcDe
            a=ice-pwd:kLmNoPqRsTuVwXyZaBcDeFgHiJkLmNoP
            a=rtcp-mux
            a=rtcp-rsize
            a=rtpmap:96 VP8/90000
            a=rtcp-fb:96 goog-remb 
            a=rtcp-fb:96 ccm fir
            a=rtcp-fb:96 nack 
            a=rtcp-fb:96 nack pli
            a=rtcp-fb:96 transport-cc 
            a=rtpmap:97 rtx/90000
            a=fmtp:97 apt=96
            a=rtpmap:102 H264/90000
            a=rtcp-fb:102 nack 
            a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f
            a=rtpmap:103 rtx/90000
            a=fmtp:103 apt=102
            a=rtpmap:45 AV1/90000
            a=rtpmap:46 rtx/90000
            a=fmtp:46 apt=45
            a=extmap:4 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid
            a=ssrc:2596996162 cname:pion
            a=ssrc:2596996162 msid:pion video
            a=ssrc:2596996162 mslabel:pion
            a=ssrc:2596996162 label:video
            a=msid:pion video
            a=sendrecv
            a=candidate:233762139 1 udp 2130706431 192.0.2.17 60213 typ host ufrag PqRsTuVwXyZaBcDe
            a=candidate:233762139 2 udp 2130706430 192.0.2.17 60213 typ host ufrag PqRsTuVwXyZaBcDe
            a=candidate:4234997325 1 udp 1694498815 2001:db8::17 60214 typ srflx raddr :: rport 60214
            a=end-of-candidates
            m=audio 9 UDP/TLS/RTP/SAVPF 111 9 0 8
            c=IN IP4 0.0.0.0
            a=setup:actpass
            a=mid:1
            a=ice-ufrag:PqRsTuVwXyZaBcDe
            a=ice-pwd:kLmNoPqRsTuVwXyZaBcDeFgHiJkLmNoP
            a=rtcp-mux
            a=rtcp-rsize
            a=rtpmap:111 opus/48000/2
            a=fmtp:111 minptime=10;useinbandfec=1
            a=rtcp-fb:111 transport-cc 
            a=rtpmap:9 G722/8000
            a=rtpmap:0 PCMU/8000
            a=rtpmap:8 PCMA/8000
            a=extmap:4 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
            a=ssrc:1790065410 cname:pion
            a=msid:pion audio
            a=sendrecv

            """
    )

    static let aiortc = SampleOffer(
        name: "aiortc",
        text: """
            v=0
            o=- 3941234567 3941234567 IN IP4 0.0.0.0
            s=-
            t=0 0
            a=group:BUNDLE 0 1
            a=msid-semantic:WMS *
            m=audio 40123 UDP/TLS/RTP/SAVPF 96 9 0 8
            c=IN IP4 192.0.2.55
            a=sendonly
            a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid
            a=extmap:2 urn:ietf:params:rtp-hdrext:ssrc-audio-level
            a=mid:0
            a=msid:2f1f 7c7c
            a=rtcp:9 IN IP4 0.0.0.0
            a=rtcp-mux
            a=ssrc:3000000001 cname:9a8b
            a=rtpmap:96 opus/48000/2
            a=rtpmap:9 G722/8000
            a=rtpmap:0 PCMU/8000
            a=rtpmap:8 PCMA/8000
            a=candidate:5f1b 1 udp 2130706431 192.0.2.55 40123 typ host
            a=end-of-candidates
            a=ice-ufrag:aI0r
            a=ice-pwd:uYtReWqAsDfGhJkLzXcVbN
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=fingerprint:sha-1 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33
            a=setup:actpass
            m=video 40123 UDP/TLS/RTP/SAVPF 97 98 99 100
            c=IN IP4 192.0.2.55
            a=sendonly
            a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid
            a=extmap:3 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
            a=mid:1
            a=msid:2f1f 8d8d
            a=rtcp-mux
            a=ssrc-group:FID 3000000002 3000000003
            a=ssrc:3000000002 cname:9a8b
            a=ssrc:3000000003 cname:9a8b
            a=rtpmap:97 VP8/90000
            a=rtcp-fb:97 nack
            a=rtcp-fb:97 nack pli
            a=rtcp-fb:97 goog-remb
            a=rtpmap:98 rtx/90000
            a=fmtp:98 apt=97
            a=rtpmap:99 H264/90000
            a=rtcp-fb:99 nack
            a=rtcp-fb:99 goog-remb
            a=fmtp:99 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f
            a=rtpmap:100 rtx/90000
            a=fmtp:100 apt=99
            a=candidate:5f1b 1 udp 2130706431 192.0.2.55 40123 typ host
            a=end-of-candidates
            a=ice-ufrag:aI0r
            a=ice-pwd:uYtReWqAsDfGhJkLzXcVbN
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:actpass

            """
    )

    static let obs = SampleOffer(
        name: "OBS",
        text: """
            v=0
            o=rtc 2718281828 0 IN IP4 127.0.0.1
            s=-
            t=0 0
            a=group:BUNDLE 0 1
            a=group:LS 0 1
            a=msid-semantic:WMS *
            a=ice-options:ice2,trickle
            a=fingerprint:sha-256 \(sampleFingerprint)
            m=audio 50900 UDP/TLS/RTP/SAVPF 111
            c=IN IP4 192.0.2.90
            a=mid:0
            a=sendonly
            a=ssrc:1600000000 cname:k2Jd8sLq0pXv
            a=ssrc:1600000000 msid:obsStream obsStream-audio
            a=msid:obsStream obsStream-audio
            a=rtcp-mux
            a=rtpmap:111 opus/48000/2
            a=fmtp:111 minptime=10;maxaveragebitrate=96000;stereo=1;sprop-stereo=1;useinbandfec=1
            a=setup:actpass
            a=ice-ufrag:oB5s
            a=ice-pwd:mNbVcXzLkJhGfDsApOiUyT
            a=candidate:1 1 UDP 2122317823 192.0.2.90 50900 typ host
            m=video 50900 UDP/TLS/RTP/SAVPF 96 97
            c=IN IP4 192.0.2.90
            a=mid:1
            a=sendonly
            a=ssrc:1600000001 cname:k2Jd8sLq0pXv
            a=ssrc:1600000001 msid:obsStream obsStream-video
            a=ssrc:1600000002 cname:k2Jd8sLq0pXv
            a=ssrc-group:FID 1600000001 1600000002
            a=msid:obsStream obsStream-video
            a=rtcp-mux
            a=rtpmap:96 H264/90000
            a=rtcp-fb:96 nack
            a=rtcp-fb:96 nack pli
            a=rtcp-fb:96 goog-remb
            a=fmtp:96 profile-level-id=42e01f;packetization-mode=1;level-asymmetry-allowed=1
            a=rtpmap:97 RTX/90000
            a=fmtp:97 apt=96
            a=setup:actpass
            a=ice-ufrag:oB5s
            a=ice-pwd:mNbVcXzLkJhGfDsApOiUyT

            """
    )

    static let ffmpeg = SampleOffer(
        name: "FFmpeg",
        text: """
            v=0
            o=FFmpeg 4489045141692799359 2 IN IP4 127.0.0.1
            s=FFmpegPublishSession
            t=0 0
            a=group:BUNDLE 0 1
            a=extmap-allow-mixed
            a=msid-semantic: WMS
            m=audio 9 UDP/TLS/RTP/SAVPF 111
            c=IN IP4 0.0.0.0
            a=ice-ufrag:1f2e3d4c
            a=ice-pwd:00aa11bb22cc33dd44ee55ff66aa77bb
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:passive
            a=mid:0
            a=sendonly
            a=msid:FFmpeg audio
            a=rtcp-mux
            a=rtpmap:111 opus/48000/2
            a=ssrc:900100 cname:FFmpeg
            a=ssrc:900100 msid:FFmpeg audio
            m=video 9 UDP/TLS/RTP/SAVPF 106 105
            c=IN IP4 0.0.0.0
            a=ice-ufrag:1f2e3d4c
            a=ice-pwd:00aa11bb22cc33dd44ee55ff66aa77bb
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:passive
            a=mid:1
            a=sendonly
            a=msid:FFmpeg video
            a=rtcp-mux
            a=rtcp-rsize
            a=rtpmap:106 H264/90000
            a=fmtp:106 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42c01f
            a=rtcp-fb:106 nack
            a=rtpmap:105 rtx/90000
            a=fmtp:105 apt=106
            a=ssrc-group:FID 900101 900102
            a=ssrc:900101 cname:FFmpeg
            a=ssrc:900101 msid:FFmpeg video
            a=ssrc:900102 cname:FFmpeg

            """
    )

    /// The group always has two entries, whatever there is to send.
    static let ffmpegAudioOnly = SampleOffer(
        name: "FFmpeg with audio only",
        text: ffmpeg.text.components(before: "m=video")
    )

    /// Simulcast by SSRC group, as applications make it by editing Chromium's or Safari's offer.
    static let munged = SampleOffer(
        name: "Chromium edited for SSRC simulcast",
        text: """
            v=0
            o=- 55 2 IN IP4 127.0.0.1
            s=-
            t=0 0
            a=group:BUNDLE v
            m=video 9 UDP/TLS/RTP/SAVPF 96 97 35
            c=IN IP4 0.0.0.0
            a=ice-ufrag:mUnG
            a=ice-pwd:qP9vLkTz2WnR6sHbC4mXjE8a
            a=fingerprint:sha-256 \(sampleFingerprint)
            a=setup:active
            a=mid:v
            a=sendonly
            a=rtcp-mux
            a=rtpmap:96 VP8/90000
            a=rtcp-fb:* nack
            a=rtcp-fb:* nack pli
            a=rtpmap:97 rtx/90000
            a=fmtp:97 apt=96
            a=rtpmap:35 flexfec-03/90000
            a=fmtp:35 repair-window=10000000
            a=ssrc-group:SIM 10 20 30
            a=ssrc-group:FID 10 11
            a=ssrc-group:FID 20 21
            a=ssrc-group:FID 30 31
            a=ssrc-group:FEC-FR 10 12
            a=ssrc:30 cname:c
            a=ssrc:31 cname:c
            a=ssrc:10 cname:c
            a=ssrc:11 cname:c
            a=ssrc:12 cname:c
            a=ssrc:20 cname:c
            a=ssrc:21 cname:c

            """
    )
}
