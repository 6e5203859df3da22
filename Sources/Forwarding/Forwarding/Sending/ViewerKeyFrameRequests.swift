import Base

/// One receiver's requests for key frames, by PLI or FIR, and how many of them are passed on.
///
/// A receiver that asks all the time would cost every other viewer picture quality.
struct ViewerKeyFrameRequests {
    /// Requests closer than this are for one need.
    private static let spacing = Interval.milliseconds(500)
    /// Requests of one viewer that are passed on in a row, and how long one of them takes to come back. A viewer that loses
    /// its picture more often has a path that no key frame repairs.
    static let burst = 5
    static let interval = Interval.seconds(3)

    /// Requests received.
    private(set) var count: UInt64 = 0
    private var budget = TokenBucket(1, per: interval, burst: burst)
    private var lastPassedAt: Instant?

    /// Notes a request.
    /// - Returns: whether it repeats one that was passed on a moment ago.
    mutating func received(at now: Instant) -> Bool {
        count &+= 1
        return lastPassedAt.map { now - $0 < Self.spacing } ?? false
    }

    /// Whether the budget allows for a request to be passed on, which takes it off the budget.
    mutating func take(at now: Instant) -> Bool {
        guard budget.take(at: now) else { return false }
        lastPassedAt = now
        return true
    }

    /// A request is passed on beside the budget.
    mutating func notePassed(at now: Instant) { lastPassedAt = now }
}
