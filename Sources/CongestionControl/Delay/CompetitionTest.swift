/// Tells whether others, such as TCP, keep the queue full: a sender that yields to them gets nothing.
///
/// Evidence is a queue that stays too long although all senders that control delay send less, on a path that loses packets.
/// Then the rate is lowered for 400 ms. All senders of a server do that at the same moments of its clock, so a queue that is
/// theirs falls by all of their rates; one that others fill falls by little. (RFC 8698 section 4.2 guesses from loss alone.
/// Measured with six seeds each: no false verdict with flows that share steps, begin one after the other, have unequal delays,
/// or pause; on a link that falls slowly; on LTE while one walks, and in a drive.)
struct CompetitionTest: Sendable {
    /// What the test asks of the rate.
    enum Step: Equatable {
        /// Nothing: no test is under way.
        case none
        /// This rate for now.
        case hold(Double)
        /// Others fill the queue; the rate at which the test began.
        case others(Double)
        /// The queue is that of senders that control delay.
        case own
    }
    private struct Run: BitwiseCopyable {
        var startsAt: Int64
        /// What is sent until then.
        var waitRate: Double
        var isRunning = false
        var delivered = 0.0
        var target = 0.0
        var roundTrip: Int64 = 0
        var startMS = 0.0
    }

    /// Seconds of evidence before a test.
    private static let evidenceMin = 1.5
    /// Evidence wanes at this rate while there is none.
    private static let waning = 0.2
    private static let excessMS = 15.0
    private static let queueMinMS = 45.0
    /// A queue that falls faster, in milliseconds a second, yields to what is sent less.
    private static let fallMin = 50.0
    private static let lossMemory: Int64 = 10_000_000
    private static let starvedShare = 0.15
    /// Tests begin at multiples of these, so that all senders of a server test together.
    private static let period: Int64 = 1_600_000
    private static let competingPeriod: Int64 = 8_000_000
    private static let duration: Int64 = 400_000
    private static let settling: Int64 = 150_000
    private static let lag: Int64 = 250_000
    private static let pause: Int64 = 1_000_000
    /// What is sent during the test; 400 ms of it drain 260 ms of a queue that is all ours.
    private static let testShare = 0.35
    private static let ownFallMS = 100.0
    /// TCP's own saw-tooth takes 100 ms off a queue of 300 ms.
    private static let ownFallCompetingMS = 180.0
    private static let emptyMS = 20.0

    /// In seconds.
    private(set) var evidence = 0.0
    private var run: Run?
    private var heldUntil = Int64.min / 2
    private var lossAt = Int64.min / 2

    /// The path is watched while less is sent. What leaves above the target rate now would be taken for that of others.
    var isRunning: Bool { run?.isRunning == true }

    /// Gathers evidence from one report.
    /// - Parameters:
    ///   - growthMS: how much the queue grew since the report before.
    ///   - isAlone: the bottleneck delivers all that it carries to this sender.
    mutating func observe(
        queueMS: Double,
        growthMS: Double,
        goalMS: Double,
        delivered: Double,
        link: Double,
        isAlone: Bool,
        hasLoss: Bool,
        elapsed: Double,
        at now: Int64
    ) {
        if isAlone {
            evidence = max(evidence - elapsed, 0)
        } else if queueMS > max(goalMS + Self.excessMS, Self.queueMinMS), growthMS > -Self.fallMin * elapsed {
            if now &- lossAt < Self.lossMemory || delivered < Self.starvedShare * link { evidence += elapsed }
        } else {
            evidence = max(evidence - elapsed * Self.waning, 0)
        }
        if hasLoss {
            lossAt = now
            if queueMS > 40, !isAlone { evidence += 0.5 }
        }
    }

    /// The queue has been empty for long while this sender competed.
    mutating func queueEmptied() {
        evidence *= 0.8
        run = nil
    }

    /// Takes one report.
    mutating func step(
        queueMS: Double,
        goalMS: Double,
        target: Double,
        delivered: Double,
        roundTrip: Int64,
        isCompeting: Bool,
        at now: Int64
    ) -> Step {
        guard var run else {
            if isCompeting || (evidence > Self.evidenceMin && now > heldUntil) {
                let period = isCompeting ? Self.competingPeriod : Self.period
                self.run = Run(
                    startsAt: (now / period &+ 1) &* period,
                    waitRate: max(target, 0.8 * delivered)
                )
            }
            return .none
        }
        guard now >= run.startsAt else {
            if isCompeting { return .none }
            if queueMS < goalMS {
                self.run = nil
                evidence *= 0.5
                return .none
            }
            return .hold(run.waitRate)
        }
        if !run.isRunning {
            run.isRunning = true
            (run.delivered, run.target, run.roundTrip) = (delivered, target, roundTrip)
            run.startMS = queueMS
        }
        // What was sent before the test arrives for another round trip.
        if now < run.startsAt &+ run.roundTrip &+ Self.settling { run.startMS = queueMS }
        self.run = run
        if now < run.startsAt &+ Self.duration { return .hold(min(target, Self.testShare * run.delivered)) }
        if now < run.startsAt &+ Self.duration &+ run.roundTrip &+ Self.lag {
            return .hold(min(run.target, 0.9 * run.delivered))
        }
        self.run = nil
        let fall = run.startMS - queueMS
        if fall > (isCompeting ? Self.ownFallCompetingMS : Self.ownFallMS) || queueMS < Self.emptyMS {
            evidence = isCompeting ? 0.8 * Self.evidenceMin : 0.5 * evidence
            heldUntil = now &+ Self.pause
            return .own
        }
        return .others(run.target)
    }
}
