import Base
import MediaFormat
import Wire

/// The clock of a publisher against ours: one for all its tracks, so that what was sent together stays together.
package final class PublisherClock {
    /// A greater difference means that the publisher's clock was set.
    private static let jumpMax = Interval.seconds(2)
    private var offset: Int64?

    package init() {}

    /// Our time of a time of the publisher, in nanoseconds since 1900; `nil` before the first report.
    func time(ofSender nanoseconds: Int64) -> Interval? { offset.map { Interval(nanoseconds: nanoseconds &+ $0) } }

    /// A report said the publisher's time.
    func note(senderNanoseconds: Int64, at now: Instant) {
        let measured = now.nanoseconds &- senderNanoseconds
        if let offset, Interval(nanoseconds: measured &- offset).magnitude <= Self.jumpMax { return }
        offset = measured
    }
}

extension Interval {
    fileprivate var magnitude: Interval { nanoseconds < 0 ? Interval(nanoseconds: 0 &- nanoseconds) : self }
}

/// The RTP timestamps of one stream as times of the publisher.
///
/// Until a sender report tells more, time counts from the arrival of the first frame. What reports correct later is taken over
/// slowly, unless the difference is so great that the stream has to begin anew.
struct StreamClock {
    /// The most that one frame moves the clock by.
    static let correctionMax = Interval.milliseconds(1)
    /// A difference that is not corrected slowly.
    static let jumpMin = Interval.milliseconds(200)

    /// The time of a frame.
    struct Reading {
        var time: Interval
        /// The time does not continue that of the frames before.
        var isJump: Bool
    }

    private let rate: Int
    private var newest: (timestamp: RTPTimestamp, ticks: Int64)?
    /// A timestamp and its time, from which all others count.
    private var base: (ticks: Int64, time: Interval)?
    private var anchor: (timestamp: RTPTimestamp, senderNanoseconds: Int64)?

    init(rate: Int) { self.rate = rate }

    /// Whether a sender report was taken.
    var isAnchored: Bool { anchor != nil }

    mutating func note(_ anchor: (timestamp: RTPTimestamp, senderNanoseconds: Int64)) { self.anchor = anchor }

    /// The time of a frame's timestamp.
    mutating func read(_ timestamp: RTPTimestamp, arrivedAt: Instant, _ publisher: PublisherClock) -> Reading {
        let ticks = unwrap(timestamp)
        let reported = anchor.flatMap { anchor -> Interval? in
            let distance = Int64(anchor.timestamp.distance(to: timestamp))
            return publisher.time(ofSender: anchor.senderNanoseconds).map { $0 + self.time(of: distance) }
        }
        guard let base else {
            let time = reported ?? Interval(nanoseconds: arrivedAt.nanoseconds)
            self.base = (ticks, time)
            return Reading(time: time, isJump: false)
        }
        var time = base.time + self.time(of: ticks &- base.ticks)
        // Without reports the arrival tells at least that a timestamp jumped.
        let expected = reported ?? Interval(nanoseconds: arrivedAt.nanoseconds)
        let difference = expected - time
        let isFar = difference < Interval.zero - Self.jumpMin || difference > Self.jumpMin
        if reported != nil ? isFar : isBeyond(difference) {
            self.base = (ticks, expected)
            return Reading(time: expected, isJump: true)
        }
        if reported != nil {
            let correction = min(max(difference, Interval.zero - Self.correctionMax), Self.correctionMax)
            time = time + correction
            self.base = (ticks, time)
        }
        return Reading(time: time, isJump: false)
    }

    /// Arrival is no clock: only what no network does counts.
    private func isBeyond(_ difference: Interval) -> Bool {
        difference < Interval.seconds(-10) || difference > .seconds(10)
    }

    private mutating func unwrap(_ timestamp: RTPTimestamp) -> Int64 {
        guard let newest else {
            self.newest = (timestamp, Int64(timestamp.rawValue))
            return Int64(timestamp.rawValue)
        }
        let ticks = newest.ticks &+ Int64(newest.timestamp.distance(to: timestamp))
        self.newest = (timestamp, ticks)
        return ticks
    }

    private func time(of ticks: Int64) -> Interval { MediaFrame.time(ticks: ticks, per: rate) }
}
