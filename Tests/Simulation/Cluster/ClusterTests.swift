import Base
import Cluster
import ClusterTestSupport
import MediaTypes
import Room
import SeedSupport
import TestSupport
import Testing

@testable import ChannelTypes

/// Whole clusters with faults, and what may never be, by the numbers of the design's oracles.
///
/// O6, old runs change nothing, and O7, nobody vanishes who can be heard, are checked by ``ClusterWorld`` itself.
@Suite(.timeLimit(.minutes(10))) struct ClusterFaultTests {
    private static let channels = (0..<4).map { ChannelName("c\($0)")! }
    private static let names = ["a", "b", "c", "d", "e"]

    /// A calm cluster with a member of each channel at each of its nodes.
    private static func world(seed: UInt64) throws -> ClusterWorld {
        let world = try ClusterWorld(names, seed: seed)
        try world.advance(by: .seconds(5))
        for (number, channel) in channels.enumerated() {
            for id in world.running.dropFirst(number % 3) { try world.join(channel, at: id, .sendonly) }
        }
        try world.advance(by: .seconds(3))
        return world
    }

    private static func disturbMembers(_ world: ClusterWorld, _ run: SeededRun) throws {
        guard let id = world.running.randomElement(using: &world.generator) else { return }
        let members = world.nodes[id]?.members.keys.sorted { $0.value < $1.value } ?? []
        if Bool.random(using: &world.generator), let member = members.randomElement(using: &world.generator) {
            run.note("\(member) leaves \(id)")
            return try world.leave(member, at: id)
        }
        guard let channel = channels.randomElement(using: &world.generator) else { return }
        let role: Role = Bool.random(using: &world.generator) ? .recvonly : .sendonly
        run.note("a member joins \(channel) at \(id), \(role)")
        try world.join(channel, at: id, role)
    }

    private static func disturbStore(_ world: ClusterWorld, _ run: SeededRun) {
        switch Int.random(in: 0..<6, using: &world.generator) {
        case 0:
            world.store.isUnavailable.toggle()
            run.note("the store is \(world.store.isUnavailable ? "away" : "back")")
        case 1:
            run.note("the store is wiped")
            world.store.wipe()
        case 2:
            run.note("the store is copied")
            world.store.copy(at: world.now)
        case 3:
            run.note("the store is as at its copy")
            world.store.restore(copyOf: world.now)
        case 4:
            world.store.delayMax = .milliseconds(Int.random(in: 1...2_500, using: &world.generator))
            run.note("the store answers within \(world.store.delayMax)")
        default:
            guard let id = names.randomElement(using: &world.generator).flatMap(NodeID.init(rawValue:)) else { return }
            run.note("\(id) \(world.withoutStore.contains(id) ? "reaches" : "does not reach") the store")
            if world.withoutStore.remove(id) == nil { world.withoutStore.insert(id) }
        }
    }

    private static func disturbNodes(_ world: ClusterWorld, _ run: SeededRun) throws {
        let ids = names.compactMap(NodeID.init(rawValue:))
        guard let one = ids.randomElement(using: &world.generator),
            let other = ids.randomElement(using: &world.generator)
        else { return }
        switch Int.random(in: 0..<7, using: &world.generator) {
        case 0:
            run.note("\(one) crashes")
            world.kill(one)
        case 1, 2:
            run.note("all nodes start")
            for id in ids { try world.start(id) }
        case 3: freeze(one, upTo: 8_000, world, run)
        case 4, 5: if one != other { cut(one, other, world, run) }
        default:
            run.note("all links are well")
            world.heal()
        }
    }

    private static func freeze(_ id: NodeID, upTo millisecondsMax: Int, _ world: ClusterWorld, _ run: SeededRun) {
        let interval = Interval.milliseconds(Int.random(in: 100...millisecondsMax, using: &world.generator))
        run.note("\(id) stands still for \(interval)")
        world.freeze(id, for: interval)
    }

    private static func cut(_ one: NodeID, _ other: NodeID, _ world: ClusterWorld, _ run: SeededRun) {
        let isOneWay = Bool.random(using: &world.generator)
        run.note("the link of \(one) \(isOneWay ? "to" : "and") \(other) is cut")
        world.cut(one, other, isOneWay: isOneWay)
    }

    /// Every node is there and reaches the store, while the network is as it was.
    private static func repairStore(_ world: ClusterWorld) throws {
        world.store.isUnavailable = false
        world.store.delayMax = .milliseconds(2)
        world.withoutStore = []
        for name in names { try world.start(NodeID(rawValue: name)!) }
    }

    private static func expectEqualMembers(_ world: ClusterWorld, _ run: SeededRun) {
        for channel in channels {
            let expected = world.expectedMembers(of: channel)
            for id in world.running where world.nodes[id]?.channels[channel] != nil {
                let visible = world.nodes[id]?.visible(in: channel) ?? []
                let missing = expected.subtracting(visible).map(\.value).sorted()
                let extra = visible.subtracting(expected).map(\.value).sorted()
                let text = "O4: \(channel) at \(id), \(world.now): \(missing) are missing, \(extra) are not there"
                run.expect(visible == expected, text)
            }
        }
    }

    /// O5: one creation of each connection, and at most one destruction, after it.
    private static func expectOneStay(_ world: ClusterWorld, _ run: SeededRun) {
        var created: Set<ParticipantID> = []
        var destroyed: Set<ParticipantID> = []
        for report in world.reports {
            switch report {
            case .connectionCreated(let report):
                run.expect(created.insert(report.connection.member.id).inserted, "O5: created twice")
            case .connectionDestroyed(let report, _):
                run.expect(destroyed.insert(report.connection.member.id).inserted, "O5: destroyed twice")
                run.expect(created.contains(report.connection.member.id), "O5: destroyed before it was created")
            default: break
            }
        }
        let present = Set(world.nodes.values.flatMap(\.members.keys))
        run.expect(present.isSubset(of: created) && present.isDisjoint(with: destroyed), "O5")
    }

    @Test(arguments: Seeds.cases(Array(0..<200) + [2_732_954_198]))
    func `after any faults all nodes see the same members, and each of them once`(seeds: Seeds) async {
        let failures = await seeds.failures(of: Self.self) { _ = try Self.disturb($0) }
        for failure in failures { Issue.record("\(failure)") }
    }

    /// A cluster after faults of every kind.
    private static func disturb(_ run: SeededRun) throws -> ClusterWorld {
        let world = try Self.world(seed: run.seed)
        Self.expectEqualMembers(world, run)
        try run.takeSteps(40) { generator in
            world.generator = generator
            switch Int.random(in: 0..<10, using: &world.generator) {
            case 0..<5: try Self.disturbMembers(world, run)
            case 5: Self.disturbStore(world, run)
            default: try Self.disturbNodes(world, run)
            }
            try world.advance(by: .milliseconds(Int.random(in: 0...1_500, using: &world.generator)))
        }
        try Self.repairStore(world)
        // The longest stand-still, the store's grace, and the time over which channels are told again.
        try world.advance(by: .seconds(30))
        world.heal()
        try world.advance(by: .seconds(5))
        Self.expectEqualMembers(world, run)
        Self.expectOneStay(world, run)
        for fault in world.allFaults { run.addFault(fault) }
        run.expect(world.waitingMax < 2_000, "O8: frames wait")
        for node in world.nodes.values {
            let isBounded = node.membership.roomsWaiting <= Self.channels.count && node.answers.count < 100
            run.expect(isBounded, "O8: rooms or answers wait at \(node.id)")
            run.expect(node.replicas.channelCount <= Self.channels.count, "O8: channels at \(node.id)")
        }
        return world
    }

    /// What the nodes see in the end, and a number that tells how often their network was asked until then.
    static func outcome(seed: UInt64) throws -> String {
        let world = try disturb(SeededRun(seed: seed))
        let members = world.running.map { id in
            channels.map { (world.nodes[id]?.visible(in: $0) ?? []).map(\.value).sorted() }
        }
        var generator = world.links.generator
        return "\(members) \(generator.next())"
    }

    @Test func `a seed gives one run, in this process and in another one`() async throws {
        let outcomes = try (0..<8 as Range<UInt64>).map { try Self.outcome(seed: $0) }
        #expect(Set(outcomes).count == outcomes.count, "each seed gives another one")
        let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
            for seed in (0..<8 as Range<UInt64>) { print("\(seed): \(try ClusterFaultTests.outcome(seed: seed))") }
        }
        let output = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
        for (seed, outcome) in outcomes.enumerated() {
            #expect(output.contains("\(seed): \(outcome)\n"), "seed \(seed)")
        }
    }

    /// Whom each node sees in each channel.
    private typealias Sight = [String: Set<ParticipantID>]

    /// What every node that does not stand still sees, every half second. The network has faults, and channels are known everywhere.
    private static func history(_ run: SeededRun, _ disturbStore: (ClusterWorld, Int) -> Void) throws -> [Sight] {
        let world = try Self.world(seed: run.seed)
        let permanent = Set(world.nodes.values.flatMap(\.members.keys))
        var history: [Sight] = []
        try run.takeSteps(40) { generator in
            world.generator = generator
            disturbStore(world, history.count)
            let ids = world.running
            let (one, other) = (
                ids.randomElement(using: &world.generator)!, ids.randomElement(using: &world.generator)!
            )
            switch Int.random(in: 0..<8, using: &world.generator) {
            case 0..<3:
                let channel = world.nodes[one]!.channels.keys.sorted { $0.value < $1.value }
                    .randomElement(using: &world.generator)
                guard let channel else { break }
                run.note("a member joins \(channel) at \(one)")
                try world.join(channel, at: one, .recvonly)
            case 3:
                let members = world.nodes[one]!.members.keys.filter { !permanent.contains($0) }
                guard let member = members.min(by: { $0.value < $1.value }) else { break }
                run.note("\(member) leaves \(one)")
                try world.leave(member, at: one)
            case 4: if one != other { cut(one, other, world, run) }
            case 5: freeze(one, upTo: 4_000, world, run)
            default:
                run.note("all links are well")
                world.heal()
            }
            try world.advance(by: .milliseconds(500))
            var sight: Sight = [:]
            for id in ids where !world.isStandingStill(id) {
                for channel in channels { sight["\(channel) at \(id)"] = world.nodes[id]!.visible(in: channel) }
            }
            history.append(sight)
        }
        for fault in world.allFaults { run.addFault(fault) }
        return history
    }

    @Test(arguments: Seeds.cases(Array(0..<20) + [3_586_006_713, 746_185_979, 3_179_765_911]))
    func `without the store everything is as with it`(seeds: Seeds) async {
        for failure in await seeds.failures(of: Self.self, Self.compareHistories) { Issue.record("\(failure)") }
    }

    private static func compareHistories(_ run: SeededRun) throws {
        let calm = try Self.history(run) { _, _ in }
        let away = try Self.history(run) { world, step in world.store.isUnavailable = step >= 2 }
        for what in differences(away, calm) { run.addFault("O3 without a store: \(what)") }
        // An empty store that returns in the middle tells nobody anything that is not so.
        let wiped = try Self.history(run) { world, step in
            world.store.isUnavailable = (5..<20).contains(step)
            if step == 20 { world.store.wipe() }
        }
        for what in differences(wiped, calm) { run.addFault("O3 with a wiped store: \(what)") }
    }

    /// Half seconds by which two histories may be apart: after a link was lost, a node dials again within two seconds.
    private static let lag = 4

    /// Whom a node saw for longer than the lag in one history, and in the other one neither then nor a little sooner or
    /// later, in the time that it did not stand still.
    private static func differences(_ one: [Sight], _ other: [Sight]) -> [String] {
        func missing(in other: [Sight], of one: [Sight]) -> [String] {
            Set(one.flatMap(\.keys)).sorted().flatMap { place in
                let steps = one.indices.filter { one[$0][place] != nil && other[$0][place] != nil }
                let seen = steps.map { one[$0][place, default: []] }
                // Whom all sights have from one on until longer than the lag.
                let lasting = seen.indices.dropLast(lag).map { start in
                    seen[start...start + lag].reduce(seen[start]) { $0.intersection($1) }
                }
                return steps.indices.compactMap { index -> String? in
                    let first = max(index - lag, 0)
                    let near = steps[first...min(index + lag, steps.count - 1)]
                    let members = lasting.prefix(index + 1).dropFirst(first).reduce(into: Set()) { $0.formUnion($1) }
                    let unseen = members.filter { member in
                        !near.contains { other[$0][place]?.contains(member) == true }
                    }
                    return unseen.isEmpty ? nil : "\(steps[index]): \(unseen.map(\.value).sorted()) in \(place)"
                }
            }
        }
        return missing(in: other, of: one).map { "before step \($0) without reason" }
            + missing(in: one, of: other).map { "before step \($0) are not there" }
    }
}
