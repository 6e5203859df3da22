import Base
import Wire

/// The round trip of a link and the difference of its ends' wall clocks, from the times in their reports (as RFC 5905 §8
/// has it). The sample of the least round trip in the last 10 to 20 s says most of the clocks.
struct LinkClock {
    private struct Sample: BitwiseCopyable {
        var roundTrip: Int64
        /// The other clock minus ours, in nanoseconds.
        var offset: Int64
    }

    private static let window = Interval.seconds(10)
    /// A longer round trip is no measurement.
    private static let roundTripMax: Int64 = 10_000_000_000
    private static let delayMax: Int64 = 60_000_000_000

    private var best: Sample?
    private var bestBefore: Sample?
    private var windowBegan: Instant?
    /// Of the newest report that was received: its time of sending there, and ours of its arrival.
    private(set) var newest: (sentAt: Int64, receivedAt: Int64)?
    /// Smoothed; `nil` before the first measurement.
    private(set) var roundTrip: Interval?

    /// The other end's clock minus ours, in nanoseconds; `nil` before the first measurement.
    var offset: Int64? {
        guard let best else { return bestBefore?.offset }
        guard let bestBefore, bestBefore.roundTrip < best.roundTrip else { return best.offset }
        return bestBefore.offset
    }

    /// - Parameter wall: our wall clock in nanoseconds.
    mutating func received(_ report: TransferFeedback, wall: Int64, at now: Instant) {
        if newest.map({ report.sentAt > $0.sentAt }) ?? true { newest = (report.sentAt, wall) }
        guard let echo = report.echo, (0...Self.delayMax).contains(report.echoDelay) else { return }
        let roundTrip = wall &- echo &- report.echoDelay
        guard (0...Self.roundTripMax).contains(roundTrip) else { return }
        let sample = Sample(roundTrip: roundTrip, offset: report.sentAt &+ roundTrip / 2 &- wall)
        self.roundTrip = Interval(nanoseconds: self.roundTrip.map { ($0.nanoseconds * 7 + roundTrip) / 8 } ?? roundTrip)
        if windowBegan.map({ now - $0 >= Self.window }) ?? true {
            windowBegan = now
            bestBefore = best
            best = nil
        }
        if best.map({ sample.roundTrip < $0.roundTrip }) ?? true { best = sample }
    }
}
