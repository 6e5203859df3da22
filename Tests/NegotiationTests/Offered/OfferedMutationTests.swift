import Base
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Negotiation

@Suite struct OfferedMutationTests {
    /// Answers of all kinds to a session of four lines with layers.
    private func scene() throws -> (scene: OfferedScene, answers: [String]) {
        var own = OfferedScene.both
        own.layers = ["r0", "r1", "r2"].compactMap { RID($0) }.map { OfferedDescription.Layer(rid: $0) }
        var scene = OfferedScene(own)
        let offer = try scene.offer([remoteStream("A")])
        var refusing = scene.client
        refusing.replies = [offer.mids[2]: .refuse, offer.mids[3]: .inactive]
        let text = offer.serialized()
        return (scene, [try scene.client.answer(text), try refusing.answer(text)])
    }

    /// Applies any text as answer. The description then continues with legal offers.
    private func check(_ answer: String, in scene: OfferedScene, origin: String) throws {
        var scene = scene
        guard let outcome = try? scene.session.apply(answer: answer) else {
            #expect(scene.session.isOfferOutstanding, "\(origin)")
            return
        }
        #expect(outcome.added.count <= 2 && outcome.receive.count <= 2, "\(origin)")
        var rules = OfferRules()
        for streams in [[remoteStream("B")], [], [remoteStream("C")]] {
            scene.client.fragment = outcome.remote.credentials.usernameFragment
            let offer = try scene.offer(streams)
            rules.take(offer, own: [])
            _ = try? scene.session.apply(answer: try scene.client.answer(offer.serialized()))
            guard !scene.session.isOfferOutstanding else { return }
        }
        #expect(rules.failures.allSatisfy { $0 == "the head of the bundle stays" }, "\(origin): \(rules.failures)")
    }

    @Test(.timeLimit(.minutes(10)), arguments: 0..<120 as Range<UInt64>)
    func `a mutated answer is taken or refused`(seed: UInt64) throws {
        let (scene, answers) = try scene()
        var generator = SeededGenerator(seed: seed)
        for (index, answer) in answers.enumerated() {
            let text =
                seed.isMultiple(of: 2)
                ? NegotiationMutation.bytes(answer, using: &generator)
                : NegotiationMutation.lines(answer, using: &generator)
            try check(text, in: scene, origin: "answer \(index), seed \(seed)")
        }
    }

    @Test func `a truncated answer is taken or refused`() throws {
        let (scene, answers) = try scene()
        for answer in answers {
            let bytes = Array(answer.utf8)
            for count in stride(from: 0, through: bytes.count, by: 23) {
                try check(String(decoding: bytes[..<count], as: UTF8.self), in: scene, origin: "\(count) bytes")
            }
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: 0..<40 as Range<UInt64>)
    func `a mutated offer is answered or refused`(seed: UInt64) throws {
        var scene = OfferedScene(OfferedScene.both)
        var generator = SeededGenerator(seed: seed)
        var client = ClientAnswerer(transport: NegotiationServer.local, using: &generator)
        for streams in [[remoteStream("A")], [], [remoteStream("B"), remoteStream("C")]] {
            let offer = try scene.exchange(streams).offer
            let own = offer.mids.prefix(2).compactMap { MID($0) }
            for _ in 0..<4 {
                let text = NegotiationMutation.lines(offer.serialized(), using: &generator)
                guard let turn = try? client.answer(offer: text, sending: Set(own), using: &generator) else { continue }
                #expect(throws: Never.self, "seed \(seed)") { try SessionDescription(parsing: turn.answer) }
            }
        }
    }
}
