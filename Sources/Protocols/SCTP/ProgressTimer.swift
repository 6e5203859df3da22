import Base

/// Finds that memory is held for a peer, and nothing moves on.
struct ProgressTimer: Sendable {
    /// Longer than any interruption that ICE survives (RFC 7675 §5.1: consent expires after 30 s).
    static let limit = Interval.seconds(60)

    /// When to look again; `nil` while nothing is held.
    private(set) var deadline: Instant?

    mutating func update(isHolding: Bool, hasProgressed: Bool, at now: Instant) {
        if !isHolding {
            deadline = nil
        } else if hasProgressed || deadline == nil {
            deadline = now + Self.limit
        }
    }

    func hasExpired(at now: Instant) -> Bool {
        guard let deadline else { return false }
        return deadline <= now
    }
}
