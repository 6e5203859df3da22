package import Base
import Wire

/// Rates how stable the network between a peer and us is, once a second.
///
/// So that the level does not flap, it gets worse in the second bad second in a row, and better in the fifth good one.
package struct NetworkQuality: Sendable {
    /// Measurements of the last second; zero where there is none.
    package struct Sample: Sendable {
        /// 0…1, in the worse of the two directions.
        package var fractionLost = 0.0
        package var roundTrip = Interval.zero
        /// Of audio, whose packets leave evenly.
        package var jitter = Interval.zero

        package init(fractionLost: Double = 0, roundTrip: Interval = .zero, jitter: Interval = .zero) {
            self.fractionLost = fractionLost
            self.roundTrip = roundTrip
            self.jitter = jitter
        }
    }

    /// Where levels 1, 2 and 3 begin. Below the first, retransmission hides the loss; from the last on, video freezes.
    private static let fractionsLost = [0.04, 0.1, 0.2]
    /// A satellite link alone takes 0.6 s, which is level 1; more means full queues.
    private static let roundTrips = [Interval.milliseconds(400), .milliseconds(800), .milliseconds(1_500)]
    /// Audio jitter buffers grow to 0.1 to 0.2 s without audible effect.
    private static let jitters = [Interval.milliseconds(60), .milliseconds(120), .milliseconds(250)]
    private static let secondsUntilWorse = 2
    private static let secondsUntilBetter = 5

    /// 0 stable, 1 slightly unstable, 2 unstable, 3 very unstable.
    package private(set) var level = 0
    /// Consecutive seconds that were worse, or better, than the level.
    private var seconds = 0
    /// The level of those seconds that is nearest to the current one.
    private var nearest = 0

    package init() {}

    /// Rates one second.
    /// - Returns: the new level; `nil` when it is unchanged.
    package mutating func rate(_ sample: Sample) -> Int? {
        let rating = Self.rating(of: sample)
        guard rating != level else {
            seconds = 0
            return nil
        }
        let isWorse = rating > level
        if seconds > 0, (nearest > level) == isWorse {
            seconds += 1
            nearest = isWorse ? min(nearest, rating) : max(nearest, rating)
        } else {
            seconds = 1
            nearest = rating
        }
        guard seconds >= (isWorse ? Self.secondsUntilWorse : Self.secondsUntilBetter) else { return nil }
        level = nearest
        seconds = 0
        return level
    }

    /// The level of one second by itself: the worst of its figures.
    static func rating(of sample: Sample) -> Int {
        max(
            fractionsLost.count { sample.fractionLost >= $0 },
            roundTrips.count { sample.roundTrip >= $0 },
            jitters.count { sample.jitter >= $0 }
        )
    }
}

/// Packets of several streams in one direction, and how many of them were lost.
struct PacketTally {
    /// Fewer packets give no meaningful fraction. A second of audio has fifty.
    private static let sentMin = 20

    private(set) var sent = 0
    private(set) var lost = 0

    /// Clamps impossible figures, which a hostile peer may report.
    mutating func add(sent: Int, lost: Int) {
        guard sent > 0 else { return }
        self.sent += sent
        self.lost += min(max(lost, 0), sent)
    }

    /// 0…1; 0 for too few packets.
    var fractionLost: Double { measuredFractionLost ?? 0 }

    /// 0…1; `nil` for too few packets.
    var measuredFractionLost: Double? { sent < Self.sentMin ? nil : Double(lost) / Double(sent) }
}

/// Loss on the way to a receiver, by its reports on one slot. Packets that the source had lost before are not counted,
/// though the receiver misses them too.
struct SlotReports {
    /// Receivers of audio alone report about every five seconds (RFC 3550 §6.2).
    static let ageMax = Interval.seconds(8)

    /// The newest report.
    private(set) var newest: ReportBlock?
    /// The slot's packet count when it arrived.
    private var packetsSent: UInt32 = 0
    /// The report that `figures` were last computed from, and the packet count at that time.
    private var before: (block: ReportBlock, packetsSent: UInt32)?
    private var figures = (sent: 0, lost: 0)
    private var measuredAt: Instant?

    mutating func received(_ block: ReportBlock, packetsSent: UInt32) {
        newest = block
        self.packetsSent = packetsSent
    }

    /// Computes the figures from the reports since the last call; to be called once a second.
    mutating func measure(at now: Instant) {
        guard let newest else { return }
        guard let before else {
            before = (newest, packetsSent)
            return
        }
        let expected = Int(newest.highestSequence &- before.block.highestSequence)
        guard expected > 0 else { return }
        self.before = (newest, packetsSent)
        let sent = Int(packetsSent &- before.packetsSent)
        let missed = Int(newest.cumulativeLost) - Int(before.block.cumulativeLost)
        // Numbers that were never sent were lost before they reached us.
        figures = (sent, min(missed, sent - (expected - missed)))
        measuredAt = now
    }

    /// Whether a recent report covered new packets.
    func areFresh(at now: Instant) -> Bool { measuredAt.map { now - $0 < Self.ageMax } ?? false }

    /// Whether the figures were computed now.
    func areNew(at now: Instant) -> Bool { measuredAt == now }

    /// Of the packets of the figures, those that were lost, 0…1; `nil` for none. Impossible figures are clamped.
    var fractionLost: Double? {
        figures.sent > 0 ? Double(min(max(figures.lost, 0), figures.sent)) / Double(figures.sent) : nil
    }

    func add(to tally: inout PacketTally) { tally.add(sent: figures.sent, lost: figures.lost) }
}
