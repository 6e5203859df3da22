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
    /// What links each gateway loop to them.
    package let gateways: [GatewayPort]

    /// Links loops that were started and have no peers yet.
    /// - Parameters:
    ///   - loops: each at a location of its own.
    ///   - gateways: the loops that take tracks from them, each at a location of its own too.
    ///   - tlsAcceptor: that of all loops.
    package init(
        linking loops: [MediaLoop],
        gateways: [GatewayPlace] = [],
        tlsAcceptor: TLSAcceptor? = nil
    ) async {
        let locations = loops.map(\.location) + gateways.map(\.location)
        precondition(locations.count <= Int(UInt16.max) + 1, "a loop's index is a 16-bit number")
        precondition(Set(locations).count == locations.count, "each loop has a location of its own")
        self.loops = loops
        self.tlsAcceptor = tlsAcceptor
        let receivingLoops = ReceivingLoops()
        let places = loops.map { GatewayPlace(at: $0.location, on: $0.eventLoop) } + gateways
        let rings = places.map { _ in places.map { _ in LoopRing<TimedTransferRecord>() } }
        /// - Parameter others: the loops that the loop at `index` exchanges tracks with.
        func neighbours(of index: Int, _ others: Range<Int>) -> [LoopNeighbour] {
            others.filter { $0 != index }.map { other in
                LoopNeighbour(
                    location: places[other].location,
                    link: LinkID(rawValue: UInt32(truncatingIfNeeded: other)),
                    eventLoop: places[other].eventLoop,
                    outgoing: rings[index][other],
                    incoming: rings[other][index]
                )
            }
        }
        let table = Dictionary(uniqueKeysWithValues: loops.map { ($0.location, $0) })
        self.gateways = gateways.enumerated().map { number, place in
            GatewayPort(place: place, loops: table, neighbours: neighbours(of: loops.count + number, loops.indices))
        }
        for (index, loop) in loops.enumerated() {
            let neighbours = neighbours(of: index, places.indices)
            await loop.link(to: neighbours, of: loops, sharing: receivingLoops)
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
