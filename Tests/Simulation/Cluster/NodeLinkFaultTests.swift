import Client
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Media between three nodes whose links have faults. The store has no part in it, so that its absence changes nothing (O3).
@Suite struct NodeLinkFaultTests {
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

    @Test(arguments: 1_201..<1_207 as Range<UInt64>)
    func `whatever a link does, each packet reaches a node once, and media go on when it is well`(_ seed: UInt64) throws
    {
        let world = try World(seed: seed, nodes: 3, sealsNodeLinks: true)
        let call = try CallAcrossLoops(world)
        var generator = SeededGenerator(seed: seed)
        let network = Network()
        world.network.between = { network.ways[Way(from: $0, to: $1)] }
        let addresses = world.loops.map(\.address)
        for _ in 0..<8 {
            let pair = addresses.shuffled(using: &generator).prefix(2)
            let fault = Self.conditions.randomElement(using: &generator)
            network.ways[Way(from: pair[0], to: pair[1])] = fault
            if Bool.random(using: &generator) { network.ways[Way(from: pair[1], to: pair[0])] = fault }
            if Int.random(in: 0..<3, using: &generator) == 0 { network.ways = [:] }
            world.run(for: .milliseconds(Int.random(in: 300...2_500, using: &generator)))
        }
        network.ways = [:]
        // O7: a link that is down is tried each second, and a viewer waits for a key frame then.
        world.run(for: .seconds(3))
        let before = call.viewers.map { $0.client?.video?.framesDecoded ?? 0 }
        world.run(for: .seconds(2))
        for (number, viewer) in call.viewers.enumerated() {
            #expect(viewer.client?.video?.framesDecoded ?? 0 >= before[number] + 50, "O7 at \(number), seed \(seed)")
            #expect(viewer.client?.video?.duplicates == 0, "O2 at \(number), seed \(seed)")
            #expect(viewer.client?.audioReceived?.duplicates == 0, "O2 at \(number), seed \(seed)")
        }
        // O2: no node is sent a packet twice but to repair it, and none passes on what it got from another one.
        let sent = world.loops.map { $0.core.nodeLinkCounters.sent }
        #expect(sent[0].packets <= 2 * world.loops[0].core.counters.rtpReceived, "O2, seed \(seed)")
        #expect(sent[1].packets == 0 && sent[2].packets == 0, "O2, seed \(seed)")
        // O8
        for loop in world.loops { #expect(loop.core.nodeLinkStates(at: world.now).count <= 2) }
    }
}
