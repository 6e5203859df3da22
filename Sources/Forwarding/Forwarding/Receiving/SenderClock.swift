import Base
package import Wire

/// Maps one stream's RTP timestamps to its sender's wall clock, by sender reports (RFC 3550 §6.4.1).
package struct SenderClock: Sendable {
    struct Anchor: Sendable {
        var senderNanoseconds: Int64
        var timestamp: RTPTimestamp
    }
    private let clockRate: Int
    private var anchor: Anchor?

    package init(clockRate: Int) { self.clockRate = max(clockRate, 1) }

    package var isKnown: Bool { anchor != nil }
    /// What the newest report said.
    var newest: Anchor? { anchor }

    /// - Parameter senderNanoseconds: the report's NTP time, in nanoseconds since 1900.
    package mutating func receivedReport(senderNanoseconds: Int64, timestamp: RTPTimestamp) {
        anchor = Anchor(senderNanoseconds: senderNanoseconds, timestamp: timestamp)
    }

    /// The stream's timestamp at a time of the sender's clock; `nil` before the first report.
    package func timestamp(atSenderNanoseconds time: Int64) -> RTPTimestamp? {
        guard let anchor else { return nil }
        let elapsed = time &- anchor.senderNanoseconds
        // Microseconds keep the product of days and 90 kHz inside 64 bits.
        let ticks = (elapsed / 1_000).multipliedReportingOverflow(by: Int64(clockRate))
        guard !ticks.overflow else { return nil }
        return anchor.timestamp.advanced(by: Int(ticks.partialValue / 1_000_000))
    }

    /// The sender's time at a timestamp within half a wrap of the last report's; `nil` before the first report.
    package func senderNanoseconds(at timestamp: RTPTimestamp) -> Int64? {
        guard let anchor else { return nil }
        let ticks = Int64(anchor.timestamp.distance(to: timestamp))
        return anchor.senderNanoseconds &+ ticks * 1_000_000_000 / Int64(clockRate)
    }
}

extension NTPTimestamp {
    /// Nanoseconds since 1900: at most 4.3·10¹⁸, which fits.
    package var nanoseconds: Int64 {
        let seconds = Int64(rawValue >> 32)
        let fraction = Int64(((rawValue & 0xFFFF_FFFF) &* 1_000_000_000) >> 32)
        return seconds * 1_000_000_000 + fraction
    }
}

/// The offset of a peer's wall clock from ours: one estimate for all its streams, so that streams sent in sync leave us
/// in sync.
package final class PeerClock {
    /// A larger difference means that the peer's clock was set.
    private static let jumpMax = Interval.seconds(2)
    private var offset: Int64?

    package init() {}

    /// Our clock minus the peer's, in nanoseconds, network delay included; `nil` before the first report.
    package var nanoseconds: Int64? { offset }

    /// Sets the estimate that another loop made.
    func set(_ nanoseconds: Int64) { offset = nanoseconds }

    package func receivedReport(senderNanoseconds: Int64, ourNanoseconds: Int64) {
        let sample = ourNanoseconds &- senderNanoseconds
        guard let current = offset else {
            offset = sample
            return
        }
        let difference = sample &- current
        if difference.magnitude > UInt64(Self.jumpMax.nanoseconds) {
            offset = sample
        } else {
            // A sample with less delay is more accurate and counts more.
            offset = current &+ difference / (difference < 0 ? 8 : 64)
        }
    }
}
