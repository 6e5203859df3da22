import Cluster
import ClusterTestSupport
import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Room

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

    private static func disturbMembers(_ world: ClusterWorld) throws {
        guard let id = world.running.randomElement(using: &world.generator) else { return }
        let members = world.nodes[id]?.members.keys.sorted { $0.value < $1.value } ?? []
        if Bool.random(using: &world.generator), let member = members.randomElement(using: &world.generator) {
            return try world.leave(member, at: id)
        }
        guard let channel = channels.randomElement(using: &world.generator) else { return }
        try world.join(channel, at: id, Bool.random(using: &world.generator) ? .recvonly : .sendonly)
    }

    private static func disturbStore(_ world: ClusterWorld) {
        switch Int.random(in: 0..<6, using: &world.generator) {
        case 0: world.store.isUnavailable.toggle()
        case 1: world.store.wipe()
        case 2: world.store.copy(at: world.now)
        case 3: world.store.restore(copyOf: world.now)
        case 4: world.store.delayMax = .milliseconds(Int.random(in: 1...2_500, using: &world.generator))
        default:
            guard let id = names.randomElement(using: &world.generator).flatMap(NodeID.init(rawValue:)) else { return }
            if world.withoutStore.remove(id) == nil { world.withoutStore.insert(id) }
        }
    }

    private static func disturbNodes(_ world: ClusterWorld) throws {
        let ids = names.compactMap(NodeID.init(rawValue:))
        guard let one = ids.randomElement(using: &world.generator),
            let other = ids.randomElement(using: &world.generator)
        else { return }
        switch Int.random(in: 0..<7, using: &world.generator) {
        case 0: world.kill(one)
        case 1, 2: for id in ids { try world.start(id) }
        case 3: world.freeze(one, for: .milliseconds(Int.random(in: 100...8_000, using: &world.generator)))
        case 4, 5: if one != other { world.cut(one, other, isOneWay: Bool.random(using: &world.generator)) }
        default: world.heal()
        }
    }

    /// Every node is there and reaches the store, while the network is as it was.
    private static func repairStore(_ world: ClusterWorld) throws {
        world.store.isUnavailable = false
        world.store.delayMax = .milliseconds(2)
        world.withoutStore = []
        for name in names { try world.start(NodeID(rawValue: name)!) }
    }

    private static func expectEqualMembers(_ world: ClusterWorld, _ comment: Comment) {
        for channel in channels {
            let expected = world.expectedMembers(of: channel)
            for id in world.running where world.nodes[id]?.channels[channel] != nil {
                #expect(world.nodes[id]?.visible(in: channel) == expected, "O4: \(channel) at \(id), \(comment)")
            }
        }
    }

    /// O5: one creation of each connection, and at most one destruction, after it.
    private static func expectOneStay(_ world: ClusterWorld, _ comment: Comment) {
        var created: Set<ParticipantID> = []
        var destroyed: Set<ParticipantID> = []
        for report in world.reports {
            switch report {
            case .connectionCreated(let report):
                #expect(created.insert(report.connection.member.id).inserted, "O5: created twice, \(comment)")
            case .connectionDestroyed(let report, _):
                #expect(destroyed.insert(report.connection.member.id).inserted, "O5: destroyed twice, \(comment)")
                #expect(
                    created.contains(report.connection.member.id),
                    "O5: destroyed before it was created, \(comment)"
                )
            default: break
            }
        }
        let present = Set(world.nodes.values.flatMap(\.members.keys))
        #expect(present.isSubset(of: created) && present.isDisjoint(with: destroyed), "O5: \(comment)")
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `after any faults all nodes see the same members, and each of them once`(_ seed: UInt64) throws {
        let world = try Self.world(seed: seed)
        Self.expectEqualMembers(world, "before, seed \(seed)")
        for _ in 0..<40 {
            switch Int.random(in: 0..<10, using: &world.generator) {
            case 0..<5: try Self.disturbMembers(world)
            case 5: Self.disturbStore(world)
            default: try Self.disturbNodes(world)
            }
            try world.advance(by: .milliseconds(Int.random(in: 0...1_500, using: &world.generator)))
        }
        try Self.repairStore(world)
        // The longest stand-still, the store's grace, and the time over which channels are told again.
        try world.advance(by: .seconds(30))
        world.heal()
        try world.advance(by: .seconds(5))
        Self.expectEqualMembers(world, "seed \(seed)")
        Self.expectOneStay(world, "seed \(seed)")
        #expect(world.allFaults == [], "seed \(seed)")
        // O8
        #expect(world.waitingMax < 2_000, "seed \(seed)")
        for node in world.nodes.values {
            #expect(node.membership.roomsWaiting <= Self.channels.count && node.answers.count < 100)
            #expect(node.replicas.channelCount <= Self.channels.count)
        }
    }

    /// What every node sees, every half second. The network has faults, and channels are known everywhere.
    private static func history(seed: UInt64, _ disturbStore: (ClusterWorld, Int) -> Void) throws -> [[String]] {
        let world = try Self.world(seed: seed)
        let permanent = Set(world.nodes.values.flatMap(\.members.keys))
        var history: [[String]] = []
        for step in 0..<40 {
            disturbStore(world, step)
            let ids = world.running
            let (one, other) = (
                ids.randomElement(using: &world.generator)!, ids.randomElement(using: &world.generator)!
            )
            switch Int.random(in: 0..<8, using: &world.generator) {
            case 0..<3:
                let channel = world.nodes[one]!.channels.keys.sorted { $0.value < $1.value }
                    .randomElement(using: &world.generator)
                if let channel { try world.join(channel, at: one, .recvonly) }
            case 3:
                let members = world.nodes[one]!.members.keys.filter { !permanent.contains($0) }
                if let member = members.min(by: { $0.value < $1.value }) { try world.leave(member, at: one) }
            case 4: if one != other { world.cut(one, other, isOneWay: Bool.random(using: &world.generator)) }
            case 5: world.freeze(one, for: .milliseconds(Int.random(in: 100...4_000, using: &world.generator)))
            default: world.heal()
            }
            try world.advance(by: .milliseconds(500))
            history.append(
                ids.flatMap { id in
                    channels.map { channel in
                        let members = world.nodes[id]!.visible(in: channel).map(\.value).sorted()
                        return "\(id) \(channel) \(members)"
                    }
                }
            )
        }
        #expect(world.allFaults == [], "seed \(seed)")
        return history
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `without the store everything is as with it`(_ seed: UInt64) throws {
        let calm = try Self.history(seed: seed) { _, _ in }
        let away = try Self.history(seed: seed) { world, step in world.store.isUnavailable = step >= 2 }
        #expect(away == calm, "O3, seed \(seed)")
        // An empty store that returns in the middle tells nobody anything that is not so.
        let wiped = try Self.history(seed: seed) { world, step in
            world.store.isUnavailable = (5..<20).contains(step)
            if step == 20 { world.store.wipe() }
        }
        #expect(wiped == calm, "O3 with a wiped store, seed \(seed)")
    }
}
