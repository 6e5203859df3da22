import Base
import Wire

/// Consent checks on the selected pair (RFC 7675 §5.1). They are not retransmitted: each is a new transaction.
///
/// Deviation: after an unanswered check the next one follows in one second instead of five, as browsers do. With five
/// seconds, 10 % packet loss would end about one call in six within an hour.
struct ICEConsentChecks: Sendable {
    /// The mean interval; each interval is randomized by ±20 %.
    static let interval = Interval.seconds(5)
    /// The interval after an unanswered check.
    static let retryInterval = Interval.seconds(1)
    /// Checks that can be answered at a time: those of 8 s.
    static let outstandingMax = 8

    private var outstanding: [STUNTransactionID] = []
    private(set) var deadline: Instant?

    init() {}

    mutating func stop() {
        outstanding.removeAll()
        deadline = nil
    }

    /// The transaction identifier of the next check; `nil` when none is due.
    mutating func next(at now: Instant, using generator: inout SplitMix64) -> STUNTransactionID? {
        guard let deadline, now >= deadline else { return nil }
        let id = STUNTransactionID(using: &generator)
        if outstanding.count == Self.outstandingMax { outstanding.removeFirst() }
        outstanding.append(id)
        self.deadline = now + Self.retryInterval
        return id
    }

    func awaits(_ id: STUNTransactionID) -> Bool { outstanding.contains(id) }

    /// Schedules the next check, after a response or after the pair was selected.
    mutating func finish(at now: Instant, using generator: inout SplitMix64) {
        outstanding.removeAll()
        schedule(at: now, using: &generator)
    }

    private mutating func schedule(at now: Instant, using generator: inout SplitMix64) {
        deadline = now + Self.nextInterval(using: &generator)
    }

    /// The time until the next check: 5 s ± 20 %, so that the checks of many peers do not fall together.
    static func nextInterval(using generator: inout SplitMix64) -> Interval {
        let nanoseconds = interval.nanoseconds
        return Interval(nanoseconds: .random(in: nanoseconds * 4 / 5...nanoseconds * 6 / 5, using: &generator))
    }
}
