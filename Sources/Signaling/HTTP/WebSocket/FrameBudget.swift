import NIOCore

/// A token bucket for the cheap frames of one WebSocket: pings, pongs, small fragments, and frames after a Close. Each costs
/// the node as much as a whole message, also before authentication.
struct FrameBudget {
    private let burst: Int
    /// The time per frame.
    private let interval: TimeAmount
    private var available: Int
    private var filledAt: NIODeadline

    /// - Parameters:
    ///   - burst: The maximum number of frames at once.
    ///   - perSecond: The rate in frames per second; at least one.
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
