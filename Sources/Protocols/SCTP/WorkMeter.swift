import Base

/// The work that a peer causes, in steps, and the budget for it.
///
/// A step is one chunk that is read, or one entry that is looked at because of it: an outstanding chunk, a gap block, a stream, a
/// fragment. The bound on packets is elsewhere; this one bounds what a packet may cost.
///
/// An upload of 7.5 Gbit/s, all that a core carries with DTLS, is 820,000 chunks a second of one step each. The acknowledgements of
/// 200,000 small messages a second cost three steps a message (`Benchmarks/data` has both rates). A step takes 10 to 30 ns, so a peer
/// that uses its whole budget takes about a tenth of a core.
struct WorkMeter: Sendable {
    static let stepsPerSecond = 4_000_000
    /// A peer may be read late, with all its packets of a quarter of a second at once: 205,000 steps of that upload. A whole burst
    /// takes a loop 3 to 9 ms.
    static let burst = 300_000

    /// All steps so far.
    private(set) var steps: UInt64 = 0
    private var uncharged = 0
    private var bucket = TokenBucket(stepsPerSecond, burst: burst)

    mutating func add(_ count: Int = 1) {
        uncharged &+= count
        steps &+= UInt64(truncatingIfNeeded: count)
    }

    /// Counts entries of a list that one call moves, 1 ns each.
    mutating func addMove(of count: Int) { add(1 + count / 16) }

    /// Charges the steps since the last call.
    /// - Returns: `false` when the peer is beyond its budget.
    mutating func charge(at now: Instant) -> Bool {
        defer { uncharged = 0 }
        return bucket.take(uncharged, at: now)
    }
}
