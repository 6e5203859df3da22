import Base
import ChannelTypes
import Cluster
import ClusterTestSupport
import MediaTypes
import TestSupport
import Testing

/// What happens to the store, for some seconds or once.
enum StoreFault: String, CaseIterable, Sendable {
    case away, awayAndWiped, awayAndOlder, wiped, older, full, slow, clockBack, clockForward
}

/// Dozens of nodes and a store with faults. The seed is the test's argument.
@Suite(.timeLimit(.minutes(10))) struct MembershipSimulationTests {
    static let runs = StoreFault.allCases.flatMap { fault in (0..<4).map { (fault, UInt64($0)) } }

    /// A cluster of nodes with three rooms each, in calm.
    private static func cluster(of count: Int, seed: UInt64) throws -> SimulatedCluster {
        var cluster = SimulatedCluster(seed: seed)
        for number in 0..<count {
            let rooms = try (0..<3).map { try Given.room("room-\((number + $0 * 7) % (2 * count))") }
            _ = try cluster.start(Given.node("node-\(number)"), Given.record("eu"), rooms: rooms)
            cluster.advance(by: .milliseconds(37))
        }
        cluster.advance(by: .seconds(15))
        return cluster
    }

    private static func begin(_ fault: StoreFault, in cluster: inout SimulatedCluster) {
        switch fault {
        case .away, .awayAndWiped, .awayAndOlder: cluster.store.isUnavailable = true
        case .full: cluster.store.trouble = .down("OOM")
        case .slow: cluster.store.delayMax = .seconds(2)
        case .wiped, .older, .clockBack, .clockForward: break
        }
    }

    private static func end(_ fault: StoreFault, in cluster: inout SimulatedCluster) {
        cluster.store.isUnavailable = false
        cluster.store.trouble = nil
        cluster.store.delayMax = .milliseconds(2)
        switch fault {
        case .awayAndWiped, .wiped: cluster.store.wipe()
        case .awayAndOlder, .older: cluster.store.restore(copyOf: cluster.now)
        case .clockBack: cluster.store.clockOffset = cluster.store.clockOffset - .seconds(3_600)
        case .clockForward: cluster.store.clockOffset = cluster.store.clockOffset + .seconds(3_600)
        case .away, .full, .slow: break
        }
    }

    /// Nodes change, crash, return and are started twice while the store may be away.
    private static func disturb(_ cluster: inout SimulatedCluster, _ generator: inout SeededGenerator) throws {
        for _ in 0..<6 {
            cluster.advance(by: .milliseconds(Int.random(in: 0...3_000, using: &generator)))
            guard let index = cluster.running.randomElement(using: &generator) else { continue }
            let run = cluster.runs[index]
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: cluster.kill(index)
            case 1: try cluster.setRecord(Given.record("eu", .draining), of: index)
            case 2:
                cluster.kill(index)
                fallthrough
            default:
                guard !run.membership.isFenced else { continue }
                _ = try cluster.start(
                    run.membership.instance.node,
                    Given.record("us"),
                    rooms: run.rooms,
                    saved: run.membership.savedView
                )
            }
        }
    }

    /// The run of each node with the highest incarnation. Of two that start without the store it is not always the second.
    private static func latest(_ cluster: SimulatedCluster) -> [NodeID: Membership] {
        Dictionary(
            cluster.running.map { (cluster.runs[$0].membership.instance.node, cluster.runs[$0].membership) },
            uniquingKeysWith: { $0.instance.incarnation.rawValue > $1.instance.incarnation.rawValue ? $0 : $1 }
        )
    }

    /// Each node knows each other one as that knows itself.
    private static func expectEqualViews(_ cluster: SimulatedCluster, _ comment: Comment) {
        let latest = latest(cluster)
        for (node, membership) in latest {
            #expect(!membership.isFenced && membership.instance.incarnation.isAssigned, comment)
            for (other, its) in latest where other != node {
                let known = membership.view[other]
                #expect(known?.instance == its.instance && known?.record == its.record, comment)
                #expect(known?.isAbsent == false, comment)
            }
        }
    }

    @Test(arguments: runs)
    func `after a fault of the store all nodes have one view within 10 s`(fault: StoreFault, seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed &+ 1_000)
        var cluster = try Self.cluster(of: 24 + Int(seed) * 8, seed: seed)
        cluster.inspect = { membership, answer in
            guard answer.timeMS < answer.graceMS else { return }
            let absent = membership.view.members.values.filter(\.isAbsent)
            #expect(absent.isEmpty, "absent in the grace, seed \(seed)")
        }
        Self.expectEqualViews(cluster, "before, seed \(seed)")
        cluster.store.copy(at: cluster.now)
        cluster.advance(by: .seconds(5))
        _ = try cluster.start(Given.node("later"), Given.record("eu"), rooms: [Given.room("later")])
        cluster.advance(by: .seconds(5))
        Self.begin(fault, in: &cluster)
        try Self.disturb(&cluster, &generator)
        cluster.advance(by: .seconds(Int.random(in: 0...20, using: &generator)))
        Self.end(fault, in: &cluster)

        cluster.advance(by: .seconds(10))
        Self.expectEqualViews(cluster, "\(fault.rawValue) after 10 s, seed \(seed)")
        let rooms = Set(cluster.running.flatMap { cluster.runs[$0].rooms })
        #expect(rooms.isSubset(of: cluster.store.content.roomNames), "\(fault.rawValue), seed \(seed)")

        cluster.advance(by: .seconds(20))
        let latest = Self.latest(cluster)
        for membership in latest.values {
            let present = membership.view.members.filter { !$0.value.isAbsent }.keys
            #expect(Set(present) == Set(latest.keys).subtracting([membership.instance.node]), "seed \(seed)")
        }
        // An earlier run of a node that is still there has been told.
        for index in cluster.running {
            let membership = cluster.runs[index].membership
            let isLatest = latest[membership.instance.node]?.instance == membership.instance
            #expect(membership.isFenced == !isLatest)
            let events = cluster.runs[index].events
            let times = events.count { $0 == .fenced } - events.count { $0 == .returned }
            #expect(times == (isLatest ? 0 : 1))
        }
        Self.expectFewRequests(cluster)
    }

    /// One heartbeat a second, and one more for each incarnation.
    private static func expectFewRequests(_ cluster: SimulatedCluster) {
        for run in cluster.runs {
            let seconds = ((run.endedAt ?? cluster.now) - run.startedAt).seconds
            let returns = run.events.count { $0 == .returned }
            #expect(Double(run.requestsSent) <= seconds + 2 + 2 * Double(returns))
        }
    }

    @Test func `a node with the name of another one takes its place, and gives it back when it is gone`() throws {
        var cluster = try Self.cluster(of: 4, seed: 3)
        let (name, room) = (try Given.node("node-1"), try Given.room("kept"))
        _ = cluster.attach(room, at: 1)
        let later = try cluster.start(name, Given.record("us"), rooms: [Given.room("later")])
        cluster.advance(by: .seconds(60))
        #expect(cluster.runs[1].membership.isFenced && !cluster.runs[later].membership.isFenced)
        #expect(cluster.runs[0].membership.view[name]?.record.region == "us")
        let taken = cluster.runs[later].membership.instance
        cluster.kill(later)
        cluster.advance(by: .seconds(10))
        let membership = cluster.runs[1].membership
        #expect(!membership.isFenced && membership.takesNewRooms)
        #expect(membership.instance.incarnation.rawValue > taken.incarnation.rawValue)
        cluster.advance(by: .seconds(10))
        Self.expectEqualViews(cluster, "the earlier run is the node again")
        let entry = cluster.attach(room, at: 0)
        #expect(entry?.nodes[name]?.incarnation == membership.instance.incarnation, "its rooms are told again")
        // A third start is later than both.
        let third = try cluster.start(name, Given.record("us"))
        cluster.advance(by: .seconds(10))
        #expect(cluster.runs[1].membership.isFenced && !cluster.runs[third].membership.isFenced)
        Self.expectFewRequests(cluster)
    }

    @Test func `calm rooms cost no commands, and 10,000 come back in 10 s`() throws {
        var cluster = SimulatedCluster(seed: 7)
        for number in 0..<50 {
            let rooms = try (0..<400).map { try Given.room("room-\((number * 200 + $0) % 10_000)") }
            _ = try cluster.start(Given.node("node-\(number)"), Given.record("eu"), rooms: rooms)
        }
        // Each is attached twice.
        cluster.advance(by: .seconds(25))
        #expect(cluster.store.content.roomNames.count == 10_000)
        let before = cluster.store.counts
        cluster.advance(by: .seconds(60))
        #expect(cluster.store.counts["attach"] == before["attach"])
        #expect(cluster.store.counts["enlist"] == 50)
        #expect((cluster.store.counts["beat"] ?? 0) - (before["beat"] ?? 0) <= 61 * 50)
        cluster.store.wipe()
        var attached = cluster.store.counts["attach"] ?? 0
        var most = 0
        for _ in 0..<10 {
            cluster.advance(by: .seconds(1))
            let total = cluster.store.counts["attach"] ?? 0
            most = max(most, total - attached)
            attached = total
        }
        #expect(cluster.store.content.roomNames.count == 10_000)
        #expect(most <= 4_000, "20,000 attachments are spread")
        #expect(attached == 60_000)
    }
}
