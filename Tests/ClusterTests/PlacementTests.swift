import ChannelTypes
import MediaTypes
import Room
import TestSupport
import Testing

@testable import Cluster

@Suite struct PlacementTests {
    private static func member(
        _ name: String,
        _ region: String,
        load: Double,
        _ state: NodeState = .ready
    ) throws -> ClusterView.Member {
        var record = Given.record(region, state)
        record.setLoad(load)
        return ClusterView.Member(instance: try Given.instance(name, 7), record: record)
    }

    private static func placement(_ members: [ClusterView.Member], own: ClusterView.Member? = nil) -> Placement {
        var view = ClusterView()
        for member in members { _ = view.take(.init(instance: member.instance, record: member.record)) }
        return Placement(view, own: own)
    }

    @Test func `a room begins in its region on the less loaded of two`() throws {
        let members = [
            try Self.member("a", "eu", load: 0.6), try Self.member("b", "eu", load: 0.2),
            try Self.member("c", "us", load: 0), try Self.member("d", "eu", load: 0, .draining),
        ]
        let placement = Self.placement(members)
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<50 {
            #expect(placement.node(region: "eu", using: &generator)?.node == members[1].instance.node)
            #expect(placement.node(region: "us", using: &generator)?.node == members[2].instance.node)
        }
        let elsewhere = (0..<100).compactMap { _ in placement.node(region: "asia", using: &generator)?.node.rawValue }
        #expect(Set(elsewhere) == ["b", "c"] && elsewhere.count == 100)
        #expect(Self.placement([]).node(region: nil, using: &generator) == nil)
    }

    @Test func `a full region is left, and a full cluster is used nevertheless`() throws {
        let full = [try Self.member("a", "eu", load: 1), try Self.member("b", "eu", load: 0.96)]
        let own = try Self.member("own", "us", load: 0.9)
        var generator = SeededGenerator(seed: 2)
        for _ in 0..<20 {
            let chosen = Self.placement(full, own: own).node(region: "eu", using: &generator)
            #expect(chosen == own.instance)
            #expect(Self.placement(full).node(region: "eu", using: &generator) != nil)
        }
    }

    @Test func `only suitable nodes are chosen from`() throws {
        let members = try ["a", "b", "c"].map { try Self.member($0, "eu", load: $0 == "c" ? 0.5 : 0) }
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<20 {
            let chosen = Self.placement(members).node(region: "eu", where: { $0.record.load > 0 }, using: &generator)
            #expect(chosen == members[2].instance)
        }
        #expect(Self.placement(members).node(region: "eu", where: { $0.record.load > 50 }, using: &generator) == nil)
    }

    @Test func `nodes that take no new rooms may have some, and absent ones are not asked`() throws {
        var view = ClusterView()
        for (name, state) in [("a", NodeState.ready), ("b", .draining), ("c", .ready)] {
            let member = try Self.member(name, "eu", load: 0, state)
            _ = view.take(.init(instance: member.instance, record: member.record))
        }
        _ = view.setAbsent([try Given.instance("c", 7).node])
        let own = try Self.member("own", "eu", load: 0, .draining)
        let room = try Given.room("r")
        #expect(Placement(view, own: nil).nodes(for: room).map(\.node.rawValue) == ["a"])
        let all = Placement(withClosed: view, own: own).nodes(for: room).map(\.node.rawValue)
        #expect(Set(all) == ["a", "b", "own"] && all.count == 3)
    }

    @Test func `nodes with one view ask the same nodes, and one node less moves its rooms only`() throws {
        let members = try (0..<20).map { try Self.member("node-\($0)", "eu", load: 0) }
        let others = Self.placement(Array(members.dropFirst()), own: members[0])
        let all = Self.placement(members)
        let fewer = Self.placement(Array(members.dropLast()))
        var counts: [NodeID: Int] = [:]
        for number in 0..<2_000 {
            let room = try Given.room("room-\(number)")
            let nodes = all.nodes(for: room)
            #expect(nodes.count == 3 && Set(nodes).count == 3 && others.nodes(for: room) == nodes)
            let first = try #require(nodes.first)
            counts[first.node, default: 0] += 1
            let kept = nodes.filter { $0 != members[19].instance }
            #expect(Array(fewer.nodes(for: room).prefix(kept.count)) == kept)
        }
        #expect(counts.count == 20 && counts.values.allSatisfy { 60...150 ~= $0 })
        #expect(try Self.placement([]).nodes(for: Given.room("r")).isEmpty)
    }
}
