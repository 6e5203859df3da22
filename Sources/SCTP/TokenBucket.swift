internal import Wire

/// Bounds how often a peer may do what costs us work without progress.
struct TokenBucket: Sendable {
    private let perSecond: Int64
    private let burst: Int64
    /// In billionths of a token.
    private var level: Int64
    private var filledAt: Instant?

    init(perSecond: Int, burst: Int) {
        self.perSecond = Int64(perSecond)
        self.burst = Int64(burst) * 1_000_000_000
        level = self.burst
    }

    /// - Returns: whether `count` tokens were left.
    mutating func take(_ count: Int = 1, at now: Instant) -> Bool {
        if let filledAt {
            let elapsed = min(max((now - filledAt).nanoseconds, 0), 60_000_000_000)
            level = min(level + elapsed * perSecond, burst)
        }
        filledAt = now
        let (cost, isTooMuch) = Int64(count).multipliedReportingOverflow(by: 1_000_000_000)
        guard !isTooMuch, level >= cost else { return false }
        level -= cost
        return true
    }
}
