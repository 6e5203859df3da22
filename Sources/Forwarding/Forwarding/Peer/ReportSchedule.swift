import Base
import CongestionControl
import Wire

/// When a peer's feedback and reports are due, and the arrivals and round trips that they are made of.
struct ReportSchedule {
    private var transportFeedback: TransportFeedbackGenerator?
    private(set) var nextTickAt: Instant
    private(set) var nextReportAt: Instant
    /// From our sender reports and the peer's answers; `nil` before the first.
    private(set) var roundTrip: Interval?
    private(set) var roundTripAt: Instant?
    /// The numbers of one NACK on their way into a packet; kept so that it is allocated once.
    var lost: [SequenceNumber] = []

    /// How often layers are chosen and silence is noticed.
    static let tickInterval = Interval.milliseconds(250)
    /// RFC 3550 §6.2 would allow 5 s; browsers report every second.
    static let reportInterval = Interval.seconds(1)
    /// A loop's peers report at common times, a few of them each, so that a thousand peers do not wake it a thousand
    /// times a second for one datagram each.
    private static let reportSpacing = Interval.milliseconds(50)

    init(at now: Instant) {
        nextTickAt = now + Self.tickInterval
        nextReportAt = now + Self.reportInterval
    }

    private static func reportTime(after now: Instant) -> Instant {
        let earliest = (now + reportInterval).nanoseconds
        return Instant(nanoseconds: earliest - earliest % reportSpacing.nanoseconds)
    }

    /// When transport-wide feedback is due; `nil` while nothing is to be reported.
    var nextFeedbackAt: Instant? { transportFeedback?.nextDeadline }

    /// The peer numbers its packets.
    mutating func startTransportFeedback() {
        if transportFeedback == nil { transportFeedback = TransportFeedbackGenerator() }
    }

    mutating func connected(at now: Instant) { nextReportAt = Self.reportTime(after: now) }

    mutating func received(_ number: TransportSequenceNumber, at now: Instant) {
        transportFeedback?.received(number, at: now)
    }

    /// Whether a tick is due; the next one is scheduled then.
    mutating func takeTick(at now: Instant) -> Bool {
        guard now >= nextTickAt else { return false }
        nextTickAt = now + Self.tickInterval
        return true
    }

    /// Whether reports are due; the next ones are scheduled then.
    mutating func takeReport(at now: Instant) -> Bool {
        guard now >= nextReportAt else { return false }
        nextReportAt = Self.reportTime(after: now)
        return true
    }

    /// Writes one packet of transport-wide feedback.
    /// - Returns: whether there was something to report.
    mutating func makeFeedback(
        at now: Instant,
        writer: inout RTCPWriter,
        senderSSRC: SSRC,
        mediaSSRC: SSRC
    ) -> Bool {
        transportFeedback?.makeFeedback(at: now, writer: &writer, senderSSRC: senderSSRC, mediaSSRC: mediaSSRC) == true
    }

    /// Takes a round trip into the average. One that cannot be is ignored.
    mutating func noteRoundTrip(_ sample: Interval, at now: Instant) {
        guard sample >= .zero, sample < .seconds(30) else { return }
        roundTripAt = now
        guard let roundTrip else {
            self.roundTrip = sample
            return
        }
        self.roundTrip = Interval(nanoseconds: (roundTrip.nanoseconds * 7 + sample.nanoseconds) / 8)
    }
}
