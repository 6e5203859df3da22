import EventLoop
import Forwarding

/// The media loops of one node, and the way of a track from one of them to another.
///
/// Each loop has a ring to each other one. A track that a slot of another loop plays is sent there once, however many
/// slots play it; key frame requests come back the same way. A track of another node comes to one loop and goes on to the
/// others in the same manner. The rings are for media only: which track goes where is
/// arranged by calls between the loops (``MediaLoop/connect(slot:to:preference:)``).
package struct MediaLoops: Sendable {
    /// In the order in which they were given; at most 65,536.
    package let loops: [MediaLoop]
    /// Accepts their connections of TURN over TLS; `nil` without.
    package let tlsAcceptor: TLSAcceptor?

    /// Links loops that were started and have no peers yet.
    /// - Parameters:
    ///   - loops: each at a location of its own.
    ///   - tlsAcceptor: that of all loops.
    package init(linking loops: [MediaLoop], tlsAcceptor: TLSAcceptor? = nil) async {
        precondition(loops.count <= Int(UInt16.max) + 1, "a loop's index is a 16-bit number")
        precondition(Set(loops.map(\.location)).count == loops.count, "each loop has a location of its own")
        self.loops = loops
        self.tlsAcceptor = tlsAcceptor
        let gateways = TrackGateways()
        let rings = loops.map { _ in loops.map { _ in LoopRing<TimedTransferRecord>() } }
        for (index, loop) in loops.enumerated() {
            let neighbours = loops.indices.filter { $0 != index }.map { other in
                LoopNeighbour(
                    location: loops[other].location,
                    link: LinkID(rawValue: UInt32(truncatingIfNeeded: other)),
                    eventLoop: loops[other].eventLoop,
                    outgoing: rings[index][other],
                    incoming: rings[other][index]
                )
            }
            await loop.link(to: neighbours, of: loops, sharing: gateways)
        }
    }

    /// Shuts every loop down, and the acceptor before them; returns when all have ended.
    package func shutdown() async {
        await tlsAcceptor?.shutdown()
        await withTaskGroup { group in
            for loop in loops { group.addTask { await loop.shutdown() } }
        }
    }
}
