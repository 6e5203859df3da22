import Base
import MediaTypes
package import Wire

/// What one slot reports to its receiver, and what the receiver reports of it.
struct SlotReporter {
    /// Reports of the receiver.
    var reports = SlotReports()
    /// Bits on the wire in the second before the last measurement.
    var meter = BitrateMeter()
    /// When the stream that plays, or the last one that did, began to.
    var sourceBeganAt: Instant?
    /// When the slot got the source that it has, or the last one.
    var sourceConnectedAt = Instant(nanoseconds: 0)

    /// A sender that sent nothing for two report intervals is no sender any more (RFC 3550 §6.3.8).
    static let silenceMax = Interval.seconds(2)
    /// How long to wait for the source's own reports, which alone tell how its audio and video relate, before arrival
    /// times are used.
    private static let sourceReportPatience = Interval.seconds(5)

    /// Whether the source's own reports have been waited for long enough.
    func waitedForSourceReports(at now: Instant) -> Bool {
        sourceBeganAt.map { now - $0 > Self.sourceReportPatience } ?? false
    }
}

extension SendSlot {
    /// Bits on the wire in the second before the last `tick`.
    package var bitrate: Int { reporter.meter.bitrate }
    /// The receiver's newest report on us.
    package var lastReport: ReportBlock? { reporter.reports.newest }

    /// To be called about once a second.
    func tick(at now: Instant) {
        reporter.meter.measure(bytesSent, at: now)
        if unsafe state.pointee.tellsPlayoutDelay { relievePlayout(at: now) }
        if let source, let origin = source.origin { origin.refreshSubscription(of: source, at: now) }
    }

    func receivedReport(_ block: ReportBlock) {
        reporter.reports.received(block, packetsSent: packetsSent)
        // With layers the receiver tells streams apart by RID, which goes with the MID.
        unsafe state.pointee.sendsMID = retransmitter.retransmitsWithoutRTX
    }

    /// The sender report that ties the outgoing timestamps to our clock (RFC 3550 §6.4.1); `nil` before media, and while
    /// nothing is sent.
    func senderInfo(at now: Instant) -> SenderInfo? {
        guard packetsSent > 0, let newest = unsafe state.pointee.rewriter.newestTimestamp,
            now - newest.sentAt < SlotReporter.silenceMax
        else { return nil }
        let ntp = peer.core.ntp(at: now)
        var rtp: RTPTimestamp?
        if let segment = unsafe state.pointee.rewriter.currentSegment, let stream = source?.stream(segment.stream),
            let offset = stream.track.clockOffset.nanoseconds,
            let sourceTime = stream.clock.timestamp(atSenderNanoseconds: ntp.nanoseconds &- offset)
        {
            rtp = segment.timestamp(sourceTime)
        } else if reporter.waitedForSourceReports(at: now) {
            let elapsed = Int((now - newest.sentAt).nanoseconds / 1_000)
            rtp = newest.timestamp.advanced(by: elapsed * parameters.kind.clockRate / 1_000_000)
        }
        return rtp.map {
            SenderInfo(ntp: ntp, rtp: $0, packetCount: packetsSent, octetCount: octetsSent)
        }
    }
}
