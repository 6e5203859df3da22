import Wire

/// A token bucket for the changes that a member makes of itself: its mutes, its role and its metadata.
///
/// All members of the channel are told of each change, so its cost grows with their number.
struct ChangeBudget: Sendable, Codable {
    private let burst: Int
    /// The time for one more change.
    private let interval: Interval
    private var available: Int
    private var filledAt: Instant

    init(perSecond: Int, burst: Int, at now: Instant) {
        self.burst = max(burst, 1)
        interval = Interval(nanoseconds: 1_000_000_000 / Int64(min(max(perSecond, 1), 1_000_000)))
        available = self.burst
        filledAt = now
    }

    mutating func take(at now: Instant) -> Bool {
        let count = Int(clamping: (now - filledAt).nanoseconds / interval.nanoseconds)
        if count >= burst - available {
            available = burst
            filledAt = now
        } else if count > 0 {
            available += count
            filledAt += interval * count
        }
        guard available > 0 else { return false }
        available -= 1
        return true
    }
}
