package import Base
package import Wire

/// Limits how often something is done for each client network, an IPv4 address or the /64 of an IPv6 address, in memory that
/// does not grow.
///
/// A fixed number of token buckets: networks share one when their hashes collide.
package struct NetworkRateLimiter: Sendable {
    private let rate: TokenRate
    private let seed: UInt64
    private let bucketCount: Int
    /// For each bucket the instant from which it is full again. Empty before the first use.
    private var fullAt: [Instant] = []

    /// - Parameters:
    ///   - perSecond: at least 1.
    ///   - burst: at least 1.
    ///   - bucketCount: a power of two. With 1 all networks share one bucket.
    package init(
        perSecond: Int,
        burst: Int,
        bucketCount: Int = 4_096,
        using generator: inout some RandomNumberGenerator
    ) {
        precondition(perSecond > 0 && burst > 0, "a limit is positive")
        precondition(bucketCount > 0 && bucketCount & (bucketCount - 1) == 0, "the number of buckets is a power of two")
        rate = TokenRate(perSecond, burst: burst)
        seed = generator.next()
        self.bucketCount = bucketCount
    }

    /// Whether it may be done now for `source`; counts it if so.
    package mutating func take(_ source: IPAddress, at now: Instant) -> Bool {
        if fullAt.isEmpty { fullAt = Array(repeating: now, count: bucketCount) }
        return rate.take(paidAt: &fullAt[bucket(of: source)], at: now)
    }

    private func bucket(of source: IPAddress) -> Int {
        // An IPv6 host chooses among the addresses of its /64.
        var generator = SplitMix64(seed: seed ^ (source.isV4 ? source.low : source.high))
        return Int(truncatingIfNeeded: generator.next() >> 16) & (bucketCount - 1)
    }
}
