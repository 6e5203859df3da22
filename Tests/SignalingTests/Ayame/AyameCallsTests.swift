import ChannelTypes
import Room
import TestSupport
import Testing

@testable import Ayame

/// Channels of the relay whose members are at different nodes.
@Suite(.timeLimit(.minutes(10)))
struct AyameCallsTests {
    private static let bye = AyameServerMessage.bye
    private let room = ChannelName("call")!
    private let nodes = RelayNodes(open: ["a", "b", "c"])
    private let a: AyameCalls
    private let b: AyameCalls
    private let c: AyameCalls
    private let kept = KeptCallReports()

    init() {
        (a, b, c) = (nodes.add("a", onReport: kept), nodes.add("b"), nodes.add("c"))
    }

    /// Nobody is in a room, and no node remembers anybody.
    private func expectNothingLeft(_ location: SourceLocation = #_sourceLocation) async throws {
        try await nodes.settle()
        for calls in [a, b, c] {
            #expect(await calls.rooms.count == 0, sourceLocation: location)
            let state = await calls.state
            let left = state.registrations.count + state.elsewhere.count + state.guests.count
            #expect(left == 0, sourceLocation: location)
        }
        #expect(nodes.wanted == 0, sourceLocation: location)
    }

    /// Two clients, at the second and the third node, in a room of the first one.
    private func call(
        _ oneKey: String? = nil,
        standalone: Bool = false
    ) async throws -> (one: RelayClient, two: RelayClient) {
        let (one, two) = (RelayClient("alice"), RelayClient("bob"))
        #expect(try await one.join(b, key: oneKey, standalone: standalone) == .joined(.direct))
        #expect(try await two.join(c) == .joined(.direct))
        #expect(one.seen == ["accept false"] && two.seen == ["accept true"])
        for client in [one, two] { client.forget() }
        return (one, two)
    }

    // MARK: One room

    @Test func `clients of different nodes meet, and their texts arrive in order`() async throws {
        let (one, two) = try await call()
        #expect(await [a.rooms.count, b.rooms.count, c.rooms.count] == [1, 0, 0])
        let texts = (0..<50).map { #"{"type":"candidate","x":"/ü\n\#($0)"}"# }
        for text in texts {
            #expect(await b.relay("1\(text)", in: room, from: one.id))
            #expect(await c.relay("2\(text)", in: room, from: two.id))
        }
        #expect(try await one.awaits(50) == texts.map { "2\($0)" })
        #expect(try await two.awaits(50) == texts.map { "1\($0)" })
        let late = RelayClient("carol")
        for calls in [a, b, c] { #expect(try await late.join(calls) == .full) }
        #expect(late.seen.isEmpty)
        await b.leave(room, one.id)
        #expect(try await two.awaits(52).suffix(2) == [Self.bye, "close BYE"])
        #expect(kept.words.suffix(3) == ["left alice LEFT", "left bob BYE", "closed"])
        try await expectNothingLeft()
        #expect(one.seen.count == 50)
    }

    @Test func `a client at the room's own node meets one of another node`() async throws {
        let (one, two) = (RelayClient("alice"), RelayClient("bob"))
        #expect(try await one.join(a) == .joined(.direct))
        #expect(try await two.join(b, media: .server) == .joined(.direct), "the first member decided")
        #expect(two.seen == ["accept true"])
        #expect(await a.relay("x", in: room, from: one.id))
        #expect(try await two.awaits(2).last == "x")
        #expect(await [a.directRegistrationCount, b.directRegistrationCount] == [2, 1])
        await a.leave(room, one.id)
        #expect(try await two.awaits(4).suffix(2) == [Self.bye, "close BYE"])
        try await expectNothingLeft()
    }

    @Test func `the same client at another node takes its place`() async throws {
        let (one, two) = try await call("k")
        let again = RelayClient("alice")
        #expect(try await again.join(a, key: "k") == .joined(.direct))
        #expect(try await one.awaits(1) == ["close REPLACED"])
        #expect(try await two.awaits(2) == [Self.bye, "close BYE"])
        #expect(again.seen == ["accept false"])
        await a.leave(room, again.id)
        try await expectNothingLeft()
    }

    @Test func `a client without a cluster asks nobody`() async throws {
        let alone = AyameCalls()
        let (one, two) = (RelayClient("alice"), RelayClient("bob"))
        #expect(try await one.join(alone) == .joined(.direct))
        #expect(try await two.join(alone) == .joined(.direct))
        #expect(await alone.relay("x", in: room, from: one.id) && two.seen == ["accept true", "x"])
        #expect(await alone.listing(of: room)?.registrations.count == 2)
        #expect(await alone.end(by: .kicked("bob", from: room)) == [two.id])
        #expect(await alone.listing(of: room) == nil)
    }

    // MARK: The room's node

    @Test func `a room that exists is found, wherever new ones begin`() async throws {
        nodes.setCandidates(RoomCandidates(open: ["b"]))
        let (one, two) = (RelayClient("alice"), RelayClient("bob"))
        #expect(try await one.join(b) == .joined(.direct))
        for candidates in [RoomCandidates(open: ["a", "c", "b"]), RoomCandidates(open: ["a", "c"], closed: ["b"])] {
            nodes.setCandidates(candidates)
            #expect(try await two.join(c) == .joined(.direct))
            #expect(two.seen.last == "accept true")
            #expect(await a.listing(of: room)?.registrations.map(\.user) == ["alice", "bob"])
            await c.leave(room, two.id)
            _ = try await one.awaits(3)
            one.forget()
            nodes.setCandidates(RoomCandidates(open: ["b"]))
            #expect(try await one.join(b) == .joined(.direct))
        }
        await b.leave(room, one.id)
        try await expectNothingLeft()
    }

    @Test func `a second client of a node follows the first, whoever is a candidate`() async throws {
        let (one, two) = (RelayClient("alice"), RelayClient("bob"))
        #expect(try await one.join(b) == .joined(.direct))
        nodes.setCandidates(RoomCandidates(open: ["c"]))
        let asked = nodes.asked
        #expect(try await two.join(b) == .joined(.direct))
        #expect(two.seen == ["accept true"] && nodes.asked == asked)
    }

    @Test func `a node of an older version gets no rooms`() async throws {
        nodes.makeOlder("a")
        let (one, two) = (RelayClient("alice"), RelayClient("bob"))
        #expect(try await one.join(c) == .joined(.direct))
        #expect(await b.rooms.count == 1)
        #expect(try await two.join(b) == .joined(.direct))
        #expect(two.seen == ["accept true"])
    }

    @Test func `a node that reaches no other keeps the room itself`() async throws {
        await nodes.lose("c")
        #expect(try await RelayClient("alice").join(c) == .joined(.direct))
        #expect(await c.rooms.count == 1 && nodes.wanted == 0)
        nodes.setCandidates(RoomCandidates(open: []))
        #expect(try await RelayClient("alice").join(c, "other") == .joined(.direct))
        #expect(await c.rooms.count == 2)
    }

    // MARK: Refusals

    @Test func `the room's node refuses as it refuses its own clients`() async throws {
        let one = RelayClient("alice")
        #expect(try await one.join(b, app: "first") == .joined(.direct))
        let other = RelayClient("bob")
        #expect(try await other.join(c, app: "second") == .rejected(AyameRefusal(.appMismatch)))
        #expect(try await other.join(c, media: .server, isMediaRequired: true) == .otherMedia)
        let ban = RoomError.banned(untilUnixSeconds: nil)
        #expect(try await other.join(c, refusal: { ban }) == .refused(ban))
        nodes.refuse(at: "a") { user, _ in user == "bob" ? ban : nil }
        #expect(try await other.join(c) == .rejected(AyameRefusal(ban)))
        #expect(other.seen.isEmpty)
        await b.leave(room, one.id)
        try await expectNothingLeft()
    }

    @Test func `a node that does not answer in time is given up`() async throws {
        let d = nodes.add("d", acceptTimeout: .milliseconds(1))
        nodes.hold("a")
        let one = RelayClient("alice")
        #expect(try await one.join(d) == .rejected(AyameRefusal(AyameSession.internalError)))
        nodes.resume("a")
        try await expectNothingLeft()
        #expect(one.seen.isEmpty, "an answer that is late is of no use")
    }

    // MARK: Clients that leave early

    @Test(arguments: [true, false])
    func `a client that leaves while the room answers is not in it`(isCancelled: Bool) async throws {
        nodes.hold("a")
        let one = RelayClient("alice")
        let joining = Task { try await one.join(b) }
        try await eventually("the registration waits at a") { nodes.waiting(at: "a") > 0 }
        if isCancelled { joining.cancel() } else { await b.leave(room, one.id) }
        #expect(try await joining.value == .refused(.endedDuringSetup))
        nodes.resume("a")
        try await expectNothingLeft()
        #expect(one.seen.isEmpty && kept.words.last == "closed")
    }

    @Test func `a client that has left before its room is found is not in it`() async throws {
        let one = RelayClient("alice")
        let joining = Task {
            // Ends when the task is cancelled.
            for await _ in AsyncStream<Void>.makeStream().stream {}
            return try await one.join(b)
        }
        joining.cancel()
        #expect(try await joining.value == .refused(.endedDuringSetup))
        try await expectNothingLeft()
    }

    // MARK: Lost nodes

    @Test(arguments: [false, true])
    func `clients whose room's node is lost are told, and meet again`(standalone: Bool) async throws {
        let (one, two) = try await call(standalone: standalone)
        await nodes.lose("a")
        #expect(one.seen == (standalone ? [] : [Self.bye]) + ["close NODE-LOST"])
        #expect(two.seen == [Self.bye, "close NODE-LOST"])
        try await expectNothingLeft()
        for (client, calls) in [(one, c), (two, b)] {
            client.forget()
            #expect(try await client.join(calls) == .joined(.direct))
        }
        #expect(await b.rooms.count == 1 && two.seen == ["accept true"])
    }

    @Test func `the clients of a node that is lost leave their rooms`() async throws {
        let (one, two) = try await call()
        await nodes.lose("b", "a")
        #expect(try await two.awaits(2) == [Self.bye, "close BYE"])
        #expect(one.seen == [Self.bye, "close NODE-LOST"])
        #expect(kept.words.suffix(3) == ["left alice NODE-LOST", "left bob BYE", "closed"])
        try await expectNothingLeft()
    }

    @Test func `a registration is repeated when the link is lost before the answer`() async throws {
        nodes.hold("a")
        let one = RelayClient("alice")
        let joining = Task { try await one.join(c) }
        try await eventually("the registration waits at a") { nodes.waiting(at: "a") > 0 }
        await nodes.lose("a")
        #expect(try await joining.value == .joined(.direct))
        #expect(await b.rooms.count == 1 && one.seen == ["accept false"])
    }

    // MARK: Operators

    @Test(arguments: ["a", "b", "c", "d"] as [NodeID])
    func `a kick ends a registration, whichever node is asked`(node: NodeID) async throws {
        let d = nodes.add("d")
        let (one, two) = try await call()
        let calls = ["a": a, "b": b, "c": c, "d": d][node] ?? d
        let ended = await calls.end(by: .kicked("alice", from: room))
        #expect(try await one.awaits(2) == [Self.bye, "close KICKED"])
        #expect(try await two.awaits(2) == [Self.bye, "close BYE"])
        #expect(ended == (node == "a" || node == "b" ? [one.id] : []), "what is known at once")
        try await expectNothingLeft()
    }

    @Test func `the end of a channel ends its room at another node`() async throws {
        let d = nodes.add("d")
        let (one, two) = try await call()
        #expect(await d.end(by: .terminated(room)).isEmpty)
        for client in [one, two] { #expect(try await client.awaits(2) == [Self.bye, "close CHANNEL-TERMINATED"]) }
        try await expectNothingLeft()
    }

    @Test(arguments: [false, true])
    func `the end of a channel at the node of one client has the same reason for the other one`(
        isOtherAtHome: Bool
    ) async throws {
        let (one, two) = (RelayClient("alice"), RelayClient("bob"))
        #expect(try await two.join(isOtherAtHome ? a : c) == .joined(.direct))
        #expect(try await one.join(b) == .joined(.direct))
        for client in [one, two] { client.forget() }
        #expect(await b.end(by: .terminated(room)) == [one.id])
        for client in [one, two] { #expect(try await client.awaits(2) == [Self.bye, "close CHANNEL-TERMINATED"]) }
        let last = ["left bob CHANNEL-TERMINATED", "left alice CHANNEL-TERMINATED", "closed"]
        try await expectNothingLeft()
        #expect(kept.words.suffix(3) == last)
    }

    @Test func `a block ends this node's registrations at other nodes`() async throws {
        let (one, two) = try await call()
        let others = Block(.user("nobody"))
        #expect(await b.end(by: .blocked(others)).isEmpty && one.seen.isEmpty)
        #expect(await b.end(by: .blocked(Block(.user("alice")))) == [one.id])
        #expect(one.seen == [Self.bye, "close BANNED"])
        #expect(try await two.awaits(2) == [Self.bye, "close BYE"])
        try await expectNothingLeft()
    }

    @Test func `a kick while the room answers refuses the client`() async throws {
        nodes.hold("a")
        let one = RelayClient("alice")
        let joining = Task { try await one.join(b) }
        try await eventually("the registration waits at a") { nodes.waiting(at: "a") > 0 }
        #expect(await b.end(by: .kicked("alice", from: room)) == [one.id])
        #expect(try await joining.value == .rejected(AyameRefusal("KICKED")))
        nodes.resume("a")
        try await expectNothingLeft()
    }

    @Test(arguments: [true, false])
    func `the end of a drain ends rooms with their guests, and this node's clients elsewhere`(isHome: Bool)
        async throws
    {
        let (one, two) = try await call()
        #expect(await (isHome ? a : b).directRegistrationCount == (isHome ? 2 : 1))
        await (isHome ? a : b).endAll()
        #expect(try await one.awaits(2) == [Self.bye, "close SERVER-SHUTDOWN"])
        #expect(try await two.awaits(2) == [Self.bye, isHome ? "close SERVER-SHUTDOWN" : "close BYE"])
        try await expectNothingLeft()
    }

    // MARK: What other nodes may say

    private func receive(_ message: AyameNodeMessage, from node: NodeID, at calls: AyameCalls) throws {
        #expect(calls.received(try #require(message.encoded), from: node, refusal: { _, _ in nil }) == .taken)
    }

    @Test func `what a node's link takes on its thread arrives in order, with the loss of the link at the end`()
        async throws
    {
        let alice = RelayClient("alice")
        #expect(try await alice.join(a) == .joined(.direct))
        let member = AyameRooms.Member(
            connectionID: RelayClient("bob").id,
            identity: nil,
            isStandalone: false,
            user: "bob",
            app: nil,
            registeredAt: 7,
            origin: .at("b")
        )
        try receive(
            .register(AyameGuest(member, in: room, media: .direct, isMediaRequired: false)),
            from: "b",
            at: a
        )
        let texts = (0..<2_000).map { "\($0)" }
        for text in texts {
            try receive(.relay(text, from: member.connectionID), from: "b", at: a)
            // Of another node, which disturbs nobody.
            try receive(.relay(text, from: member.connectionID), from: "c", at: a)
        }
        a.lost("b")
        try receive(.relay("late", from: member.connectionID), from: "b", at: a)
        #expect(try await alice.awaits(texts.count + 3) == ["accept false"] + texts + [Self.bye, "close BYE"])
        #expect(await a.rooms.count == 0)
    }

    @Test func `a node of which too much waits is lost, whatever it sent before`() throws {
        let id = RelayClient("bob").id
        let text = AyameNodeMessage.relay("x", from: id)
        var inbox = AyameNodeInbox()
        for _ in 0..<AyameNodeInbox.eventsMax { try #require(inbox.add(text, bytes: 1) { _, _ in nil }) }
        // A link that is lost again and again takes no more room.
        for _ in 0..<10 { inbox.addLoss() }
        #expect(inbox.events.count == AyameNodeInbox.eventsMax + 1)
        for bytes in [1, AyameNodeInbox.bytesMax] {
            #expect(!inbox.add(text, bytes: bytes) { _, _ in nil })
            let isLost = if case .lost = inbox.events.first { true } else { false }
            #expect(isLost && inbox.events.count == 1)
            #expect(inbox.add(text, bytes: 1) { _, _ in nil }, "there is room again")
        }
    }

    @Test func `a node can say nothing about the clients of another one`() async throws {
        let (one, two) = try await call()
        let toHome: [AyameNodeMessage] = [.relay("x", from: one.id), .leave(one.id, reason: "LEFT")]
        for message in toHome { try receive(message, from: "c", at: a) }
        let toClient: [AyameNodeMessage] = [
            .accepted(one.id, hasPartner: true, media: .server), .refused(one.id, reason: "full"),
            .text("x", to: one.id), .closed(one.id, code: 1000, reason: "BYE", message: "s"),
        ]
        for message in toClient { try receive(message, from: "c", at: b) }
        // A second answer of the right node changes nothing either.
        for message in toClient.prefix(2) { try receive(message, from: "a", at: b) }
        for calls in [a, b] { await calls.takeMessages() }
        try await nodes.settle()
        #expect(await a.rooms.count == 1 && one.seen.isEmpty && two.seen.isEmpty)
        #expect(await b.relay("y", in: room, from: one.id))
        #expect(try await two.awaits(1) == ["y"])
    }

    @Test func `a guest that registers twice is in one room`() async throws {
        let (one, _) = try await call()
        let other = try #require(ChannelName("other"))
        let member = AyameRooms.Member(
            connectionID: one.id,
            identity: nil,
            isStandalone: false,
            user: "alice",
            app: nil,
            registeredAt: 7,
            origin: .at("b")
        )
        let guest = AyameGuest(member, in: other, media: .direct, isMediaRequired: false)
        try receive(.register(guest), from: "b", at: a)
        await a.takeMessages()
        #expect(await a.rooms.count == 1)
    }
}
