import Base
import ChannelTypes
import ClusterTestSupport
import Logging
import MediaTypes
import Synchronization
import TestSupport
import Testing

@testable import Cluster

/// A store that answers at once, or not at all.
actor InstantStore: ClusterStore {
    private var store = MemoryStore(seed: 1)
    private let clock: RoomClock

    init(_ clock: RoomClock) { self.clock = clock }

    private var now: Instant { clock.now().instant }
    var content: MemoryContent { store.content }
    func change(_ change: @Sendable (inout MemoryStore) -> Void) { change(&store) }

    func enlist(_ request: RegisterNode) async throws(StoreError) -> NodeIncarnation {
        try answer(store.enlist(request, at: now))
    }
    func beat(_ request: Heartbeat) async throws(StoreError) -> HeartbeatAnswer {
        try answer(store.beat(request, at: now))
    }
    func attach(_ request: Attach) async throws(StoreError) -> RoomEntry { try answer(store.attach(request, at: now)) }
    func detach(_ request: Detach) async throws(StoreError) -> Bool { try answer(store.detach(request, at: now)) }
    func sweep(_ request: Sweep) async throws(StoreError) -> Int { try answer(store.sweep(request, at: now)) }

    private func answer<Answer>(_ reply: MemoryStore.Reply<Answer>) throws(StoreError) -> Answer {
        guard let reply else { throw .timedOut }
        return try reply.result.get()
    }
}

/// The membership of node `a` in virtual time.
private final class MembershipBench: Sendable {
    private final class Time: Sendable { let now = Mutex(Instant(nanoseconds: 1_000_000_000)) }

    let store: InstantStore
    let membership: ClusterMembership
    let incidents = StoreIncidents()
    private let time = Time()

    /// The node has its incarnation and the whole view.
    init() async throws {
        let time = time
        let clock = RoomClock { RoomTime(instant: time.now.withLock { $0 }, unixNanoseconds: 0) }
        store = InstantStore(clock)
        membership = try ClusterMembership(
            ClusterConfiguration(
                cluster: try #require(ClusterName(rawValue: "c")),
                node: Given.node("a"),
                linkHost: "127.0.0.1",
                linkPort: 1
            ),
            store: store,
            clock: clock,
            incidents: incidents,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        ) { _ in }
        try await advance(by: .seconds(1))
    }

    func advance(by interval: Interval) async throws {
        for _ in 0..<interval.nanoseconds / 100_000_000 {
            time.now.withLock { $0 += .milliseconds(100) }
            await membership.tick()
            try await eventually("the membership is idle") { await membership.isIdle }
        }
    }

    func setStore(isUp: Bool) async { await store.change { $0.isUnavailable = !isUp } }
    func wipe() async { await store.change { $0.wipe() } }
    var rooms: Set<ChannelName> { get async { await store.content.roomNames } }

    /// Another node attaches, and returns what the store has of the room.
    func attach(_ room: ChannelName, at node: String, _ number: UInt32, _ session: String) async throws -> RoomEntry {
        let instance = try Given.instance(node, number)
        return try await store.attach(Attach(room: room, instance: instance, session: Given.session(session)))
    }

    /// Another node tells the store of itself.
    func beat(_ node: String, _ number: UInt32, _ region: String) async throws {
        _ = try await store.beat(Given.beat(Given.instance(node, number), Given.record(region)))
    }
}

@Suite(.timeLimit(.minutes(10))) struct ClusterMembershipTests {
    private let bench: MembershipBench

    init() async throws { bench = try await MembershipBench() }

    @Test func `a room that ended while the store was away leaves it afterwards`() async throws {
        let (ended, again) = (try Given.room("ended"), try Given.room("again"))
        for room in [ended, again] { _ = await bench.membership.attach(room, session: try Given.session("s")) }
        #expect(await bench.rooms == [ended, again])
        await bench.setStore(isUp: false)
        try await bench.advance(by: .seconds(5))
        for room in [ended, again] { await bench.membership.detach(room, session: try Given.session("s")) }
        _ = await bench.membership.attach(again, session: try Given.session("t"))
        await bench.setStore(isUp: true)
        try await bench.advance(by: .seconds(10))
        #expect(await bench.rooms == [again])
        await bench.membership.detach(again, session: try Given.session("t"))
        #expect(await bench.rooms.isEmpty)
    }

    @Test func `a store that lost ten thousand rooms of a node has them again in ten seconds`() async throws {
        let rooms = try (0..<10_000).map { try Given.room("room-\($0)") }
        for room in rooms { _ = await bench.membership.attach(room, session: try Given.session("s")) }
        await bench.wipe()
        try await bench.advance(by: .seconds(10))
        #expect(await bench.rooms.count == rooms.count)
        #expect(await bench.membership.roomsWaiting == 0)
    }

    @Test func `a store that lost its rooms learns the session that they had`() async throws {
        let room = try Given.room("r")
        _ = try await bench.attach(room, at: "b", 5, "first")
        #expect(await bench.membership.attach(room, session: try Given.session("late"))?.session.rawValue == "first")
        await bench.wipe()
        try await bench.advance(by: .seconds(10))
        #expect(try await bench.attach(room, at: "c", 9, "later").session.rawValue == "first")
    }

    @Test func `an earlier run of a node is removed from a room that this node has`() async throws {
        let room = try Given.room("r")
        _ = try await bench.attach(room, at: "b", 5, "first")
        try await bench.beat("b", 6, "eu")
        try await bench.advance(by: .seconds(2))
        let entry = try #require(await bench.membership.attach(room, session: try Given.session("s")))
        #expect(try entry.nodes.keys.sorted() == [Given.node("a")])
        try await eventually("the earlier run of the node has left the room") {
            try await bench.attach(room, at: "c", 9, "s").nodes[Given.node("b")] == nil
        }
    }

    @Test func `an empty store and an older copy are told apart`() async throws {
        for region in ["eu", "us", "ap", "sa"] { try await bench.beat("b", 5, region) }
        try await bench.advance(by: .seconds(2))
        await bench.store.change { $0.copy(at: Instant(nanoseconds: 0)) }
        for region in ["eu", "us"] { try await bench.beat("b", 5, region) }
        try await bench.advance(by: .seconds(2))
        await bench.store.change { $0.restore(copyOf: Instant(nanoseconds: 0)) }
        try await bench.advance(by: .seconds(2))
        #expect(bench.incidents.count(of: .olderCopy) == 1 && bench.incidents.count(of: .emptied) == 0)
        await bench.wipe()
        try await bench.advance(by: .seconds(2))
        #expect(bench.incidents.count(of: .olderCopy) == 1 && bench.incidents.count(of: .emptied) == 1)
    }

    @Test func `the end of a session does not detach a room that another session began in`() async throws {
        let (room, first, second) = (try Given.room("lobby"), try Given.session("1"), try Given.session("2"))
        for session in [first, second] { _ = await bench.membership.attach(room, session: session) }
        await bench.membership.detach(room, session: first)
        #expect(await bench.rooms == [room])
        await bench.membership.detach(room, session: second)
        #expect(await bench.rooms.isEmpty)
    }
}
