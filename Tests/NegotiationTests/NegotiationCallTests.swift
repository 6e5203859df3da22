import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Negotiation

/// Offers of one side of a call, which the server answers in place of the other.
@Suite struct NegotiationCallTests {
    private func answer(_ offer: String, videoBitsPerSecondMax: Int? = nil) throws -> AnsweredOffer {
        var generator = SeededGenerator(seed: 7)
        return try CallOffer(parsing: offer).answer(
            local: NegotiationServer.local,
            streamID: "other",
            sessionID: 42,
            videoBitsPerSecondMax: videoBitsPerSecondMax,
            using: &generator
        )
    }

    private static func directed(_ sample: SampleOffer, _ direction: String) -> String {
        sample.text.replacing("a=sendonly", with: "a=\(direction)").replacing("a=sendrecv", with: "a=\(direction)")
    }

    @Test(arguments: PublishOffers.all)
    func `every client's offer for both directions is answered for both in the same sections`(
        sample: SampleOffer
    ) throws {
        let offer = try SessionDescription(parsing: Self.directed(sample, "sendrecv"))
        let result = try answer(Self.directed(sample, "sendrecv"))
        let answer = try SessionDescription(parsing: result.answer)
        #expect(answer.media.map(\.type) == offer.media.map(\.type))
        let live = answer.media.filter { $0.port != 0 }
        #expect(result.receive.map(\.mid) == result.send.map(\.mid) && live.count == result.send.count)
        for (media, (received, sent)) in zip(live, zip(result.receive, result.send)) {
            #expect(media.attributes.has("sendrecv") && media.attributes.has("rtcp-mux"))
            #expect(media.attributes.value(of: "msid") == "other \(sent.kind.rawValue)")
            #expect(media.attributes.values(of: "ssrc").contains("\(sent.ssrc) cname:\(sent.cname)"))
            #expect(received.kind == sent.kind && received.codecs == sent.codecs)
            #expect(sent.extensions[.rtpStreamID] == nil && sent.extensions[.mid] == received.extensions[.mid])
            #expect((sent.rtxSSRC != nil) == sent.codecs.contains { $0.rtxPayloadType != nil })
            let feedback = media.attributes.values(of: "rtcp-fb")
            #expect(!feedback.contains { $0.hasSuffix("goog-remb") || $0.hasSuffix("ack ccfb") })
        }
        let own = Set(result.receive.flatMap { $0.ssrcs + $0.rtxSSRCs.values })
        let sources = result.send.flatMap { [$0.ssrc, $0.rtxSSRC].compactMap { $0 } }
        #expect(Set(sources).count == sources.count && own.isDisjoint(with: sources))
    }

    @Test(arguments: [("sendonly", "recvonly", 2, 0), ("recvonly", "sendonly", 0, 2), ("sendrecv", "sendrecv", 2, 2)])
    func `the answer mirrors the direction`(offered: String, answered: String, received: Int, sent: Int) throws {
        let text = Self.directed(PublishOffers.chromium, offered)
        let result = try answer(text)
        let answer = try SessionDescription(parsing: result.answer)
        #expect(answer.media.allSatisfy { $0.port == 0 || $0.attributes.has(answered) })
        #expect(result.receive.count == received && result.send.count == sent)
        let offer = try CallOffer(parsing: text)
        #expect(offer.sentKinds.count == received && offer.receivedKinds.count == sent && offer.kinds.count == 2)
        #expect(offer.mids.count == 2)
        for media in answer.media where sent == 0 { #expect(!media.attributes.has("msid")) }
    }

    @Test func `an offer without any direction is refused`() throws {
        let text = Self.directed(PublishOffers.chromium, "inactive")
        let error = #expect(throws: NegotiationError.self) { try CallOffer(parsing: text) }
        #expect(try #require(error).sentence.contains("offer audio or video sendrecv"))
    }

    @Test func `layers of the client are accepted, and it gets one stream`() throws {
        let result = try answer(Self.directed(PublishOffers.chromiumSimulcast, "sendrecv"))
        let layered = try #require(result.receive.first { $0.kind == .video })
        #expect(layered.rids.count > 1 && result.answer.contains("a=simulcast:recv "))
        #expect(result.send.count { $0.kind == .video } == 1)
    }

    @Test func `the limit of the client's video is in its section only`() throws {
        let text = Self.directed(PublishOffers.chromium, "sendrecv")
        let answer = try SessionDescription(parsing: try answer(text, videoBitsPerSecondMax: 900_000).answer)
        for media in answer.media where media.port != 0 {
            #expect(media.bandwidths.contains("AS:900") == (media.type == "video"))
        }
    }
}
