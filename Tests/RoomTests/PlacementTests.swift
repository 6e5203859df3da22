import MediaTypes
import RoomTestSupport
import TestSupport
import Testing

@testable import Admission
@testable import Room

/// A placement over the first loops of a node, which are named by their indices.
private struct LoopPlacement {
    var placement: Placement

    init(_ count: Int) { placement = Placement(locations: .loops(count)) }

    private static func location(_ loop: Int) -> MediaLocation {
        MediaLocation(loop: LoopIndex(rawValue: UInt16(loop)))
    }

    var members: [Int] { placement.members }
    var loads: [Double] { placement.loads }
    var memberShare: Double { placement.memberShare }
    var isEmpty: Bool { placement.isEmpty }

    mutating func join(near channelMembers: [Int: Int]) -> Int {
        let near = Dictionary(uniqueKeysWithValues: channelMembers.map { (Self.location($0.key), $0.value) })
        return Int(placement.join(near: near).loop.rawValue)
    }
    mutating func leave(_ loop: Int) { placement.leave(Self.location(loop)) }
    mutating func measured(_ load: LoopLoad, of loop: Int) { placement.measured(load, of: Self.location(loop)) }
    mutating func loadMissing(of loop: Int) { placement.loadMissing(of: Self.location(loop)) }
}

/// Loops whose members have known loads, measured as a node would measure them.
private struct MeasuredNode {
    var placement: LoopPlacement
    /// Each member's loop, channel and cost, a share of a core.
    var members: [(loop: Int, channel: Int, share: Double)] = []

    init(loopCount: Int) { placement = LoopPlacement(loopCount) }

    func loops(of channel: Int) -> [Int: Int] {
        Dictionary(members.filter { $0.channel == channel }.map { ($0.loop, 1) }, uniquingKeysWith: +)
    }

    @discardableResult
    mutating func join(_ channel: Int, share: Double) -> Int {
        let loop = placement.join(near: loops(of: channel))
        members.append((loop, channel, share))
        return loop
    }

    mutating func leave(_ index: Int) { placement.leave(members.remove(at: index).loop) }

    /// What the members of a loop cost in truth.
    func share(of loop: Int) -> Double { members.filter { $0.loop == loop }.reduce(0) { $0 + $1.share } }

    /// - Parameter noise: what the busy share is off by, for each loop.
    mutating func measure(noise: (Int) -> Double = { _ in 0 }) {
        for loop in placement.members.indices {
            let share = share(of: loop)
            placement.measured(
                LoopLoad(
                    packetsPerSecond: share * 1_600_000,
                    busyShare: share + noise(loop),
                    peers: members.count { $0.loop == loop }
                ),
                of: loop
            )
        }
    }
}

struct PlacementTests {
    @Test func `without measurements the loops share the members`() {
        var placement = LoopPlacement(3)
        for _ in 0..<30 { _ = placement.join(near: [:]) }
        #expect(placement.members == [10, 10, 10])
        for loop in 0..<3 { for _ in 0..<10 { placement.leave(loop) } }
        #expect(placement.isEmpty)
        #expect(placement.loads == [0, 0, 0])
    }

    @Test func `a channel's second member is placed on the loop of the first`() {
        var placement = LoopPlacement(4)
        for loop in 0..<4 { #expect(placement.join(near: [loop: 1]) == loop) }
    }

    @Test func `a channel that outgrows its loop fills a second one before a third`() {
        var node = MeasuredNode(loopCount: 8)
        let loops = (0..<6).map { _ in node.join(0, share: 0.001) }
        #expect(loops == [0, 0, 0, 1, 1, 1])
    }

    @Test(arguments: [0, 1, 7, 100], [0.000_05, 0.001, 0.004])
    func `a hundred viewers are spread evenly, however often loads are measured`(
        period: Int,
        share: Double
    ) {
        var node = MeasuredNode(loopCount: 2)
        var generator = SeededGenerator(seed: 5)
        for count in 0..<101 {
            node.join(0, share: share)
            guard period > 0, count % period == 0 else { continue }
            // Up to one member's worth of noise either way.
            let noise = [0, 1].map { _ in Double.random(in: -share...share, using: &generator) }
            node.measure { noise[$0] }
        }
        let members = node.placement.members
        #expect(abs(members[0] - members[1]) <= 10, "\(members)")
    }

    @Test func `a busy loop gets no newcomers, however few members it has`() {
        var placement = LoopPlacement(2)
        placement.measured(LoopLoad(packetsPerSecond: 100_000, busyShare: 0.8, peers: 2), of: 0)
        placement.measured(LoopLoad(packetsPerSecond: 1_000, busyShare: 0.02, peers: 200), of: 1)
        for _ in 0..<50 { #expect(placement.join(near: [:]) == 1) }
    }

    @Test func `members without a publisher count too`() {
        var placement = LoopPlacement(2)
        for _ in 0..<100 {
            _ = placement.join(near: [0: placement.members[0], 1: placement.members[1]].filter { $0.value > 0 })
            for loop in 0..<2 { placement.measured(LoopLoad(peers: placement.members[loop]), of: loop) }
        }
        #expect(abs(placement.members[0] - placement.members[1]) <= 3, "\(placement.members)")
    }

    @Test func `a join counts until the next measurement, and a leave reduces the load`() {
        var placement = LoopPlacement(2)
        for loop in 0..<2 {
            placement.measured(LoopLoad(packetsPerSecond: 10_000, busyShare: 0.1, peers: 10), of: loop)
        }
        let before = placement.loads
        let loop = placement.join(near: [:])
        #expect(abs(placement.loads[loop] - before[loop] - 0.01) < 1e-9, "an average member's load")
        placement.measured(LoopLoad(packetsPerSecond: 10_000, busyShare: 0.1, peers: 11), of: loop)
        #expect(placement.loads[loop] > before[loop], "its media need not flow yet")
        let joined = placement.loads[loop]
        placement.leave(loop)
        #expect(abs(joined - placement.loads[loop] - placement.memberShare) < 1e-9)
    }

    @Test func `small differences of measured loads are ignored, and viewers are spread evenly`() {
        var placement = LoopPlacement(2)
        for viewer in 0..<100 {
            _ = placement.join(near: [0: placement.members[0], 1: placement.members[1]].filter { $0.value > 0 })
            guard viewer % 10 == 9 else { continue }
            for loop in 0..<2 {
                let load = LoopLoad(
                    packetsPerSecond: 900,
                    busyShare: loop == 0 ? 0.04 : 0.01,
                    peers: placement.members[loop]
                )
                placement.measured(load, of: loop)
            }
        }
        #expect(abs(placement.members[0] - placement.members[1]) <= 5, "\(placement.members)")
    }

    @Test func `a loop that does not answer is chosen last, and again once it answers`() {
        var placement = LoopPlacement(2)
        placement.measured(LoopLoad(packetsPerSecond: 10, busyShare: 1, peers: 1), of: 1)
        placement.loadMissing(of: 0)
        #expect(placement.join(near: [0: 5]) == 1)
        placement.loadMissing(of: 1)
        #expect(placement.join(near: [1: 5]) == 1, "with no other loop the channel stays together")
        placement.measured(LoopLoad(), of: 0)
        #expect(placement.join(near: [:]) == 0)
    }

    @Test(arguments: [
        LoopLoad(packetsPerSecond: .nan, busyShare: .nan, peers: 3),
        LoopLoad(packetsPerSecond: .infinity, busyShare: .infinity, peers: -1),
        LoopLoad(packetsPerSecond: -5, busyShare: -0.5, peers: 0),
    ])
    func `a measurement that cannot be is harmless`(load: LoopLoad) {
        var placement = LoopPlacement(2)
        for _ in 0..<10 {
            _ = placement.join(near: [:])
            placement.measured(load, of: 0)
            placement.measured(load, of: 1)
        }
        #expect(placement.loads.allSatisfy { $0.isFinite && $0 >= 0 })
        #expect(placement.members == [5, 5])
    }

    /// Whoever comes and goes, and whatever they cost: a newcomer's loop is never further above the least loaded one
    /// than the slack, and once it has been measured the loads are close.
    @Test(arguments: 0..<50)
    func `random joins, leaves and measurements keep the loads balanced`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let loopCount = Int.random(in: 1...6, using: &generator)
        var node = MeasuredNode(loopCount: loopCount)
        for _ in 0..<600 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...5:
                let loads = node.placement.loads
                let bound = (loads.min() ?? 0) + Placement.slackMembers * node.placement.memberShare
                let channel = Int.random(in: 0..<5, using: &generator)
                let own = node.loops(of: channel)
                let loop = node.join(channel, share: Double.random(in: 0.000_1...0.002, using: &generator))
                #expect(loads[loop] <= bound, "seed \(seed)")
                if !own.isEmpty, own.keys.contains(where: { loads[$0] <= bound }) {
                    #expect(own[loop] != nil, "the channel stays together where it may, seed \(seed)")
                }
            case 6...8:
                if let index = node.members.indices.randomElement(using: &generator) { node.leave(index) }
            default:
                let noise = (0..<loopCount).map { _ in Double.random(in: 0...0.01, using: &generator) }
                node.measure { noise[$0] }
            }
            #expect(node.placement.members.reduce(0, +) == node.members.count)
            #expect(node.placement.loads.allSatisfy { $0.isFinite && $0 >= 0 })
        }
        while !node.members.isEmpty { node.leave(0) }
        #expect(node.placement.isEmpty)
    }
}
