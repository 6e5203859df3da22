import Wire

/// How many messages one client may send: far more than any SDK does, and few enough that nobody else notices.
struct MessageBudget {
    /// At once, and per second in the long run.
    private static let burst = 1_000
    private static let perSecond = 100

    private var available = burst
    private var filledAt: Instant

    init(at now: Instant) { filledAt = now }

    mutating func take(at now: Instant) -> Bool {
        let seconds = Int((now - filledAt).nanoseconds / 1_000_000_000)
        if seconds > 0 {
            available = min(Self.burst, available + min(seconds, Self.burst) * Self.perSecond)
            filledAt += .seconds(seconds)
        }
        guard available > 0 else { return false }
        available -= 1
        return true
    }
}
