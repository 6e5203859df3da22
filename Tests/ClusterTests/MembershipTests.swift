import Base
import ChannelTypes
import MediaTypes
import TestSupport
import Testing

@testable import Cluster

@Suite struct MembershipTests {
    private static let start = Instant(nanoseconds: 0)

    private static func answer(
        _ changes: [HeartbeatAnswer.Change] = [],
        revision: Int64 = 1,
        generation: Int = 1,
        timeMS: Int64 = 100_000,
        graceMS: Int64 = 0,
        absent: Set<NodeID> = []
    ) throws -> HeartbeatAnswer {
        var answer = HeartbeatAnswer(
            generation: try Given.generation(generation),
            revision: revision,
            cursor: revision,
            timeMS: timeMS,
            graceMS: graceMS
        )
        answer.isKnown = true
        answer.changes = changes
        answer.absent = absent
        return answer
    }

    private static func change(
        _ name: String,
        _ number: UInt32,
        _ region: String,
        _ signature: RecordSignature = .valid
    ) throws -> HeartbeatAnswer.Change {
        .init(instance: try Given.instance(name, number), record: Given.record(region), signature: signature)
    }

    /// A node that the store has given the incarnation 7.
    private static func enlisted(saved: SavedView? = nil) throws -> Membership {
        var membership = try Membership(
            node: Given.node("a"),
            record: Given.record("eu"),
            saved: saved,
            seed: 1,
            at: start
        )
        guard case .enlist = membership.nextRequest(at: start) else {
            Issue.record("not enlisting")
            return membership
        }
        let assigned = try #require(NodeIncarnation(rawValue: 7))
        #expect(membership.receivedEnlistment(.success(assigned), at: start) == [.enlisted])
        return membership
    }

    /// Sends the next heartbeat and hands back what the store answers to it.
    @discardableResult
    private static func beat(
        _ membership: inout Membership,
        _ result: Result<HeartbeatAnswer, StoreError>,
        at now: Instant
    ) throws -> (beat: Heartbeat, events: [Membership.Event]) {
        guard case .beat(let beat) = membership.nextRequest(at: now) else {
            throw StoreError.malformed
        }
        return (beat, membership.receivedBeat(result, at: now))
    }

    @Test func `without a store the incarnation is provisional and the saved view serves`() throws {
        let saved = SavedView(instance: try Given.instance("a", 3), members: [try Self.change("b", 4, "us")])
        var membership = try Membership(
            node: Given.node("a"),
            record: Given.record("eu"),
            saved: saved,
            seed: 1,
            at: Self.start
        )
        #expect(!membership.instance.incarnation.isAssigned)
        for second in 0..<5 {
            let now = Self.start + .seconds(second)
            #expect(membership.isSettled(at: now) == (second >= 3))
            guard case .enlist = membership.nextRequest(at: now) else { return #expect(Bool(false)) }
            #expect(membership.nextRequest(at: now) == nil && membership.nextDeadline == nil)
            let events = membership.receivedEnlistment(.failure(.timedOut), at: now)
            #expect(events == (second == 2 ? [.storeLost(.timedOut)] : []))
        }
        #expect(try membership.view[Given.node("b")]?.record.region == "us")
        membership.attachLater([try Given.room("r")], at: Self.start)
        #expect(membership.nextRooms(at: Self.start + .seconds(60)).isEmpty && membership.roomsWaiting == 1)
        let other = try Membership(
            node: Given.node("b"),
            record: Given.record("eu"),
            saved: saved,
            seed: 1,
            at: Self.start
        )
        #expect(other.view.members.isEmpty, "the view of another node")
    }

    /// The node is offered 8, 9 and 10, and takes the first that nobody had whom it knows of.
    private static func expectTenIsTaken(after saved: SavedView) throws {
        var membership = try Membership(
            node: Given.node("a"),
            record: Given.record("eu"),
            saved: saved,
            seed: 1,
            at: Self.start
        )
        for (second, number) in [8, 9, 10].enumerated() {
            let now = Self.start + .seconds(second)
            #expect(membership.savedView.instance == saved.instance)
            guard case .enlist = membership.nextRequest(at: now) else { return #expect(Bool(false)) }
            let assigned = try #require(NodeIncarnation(rawValue: UInt32(number)))
            #expect(membership.receivedEnlistment(.success(assigned), at: now) == (number == 10 ? [.enlisted] : []))
        }
        #expect(membership.instance.incarnation.rawValue == 10)
        #expect(membership.savedView.instance == membership.instance)
    }

    @Test func `an incarnation that an earlier run had is not taken`() throws {
        try Self.expectTenIsTaken(after: SavedView(instance: Given.instance("a", 9), members: []))
    }

    /// Two nodes with one incarnation would refuse each other's links for ever.
    @Test func `an incarnation that another node had is not taken`() throws {
        let other = try Self.change("b", 9, "us")
        try Self.expectTenIsTaken(after: SavedView(instance: Given.instance("a", 4), members: [other]))
    }

    @Test func `a room is attached a second time after heartbeats that followed the first`() throws {
        var membership = try Self.enlisted()
        let (stays, ends) = (try Given.room("r"), try Given.room("s"))
        for room in [stays, ends] { membership.attached(room, at: Self.start) }
        // Attaching it sooner, for another reason, does not count.
        membership.attached(stays, at: Self.start + .seconds(1))
        membership.roomEnded(ends)
        #expect(membership.nextRooms(at: Self.start + .milliseconds(4_999)).isEmpty)
        let second = Self.start + .seconds(5)
        #expect(membership.nextRooms(at: second) == [stays])
        membership.attached(stays, at: second)
        #expect(membership.nextRooms(at: second + .seconds(60)).isEmpty && membership.roomsWaiting == 0)
    }

    @Test func `a later run of the node fences this one, also when the store only tells of its record`() throws {
        var membership = try Self.enlisted()
        let same = try Self.beat(&membership, .success(Self.answer([Self.change("a", 7, "eu")])), at: Self.start)
        #expect(!same.events.contains(.fenced) && membership.takesNewRooms)
        let now = Self.start + .seconds(1)
        let later = try Self.beat(&membership, .success(Self.answer([Self.change("a", 8, "eu")])), at: now)
        #expect(later.events.contains(.fenced) && membership.isFenced && !membership.takesNewRooms)
    }

    @Test func `a store that tells of too many nodes fills no memory`() throws {
        var membership = try Self.enlisted()
        let changes = try (0..<2_100).map { try Self.change("n\($0)", 5, "eu") }
        try Self.beat(&membership, .success(Self.answer(changes)), at: Self.start)
        #expect(membership.view.members.count == 2_048)
        #expect(try membership.view[Given.node("n0")] != nil && membership.view[Given.node("n2099")] == nil)
    }

    @Test func `a lower incarnation is ignored`() throws {
        var membership = try Self.enlisted()
        try Self.beat(&membership, .success(Self.answer([Self.change("b", 5, "us")])), at: Self.start)
        let now = Self.start + .seconds(1)
        let (_, events) = try Self.beat(&membership, .success(Self.answer([Self.change("b", 4, "old")])), at: now)
        #expect(events.isEmpty)
        #expect(try membership.view[Given.node("b")]?.record.region == "us")
        let later = Self.start + .seconds(2)
        let higher = try Self.beat(&membership, .success(Self.answer([Self.change("b", 6, "eu")])), at: later)
        #expect(higher.events == [.viewChanged])
    }

    /// What the store answers to a run that a later one of the node fences.
    private static func fencing(absent: Set<NodeID> = [], graceMS: Int64 = 0) throws -> HeartbeatAnswer {
        var answer = try Self.answer(graceMS: graceMS, absent: absent)
        answer.isFenced = true
        answer.isKnown = false
        return answer
    }

    /// Takes the next request, which has to ask for an incarnation, and hands back what the store answers to it.
    private static func enlist(
        _ membership: inout Membership,
        as result: Result<UInt32, StoreError>,
        at now: Instant
    ) throws -> [Membership.Event] {
        guard case .enlist = membership.nextRequest(at: now) else { throw StoreError.malformed }
        switch result {
        case .success(let number):
            let incarnation = try #require(NodeIncarnation(rawValue: number))
            return membership.receivedEnlistment(.success(incarnation), at: now)
        case .failure(let error): return membership.receivedEnlistment(.failure(error), at: now)
        }
    }

    @Test func `a higher incarnation of the node fences it for as long as that run is there`() throws {
        var membership = try Self.enlisted()
        let own = try Given.node("a")
        #expect(membership.takesNewRooms)
        let first = try Self.beat(&membership, .success(Self.fencing()), at: Self.start)
        #expect(first.events == [.fenced] && !membership.takesNewRooms)
        // Nobody is absent in the grace of the store.
        for (second, answer) in [
            try Self.fencing(), try Self.fencing(absent: [try Given.node("b")]),
            try Self.fencing(absent: [own], graceMS: 100_001),
        ].enumerated() {
            let next = try Self.beat(&membership, .success(answer), at: Self.start + .seconds(second + 1))
            #expect(next.beat.record == nil && !next.events.contains(.fenced) && membership.isFenced)
        }
        let gone = try Self.fencing(absent: [own])
        let (_, events) = try Self.beat(&membership, .success(gone), at: Self.start + .seconds(4))
        #expect(events.isEmpty && membership.isFenced, "until it has a later incarnation")
        let now = Self.start + .seconds(5)
        #expect(try Self.enlist(&membership, as: .success(9), at: now) == [.returned, .enlisted])
        #expect(membership.instance.incarnation.rawValue == 9 && membership.takesNewRooms)
        let again = try Self.beat(&membership, .success(Self.answer()), at: now)
        #expect(again.beat.instance == membership.instance && again.beat.record == membership.record)
    }

    @Test func `a node whose successor is gone takes a later incarnation than that one had`() throws {
        var membership = try Self.enlisted()
        let (own, later) = (try Given.node("a"), try Self.change("a", 12, "eu"))
        try Self.beat(&membership, .success(Self.answer([later])), at: Self.start)
        var answer = try Self.fencing(absent: [own])
        try Self.beat(&membership, .success(answer), at: Self.start + .seconds(1))
        #expect(try Self.enlist(&membership, as: .success(11), at: Self.start + .seconds(2)).isEmpty)
        #expect(membership.isFenced)
        // While the store is away, the other run may return.
        let failed = try Self.enlist(&membership, as: .failure(.timedOut), at: Self.start + .seconds(3))
        #expect(failed.isEmpty)
        answer = try Self.fencing()
        try Self.beat(&membership, .success(answer), at: Self.start + .seconds(4))
        #expect(membership.isFenced)
        try Self.beat(&membership, .success(Self.fencing(absent: [own])), at: Self.start + .seconds(5))
        let events = try Self.enlist(&membership, as: .success(13), at: Self.start + .seconds(6))
        #expect(events == [.returned, .enlisted] && !membership.isFenced)
    }

    @Test func `a run that drains leaves the name to the other one`() throws {
        var membership = try Self.enlisted()
        let gone = try Self.fencing(absent: [try Given.node("a")])
        try membership.setRecord(Given.record("eu", .draining))
        for second in 0..<3 {
            let next = try Self.beat(&membership, .success(gone), at: Self.start + .seconds(second))
            #expect(next.beat.record == nil || second == 0)
        }
        #expect(membership.isFenced)
        try membership.setRecord(Given.record("eu"))
        try Self.beat(&membership, .success(gone), at: Self.start + .seconds(3))
        let events = try Self.enlist(&membership, as: .success(9), at: Self.start + .seconds(4))
        #expect(events == [.returned, .enlisted])
    }

    @Test func `a store that lost the later run ends the fence after its grace only`() throws {
        var membership = try Self.enlisted()
        try Self.beat(&membership, .success(Self.fencing()), at: Self.start)
        for (second, timeMS) in [(1, 100_000), (2, 111_999)] as [(Int, Int64)] {
            var answer = try Self.answer(generation: 2, timeMS: timeMS, graceMS: 112_000)
            answer.isKnown = false
            let next = try Self.beat(&membership, .success(answer), at: Self.start + .seconds(second))
            #expect(next.beat.record == nil && membership.isFenced, "the later run tells of itself again")
        }
        let answer = try Self.answer(generation: 2, timeMS: 112_000, graceMS: 112_000)
        try Self.beat(&membership, .success(answer), at: Self.start + .seconds(3))
        let events = try Self.enlist(&membership, as: .success(16), at: Self.start + .seconds(4))
        #expect(events == [.returned, .enlisted])
    }

    @Test func `a record is told until the store has it, and measurements seldom`() throws {
        var membership = try Self.enlisted()
        var now = Self.start
        func next(_ result: Result<HeartbeatAnswer, StoreError>) throws -> NodeRecord? {
            defer { now += .seconds(1) }
            return try Self.beat(&membership, result, at: now).beat.record
        }
        #expect(try next(.failure(.timedOut)) == membership.record)
        #expect(try next(.success(Self.answer())) == membership.record)
        #expect(try next(.success(Self.answer())) == nil)
        var record = membership.record
        record.members = 8
        try membership.setRecord(record)
        let told = try (0..<6).map { _ in try next(.success(Self.answer())) }
        #expect(told.compactMap(\.self) == [record])
        record.state = .draining
        try membership.setRecord(record)
        #expect(try next(.success(Self.answer())) == record)
        var unknown = try Self.answer()
        unknown.isKnown = false
        #expect(try next(.success(unknown)) == nil)
        #expect(try next(.success(Self.answer())) == record)
        record.publicURL = String(repeating: "x", count: 400)
        #expect(throws: RecordTooLong.self) { try membership.setRecord(record) }
    }

    @Test func `a record that somebody else wrote over is told again`() throws {
        var membership = try Self.enlisted()
        let own = try Given.node("a")
        try Self.beat(&membership, .success(Self.answer()), at: Self.start)
        let forged = try Self.answer([Self.change("a", 7, "elsewhere", .missing)])
        let before = try Self.beat(&membership, .success(forged), at: Self.start + .seconds(1))
        #expect(before.beat.record == nil && membership.view.ignored.keys.contains(own), "operators see it")
        let restored = try Self.answer([Self.change("a", 7, "eu")])
        let after = try Self.beat(&membership, .success(restored), at: Self.start + .seconds(2))
        #expect(after.beat.record == membership.record)
        #expect(membership.view.ignored.isEmpty && membership.view.members.isEmpty)
        let quiet = try Self.beat(&membership, .success(Self.answer()), at: Self.start + .seconds(3))
        #expect(quiet.beat.record == nil)
    }

    @Test func `another generation has rooms attached again, spread over some seconds`() throws {
        var membership = try Self.enlisted()
        try Self.beat(&membership, .success(Self.answer()), at: Self.start)
        var now = Self.start + .seconds(1)
        #expect(
            try Self.beat(&membership, .success(Self.answer(generation: 2)), at: now).events == [
                .storeChanged(.emptied)
            ]
        )
        let rooms = try (0..<1_000).map { try Given.room("room-\($0)") }
        membership.attachLater(rooms, at: now)
        membership.attachLater(rooms, at: now)
        membership.roomEnded(rooms[0])
        let begin = now
        var attached: [ChannelName] = []
        while membership.roomsWaiting > 0 {
            let batch = membership.nextRooms(at: now)
            #expect(batch.count <= 15)
            attached += batch
            now += .milliseconds(100)
        }
        #expect(Set(attached) == Set(rooms.dropFirst()) && attached.count == 999)
        #expect(6.0...8.0 ~= (now - begin).seconds)
    }

    @Test func `a room that fails at once waits for the next batch`() throws {
        var queue = AttachQueue()
        var generator = SplitMix64(seed: 1)
        var now = Self.start
        var tries = 0
        queue.add([try Given.room("r")], using: &generator, at: now)
        for _ in 0..<100 {
            for _ in 0..<100 {
                let batch = queue.next(at: now)
                tries += batch.count
                queue.add(batch, using: &generator, at: now)
            }
            now += .milliseconds(10)
        }
        #expect(10...12 ~= tries)
    }

    @Test func `a queue of rooms that begin and end stays small`() {
        var queue = AttachQueue()
        var generator = SplitMix64(seed: 1)
        for number in 0..<10_000 {
            guard let room = ChannelName("room-\(number % 10)") else { continue }
            queue.add([room], using: &generator, at: Self.start)
            queue.remove(room)
        }
        #expect(queue.count == 0 && queue.nextDeadline == nil && queue.rooms.count < 100)
    }

    @Test func `a node that the store forgot leaves the view`() throws {
        var membership = try Self.enlisted()
        let both = [try Self.change("b", 5, "us"), try Self.change("c", 6, "us")]
        try Self.beat(&membership, .success(Self.answer(both)), at: Self.start)
        let gone = try Given.node("b")
        try Self.beat(&membership, .success(Self.answer(absent: [gone])), at: Self.start + .seconds(1))
        #expect(membership.view[gone]?.isAbsent == true)
        // It is on the list no more, and was not told of: absent until the list of all nodes is compared.
        try Self.beat(&membership, .success(Self.answer()), at: Self.start + .seconds(2))
        #expect(membership.view[gone]?.isAbsent == true)
        let (beat, _) = try Self.beat(&membership, .success(Self.answer([both[1]])), at: Self.start + .seconds(3))
        #expect(beat.cursor == 0)
        #expect(membership.view[gone] == nil && membership.view.members.count == 1)
    }

    @Test func `the view is what it was encoded from, and nothing else is taken for one`() throws {
        let members = try (0..<100).map { try Self.change("n\($0)", 5, "us") }
        let saved = SavedView(instance: try Given.instance("a", 3), members: members)
        #expect(SavedView(encoded: saved.encoded) == saved)
        let empty = SavedView(instance: saved.instance, members: [])
        #expect(SavedView(encoded: #"{"node":"a:3","members":[{"node":"x"},7]}"#) == nil)
        #expect(SavedView(encoded: #"{"node":"a:3","members":[{"node":"x"},{"node":"b:1","record":"{}"}]}"#) == empty)
        let others = [
            "", "x", "[]", "{}", #"{"node":"a:3"}"#, #"{"node":7,"members":[]}"#, #"{"node":"a","members":[]}"#,
        ]
        for text in others {
            #expect(SavedView(encoded: text) == nil)
        }
        #expect(SavedView(encoded: String(repeating: " ", count: SavedView.bytesMax + 1)) == nil)
    }
}
