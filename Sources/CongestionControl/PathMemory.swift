/// What peers behind one remote address share: what is known of the path to it, and the turn to probe it.
///
/// Peers at one address often share a bottleneck, but those behind a carrier's NAT do not, so an estimate of one peer is only where
/// another begins. Both the number of addresses and the age of what is known are bounded. Rates are bits a second; times are
/// microseconds of the sender's clock.
/// - `Address` is an IPv4 address or the first 64 bits of an IPv6 address.
/// - `Session` names a peer's session, also after it has reconnected.
package struct PathMemory<Address: Hashable & Sendable, Session: Hashable & Sendable>: Sendable {
    private struct Peer: Sendable {
        var session: Session
        var target: Double
        var updatedAt: Int64
    }
    private struct Path: Sendable {
        var peers: ContiguousArray<Peer> = []
        var prober: Session?
        var probingUntil = Int64.min

        /// Replaces what is known of the peer, or else of the one that is known for longest without an update.
        mutating func note(_ peer: Peer) {
            if let index = peers.firstIndex(where: { $0.session == peer.session }) {
                peers[index] = peer
            } else if peers.count < PathMemory.peersMax {
                peers.append(peer)
            } else if let oldest = peers.indices.min(by: { peers[$0].updatedAt < peers[$1].updatedAt }) {
                peers[oldest] = peer
            }
        }
    }

    /// What another peer's estimate is worth to a newcomer, and what a session's own is after it has reconnected.
    private static var newcomerShare: Double { 0.5 }
    private static var reconnectedShare: Double { 0.7 }
    /// Older estimates are forgotten.
    private static var ageMax: Int64 { 60_000_000 }
    /// Longer than a cluster takes to be sent and reported.
    private static var turnLength: Int64 { 1_000_000 }
    private static var peersMax: Int { 32 }
    private static var cleaningInterval: Int64 { 1_000_000 }

    /// How many addresses are known at most.
    package let capacity: Int
    private var paths: [Address: Path] = [:]
    private var cleanedAt = Int64.min

    package init(capacity: Int = 4_096) { self.capacity = capacity }

    /// How many addresses are known.
    package var count: Int { paths.count }

    /// Notes the target rate that a session's controller has reached by reports.
    package mutating func update(_ session: Session, at address: Address, target: Double, now: Int64) {
        guard makeRoom(for: address, now: now) else { return }
        paths[address, default: Path()].note(Peer(session: session, target: target, updatedAt: now))
    }

    /// The rate that a session's controller is to start with; `nil` when nothing is known of the path.
    package func startRate(for session: Session, at address: Address, now: Int64) -> Double? {
        guard let path = paths[address] else { return nil }
        var lowest: Double?
        for peer in path.peers where now &- peer.updatedAt <= Self.ageMax {
            if peer.session == session { return Self.reconnectedShare * peer.target }
            lowest = min(lowest ?? peer.target, peer.target)
        }
        return lowest.map { Self.newcomerShare * $0 }
    }

    /// Takes the turn to send a probe cluster: clusters of two peers at once would measure each other.
    /// - Returns: whether no other session has the turn.
    package mutating func takeProbeTurn(_ session: Session, at address: Address, now: Int64) -> Bool {
        // Without room for the address nothing is known of others behind it.
        guard makeRoom(for: address, now: now) else { return true }
        let path = paths[address, default: Path()]
        guard path.prober == nil || path.prober == session || now >= path.probingUntil else { return false }
        paths[address, default: Path()].prober = session
        paths[address]?.probingUntil = now &+ Self.turnLength
        return true
    }

    /// Gives the turn back, once the cluster is reported.
    package mutating func endProbeTurn(_ session: Session, at address: Address) {
        if paths[address]?.prober == session { paths[address]?.prober = nil }
    }

    /// Forgets what is too old when there is no room, at most once a second.
    /// - Returns: whether the address is known or may be.
    private mutating func makeRoom(for address: Address, now: Int64) -> Bool {
        if paths[address] != nil || paths.count < capacity { return true }
        guard cleanedAt == .min || now &- cleanedAt >= Self.cleaningInterval else { return false }
        cleanedAt = now
        paths = paths.filter { _, path in
            now < path.probingUntil || path.peers.contains { now &- $0.updatedAt <= Self.ageMax }
        }
        return paths.count < capacity
    }
}
