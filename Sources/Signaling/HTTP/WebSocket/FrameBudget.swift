import NIOCore

/// How many frames that carry next to nothing one WebSocket may send: pings, pongs, small fragments, and whatever comes
/// behind a Close. Each costs the node as much as a whole message does before anybody could be asked to log in.
struct FrameBudget {
    private let burst: Int
    /// Time in which one frame becomes available again.
    private let interval: TimeAmount
    private var available: Int
    private var filledAt: NIODeadline

    /// - Parameters:
    ///   - burst: frames at once.
    ///   - perSecond: frames a second in the long run; at least one.
    init(burst: Int, perSecond: Int, at now: NIODeadline) {
        self.burst = burst
        interval = .nanoseconds(1_000_000_000 / Int64(clamping: max(1, perSecond)))
        available = burst
        filledAt = now
    }

    /// Whether one more frame is within the budget.
    mutating func take(at now: NIODeadline) -> Bool {
        let elapsed = (now - filledAt).nanoseconds
        let frames = elapsed / max(1, interval.nanoseconds)
        if frames >= Int64(burst - available) {
            available = burst
            filledAt = now
        } else if frames > 0 {
            available += Int(frames)
            filledAt = filledAt + .nanoseconds(frames * interval.nanoseconds)
        }
        guard available > 0 else { return false }
        available -= 1
        return true
    }
}
