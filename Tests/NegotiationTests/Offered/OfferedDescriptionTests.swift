import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Negotiation

@Suite struct OfferedDescriptionTests {
    @Test func `the client's m-lines come first, and remote tracks follow in pairs`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let offer = try scene.offer([remoteStream("A"), remoteStream("B", video: [])])
        #expect(
            offer.shape == [
                "audio recvonly", "video recvonly", "audio sendonly A", "video sendonly A", "audio sendonly B",
            ]
        )
        #expect(offer.bundle == offer.mids)
        #expect(Set(offer.mids).count == 5)
        #expect(scene.session.clientMIDs.audio?.value == offer.mids[0])
        #expect(scene.session.clientMIDs.video?.value == offer.mids[1])
        for (section, mid) in zip(offer.media, offer.mids) {
            #expect(mid.wholeMatch(of: /(audio|video)_[A-Za-z0-9]{6}/)?.output.1 == Substring(section.type))
            #expect(section.protocolName == "UDP/TLS/RTP/SAVPF")
            #expect(section.attributes.has("rtcp-mux"))
            #expect(section.attributes.value(of: "setup") == "actpass")
            #expect(section.attributes.value(of: "ice-ufrag") == "srvUfrag")
            #expect(section.attributes.value(of: "fingerprint")?.hasPrefix("sha-256 ") == true)
        }
        #expect(offer.attributes.has("ice-lite"))
        #expect(offer.attributes.value(of: "msid-semantic") == "WMS *")
        #expect(offer.media[0].attributes.values(of: "candidate").count == 2)
        #expect(offer.media.dropFirst().allSatisfy { $0.attributes.values(of: "candidate").isEmpty })
    }

    @Test func `payload types, feedback and extensions are those that SDKs know`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let offer = try scene.offer()
        let (audio, video) = (offer.media[0], offer.media[1])
        #expect(audio.formats == ["109"])
        #expect(audio.attributes.values(of: "rtpmap") == ["109 opus/48000/2"])
        #expect(audio.attributes.values(of: "fmtp") == ["109 minptime=10;useinbandfec=1"])
        #expect(audio.attributes.values(of: "rtcp-fb") == ["109 transport-cc"])
        #expect(
            audio.attributes.values(of: "extmap") == [
                "1 urn:ietf:params:rtp-hdrext:ssrc-audio-level", "4 urn:ietf:params:rtp-hdrext:sdes:mid",
                "5 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
            ]
        )
        #expect(video.formats == ["120", "124"])
        #expect(video.attributes.values(of: "rtpmap") == ["120 VP9/90000", "124 rtx/90000"])
        #expect(video.attributes.values(of: "fmtp") == ["120 profile-id=0", "124 apt=120"])
        #expect(
            Set(video.attributes.values(of: "rtcp-fb")) == [
                "120 transport-cc", "120 ccm fir", "120 nack", "120 nack pli",
            ]
        )
        let extensions = video.attributes.values(of: "extmap").compactMap(ExtensionMapAttribute.init)
        #expect(extensions.map(\.id.rawValue) == [2, 3, 4, 5, 6, 7, 8])
        #expect(!video.attributes.has("simulcast"))
        #expect(video.bandwidths.isEmpty)
    }

    @Test func `layers, bit rates and Opus parameters are in the client's m-lines`() throws {
        var own = OfferedScene.both
        own.video = .offered(.vp8)
        own.layers = [("r0", true), ("r1", true), ("r2", false)].compactMap { name, isActive in
            RID(name).map { OfferedDescription.Layer(rid: $0, isActive: isActive) }
        }
        own.audioKbps = 32
        own.videoKbps = 2_500
        var opus = OpusParameters()
        opus.stereo = true
        opus.spropStereo = false
        opus.usesDTX = true
        opus.maxPlaybackRate = 16_000
        own.audio = .offered(.opus, format: opus.format)
        var scene = OfferedScene(own)
        let offer = try scene.offer([remoteStream("A")])
        #expect(
            offer.media[0].attributes.values(of: "fmtp") == [
                "109 minptime=10;useinbandfec=1;maxplaybackrate=16000;stereo=1;sprop-stereo=0;usedtx=1"
            ]
        )
        #expect(
            offer.media[2].attributes.values(of: "fmtp") == offer.media[0].attributes.values(of: "fmtp"),
            "one number means one format"
        )
        #expect(offer.media[0].bandwidths == ["AS:32", "TIAS:32000"])
        #expect(offer.media[1].bandwidths == ["AS:2500", "TIAS:2500000"])
        #expect(offer.media[1].attributes.values(of: "rid") == ["r0 recv", "r1 recv", "r2 recv"])
        #expect(offer.media[1].attributes.value(of: "simulcast") == "recv r0;r1;~r2")
        let extensions = offer.media[1].attributes.values(of: "extmap").compactMap(ExtensionMapAttribute.init)
        #expect(extensions.map(\.id.rawValue) == [2, 3, 4, 5, 6, 8, 10, 11])
        #expect(!offer.media[3].attributes.has("simulcast"))
        #expect(offer.media[2...].allSatisfy { $0.bandwidths.isEmpty })
    }

    @Test func `a remote track says whose it is and by which sources it comes`() throws {
        var scene = OfferedScene()
        let id = "5E8N8BMA0KQ6P5F6BZ5KKJMQ4R"
        let (offer, outcome) = try scene.exchange([remoteStream(id)])
        let video = offer.media[1]
        let msid = try #require(video.attributes.value(of: "msid")).split(separator: " ")
        #expect(msid.first.map(String.init) == id)
        #expect(msid.last?.count == 26)
        let slot = try #require(outcome.added.last)
        #expect(slot.streamID == id && slot.track.value == "video_own")
        let rtx = try #require(slot.parameters.rtxSSRC)
        #expect(video.attributes.value(of: "ssrc-group") == "FID \(slot.parameters.ssrc) \(rtx)")
        #expect(video.attributes.values(of: "ssrc").contains("\(slot.parameters.ssrc) cname:\(slot.parameters.cname)"))
        #expect(slot.parameters.codecs.map(\.name) == [.vp8])
        #expect(slot.parameters.codecs.first?.feedback == [.transportCC, .fullIntraRequest, .nack, .pictureLoss])
        #expect(slot.parameters.extensions[.mid]?.rawValue == 4)
        #expect(slot.parameters.extensions[.rtpStreamID] == nil)
        #expect(outcome.added.map(\.parameters.mid.value) == offer.mids)
        #expect(Set(outcome.added.map(\.parameters.cname)).count == 1, "what one member sends is synchronised")
        #expect(outcome.remote.localRole == .server)
        #expect(outcome.remote.credentials.usernameFragment == "echo")
    }

    @Test func `a receiver of an empty channel gets two idle lines, which the first sender takes`() throws {
        var scene = OfferedScene()
        let first = try scene.exchange().offer
        #expect(first.shape == ["audio inactive", "video inactive"])
        #expect(first.bundle.count == 2)
        #expect(scene.session.clientMIDs.audio == nil && scene.session.clientMIDs.video == nil)
        #expect(!scene.session.wouldChange([]))
        #expect(scene.session.wouldChange([remoteStream("A")]))
        let second = try scene.exchange([remoteStream("A"), remoteStream("B")]).offer
        #expect(second.shape == ["audio sendonly A", "video sendonly A", "audio sendonly B", "video sendonly B"])
        #expect(second.mids.prefix(2) == first.mids[...])
    }

    @Test func `a sender that leaves gives its lines back under new names, once the client has let go`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let first = try scene.exchange([remoteStream("A"), remoteStream("B")])
        let gone = try scene.exchange([remoteStream("B")])
        #expect(
            gone.offer.shape == [
                "audio recvonly", "video recvonly", "-audio inactive", "-video inactive", "audio sendonly B",
                "video sendonly B",
            ]
        )
        #expect(gone.offer.mids == first.offer.mids)
        #expect(gone.offer.bundle == [0, 1, 4, 5].map { gone.offer.mids[$0] })
        #expect(gone.outcome.removed.map(\.value) == Array(first.offer.mids[2...3]))
        #expect(gone.outcome.added.isEmpty)
        let back = try scene.exchange([remoteStream("B"), remoteStream("C")])
        #expect(back.offer.media.count == 6)
        #expect(back.offer.shape[2...3] == ["audio sendonly C", "video sendonly C"])
        #expect(Set(back.offer.mids[2...3]).isDisjoint(with: first.offer.mids))
        #expect(back.offer.bundle == back.offer.mids)
        #expect(back.outcome.added.map(\.streamID) == ["C", "C"])
        #expect(back.outcome.removed.isEmpty)
    }

    @Test func `a line whose closing was not answered yet is not given away`() throws {
        var scene = OfferedScene(OfferedScene.both)
        try scene.exchange([remoteStream("A")])
        let swapped = try scene.exchange([remoteStream("B")])
        #expect(
            swapped.offer.shape == [
                "audio recvonly", "video recvonly", "-audio inactive", "-video inactive", "audio sendonly B",
                "video sendonly B",
            ]
        )
        #expect(swapped.outcome.removed.count == 2 && swapped.outcome.added.count == 2)
    }

    @Test func `the line that heads the bundle stays open when its sender leaves`() throws {
        var scene = OfferedScene()
        let first = try scene.exchange([remoteStream("A")])
        let alone = try scene.exchange()
        #expect(alone.offer.shape == ["audio inactive", "-video inactive"])
        #expect(alone.offer.bundle == [alone.offer.mids[0]])
        #expect(alone.outcome.removed.map(\.value) == first.offer.mids)
        let back = try scene.exchange([remoteStream("B")])
        #expect(back.offer.shape == ["audio inactive", "video sendonly B", "audio sendonly B"])
        #expect(back.offer.mids[0] == first.offer.mids[0])
        #expect(back.offer.mids[1] != first.offer.mids[1])
        #expect(!back.outcome.added.contains { $0.parameters.mid.value == first.offer.mids[0] })
    }

    @Test func `the version of the session grows with every offer`() throws {
        var scene = OfferedScene()
        let origins = try (0..<4).map { _ in try scene.exchange().offer.origin }
        #expect(origins.map(\.version) == ["1", "2", "3", "4"])
        #expect(Set(origins.map(\.sessionID)).count == 1)
    }

    @Test func `a track of other formats is another one, and the stream's other track stays`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let first = try scene.exchange([remoteStream("A")])
        let changed = remoteStream("A", video: [.standard(.av1)])
        #expect(scene.session.wouldChange([changed]))
        let second = try scene.exchange([changed])
        #expect(second.outcome.removed.map(\.value) == [first.offer.mids[3]])
        #expect(second.outcome.added.map(\.parameters.kind) == [.video])
        #expect(second.outcome.added.map(\.parameters.cname) == [first.outcome.added[0].parameters.cname])
        #expect(second.offer.shape[2...] == ["audio sendonly A", "-video inactive", "video sendonly A"])
        #expect(!scene.session.wouldChange([changed]))
    }

    @Test func `a client that only sends is offered nothing of others`() throws {
        var scene = OfferedScene(OfferedScene.both, receives: false)
        let offer = try scene.exchange([remoteStream("A")]).offer
        #expect(offer.shape == ["audio recvonly", "video recvonly"])
        #expect(!scene.session.wouldChange([remoteStream("B")]))
    }

    @Test func `a client that takes one kind is offered that kind`() throws {
        var generator = SeededGenerator(seed: 5)
        var session = OfferedDescription(
            local: NegotiationServer.local,
            clientMedia: .init(),
            receivesMedia: true,
            kinds: [.video],
            using: &generator
        )
        let offer = try SessionDescription(parsing: session.makeOffer([remoteStream("A")], using: &generator))
        #expect(offer.shape == ["video sendonly A"])
    }

    @Test func `streams beyond the limit wait for room`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let streams = (0..<140).map { remoteStream("stream\($0)") }
        let (offer, outcome) = try scene.exchange(streams)
        #expect(offer.media.count == OfferedDescription.sectionsMax)
        #expect(outcome.added.count == OfferedDescription.sectionsMax - 2)
        #expect(!scene.session.wouldChange(streams))
        try scene.exchange(Array(streams.dropFirst(10)))
        #expect(scene.session.wouldChange(Array(streams.dropFirst(10))))
        let filled = try scene.exchange(Array(streams.dropFirst(10)))
        #expect(filled.outcome.added.count == 20)
        #expect(filled.offer.media.count == OfferedDescription.sectionsMax)
        #expect(Set(filled.offer.bundle).count == OfferedDescription.sectionsMax)
    }

    @Test func `MIDs and track names do not repeat`() throws {
        var scene = OfferedScene()
        var twice = remoteStream("A")
        twice.tracks += twice.tracks
        let offer = try scene.exchange([twice, remoteStream("A", audio: [], video: [.standard(.av1)])]).offer
        #expect(offer.shape == ["audio sendonly A", "video sendonly A"])
        var generator = SeededGenerator(seed: 1)
        var generated = MIDGenerator(using: &generator)
        #expect(Set((0..<20_000).map { _ in generated.next(.audio) }).count == 20_000)
    }
}
