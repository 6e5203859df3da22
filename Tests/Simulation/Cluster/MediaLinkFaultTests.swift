import Base
import Client
import SeedSupport
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Media between three nodes whose links have faults. The store has no part in it, so that its absence changes nothing (O3).
@Suite struct MediaLinkFaultTests {
    private struct Way: Hashable {
        let from: TransportAddress
        let to: TransportAddress
    }

    /// What the network between two nodes may do.
    private static let conditions: [LinkConditions] = [
        LinkConditions(delay: .milliseconds(20), loss: 1),
        LinkConditions(delay: .milliseconds(20), jitter: .milliseconds(10), loss: 0.05),
        LinkConditions(delay: .milliseconds(20), jitter: .milliseconds(10), duplication: 0.3, reordering: 0.1),
        LinkConditions(delay: .milliseconds(150), jitter: .milliseconds(30)),
    ]

    private final class Network {
        var ways: [Way: LinkConditions] = [:]
    }

    @Test(arguments: Seeds.cases(Array(1_201..<1_207) + [510_644_305]))
    func `whatever a link does, each packet reaches a node once, and media go on when it is well`(seeds: Seeds) async {
        for failure in await seeds.failures(of: Self.self, Self.run) { Issue.record("\(failure)") }
    }

    @Test func `a request for a repair that a link loses is repeated`() throws {
        let world = try World(seed: 5, nodes: 2, sealsMediaLinks: true)
        let call = try CallAcrossLoops(world)
        let network = Network()
        world.network.between = { network.ways[Way(from: $0, to: $1)] }
        world.run(for: .seconds(2))
        let before = call.publisher.client?.keyFramesMade ?? 0
        let way = Way(from: world.loops[1].address, to: world.loops[0].address)
        network.ways[way] = LinkConditions(delay: .milliseconds(20), loss: 1)
        try #require(world.nodeSlot(call.viewers[1], .video)).requestKeyFrame(at: world.now)
        world.settle(world.loops[1])
        world.run(for: .milliseconds(600))
        network.ways = [:]
        #expect(call.publisher.client?.keyFramesMade == before)
        world.run(for: .milliseconds(1_500))
        #expect(call.publisher.client?.keyFramesMade == before + 1)
    }

    private static func run(_ run: SeededRun) throws {
        let world = try World(seed: run.seed, nodes: 3, sealsMediaLinks: true)
        let call = try CallAcrossLoops(world)
        let network = Network()
        world.network.between = { network.ways[Way(from: $0, to: $1)] }
        let addresses = world.loops.map(\.address)
        run.takeSteps(8) { generator in
            let pair = addresses.shuffled(using: &generator).prefix(2)
            let fault = Self.conditions.indices.randomElement(using: &generator).map { Self.conditions[$0] }
            let isBothWays = Bool.random(using: &generator)
            let ways = "\(pair[0]) \(isBothWays ? "and" : "to") \(pair[1])"
            run.note("\(ways): \(fault.map { "\($0)" } ?? "no fault")")
            network.ways[Way(from: pair[0], to: pair[1])] = fault
            if isBothWays { network.ways[Way(from: pair[1], to: pair[0])] = fault }
            if Int.random(in: 0..<3, using: &generator) == 0 {
                run.note("all links are well")
                network.ways = [:]
            }
            world.run(for: .milliseconds(Int.random(in: 300...2_500, using: &generator)))
        }
        network.ways = [:]
        // O7: a link that is down is tried each second, and a viewer waits for a key frame then.
        world.run(for: .seconds(3))
        let before = call.viewers.map { $0.client?.video?.framesDecoded ?? 0 }
        world.run(for: .seconds(2))
        for (number, viewer) in call.viewers.enumerated() {
            run.expect(viewer.client?.video?.framesDecoded ?? 0 >= before[number] + 50, "O7 at \(number)")
            run.expect(viewer.client?.video?.duplicates == 0, "O2 at \(number)")
            run.expect(viewer.client?.audioReceived?.duplicates == 0, "O2 at \(number)")
        }
        // O2: no node is sent a packet twice but to repair it, and none passes on what it got from another one.
        let sent = world.loops.map { $0.core.mediaLinkCounters.sent }
        run.expect(sent[0].packets <= 2 * world.loops[0].core.counters.rtpReceived, "O2: packets are repeated")
        run.expect(sent[1].packets == 0 && sent[2].packets == 0, "O2: packets are passed on")
        for loop in world.loops { run.expect(loop.core.mediaLinkStates(at: world.now).count <= 2, "O8") }
    }
}
