import Wire

/// Limits the responses to unauthenticated requests for each source address. UDP sources can be spoofed, so this bounds
/// what the server sends to a victim.
///
/// A fixed number of token buckets (the generic cell rate algorithm): sources share one when their hashes collide.
struct ChallengeLimiter: Sendable {
    static let bucketCount = 4_096

    private let interval: Interval
    private let tolerance: Interval
    private let seed: UInt64
    /// For each bucket the instant from which it is full again. Empty before the first use.
    private var fullAt: [Instant] = []

    /// - Parameters:
    ///   - perSecond: at least 1.
    ///   - burst: at least 1.
    init(perSecond: Int, burst: Int, using generator: inout some RandomNumberGenerator) {
        precondition(perSecond > 0 && burst > 0, "a limit is positive")
        interval = Interval(nanoseconds: 1_000_000_000 / Int64(perSecond))
        tolerance = interval * (burst - 1)
        seed = generator.next()
    }

    /// Whether a response may go to `source`; counts it if so.
    mutating func take(_ source: IPAddress, at now: Instant) -> Bool {
        if fullAt.isEmpty { fullAt = Array(repeating: now, count: Self.bucketCount) }
        let index = bucket(of: source)
        let start = max(fullAt[index], now)
        guard start - now <= tolerance else { return false }
        fullAt[index] = start + interval
        return true
    }

    private func bucket(of source: IPAddress) -> Int {
        // An IPv6 host chooses among the addresses of its /64.
        var generator = SplitMix64(seed: seed ^ (source.isV4 ? source.low : source.high))
        return Int(truncatingIfNeeded: generator.next() >> 16) & (Self.bucketCount - 1)
    }
}
