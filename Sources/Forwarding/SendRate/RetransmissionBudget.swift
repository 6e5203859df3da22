import Wire

/// Bounds what retransmissions take of a peer's rate, so that a peer that asks for everything again leaves room for media.
struct RetransmissionBudget {
    /// Of the target rate.
    private static let share = 0.5
    /// Seconds whose share may be used at once.
    private static let burst = 0.5
    /// The packets of one key frame may be sent again at any rate.
    private static let burstBytesMin = 32_000.0

    private var bytes = RetransmissionBudget.burstBytesMin
    private var filledAt: Instant?

    /// Whether a packet may be sent again now, which counts as sending it.
    /// - Parameter target: bit/s that the peer may be sent.
    mutating func take(_ size: Int, target: Int, at now: Instant) -> Bool {
        let rate = Double(target) / 8 * Self.share
        let elapsed = filledAt.map { max(0, (now - $0).seconds) } ?? 0
        filledAt = now
        bytes = min(bytes + rate * elapsed, max(rate * Self.burst, Self.burstBytesMin))
        guard bytes >= Double(size) else { return false }
        bytes -= Double(size)
        return true
    }
}
