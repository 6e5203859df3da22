import Base
package import Wire

/// Reads transport-wide congestion control feedback about the packets sent to one peer
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
///
/// The peer may lie: a packet counts only if it was sent, and once. Reports may be lost, repeated and out of order.
package struct TransportFeedbackReader: ~Copyable, Sendable {
    /// Statuses taken from one report at most.
    package static let statusesMax = 8_192
    private static let tickUS: Int64 = 250
    private static let ticksPerReference: Int64 = 256

    /// Bytes of the IP and UDP headers that each packet has on the wire: 28 with IPv4, 48 with IPv6.
    package var headerBytes: Int
    private var reported: ReportedPackets
    /// The reference time of the report before without its wraps, in units of 64 ms.
    private var referenceTime: Int64?
    private var feedbackCount: UInt8?
    /// Reports lost so far, by their 8-bit count.
    package private(set) var lostReports: UInt64 = 0

    /// - Parameter capacity: how many of the last packets the sender keeps records of; a power of two.
    package init(capacity: Int = 2_048, headerBytes: Int = 28) {
        reported = ReportedPackets(capacity: capacity)
        self.headerBytes = headerBytes
    }

    /// Takes no more reports about packets sent so far: they took another path.
    /// - Parameter newest: the newest number that was sent, without its wraps.
    package mutating func pathChanged(newest: Int64) { reported.forget(through: newest) }

    /// Asks for what a report changes.
    package func prefetch() { reported.prefetch() }

    /// Reads one report.
    /// - Parameters:
    ///   - newest: the newest number that was sent, without its wraps.
    ///   - now: microseconds of the sender's clock.
    ///   - report: receives what is new.
    ///   - sent: finds the packet with a number; `nil` when none was sent with it, or its record is gone.
    package mutating func read(
        _ feedback: TransportFeedbackCursor,
        newest: Int64,
        at now: Int64,
        into report: inout FeedbackReport,
        sent: (Int64) -> SentPacket?
    ) {
        report.begin(at: now)
        report.lostReports = missed(before: feedback.feedbackCount)
        reported.advance(to: newest)
        let reference = unwrap(feedback.referenceTime) &* Self.ticksPerReference
        var cursor = feedback
        var taken = 0
        while taken < Self.statusesMax, let status = cursor.next() {
            taken += 1
            let age = UInt16(truncatingIfNeeded: newest) &- status.sequence.rawValue
            let number = newest &- Int64(age)
            guard reported.contains(number), let packet = sent(number) else {
                report.unknownPackets += 1
                continue
            }
            let isReceived = status.arrivalTicks != nil && packet.kind != .repeated
            guard let news = reported.update(number, isReceived: isReceived) else { continue }
            report.packets.append(
                PacketResult(
                    packet,
                    sequence: number,
                    arrivedAt: isReceived ? status.arrivalTicks.map { (reference &+ Int64($0)) &* Self.tickUS } : nil,
                    wasReportedLost: news == .receivedAfterLoss,
                    headerBytes: headerBytes,
                    at: now
                )
            )
        }
        report.unknownPackets += feedback.statusCount - taken
    }

    /// The reference time without its wraps: the one nearest to that of the report before.
    private mutating func unwrap(_ wire: Int) -> Int64 {
        let before = referenceTime ?? Int64(wire)
        let difference = (Int32(truncatingIfNeeded: Int64(wire) &- before) << 8) >> 8
        let unwrapped = before &+ Int64(difference)
        referenceTime = unwrapped
        return unwrapped
    }

    /// - Returns: how many reports were lost between the newest one before and this one.
    private mutating func missed(before count: UInt8) -> Int {
        guard let last = feedbackCount else {
            feedbackCount = count
            return 0
        }
        let distance = Int8(bitPattern: count &- last)
        guard distance > 0 else {
            // A report that others overtook was counted as lost.
            if distance < 0, lostReports > 0 { lostReports -= 1 }
            return 0
        }
        feedbackCount = count
        lostReports &+= UInt64(distance - 1)
        return Int(distance) - 1
    }
}
