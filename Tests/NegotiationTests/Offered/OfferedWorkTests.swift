import Testing
import Wire

@testable import Negotiation

/// The number of m-lines that are serialized and parsed again when a participant joins or leaves.
@Suite struct OfferedWorkTests {
    private static func room(_ count: Int) -> [OfferedDescription.RemoteStream] {
        (0..<count).map { remoteStream("member\($0)") }
    }

    @Test func `a join to a room of 60 serializes two m-lines for each member`() throws {
        var scene = OfferedScene(OfferedScene.both)
        try scene.exchange(Self.room(60))
        #expect(scene.session.work == (122, 122))
        let joined = try scene.exchange(Self.room(61))
        #expect(joined.offer.media.count == 124)
        #expect(joined.outcome.added.map(\.streamID) == ["member60", "member60"])
        #expect(scene.session.work == (124, 124))
    }

    @Test func `one that leaves costs the two lines that it had`() throws {
        var scene = OfferedScene(OfferedScene.both)
        try scene.exchange(Self.room(20))
        let before = scene.session.work
        let left = try scene.exchange(Self.room(20).filter { $0.id != "member7" })
        #expect(left.outcome.removed.count == 2)
        #expect(scene.session.work == (before.described + 2, before.read + 2))
        // When the client has closed the m-lines, they become free, which is a change of state.
        for _ in 0..<3 { try scene.exchange(Self.room(20).filter { $0.id != "member7" }) }
        #expect(scene.session.work == (before.described + 4, before.read + 4))
    }

    @Test func `what the client answers otherwise than before is read, also where the offer is the same`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let (offer, _) = try scene.exchange(Self.room(3))
        let before = scene.session.work
        scene.client.replies = [offer.mids[3]: .inactive]
        let outcome = try scene.exchange(Self.room(3)).outcome
        #expect(outcome.removed.map(\.value) == [offer.mids[3]])
        #expect(scene.session.work == (before.described, before.read + 1))
    }

    @Test func `a direction of the whole answer is not overlooked where a line has none`() throws {
        var scene = OfferedScene()
        let streams = Self.room(2)
        let bare = { (answer: String, direction: String) in
            answer.replacing("a=recvonly\r\n", with: "").replacing("t=0 0\r\n", with: "t=0 0\r\na=\(direction)\r\n")
        }
        let first = scene.session.makeOffer(streams, using: &scene.generator)
        let added = try scene.session.apply(answer: bare(try scene.client.answer(first), "recvonly")).added
        #expect(added.count == 4)
        let second = scene.session.makeOffer(streams, using: &scene.generator)
        let removed = try scene.session.apply(answer: bare(try scene.client.answer(second), "inactive")).removed
        #expect(removed.count == 4)
    }

    @Test func `a fault is named by its line in the whole answer`() throws {
        var scene = OfferedScene(OfferedScene.both)
        let streams = Self.room(3)
        try scene.exchange(streams)
        let offer = scene.session.makeOffer(streams, using: &scene.generator)
        let broken = try scene.client.answer(offer) + "nonsense\r\n"
        let number = broken.split(separator: "\r\n").count
        #expect(throws: NegotiationError.malformed("Line \(number) of the SDP is not of the form letter=value.")) {
            _ = try scene.session.apply(answer: broken)
        }
    }

    @Test func `a refused answer is not remembered`() throws {
        var scene = OfferedScene(OfferedScene.both)
        try scene.exchange(Self.room(2))
        let before = scene.session
        let offer = scene.session.makeOffer(Self.room(3), using: &scene.generator)
        let answer = try scene.client.answer(offer)
        #expect(throws: NegotiationError.self) {
            _ = try scene.session.apply(answer: answer.replacing("a=ice-ufrag:echo", with: "a=ice-ufrag:other"))
        }
        let outcome = try scene.session.apply(answer: answer)
        #expect(outcome.added.count == 2)
        #expect(scene.session.work.described == before.work.described + 2)
    }
}
