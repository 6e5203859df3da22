import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Negotiation

/// The server in tests.
enum NegotiationServer {
    static let local = LocalTransport(
        credentials: ICECredentials(usernameFragment: "srvUfrag", password: "serverPasswordOf26characters")!,
        fingerprint: Fingerprint(algorithm: .sha256, digest: Array(0..<32))!,
        candidates: [TransportAddress("198.51.100.1:7000")!, TransportAddress("[2001:db8::1]:7000")!]
    )

    static func publish(_ offer: String) throws(NegotiationError) -> AnsweredOffer {
        try PublishOffer(parsing: offer).answer(local: local, sessionID: 42)
    }

    static func watch(_ offer: String, stream: String = "live") throws(NegotiationError) -> AnsweredOffer {
        var generator = SeededGenerator(seed: 7)
        return try WatchOffer(parsing: offer).answer(local: local, streamID: stream, sessionID: 42, using: &generator)
    }
}

private func id(_ value: UInt8) -> HeaderExtensionID? { HeaderExtensionID(rawValue: value) }

@Suite struct NegotiationPublishTests {
    @Test func `TCP candidates follow those of UDP, in every section that has candidates`() throws {
        var local = NegotiationServer.local
        local.tcpCandidates = local.candidates
        let offer = try #require(PublishOffers.all.first).text
        let answer = try PublishOffer(parsing: offer).answer(local: local, sessionID: 42).answer
        let candidates = try SessionDescription(parsing: answer).media
            .map { $0.attributes.values(of: "candidate").compactMap { ICECandidateAttribute($0) } }
            .filter { !$0.isEmpty }
        #expect(!candidates.isEmpty)
        for section in candidates {
            #expect(section.map(\.transport) == ["udp", "udp", "tcp", "tcp"])
            #expect(section.map(\.priority) == section.map(\.priority).sorted(by: >))
            #expect(Set(section.map(\.foundation)).count == 4)
            #expect(section.suffix(2).allSatisfy { $0.tcpType == .passive && $0.address == nil && $0.port == 7_000 })
        }
        // Without them nothing changes.
        #expect(try !NegotiationServer.publish(offer).answer.contains(" tcp "))
    }

    @Test(arguments: PublishOffers.all)
    func `every client's offer gets a legal answer`(sample: SampleOffer) throws {
        let offer = try SessionDescription(parsing: sample.text)
        let result = try NegotiationServer.publish(sample.text)
        let answer = try SessionDescription(parsing: result.answer)
        #expect(result.answer.hasSuffix("\r\n"))
        #expect(answer.attributes.has("ice-lite"))
        #expect(answer.media.map(\.type) == offer.media.map(\.type))
        #expect(
            answer.media.map { $0.attributes.value(of: "mid") } == offer.media.map { $0.attributes.value(of: "mid") }
        )
        let live = zip(offer.media, answer.media).filter { $0.1.port != 0 && $0.1.type != "application" }
        #expect(live.count == result.receive.count)
        for (offered, answered) in live {
            #expect(answered.protocolName == offered.protocolName)
            #expect(answered.attributes.has("recvonly"))
            #expect(answered.attributes.has("rtcp-mux"))
            #expect(answered.attributes.has("rtcp-mux-only"))
            #expect(answered.attributes.has("rtcp-rsize") == offered.attributes.has("rtcp-rsize"))
            #expect(answered.attributes.value(of: "ice-ufrag") == "srvUfrag")
            #expect(answered.attributes.value(of: "fingerprint") == NegotiationServer.local.fingerprint.description)
            #expect(!answered.attributes.has("msid"))
            let feedback = answered.attributes.values(of: "rtcp-fb")
            #expect(!feedback.contains { $0.hasSuffix("goog-remb") }, "the server never sends REMB")
            #expect(answered.formats.allSatisfy { offered.formats.contains($0) })
            #expect(answered.formats == offered.formats.filter { answered.formats.contains($0) }, "the offer's order")
            let extensions = Set(offered.attributes.values(of: "extmap").map { $0.split(separator: " ").last })
            for line in answered.attributes.values(of: "extmap") {
                #expect(extensions.contains(line.split(separator: " ").last))
            }
        }
        let bundle = answer.attributes.values(of: "group")
        let bundled = answer.media.filter { $0.port != 0 }
        #expect(bundle == ["BUNDLE " + bundled.compactMap { $0.attributes.value(of: "mid") }.joined(separator: " ")])
        #expect(bundled.first?.attributes.values(of: "candidate").count == 2)
        #expect(bundled.first?.attributes.has("end-of-candidates") == true)
        #expect(bundled.first?.port == 7000)
    }

    @Test func `Chromium's codecs keep their order, types, retransmission and feedback`() throws {
        let result = try NegotiationServer.publish(PublishOffers.chromium.text)
        let audio = try #require(result.receive.first)
        #expect(audio.kind == .audio)
        #expect(audio.codecs.map(\.name) == [.opus, .red])
        #expect(audio.codecs[0].feedback == [.transportCC])
        #expect(audio.codecs[0].channels == 2)
        #expect(audio.codecs[1].formatValue("") == "111/111")
        #expect(audio.ssrcs == [SSRC(rawValue: 3_735_928_559)])
        #expect(audio.extensions[.audioLevel] == id(1))
        #expect(audio.extensions[.videoOrientation] == nil)
        let video = try #require(result.receive.last)
        #expect(video.codecs.map(\.payloadType.rawValue) == [96, 103, 107, 109, 45, 98, 100, 49])
        #expect(video.codecs.map { $0.rtxPayloadType?.rawValue } == [97, 104, 108, 114, 46, 99, 101, 50])
        #expect(video.codecs[0].feedback == [.transportCC, .fullIntraRequest, .nack, .pictureLoss])
        #expect(video.ssrcs == [SSRC(rawValue: 2_271_560_481)])
        #expect(video.rtxSSRCs == [SSRC(rawValue: 2_271_560_481): SSRC(rawValue: 1_146_447_479)])
        #expect(video.extensions[.mid] == id(4))
        #expect(video.extensions[.rtpStreamID] == id(10))
        #expect(video.extensions[.repairedRTPStreamID] == id(11))
        #expect(video.extensions[.transportSequenceNumber] == id(3))
        #expect(video.extensions[.dependencyDescriptor] == nil)
        #expect(video.rids.isEmpty)
        #expect(result.remote.credentials.usernameFragment == "mK2p")
        #expect(result.remote.localRole == .server)
        #expect(result.remoteCandidates.isEmpty)
        #expect(!result.answer.contains("ulpfec"))
        #expect(!result.answer.contains("telephone-event"))
        #expect(video.codecs.allSatisfy { $0.feedback.contains(.transportCC) })
        #expect(
            result.answer.contains("a=fmtp:103 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f")
        )
        #expect(result.answer.contains("a=extmap-allow-mixed"))
    }

    @Test func `all simulcast layers and data channels are accepted`() throws {
        let result = try NegotiationServer.publish(PublishOffers.chromiumSimulcast.text)
        let video = try #require(result.receive.last)
        #expect(video.rids.map(\.value) == ["q", "h", "f"])
        #expect(video.ssrcs.isEmpty)
        #expect(video.extensions[.dependencyDescriptor] == id(12))
        #expect(result.answer.contains("a=rid:q recv\r\na=rid:h recv\r\na=rid:f recv\r\na=simulcast:recv q;h;f\r\n"))
        #expect(result.answer.contains("m=application 7000 UDP/DTLS/SCTP webrtc-datachannel\r\n"))
        #expect(result.answer.contains("a=group:BUNDLE 0 1 2\r\n"))
        #expect(result.data == DataTransportParameters())
        #expect(result.answer.contains("a=fmtp:111 minptime=10;useinbandfec=1;usedtx=1"))
    }

    @Test func `layers of an offer that announces SSRCs are still learned from their packets`() throws {
        let video = try #require(try NegotiationServer.publish(PublishOffers.firefoxSimulcast.text).receive.first)
        #expect(video.rids.map(\.value) == ["hi", "lo"])
        #expect(video.ssrcs.isEmpty)
        #expect(
            video.rtxSSRCs == [SSRC(rawValue: 1111): SSRC(rawValue: 3333), SSRC(rawValue: 2222): SSRC(rawValue: 4444)]
        )
        #expect(video.codecs[0].feedback == [.nack, .pictureLoss])
        let answer = try NegotiationServer.publish(PublishOffers.firefoxSimulcast.text).answer
        #expect(answer.contains("a=extmap:8/recvonly urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n"))
    }

    @Test func `SSRC simulcast comes in the order of its group`() throws {
        let result = try NegotiationServer.publish(PublishOffers.munged.text)
        let video = try #require(result.receive.first)
        #expect(video.ssrcs.map(\.rawValue) == [10, 20, 30])
        #expect(video.rtxSSRCs[SSRC(rawValue: 20)] == SSRC(rawValue: 21))
        #expect(video.codecs.map(\.name) == [.vp8])
        #expect(video.codecs[0].feedback == [.nack, .pictureLoss], "from rtcp-fb:*")
        #expect(result.remote.localRole == .server, "the offer is active")
    }

    @Test func `Firefox: bundle-only, session fingerprint, candidates with names, extensions one way`() throws {
        let result = try NegotiationServer.publish(PublishOffers.firefox.text)
        #expect(result.remoteCandidates.map(\.description) == ["203.0.113.40:51213"])
        let video = try #require(result.receive.last)
        #expect(video.codecs.map(\.payloadType.rawValue) == [120, 121, 126, 97])
        #expect(video.codecs.map { $0.rtxPayloadType?.rawValue } == [124, 125, 127, 98])
        #expect(video.extensions[.playoutDelay] == nil, "the offerer only receives it")
        #expect(result.answer.contains("a=fmtp:109 stereo=1;useinbandfec=1"))
        #expect(!result.answer.contains("max-fs"))
    }

    @Test func `FFmpeg: passive offer and a group that names a section that is not there`() throws {
        let both = try NegotiationServer.publish(PublishOffers.ffmpeg.text)
        #expect(both.remote.localRole == .client)
        #expect(both.answer.contains("a=setup:active\r\n"))
        let audio = try NegotiationServer.publish(PublishOffers.ffmpegAudioOnly.text)
        #expect(audio.receive.count == 1)
        #expect(audio.answer.contains("a=group:BUNDLE 0\r\n"))
    }

    @Test func `GStreamer: stream parameters are not echoed, and stereo is asked for`() throws {
        let result = try NegotiationServer.publish(PublishOffers.gstreamer.text)
        #expect(!result.answer.contains("sprop-parameter-sets"))
        #expect(result.answer.contains("a=fmtp:98 stereo=1\r\n"))
        #expect(result.receive.map(\.kind) == [.video, .audio])
        #expect(result.receive.first?.codecs.first?.formatValue("sprop-parameter-sets")?.hasSuffix("aM48gA==") == true)
        #expect(result.answer.contains("a=setup:passive\r\n"))
    }

    @Test(arguments: [("red/48000/2", "red/48000/1"), ("VP8/90000", "VP8/90000/2"), ("VP8/90000", "VP8/90000/255")])
    func `a channel count that the codec does not have is skipped like an unknown codec`(
        usual: String,
        odd: String
    ) throws {
        let chromium = PublishOffers.chromium.text
        let honest = try NegotiationServer.publish(chromium)
        #expect(chromium.contains(" \(usual)"))
        let result = try NegotiationServer.publish(chromium.replacing(" \(usual)", with: " \(odd)"))
        let name = CodecName(sdpName: String(usual.prefix { $0 != "/" }))
        let names = { (result: AnsweredOffer) in Set(result.receive.flatMap(\.codecs).map(\.name)) }
        #expect(names(honest).contains { $0 == name })
        #expect(names(result) == names(honest).filter { $0 != name }, "the others stay")
    }

    @Test func `an offer with impossible channel counts only is refused`() {
        let text = PublishOffers.pion.text.replacing("/90000", with: "/90000/2")
        #expect(throws: NegotiationError.self) { _ = try NegotiationServer.publish(text) }
    }

    @Test(arguments: ["a=msid:other audio", "a=msid:- audio", nil])
    func `tracks of two MediaStreams, or of none, are accepted as one`(line: String?) throws {
        let one = PublishOffers.pion.text
        let two = one.replacing("a=msid:pion audio\n", with: line.map { $0 + "\n" } ?? "")
        #expect(two != one && two.contains("a=msid:pion video"))
        let result = try NegotiationServer.publish(two)
        #expect(result.receive == (try NegotiationServer.publish(one)).receive)
    }

    @Test func `the other clients' tracks`() throws {
        let pion = try NegotiationServer.publish(PublishOffers.pion.text)
        #expect(pion.remoteCandidates.map(\.description) == ["192.0.2.17:60213", "[2001:db8::17]:60214"])
        #expect(pion.receive.first?.codecs.first?.feedback.contains(.transportCC) == true)
        let aiortc = try NegotiationServer.publish(PublishOffers.aiortc.text)
        #expect(aiortc.remote.fingerprints.count == 1, "SHA-1 is not used")
        #expect(aiortc.receive.last?.codecs.first?.feedback == [.nack, .pictureLoss])
        let obs = try NegotiationServer.publish(PublishOffers.obs.text)
        #expect(obs.receive.last?.codecs.first?.rtxPayloadType?.rawValue == 97)
        #expect(obs.answer.contains("a=fmtp:111 minptime=10;maxaveragebitrate=96000;stereo=1;useinbandfec=1"))
        let safari = try NegotiationServer.publish(PublishOffers.safari.text)
        #expect(safari.receive.last?.codecs.map(\.name) == [.h264, .h264, .h265, .vp8])
    }

    @Test func `of a section's candidates a bounded number is read, and those of the next section count`() throws {
        let line = { (port: Int) in "a=candidate:1 1 udp 1 192.0.2.1 \(port) typ host" }
        // Repetitions are read and do not count, so they hide what follows them in their section alone.
        let repeated = Array(repeating: line(5_000), count: RemoteSection.candidatesMax)
        let first = ["a=mid:0"] + repeated + [line(5_001)]
        let offer = PublishOffers.ffmpeg.text
            .replacing(line: "a=mid:0", with: first.joined(separator: "\n"))
            .replacing(line: "a=mid:1", with: "a=mid:1\n" + line(5_002))
        let result = try NegotiationServer.publish(offer)
        #expect(result.remoteCandidates.map(\.description) == ["192.0.2.1:5000", "192.0.2.1:5002"])
    }

    @Test func `a lone section needs neither a group nor a mid`() throws {
        let offer = PublishOffers.ffmpegAudioOnly.text.removing(linesWith: "a=group").removing(linesWith: "a=mid")
        let result = try NegotiationServer.publish(offer)
        #expect(result.receive.first?.mid.value == "0")
        #expect(!result.answer.contains("a=mid"))
        #expect(!result.answer.contains("a=group"))
        #expect(result.answer.contains("a=candidate"))
    }

    @Test func `a section with port 0 in the offer stays rejected`() throws {
        let offer = PublishOffers.ffmpeg.text.replacing(
            line: "m=video 9 UDP/TLS/RTP/SAVPF 106 105",
            with: "m=video 0 UDP/TLS/RTP/SAVPF 106 105"
        )
        let result = try NegotiationServer.publish(offer)
        #expect(result.receive.count == 1)
        #expect(result.answer.contains("m=video 0 UDP/TLS/RTP/SAVPF 106 105\r\n"))
    }

    @Test func `without candidates the default address is the placeholder`() throws {
        var local = NegotiationServer.local
        local.candidates = []
        let result = try PublishOffer(parsing: PublishOffers.obs.text).answer(local: local, sessionID: 1)
        #expect(result.answer.contains("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\n"))
    }

    @Test func `a layer without an accepted format is omitted`() throws {
        let offer = PublishOffers.chromiumSimulcast.text
            .replacing(line: "a=rid:q send", with: "a=rid:q send pt=35")
            .replacing(line: "a=rid:h send", with: "a=rid:h send pt=35,96;max-width=640")
        let result = try NegotiationServer.publish(offer)
        #expect(result.receive.last?.rids.map(\.value) == ["h", "f"])
        #expect(result.answer.contains("a=rid:h recv pt=96;max-width=640\r\n"))
        #expect(result.answer.contains("a=simulcast:recv h;f\r\n"))
    }

    @Test func `b= lines are written for video only, and only with a granted bit rate`() throws {
        let offer = PublishOffers.obs.text
        let silent = try PublishOffer(parsing: offer).answer(local: NegotiationServer.local, sessionID: 1)
        #expect(!silent.answer.contains("\r\nb="))
        let granted = try PublishOffer(parsing: offer).answer(
            local: NegotiationServer.local,
            sessionID: 1,
            videoBitsPerSecondMax: 2_500_000
        )
        let answer = try SessionDescription(parsing: granted.answer)
        for media in answer.media {
            #expect(media.bandwidths == (media.type == "video" ? ["AS:2500", "TIAS:2500000"] : []))
        }
        #expect(answer.media.contains { $0.type == "video" })
    }
}
