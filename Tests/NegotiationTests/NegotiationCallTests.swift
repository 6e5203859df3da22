import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Negotiation

/// Offers of one side of a call, which the server answers in place of the other.
@Suite struct NegotiationCallTests {
    private func answer(_ offer: String, videoBitsPerSecondMax: Int? = nil) throws -> AnsweredOffer {
        try call(offer, videoBitsPerSecondMax: videoBitsPerSecondMax).first
    }

    private func call(
        _ offer: String,
        videoBitsPerSecondMax: Int? = nil
    ) throws -> (first: AnsweredOffer, call: AnsweredCall) {
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
        #expect(try #require(error).message.contains("offer audio or video sendrecv"))
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

    // MARK: Further offers

    private static let restarted: LocalTransport = {
        var local = NegotiationServer.local
        local.credentials = ICECredentials(usernameFragment: "again", password: "0123456789012345678901")!
        return local
    }()

    /// A section of an answer without its ICE lines.
    private static func kept(_ media: MediaDescription) -> [String] {
        media.attributes.filter { !$0.name.hasPrefix("ice-") }.map { "\($0.name):\($0.value ?? "")" }
    }

    @Test(arguments: PublishOffers.all)
    func `an ICE restart changes the ICE lines of the answer and nothing else`(sample: SampleOffer) throws {
        let text = Self.directed(sample, "sendrecv")
        var (first, call) = try call(text)
        let offer = try call.offer(parsing: text.replacing(/a=ice-ufrag:\S+/, with: "a=ice-ufrag:fresh"))
        #expect(offer.credentials.usernameFragment == "fresh")
        #expect(offer.sentKinds == Set(first.receive.map(\.kind)) && offer.receivedKinds == offer.sentKinds)
        let before = try SessionDescription(parsing: first.answer)
        let after = try SessionDescription(parsing: call.answer(offer, local: Self.restarted))
        #expect(after.media.map(Self.kept) == before.media.map(Self.kept))
        for media in after.media where media.port != 0 {
            #expect(media.attributes.value(of: "ice-ufrag") == "again")
        }
        #expect(after.origin.sessionID == before.origin.sessionID && before.origin.version == "1")
        #expect(after.attributes.values(of: "group") == before.attributes.values(of: "group"))
        #expect(try SessionDescription(parsing: call.answer(offer, local: Self.restarted)).origin.version == "3")
        #expect(after.origin.version == "2")
    }

    @Test(arguments: [
        ("sendrecv", "recvonly", "sendonly"), ("sendrecv", "sendonly", "recvonly"),
        ("sendrecv", "inactive", "inactive"),
        ("sendonly", "sendrecv", "recvonly"), ("recvonly", "sendrecv", "sendonly"),
        ("recvonly", "sendonly", "inactive"),
    ])
    func `a direction changes within that of the first offer`(first: String, second: String, answered: String) throws {
        var (_, call) = try call(Self.directed(PublishOffers.chromium, first))
        let offer = try call.offer(parsing: Self.directed(PublishOffers.chromium, second))
        let answer = try SessionDescription(parsing: call.answer(offer, local: NegotiationServer.local))
        for media in answer.media where media.port != 0 {
            #expect(media.attributes.has(answered))
            #expect(media.attributes.has("msid") == (answered.hasPrefix("send")))
        }
        #expect(offer.sentKinds.isEmpty == !(answered == "sendrecv" || answered == "recvonly"))
        #expect(offer.receivedKinds.isEmpty == !answered.hasPrefix("send"))
    }

    @Test func `a direction comes back with the same stream`() throws {
        let text = Self.directed(PublishOffers.chromium, "sendrecv")
        var (first, call) = try call(text)
        let off = try call.offer(parsing: Self.directed(PublishOffers.chromium, "inactive"))
        _ = call.answer(off, local: NegotiationServer.local)
        let on = try SessionDescription(
            parsing: call.answer(try call.offer(parsing: text), local: NegotiationServer.local)
        )
        let before = try SessionDescription(parsing: first.answer)
        #expect(on.media.map(Self.kept) == before.media.map(Self.kept))
    }

    @Test func `a section that comes later is rejected, and the others go on`() throws {
        let whole = Self.directed(PublishOffers.chromium, "sendrecv")
        let description = try SessionDescription(parsing: whole)
        let audio = try #require(description.media.first { $0.type == "audio" })
        let mid = try #require(audio.attributes.value(of: "mid"))
        var alone = description
        alone.media = [audio]
        alone.attributes.removeAll { $0.name == "group" }
        alone.attributes.append(SDPAttribute("group", "BUNDLE \(mid)"))
        var (_, call) = try call(alone.serialized())
        let offer = try call.offer(parsing: whole)
        #expect(offer.sentKinds == [.audio])
        let answer = try SessionDescription(parsing: call.answer(offer, local: NegotiationServer.local))
        #expect(answer.media.count == description.media.count)
        for media in answer.media { #expect((media.port == 0) == (media.type != "audio")) }
        #expect(answer.attributes.value(of: "group") == "BUNDLE \(mid)")
    }

    @Test func `a section that the client stopped is rejected, and the others go on`() throws {
        let whole = Self.directed(PublishOffers.chromium, "sendrecv")
        var (_, call) = try call(whole)
        var description = try SessionDescription(parsing: whole)
        let index = try #require(description.media.firstIndex { $0.type == "video" })
        let mid = try #require(description.media[index].attributes.value(of: "mid"))
        description.media[index].port = 0
        description.media[index].attributes.removeAll { $0.name == "bundle-only" }
        for attribute in description.attributes.indices where description.attributes[attribute].name == "group" {
            let value = description.attributes[attribute].value ?? ""
            description.attributes[attribute] = SDPAttribute("group", value.replacing(" \(mid)", with: ""))
        }
        let offer = try call.offer(parsing: description.serialized())
        #expect(offer.sentKinds == [.audio] && offer.receivedKinds == [.audio])
        let answer = try SessionDescription(parsing: call.answer(offer, local: NegotiationServer.local))
        #expect(answer.media[index].port == 0)
    }

    @Test(arguments: [
        ("a=fingerprint:sha-256 ", "a=fingerprint:sha-256 00:", "keeps its certificate"),
        ("a=setup:actpass", "a=setup:passive", "offer a=setup:actpass"),
        ("a=mid:", "a=mid:x", "no m-line of the call"),
    ])
    func `an offer that would need another transport or other sections is refused`(
        old: String,
        new: String,
        reason: String
    ) throws {
        let text = Self.directed(PublishOffers.chromium, "sendrecv")
        let (_, call) = try call(text)
        var changed = text.replacing(old, with: new)
        if new.hasSuffix("00:") {
            // One byte more at the front, and one less at the end.
            changed = changed.replacing(/(a=fingerprint:sha-256 [0-9A-F:]+):[0-9A-F]{2}/) { "\($0.1)" }
        }
        if old == "a=mid:" {
            changed = changed.replacing(/BUNDLE( \S+)+/) { match in
                "BUNDLE " + match.0.split(separator: " ").dropFirst().map { "x\($0)" }.joined(separator: " ")
            }
        }
        let error = #expect(throws: NegotiationError.self) { try call.offer(parsing: changed) }
        #expect(try #require(error).message.contains(reason))
    }
}
