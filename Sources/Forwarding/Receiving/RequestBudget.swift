import Wire

/// A token bucket for requests: a few in a row, then a steady rate.
struct RequestBudget: Sendable {
    /// Requests that a full budget allows for at once.
    let burst: Int
    /// The time in which one request is refilled.
    let interval: Interval
    /// When the budget is full again; each request moves it by one interval.
    private var fullAt = Instant(nanoseconds: .min / 2)

    init(burst: Int, interval: Interval) {
        precondition(burst > 0 && interval > .zero, "a budget allows for something")
        self.burst = burst
        self.interval = interval
    }

    /// When the next request is allowed: at `now` or later.
    func nextAllowed(at now: Instant) -> Instant {
        guard fullAt > now else { return now }
        return max(now, fullAt + Interval(nanoseconds: -interval.nanoseconds * Int64(burst - 1)))
    }

    /// Spends one request, if the budget allows for it now.
    mutating func take(at now: Instant) -> Bool {
        guard nextAllowed(at: now) <= now else { return false }
        fullAt = max(fullAt, now) + interval
        return true
    }
}
