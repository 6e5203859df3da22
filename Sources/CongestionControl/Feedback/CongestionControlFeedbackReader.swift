import Base
package import Wire

/// Reads congestion control feedback about the packets sent to one peer (RFC 8888).
///
/// The peer names packets by stream and RTP sequence number; the sender knows the number that it counted the packet with among
/// those of all streams. The peer may lie: a packet counts only if it was sent, and once.
package struct CongestionControlFeedbackReader: ~Copyable, Sendable {
    /// A packet that was sent: its number among those of all streams, without wraps, and its record.
    package typealias Sent = (number: Int64, packet: SentPacket)

    /// Bytes of the IP and UDP headers that each packet has on the wire: 28 with IPv4, 48 with IPv6.
    package var headerBytes: Int
    private var reported: ReportedPackets
    /// The timestamp of the report before without its wraps, in units of 2⁻¹⁶ s.
    private var timestamp: Int64?

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
    ///   - sent: finds a packet; `nil` when none was sent with the number, or its record is gone.
    package mutating func read(
        _ feedback: CongestionControlFeedbackCursor,
        newest: Int64,
        at now: Int64,
        into report: inout FeedbackReport,
        sent: (SSRC, SequenceNumber) -> Sent?
    ) {
        report.begin(at: now)
        reported.advance(to: newest)
        let reportedAt = microseconds(feedback.timestamp)
        var cursor = feedback
        var taken = 0
        while let status = cursor.next() {
            taken += 1
            guard taken <= TransportFeedbackReader.statusesMax, let sent = sent(status.ssrc, status.sequence),
                reported.contains(sent.number)
            else {
                report.unknownPackets += 1
                continue
            }
            let isMarked = status.ecn == .congestionExperienced && reported.mark(sent.number)
            let isReceived = status.arrival != .lost && sent.packet.kind != .repeated
            guard let news = reported.update(sent.number, isReceived: isReceived) else {
                // Of several copies of a packet the mark counts (RFC 8888 §3.1).
                if isMarked { report.lateMarks += 1 }
                continue
            }
            let arrivedAt: Int64?
            switch status.arrival {
            case _ where !isReceived, .lost: arrivedAt = nil
            case .offset(let offset): arrivedAt = reportedAt &- Int64(offset) * 1_000_000 / 1_024
            case .early, .unknown:
                if isMarked { report.lateMarks += 1 }
                continue
            }
            report.packets.append(
                PacketResult(
                    sent.packet,
                    sequence: sent.number,
                    arrivedAt: arrivedAt,
                    wasReportedLost: news == .receivedAfterLoss,
                    ecn: isReceived ? status.ecn : nil,
                    headerBytes: headerBytes,
                    at: now
                )
            )
        }
        report.sortPackets()
    }

    /// The report's timestamp without its wraps: the one nearest to that of the report before.
    private mutating func microseconds(_ wire: UInt32) -> Int64 {
        let before = timestamp ?? Int64(wire)
        let difference = Int32(bitPattern: wire &- UInt32(truncatingIfNeeded: before))
        let unwrapped = before &+ Int64(difference)
        timestamp = unwrapped
        return (unwrapped &* 15_625) >> 10
    }
}
