import Wire

/// A token bucket for changes of one client's metadata that all clients of its channel are told.
///
/// Each change may have 4 KiB, and a receiver whose queue of pushes is full loses its connection. So the bucket is far below
/// ``MessageBudget``.
struct PushBudget {
    /// The capacity of the bucket.
    private static let burst = 16
    /// The time for one more push.
    private static let interval = Interval.milliseconds(250)

    private var available = burst
    private var filledAt: Instant

    init(at now: Instant) { filledAt = now }

    mutating func take(at now: Instant) -> Bool {
        let count = Int(clamping: (now - filledAt).nanoseconds / Self.interval.nanoseconds)
        if count >= Self.burst - available {
            available = Self.burst
            filledAt = now
        } else if count > 0 {
            available += count
            filledAt += Self.interval * count
        }
        guard available > 0 else { return false }
        available -= 1
        return true
    }
}
