import Base

/// The round-trip time and the retransmission timeout (RFC 9260 §6.3).
struct RoundTripTime: Sendable {
    // RFC 9260 §16 has 1 s, 1 s and 60 s. Deviation: the values of dcsctp, which every Chromium uses, with a lower maximum. Below
    // 400 ms a SACK that a loaded phone delays for 200 ms would count as a loss.
    private static let initial = Interval.milliseconds(500)
    private static let min = Interval.milliseconds(400)
    private static let max = Interval.seconds(10)
    /// The most that backing off reaches, so that a path which works again is noticed soon.
    private static let backoffMax = Interval.seconds(3)
    /// The timeout exceeds the smoothed time by 110 ms at least (dcsctp).
    private static let variationMin = Interval.microseconds(27_500)
    /// Longer measurements are no round trips.
    private static let sampleMax = Interval.seconds(60)

    /// `nil` before the first measurement.
    private(set) var smoothed: Interval?
    /// The least measurement: the path without queues.
    private(set) var least: Interval?
    private(set) var latest: Interval?
    private var variation = Interval.zero
    private var base = initial
    private var doublings = 0

    /// The retransmission timeout, backed off.
    var timeout: Interval {
        let doubled = base * (1 << doublings)
        return doublings == 0 ? base : Swift.max(base, Swift.min(doubled, Self.backoffMax))
    }

    mutating func measured(_ sample: Interval) {
        guard sample >= .zero, sample <= Self.sampleMax else { return }
        latest = sample
        least = Swift.min(least ?? sample, sample)
        if let previous = smoothed {
            let difference = abs(previous.nanoseconds - sample.nanoseconds)
            variation = Interval(nanoseconds: (3 * variation.nanoseconds + difference) / 4)
            smoothed = Interval(nanoseconds: (7 * previous.nanoseconds + sample.nanoseconds) / 8)
        } else {
            variation = Interval(nanoseconds: sample.nanoseconds / 2)
            smoothed = sample
        }
        let margin = Swift.max(variation, Self.variationMin) * 4
        base = Swift.min(Swift.max((smoothed ?? sample) + margin, Self.min), Self.max)
        doublings = 0
    }

    /// The timeout passed without an answer.
    mutating func backOff() {
        if timeout < Self.backoffMax { doublings += 1 }
    }

    /// Something was acknowledged.
    mutating func progressed() { doublings = 0 }

    /// Whether packets wait in a queue on the path: the latest round trip is much longer than the least one.
    var hasQueue: Bool {
        guard let latest, let least else { return true }
        let margin = Swift.max(Interval.milliseconds(5), Interval(nanoseconds: least.nanoseconds / 4))
        return latest > least + margin
    }
}
