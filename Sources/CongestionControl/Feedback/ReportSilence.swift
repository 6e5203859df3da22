/// Lowers the rate while packets leave and no report comes, and brings it back when one does. Rates are in bits a second.
struct ReportSilence: Sendable {
    private static let wait: Int64 = 600_000
    private static let step: Int64 = 500_000
    private static let factor = 0.7
    /// After 3 s the rate falls as slowly as libwebrtc's (0.8; there once a second).
    private static let longWait: Int64 = 3_000_000
    private static let longFactor = 0.8
    /// Audio goes on.
    private static let floor = 60_000.0
    /// What of the rate before comes back at once (measured: 1.1 s until 80 % are back after 3 s without reports, 1.2 s after 6
    /// s without a path).
    private static let returnShare = 0.75

    private var reportAt: Int64
    private var lowered: Int64 = .min / 2
    /// When the first packet after the last report left; `nil` while none has.
    private var sentAt: Int64?
    /// The target rate before the silence; `nil` while reports come.
    private(set) var targetBefore: Double?

    init(at now: Int64) { reportAt = now }

    mutating func packetSent(at now: Int64) { if sentAt == nil { sentAt = now } }

    /// - Returns: the target rate of now.
    mutating func handleTimeout(_ target: Double, roundTrip: Int64, at now: Int64) -> Double {
        guard let sentAt else { return target }
        // A pause in which nothing was sent is no silence.
        let silence = now &- max(reportAt, sentAt)
        guard silence > max(Self.wait, 3 &* roundTrip), now &- lowered > Self.step else { return target }
        lowered = now
        targetBefore = targetBefore ?? target
        let factor = silence > Self.longWait ? Self.longFactor : Self.factor
        return min(target, max(target * factor, Self.floor))
    }

    /// Takes the arrival of a report.
    /// - Returns: the microseconds since the report before.
    mutating func reported(at now: Int64) -> Int64 {
        defer { reportAt = now }
        sentAt = nil
        return now &- reportAt
    }

    /// - Returns: the target rate to come back to.
    mutating func end(_ target: Double) -> Double {
        defer { targetBefore = nil }
        return max(target, Self.returnShare * (targetBefore ?? 0))
    }
}
