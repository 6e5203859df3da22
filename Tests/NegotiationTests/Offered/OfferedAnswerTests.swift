import MediaTypes
import Testing
import Wire

@testable import Negotiation

@Suite struct OfferedAnswerTests {
    private func simulcastMedia() -> OfferedDescription.ClientMedia {
        var own = OfferedScene.both
        own.layers = ["r0", "r1", "r2"].compactMap { RID($0) }.map { OfferedDescription.Layer(rid: $0) }
        return own
    }

    @Test func `a native sender's answer`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let offer = try scene.offer()
        let outcome = try scene.session.apply(answer: NativeAnswers.sender.naming(offer.mids))
        #expect(outcome.receive.map(\.mid.value) == offer.mids)
        #expect(outcome.receive[0].ssrcs.map(\.rawValue) == [3_051_867_422])
        #expect(outcome.receive[0].extensions[.audioLevel]?.rawValue == 1)
        let video = outcome.receive[1]
        #expect(video.ssrcs.map(\.rawValue) == [1_750_334_401])
        #expect(video.rtxSSRCs.values.map(\.rawValue) == [2_880_164_539])
        #expect(video.codecs.map(\.payloadType.rawValue) == [120])
        #expect(video.codecs[0].rtxPayloadType?.rawValue == 124)
        #expect(video.codecs[0].feedback == [.transportCC, .fullIntraRequest, .nack, .pictureLoss])
        #expect(video.rids.isEmpty && !video.layersAscend)
        #expect(outcome.added.isEmpty && outcome.removed.isEmpty)
        #expect(outcome.remote.credentials.usernameFragment == "Zk4w")
        #expect(outcome.remote.localRole == .server)
        #expect(!scene.session.isOfferOutstanding)
    }

    @Test func `a native sender's layers come lowest first, the paused one too`() throws {
        var scene = OfferedScene(simulcastMedia())
        let offer = try scene.offer()
        let outcome = try scene.session.apply(answer: NativeAnswers.simulcast.naming(offer.mids))
        let video = try #require(outcome.receive.last)
        #expect(video.rids.map(\.value) == ["r0", "r1", "r2"])
        #expect(video.layersAscend && video.canPauseLayers)
        #expect(video.ssrcs.isEmpty && video.rtxSSRCs.isEmpty)
        #expect(video.extensions[.repairedRTPStreamID]?.rawValue == 11)
    }

    @Test func `layers are those that were asked for and are sent, in the server's order`() throws {
        var scene = OfferedScene(simulcastMedia())
        let offer = try scene.offer()
        let answer = NativeAnswers.simulcast.naming(offer.mids)
            .replacing(line: "a=simulcast:send r0;r1;~r2", with: "a=simulcast:send r2;r9;r0")
            .replacing(line: "a=rid:r1 send", with: "a=rid:r9 send")
        let outcome = try scene.session.apply(answer: answer)
        #expect(outcome.receive.last?.rids.map(\.value) == ["r0", "r2"])
    }

    @Test func `a client that does not do simulcast sends one stream`() throws {
        var scene = OfferedScene(simulcastMedia())
        let offer = try scene.offer()
        let outcome = try scene.session.apply(answer: NativeAnswers.sender.naming(offer.mids))
        let video = try #require(outcome.receive.last)
        #expect(video.rids.isEmpty && !video.layersAscend && !video.canPauseLayers && video.ssrcs.count == 1)
    }

    @Test func `layers that cannot be told apart are refused`() throws {
        var scene = OfferedScene(simulcastMedia())
        let offer = try scene.offer()
        let answer = NativeAnswers.simulcast.naming(offer.mids).removing(linesWith: "a=extmap:10")
        #expect(throws: NegotiationError.self) { try scene.session.apply(answer: answer) }
    }

    @Test func `a native receiver's answer`() throws {
        var scene = OfferedScene()
        let offer = try scene.offer([remoteStream("A", video: [.standard(.vp9)])])
        let outcome = try scene.session.apply(answer: NativeAnswers.receiver.naming(offer.mids))
        #expect(outcome.receive.isEmpty)
        #expect(outcome.added.map(\.parameters.mid.value) == offer.mids)
        #expect(outcome.added[1].parameters.codecs.map(\.payloadType.rawValue) == [120])
        #expect(outcome.added[1].parameters.extensions[.rtpStreamID] == nil, "a slot is one stream")
        #expect(outcome.added[0].parameters.rtxSSRC == nil)
        #expect(outcome.added[1].parameters.rtxSSRC != nil)
    }

    @Test func `what the client sends is decided by its first answer`() throws {
        var scene = OfferedScene(OfferedScene.both)
        scene.client.sends = [.audio]
        let first = try scene.exchange().outcome.receive
        #expect(first.map(\.kind) == [.audio])
        scene.client.sends = [.audio, .video]
        let second = try scene.exchange([remoteStream("A")]).outcome.receive
        #expect(second == first)
        scene.client.sends = []
        let third = try scene.exchange().outcome.receive
        #expect(third == first)
    }

    @Test func `an m-line of the client that it rejects stays rejected`() throws {
        var scene = OfferedScene(OfferedScene.both)
        scene.client.lacks = ["VP9"]
        let outcome = try scene.exchange([remoteStream("A")]).outcome
        #expect(outcome.receive.map(\.kind) == [.audio])
        #expect(outcome.added.count == 2)
        let next = try scene.exchange([remoteStream("A"), remoteStream("B")]).offer
        #expect(next.shape.prefix(4) == ["audio recvonly", "-video inactive", "audio sendonly A", "video sendonly A"])
        #expect(!next.bundle.contains(next.mids[1]))
    }

    @Test func `a track that the client cannot take gives no slot, and is not offered again`() throws {
        var scene = OfferedScene(OfferedScene.both)
        scene.client.lacks = ["H265"]
        let streams = [remoteStream("A", video: [.standard(.h265)])]
        let (_, outcome) = try scene.exchange(streams)
        #expect(outcome.added.map(\.parameters.kind) == [.audio])
        #expect(!scene.session.wouldChange(streams))
        let next = try scene.exchange(streams)
        #expect(next.offer.shape[2...] == ["audio sendonly A", "-video inactive"])
        #expect(next.outcome.removed.isEmpty)
        let gone = try scene.exchange().offer
        #expect(gone.shape[2...] == ["-audio inactive", "-video inactive"])
        let back = try scene.exchange([remoteStream("B")]).offer
        #expect(back.shape[2...] == ["audio sendonly B", "video sendonly B"])
        #expect(back.mids[3] != gone.mids[3])
    }

    @Test func `a track that the client answers inactive gives no slot, then or later`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let offer = try scene.offer([remoteStream("A")])
        scene.client.replies = [offer.mids[3]: .inactive]
        let outcome = try scene.session.apply(answer: scene.client.answer(offer.serialized()))
        #expect(outcome.added.map(\.parameters.kind) == [.audio])
        scene.client.replies = [:]
        let next = try scene.exchange([remoteStream("A")])
        #expect(next.offer.shape[3] == "video inactive")
        #expect(next.offer.bundle.count == 4)
        #expect(next.outcome.added.isEmpty && next.outcome.removed.isEmpty)
        let gone = try scene.exchange()
        #expect(gone.offer.shape[3] == "-video inactive")
        #expect(gone.outcome.removed.map(\.value) == [offer.mids[2]])
    }

    @Test(arguments: [EchoClient.Reply.inactive, .refuse])
    func `a slot that the client gives up is removed once`(reply: EchoClient.Reply) throws {
        var scene = OfferedScene(OfferedScene.both)
        let first = try scene.exchange([remoteStream("A"), remoteStream("B")])
        scene.client.replies = [first.offer.mids[3]: reply]
        let second = try scene.exchange([remoteStream("A"), remoteStream("B"), remoteStream("C")])
        #expect(second.outcome.removed.map(\.value) == [first.offer.mids[3]])
        #expect(second.outcome.added.map(\.streamID) == ["C", "C"])
        let third = try scene.exchange([remoteStream("B")])
        #expect(Set(third.outcome.removed.map(\.value)).isDisjoint(with: [first.offer.mids[3]]))
        #expect(third.outcome.removed.count == 3)
    }

    @Test func `a receiver of one line that lacks the first sender's codec stays, and gets the next sender`() throws {
        var scene = OfferedScene(kinds: [.video])
        scene.client.lacks = ["H265"]
        let first = try scene.exchange([remoteStream("A", video: [.standard(.h265)])])
        #expect(first.offer.shape == ["video sendonly A"])
        #expect(first.offer.media[0].formats == ["49", "50", "96", "97"])
        #expect(first.outcome.added.isEmpty)
        let second = try scene.exchange([remoteStream("A", video: [.standard(.h265)]), remoteStream("B")])
        #expect(second.offer.shape == ["video inactive", "video sendonly B"])
        #expect(second.outcome.added.map(\.streamID) == ["B"])
    }

    @Test func `a receiver of one line that has the first sender's codec gets that one only`() throws {
        var scene = OfferedScene(kinds: [.video])
        let streams = [remoteStream("A", video: [.standard(.h265)]), remoteStream("B", video: [.standard(.av1)])]
        let (offer, outcome) = try scene.exchange(streams)
        #expect(outcome.added.map { $0.parameters.codecs.map(\.name) } == [[.h265], [.av1]])
        #expect(offer.media[1].formats == ["45", "46"], "other lines have the track's formats alone")
    }

    @Test(arguments: [EchoClient.Reply.inactive, .refuse])
    func `where the first line was refused the next one heads the bundle, and stays when its sender leaves`(
        reply: EchoClient.Reply
    ) throws {
        var scene = OfferedScene(.init(audio: .offered(.opus)))
        let first = try scene.offer([remoteStream("A")])
        #expect(first.shape == ["audio recvonly", "audio sendonly A", "video sendonly A"])
        scene.client.replies = [first.mids[0]: reply]
        _ = try scene.session.apply(answer: scene.client.answer(first.serialized()))
        let alone = try scene.exchange()
        let isRefused = reply == .refuse
        #expect(
            alone.offer.shape
                == (isRefused
                    ? ["-audio inactive", "audio inactive", "-video inactive"]
                    : ["audio recvonly", "-audio inactive", "-video inactive"])
        )
        #expect(alone.offer.bundle == [first.mids[isRefused ? 1 : 0]])
        #expect(alone.outcome.removed.map(\.value) == Array(first.mids[1...]))
        let back = try scene.exchange([remoteStream("B")])
        #expect(back.outcome.added.count == 2)
        #expect(back.offer.bundle.first == alone.offer.bundle.first)
    }

    @Test func `a line before the head of the bundle is not used again`() throws {
        var scene = OfferedScene()
        let first = try scene.exchange([remoteStream("A"), remoteStream("B")]).offer
        scene.client.replies = [first.mids[0]: .refuse]
        let refused = try scene.exchange([remoteStream("A"), remoteStream("B"), remoteStream("C")]).offer
        #expect(refused.bundle.first == first.mids[0])
        scene.client.replies = [:]
        // A's video is the head now; its audio was refused, and is free once A is gone.
        let second = try scene.exchange([remoteStream("B"), remoteStream("C")]).offer
        #expect(second.shape.prefix(2) == ["-audio inactive", "video inactive"])
        let third = try scene.exchange([remoteStream("B"), remoteStream("C"), remoteStream("D")])
        #expect(third.offer.shape.prefix(2) == ["-audio inactive", "video inactive"])
        #expect(third.offer.bundle.first == first.mids[1])
        #expect(third.outcome.added.map(\.streamID) == ["D", "D"])
        #expect(!scene.session.wouldChange([remoteStream("B"), remoteStream("C"), remoteStream("D")]))
    }

    @Test func `the answer to as many senders as there are lines, each with a browser's formats, is read`() throws {
        let h264 = ["42001f", "42e01f", "4d001f", "64001f", "f4001f"].flatMap { profile in
            ["1", "0"].map { mode in
                CodecParameters.offered(
                    .h264,
                    format: [
                        FormatParameter(key: "level-asymmetry-allowed", value: "1"),
                        FormatParameter(key: "packetization-mode", value: mode),
                        FormatParameter(key: "profile-level-id", value: profile),
                    ]
                )
            }
        }
        let vp9 = CodecParameters.offered(.vp9, format: [FormatParameter(key: "profile-id", value: "2")])
        let others: [CodecParameters] = [.standard(.av1), .standard(.vp9), vp9, .standard(.h265)]
        let video = [.standard(.vp8)] + h264 + others
        let audio: [CodecParameters] = [.standard(.opus), .standard(.red)]
        var scene = OfferedScene(OfferedScene.both)
        let senders = OfferedDescription.sectionsMax / 2 - 1
        let streams = (0..<senders).map { number in
            remoteStream("5E8N8BMA0KQ6P5F6BZ5KKJM\(100 + number)", audio: audio, video: video)
        }
        let (offer, outcome) = try scene.exchange(streams)
        #expect(outcome.added.count == 2 * senders)
        let formats = outcome.added.filter { $0.parameters.kind == .video }.map { $0.parameters.codecs.map(\.name) }
        #expect(Set(formats) == [[.vp8, .h264, .h264, .h264]], "what the sender prefers")
        let bytes = try scene.client.answer(offer.serialized()).utf8.count
        #expect(bytes < SDPLimits.bytesMax && offer.serialized().utf8.count < SDPLimits.bytesMax)
    }

    @Test func `an idle line that the client refuses is replaced by another`() throws {
        var scene = OfferedScene()
        let offer = try scene.offer()
        scene.client.replies = [offer.mids[1]: .refuse]
        _ = try scene.session.apply(answer: scene.client.answer(offer.serialized()))
        let next = try scene.exchange([remoteStream("A")])
        #expect(next.offer.shape == ["audio sendonly A", "video sendonly A"])
        #expect(next.offer.mids[0] == offer.mids[0] && next.offer.mids[1] != offer.mids[1])
        #expect(next.outcome.added.count == 2)
    }

    @Test func `a browser that answers a closed line as if it were open does no harm`() throws {
        var scene = OfferedScene(OfferedScene.both)
        try scene.exchange([remoteStream("A")])
        let text = scene.session.makeOffer([], using: &scene.generator)
        let reopened = text.replacing("m=audio 0", with: "m=audio 9").replacing("m=video 0", with: "m=video 9")
        let outcome = try scene.session.apply(answer: scene.client.answer(reopened))
        #expect(outcome.removed.count == 2)
        let next = try scene.exchange([remoteStream("B")]).outcome
        #expect(next.added.count == 2)
    }

    @Test func `formats and extensions count under the numbers that were offered`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let offer = try scene.offer()
        let answer =
            NativeAnswers.sender.naming(offer.mids)
            .replacing(line: "a=rtpmap:124 rtx/90000", with: "a=rtpmap:125 rtx/90000")
            .replacing(line: "a=fmtp:124 apt=120", with: "a=fmtp:125 apt=120")
            .replacing(
                line: "m=video 9 UDP/TLS/RTP/SAVPF 120 124",
                with: "m=video 9 UDP/TLS/RTP/SAVPF 120 125 100"
            )
            .replacing("a=extmap:3 urn:3gpp", with: "a=extmap:9 urn:3gpp") + "a=rtpmap:100 VP8/90000\n"
        let outcome = try scene.session.apply(answer: answer)
        let video = try #require(outcome.receive.last)
        #expect(video.codecs.map(\.name) == [.vp9])
        #expect(video.codecs.first?.rtxPayloadType == nil)
        #expect(video.extensions[.videoOrientation] == nil)
        #expect(video.extensions[.mid]?.rawValue == 4)
    }

    private static let broken: [(String, @Sendable (String) -> String)] = [
        ("an m-line less", { String($0[..<($0.firstRange(of: "m=video")?.lowerBound ?? $0.endIndex)]) }),
        ("another kind", { $0.replacing("m=audio", with: "m=video") }),
        ("another name", { $0.replacing("a=mid:audio", with: "a=mid:xudio") }),
        ("no BUNDLE", { $0.removing(linesWith: "a=group") }),
        ("no credentials", { $0.removing(linesWith: "a=ice-") }),
        ("no fingerprint", { $0.removing(linesWith: "a=fingerprint") }),
        ("actpass", { $0.replacing("a=setup:active", with: "a=setup:actpass") }),
        ("no rtcp-mux", { $0.removing(linesWith: "a=rtcp-mux") }),
        ("other numbers", { $0.replacing("120", with: "121") }),
        ("everything refused", { $0.replacing("o 9 UDP", with: "o 0 UDP") }),
        ("not SDP", { _ in "hello" }), ("nothing", { _ in "" }),
    ]

    @Test(arguments: broken.indices)
    func `what is no answer changes nothing`(index: Int) throws {
        let (name, edit) = Self.broken[index]
        var scene = OfferedScene(OfferedScene.both)
        let offer = try scene.offer()
        let good = NativeAnswers.sender.naming(offer.mids)
        #expect(edit(good) != good)
        #expect(throws: NegotiationError.self, "\(name)") { try scene.session.apply(answer: edit(good)) }
        #expect(scene.session.isOfferOutstanding)
        let outcome = try scene.session.apply(answer: good)
        #expect(outcome.receive.count == 2)
        #expect(throws: NegotiationError.self, "answered twice") { try scene.session.apply(answer: good) }
    }

    @Test func `another transport cannot be slipped in later`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let remote = try scene.exchange().outcome.remote
        scene.client.fragment = "else"
        let offer = try scene.offer([remoteStream("A")])
        #expect(throws: NegotiationError.self) {
            try scene.session.apply(answer: scene.client.answer(offer.serialized()))
        }
        scene.client.fragment = "echo"
        let outcome = try scene.session.apply(answer: scene.client.answer(offer.serialized()))
        #expect(outcome.remote == remote)
    }
}
