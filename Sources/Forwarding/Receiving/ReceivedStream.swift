import CongestionControl
package import Wire

/// One RTP stream that a peer sends: one SSRC, audio or one layer of video, with everything that belongs to it alone.
package final class ReceivedStream {
    package let id: StreamID
    package let ssrc: SSRC
    /// The simulcast layer; `nil` without simulcast.
    package let rid: RID?
    package unowned let track: ReceivedTrack
    /// The SSRC that repeats this one's packets (RFC 4588), once known.
    package var rtxSSRC: SSRC?

    package let history: PacketHistory
    package var unwrapper = SequenceUnwrapper()
    package var statistics: ReceiveStatistics
    package var losses = LossDetector()
    package var keyFrames = KeyFrameRequester()
    package var clock: SenderClock
    /// For the "last SR" fields of our reports: the middle 32 bits of its NTP time, and when it came.
    package var lastSenderReport: (middle: UInt32, receivedAt: Instant)?
    package private(set) var lastPacketAt: Instant
    /// Media bits in the second before the last `measure`.
    package private(set) var bitrate = 0
    package private(set) var bytesReceived: UInt64 = 0
    private var bytesAtMeasure: UInt64 = 0
    private var measuredAt: Instant

    package init(
        id: StreamID,
        ssrc: SSRC,
        rid: RID?,
        track: ReceivedTrack,
        historyBytesMax: Int = PacketHistory.bytesMax,
        at now: Instant
    ) {
        self.id = id
        self.ssrc = ssrc
        self.rid = rid
        self.track = track
        let clockRate = track.parameters.codecs.first?.clockRate ?? track.parameters.kind.clockRate
        let usual = track.parameters.kind == .video ? PacketHistory.bytesMax : 64 * 1024
        history = PacketHistory(bytesLimit: min(usual, historyBytesMax))
        statistics = ReceiveStatistics(clockRate: clockRate)
        clock = SenderClock(clockRate: clockRate)
        lastPacketAt = now
        measuredAt = now
    }

    /// Without a packet for this long a stream no longer counts as flowing. Screen sharing and DTX still send within
    /// it.
    static let silenceMax = Interval.seconds(2)

    package func isFlowing(at now: Instant) -> Bool { bytesReceived > 0 && now - lastPacketAt < Self.silenceMax }

    package func noteArrival(bytes: Int, at now: Instant) {
        bytesReceived &+= UInt64(bytes)
        lastPacketAt = now
    }

    package func measureBitrate(at now: Instant) {
        let elapsed = (now - measuredAt).nanoseconds
        // The burst of a layer's first key frame, measured by itself, would make the smallest layer look the richest.
        guard elapsed >= 500_000_000 else { return }
        let bits = Int(truncatingIfNeeded: bytesReceived &- bytesAtMeasure) * 8
        bitrate = Int(Double(bits) / (Double(elapsed) / 1e9))
        bytesAtMeasure = bytesReceived
        measuredAt = now
    }

    /// The earliest time that the stream wants to send feedback of its own.
    package var nextDeadline: Instant? { earliest(losses.nextDeadline, keyFrames.nextDeadline) }
}

extension MediaKind {
    /// RTP clock in Hz of every codec of the kind that we negotiate.
    package var clockRate: Int { self == .audio ? 48_000 : 90_000 }
}

extension ReceivedStream {
    /// Our report on the stream (RFC 3550 §6.4.1); `nil` before its first packet.
    package func makeReportBlock(at now: Instant) -> ReportBlock? {
        guard let report = statistics.takeReport() else { return nil }
        return ReportBlock(
            ssrc: ssrc,
            fractionLost: report.fractionLost,
            cumulativeLost: report.cumulativeLost,
            highestSequence: report.highest,
            jitter: report.jitter,
            lastSR: lastSenderReport?.middle ?? 0,
            delaySinceLastSR: lastSenderReport.map { (now - $0.receivedAt).compactNTP } ?? 0
        )
    }
}
