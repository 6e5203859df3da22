package import Wire

/// Rates how stable the network between a peer and us is, once a second.
///
/// The level changes late enough not to flap: it gets worse with the second bad second, and better with the fifth good
/// one, however wild the figures.
package struct NetworkQuality: Sendable {
    /// What is known of the last second. What is not known is zero.
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

    /// Where levels 1, 2 and 3 begin. Up to the first, repeating lost packets hides what is lost; at the last, video
    /// freezes whatever is done.
    private static let fractionsLost = [0.04, 0.1, 0.2]
    /// A satellite's way alone, 0.6 s, is no more than level 1; longer ones are full queues.
    private static let roundTrips = [Interval.milliseconds(400), .milliseconds(800), .milliseconds(1_500)]
    /// Receivers' buffers for audio grow to 0.1 to 0.2 s without trouble.
    private static let jitters = [Interval.milliseconds(60), .milliseconds(120), .milliseconds(250)]
    private static let secondsUntilWorse = 2
    private static let secondsUntilBetter = 5

    /// 0 stable, 1 slightly unstable, 2 unstable, 3 very unstable.
    package private(set) var level = 0
    /// How many seconds in a row were worse, or better, than the level.
    private var seconds = 0
    /// Of those seconds the level that is nearest to the present one.
    private var nearest = 0

    package init() {}

    /// Takes what is known of one second.
    /// - Returns: the level from now on; `nil` when it is the same as before.
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

/// How many packets of several streams went one way, and how many of them were lost on it.
struct PacketTally {
    /// A fraction of fewer says nothing: of a second of audio there are fifty.
    private static let sentMin = 20

    private(set) var sent = 0
    private(set) var lost = 0

    /// Figures that cannot be, as a hostile peer's reports may make them, count as the nearest that can.
    mutating func add(sent: Int, lost: Int) {
        guard sent > 0 else { return }
        self.sent += sent
        self.lost += min(max(lost, 0), sent)
    }

    /// 0…1; 0 for too few packets.
    var fractionLost: Double { sent < Self.sentMin ? 0 : Double(lost) / Double(sent) }
}

/// What a receiver's reports on one slot say of the way to it. What the slot's source had lost before is not counted,
/// though the receiver misses it too.
struct SlotReports {
    /// Receivers of audio alone report every five seconds, more or less (RFC 3550 §6.2).
    static let ageMax = Interval.seconds(8)

    /// The newest report.
    private(set) var newest: ReportBlock?
    /// The slot's packet count when it came.
    private var packetsSent: UInt32 = 0
    /// The same of the report that the figures were last taken from.
    private var before: (block: ReportBlock, packetsSent: UInt32)?
    private var figures = (sent: 0, lost: 0)
    private var measuredAt: Instant?

    mutating func received(_ block: ReportBlock, packetsSent: UInt32) {
        newest = block
        self.packetsSent = packetsSent
    }

    /// Takes the figures from what was reported since the last call; to be called once a second.
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
        // Numbers that were never sent were missing from the source.
        figures = (sent, min(missed, sent - (expected - missed)))
        measuredAt = now
    }

    /// Whether a report on further packets came not too long ago.
    func areFresh(at now: Instant) -> Bool { measuredAt.map { now - $0 < Self.ageMax } ?? false }

    func add(to tally: inout PacketTally) { tally.add(sent: figures.sent, lost: figures.lost) }
}
