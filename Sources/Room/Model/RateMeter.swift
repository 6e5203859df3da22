package import Wire

/// What was taken of a rate: messages, bytes of content, deliveries, or changes.
///
/// A burst may be taken at once. Whoever takes something while there is room may exceed the burst by it, and then waits until
/// that is paid for. So a taker need not know beforehand how much a message takes.
package struct RateMeter: Sendable, Codable {
    /// The longest time that is paid for behind a burst.
    private static let debtMax = Interval.seconds(60)
    /// The most that counts of one call, so that the arithmetic does not overflow.
    private static let countMax = 1_000_000_000

    /// The rate; 0 for nothing at all.
    package let perSecond: Int
    /// How long it takes to pay for a burst.
    private let burst: Interval
    /// When everything that was taken is paid for.
    private var paidAt = Instant(nanoseconds: .min / 2)

    /// - Parameter burst: what may be taken at once; by default what a second pays for.
    package init(perSecond: Int, burst: Int? = nil) {
        self.perSecond = max(perSecond, 0)
        self.burst = Self.time(toPay: burst ?? perSecond, perSecond: perSecond)
    }

    private static func time(toPay count: Int, perSecond: Int) -> Interval {
        guard perSecond > 0 else { return .zero }
        let count = Int64(min(max(count, 0), countMax))
        return Interval(nanoseconds: count * 1_000_000_000 / Int64(perSecond))
    }

    /// When there is room: now, or later. `nil` for never.
    package func nextRoom(at now: Instant) -> Instant? {
        guard perSecond > 0 else { return nil }
        return paidAt < now + burst ? now : paidAt - burst + .nanoseconds(1)
    }

    /// Whether there is room now.
    package func hasRoom(at now: Instant) -> Bool { nextRoom(at: now) == now }

    /// Whether everything that was taken is paid for.
    package func isPaid(at now: Instant) -> Bool { paidAt <= now }

    /// Takes something, whether there is room or not.
    /// - Parameter rate: what pays for it, if that is less than the meter's own rate.
    package mutating func take(_ count: Int = 1, at now: Instant, perSecond rate: Int? = nil) {
        let time = Self.time(toPay: count, perSecond: min(rate ?? perSecond, perSecond))
        paidAt = min(max(paidAt, now) + time, now + burst + Self.debtMax)
    }

    /// Takes something if all of it is within the burst. For a taker that knows how much that is.
    package mutating func takeIfRoom(for count: Int = 1, at now: Instant) -> Bool {
        let paid = max(paidAt, now) + Self.time(toPay: count, perSecond: perSecond)
        guard perSecond > 0, paid <= now + burst else { return false }
        paidAt = paid
        return true
    }
}
