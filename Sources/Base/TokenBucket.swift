/// A rate of tokens, and how many may be taken at once: what a ``TokenBucket`` keeps to.
public struct TokenRate: Hashable, Sendable, Codable, BitwiseCopyable {
    /// The most that counts of one call, so that the arithmetic does not overflow.
    private static let countMax = 1_000_000_000

    /// Tokens in each period; 0 for none at all.
    public let tokens: Int
    private let period: Interval
    /// Tokens that may be taken at once.
    public let burst: Int
    /// The time in which a whole burst is paid for.
    fileprivate let burstTime: Interval

    /// - Parameters:
    ///   - tokens: negative ones count as 0.
    ///   - period: longer than zero.
    ///   - burst: tokens that may be taken at once; by default those of a period.
    public init(_ tokens: Int, per period: Interval = .seconds(1), burst: Int? = nil) {
        precondition(period > .zero, "a period has a length")
        self.tokens = max(tokens, 0)
        self.period = period
        self.burst = max(burst ?? tokens, 0)
        burstTime = Self.time(toPay: self.burst, tokens: self.tokens, period: period)
    }

    private static func time(toPay count: Int, tokens: Int, period: Interval) -> Interval {
        guard tokens > 0 else { return .zero }
        let count = Int64(min(max(count, 0), countMax))
        let (product, isTooMuch) = count.multipliedReportingOverflow(by: period.nanoseconds)
        return Interval(nanoseconds: isTooMuch ? .max / 4 : product / Int64(tokens))
    }

    fileprivate func time(toPay count: Int) -> Interval { Self.time(toPay: count, tokens: tokens, period: period) }

    /// Takes tokens if all of them are within the burst. For tables of buckets: of each they keep one instant.
    /// - Parameter paidAt: when everything that was taken before is paid for; in the past for a full bucket.
    public func take(_ count: Int = 1, paidAt: inout Instant, at now: Instant) -> Bool {
        let paid = max(paidAt, now) + time(toPay: count)
        guard tokens > 0, paid <= now + burstTime else { return false }
        paidAt = paid
        return true
    }

    /// When ``take(_:paidAt:at:)`` succeeds at the earliest; `nil` for never.
    public func nextTake(_ count: Int = 1, paidAt: Instant, at now: Instant) -> Instant? {
        let time = time(toPay: count)
        guard tokens > 0, time <= burstTime else { return nil }
        return max(now, paidAt + time - burstTime)
    }
}

/// Bounds how often something is done, or how much of it: requests, messages, bytes, or steps of work (the generic cell rate
/// algorithm: one instant says when everything that was taken is paid for).
///
/// A taker that knows how much it takes calls ``take(_:at:)``, which keeps within the burst. One that knows only afterwards asks for
/// ``hasRoom(at:)`` before, and calls ``charge(_:at:tokens:)``: it may exceed the burst, and waits until that is paid for.
public struct TokenBucket: Sendable, Codable, BitwiseCopyable {
    /// The longest time that is paid for behind a burst.
    private static let debtMax = Interval.seconds(60)

    /// Another rate holds from the next call on. What was taken takes as long to be paid for as before.
    public var rate: TokenRate
    private var paidAt = Instant(nanoseconds: .min / 2)

    /// A full bucket.
    public init(_ rate: TokenRate) { self.rate = rate }

    /// A full bucket.
    /// - Parameters:
    ///   - tokens: those of each period.
    ///   - burst: tokens that may be taken at once; by default those of a period.
    public init(_ tokens: Int, per period: Interval = .seconds(1), burst: Int? = nil) {
        self.init(TokenRate(tokens, per: period, burst: burst))
    }

    /// Takes tokens if all of them are within the burst.
    public mutating func take(_ count: Int = 1, at now: Instant) -> Bool { rate.take(count, paidAt: &paidAt, at: now) }

    /// When ``take(_:at:)`` succeeds at the earliest; `nil` for never.
    public func nextTake(_ count: Int = 1, at now: Instant) -> Instant? {
        rate.nextTake(count, paidAt: paidAt, at: now)
    }

    /// When there is room: now, or later. `nil` for never.
    public func nextRoom(at now: Instant) -> Instant? {
        guard rate.tokens > 0 else { return nil }
        return paidAt < now + rate.burstTime ? now : paidAt - rate.burstTime + .nanoseconds(1)
    }

    /// Whether the burst is not used up.
    public func hasRoom(at now: Instant) -> Bool { nextRoom(at: now) == now }

    /// Whether everything that was taken is paid for.
    public func isFull(at now: Instant) -> Bool { paidAt <= now }

    /// Takes tokens, whether there is room or not.
    /// - Parameter lower: what pays for them, if that is a lower rate than the bucket's own.
    public mutating func charge(_ count: Int = 1, at now: Instant, atMost lower: TokenRate? = nil) {
        let time = max(rate.time(toPay: count), lower?.time(toPay: count) ?? .zero)
        paidAt = min(max(paidAt, now) + time, now + rate.burstTime + Self.debtMax)
    }
}
