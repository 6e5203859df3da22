/// The law of control by delay: how the target rate follows the standing queue.
///
/// After RFC 8698 section 4.3 (NADA), with three differences. The goal of the queue falls with the sender's share of the
/// bottleneck, and a queue below it raises the rate by an amount that is the same for all senders while a queue above it lowers
/// the rate in proportion: both pull senders to equal shares (Jain's index of three flows .85 → .97, of five .95 → .98). A
/// queue far above its goal is drained at once: 1.0 s after the capacity fell to a quarter. Rates are in bits a second.
struct DelayController: Sendable {
    /// What the law reads of the path.
    struct Input {
        var queueMS: Double
        var jitterMS: Double
        /// The rate at which packets arrive.
        var delivered: Double
        /// The same within the last 200 ms, while the queue is longer than ``DelayController/busyMS``.
        var deliveredRecently: Double
        /// What the bottleneck carries in all, as far as it is known.
        var link: Double
        /// Microseconds.
        var roundTrip: Int64
        /// A loss test is under way, during which the rate does not rise.
        var isTestingLoss: Bool
        /// The sender began a moment ago on a link that others use.
        var isNewcomer: Bool
        /// Pairs of packets tell what the link carries.
        var isLinkKnown: Bool
        /// Seconds since the report before.
        var elapsed: Double
    }

    /// The goal for a sender that has the whole bottleneck, in milliseconds.
    private static let goalMinMS = 5.0
    /// How much higher the goal is for a sender with a vanishing share, in milliseconds (Jain's index of three flows: .90 with
    /// 20, .97 with 30).
    private static let goalSpanMS = 30.0
    /// A packet of 1200 bytes is on the link for this many milliseconds times bits a second: half of it counts.
    private static let packetMSBits = 1_200 * 8e3 / 2
    /// The gains of distance and change, per second and as a number (RFC 8698: kappa and eta, there 0.5 · rate and 2 · 0.5).
    private static let distanceGain = 2.5
    private static let changeGain = 2.0
    /// No step is larger, as shares of the rate and of the weight.
    private static let decreaseMax = 0.3
    private static let increaseMax = 0.05
    /// No rate more than doubles within a second (on 150 kbit/s nothing tells that the link is thin).
    private static let growthMax = 1.0
    /// While no pair of packets tells what the link carries, the rate exceeds what arrives by a tenth at most unless there is
    /// no queue (on 150 kbit/s p95 of the queue 255 → 19 ms).
    private static let unknownRateMax = 1.1
    /// A queue this far above its goal is drained.
    private static let drainMS = 25.0
    /// A queue of more milliseconds keeps the bottleneck busy.
    static let busyMS = 20.0
    /// A queue of this length more takes the rate to nothing, were it not for the least share; what is over 100 ms counts for
    /// more (measured: .84 of the rate is kept under jitter with 700 ms, .76 with 500; LTE and a drive need the rest).
    private static let drainScaleMS = 700.0
    private static let drainLongMS = 100.0
    private static let drainLongScaleMS = 800.0
    private static let drainShareMin = 0.4
    /// What of the busy rate is sent when the queue has been drained (measured on LTE: .59 → .67 of the capacity used).
    private static let resumeShare = 0.9
    /// A newcomer takes this share of the link a second, up to the share and while the queue is shorter than this (measured:
    /// the third flow has its share after 15.5 → 4.2 s, one that paused 8.6 → 3.2 s, a fifth 13.3 → 2.7 s; .07 and .1 do the
    /// same).
    private static let newcomerGain = 0.08
    private static let newcomerShareMax = 0.5
    private static let newcomerQueueMS = 130.0
    private static let calmUS: Int64 = 400_000
    private static let severePauseUS: Int64 = 500_000
    private static let busyUS: Int64 = 100_000
    /// The ramp without a queue (RFC 8698: gamma with QBOUND 50 ms and DFILT 120 ms), in full after 1.6 s without a queue.
    private static let rampMax = 0.5
    private static let rampQueue = 0.05
    private static let rampDelay = 0.22
    private static let rampSeconds = 1.2
    private static let rampShareMin = 0.15
    /// Its step is at most three tenths of the rate, or what the next step of a ladder of rates takes (measured on 150 kbit/s).
    private static let rampStepMax = 0.3
    private static let rampStep = 60_000.0

    /// The queue is far too long, or has been and is not calm yet.
    private(set) var isDraining = false
    private var previousMS = 0.0
    private var calmSince: Int64?
    private var busySince: Int64?
    private var lastSevereAt = Int64.min / 2
    private var busyRate = 0.0
    private var busyRateRecently = 0.0

    /// The queue in milliseconds that a sender aims at.
    static func goalMS(delivered: Double, link: Double) -> Double {
        let share = min(max(delivered / max(link, 1), 0.02), 1)
        return goalMinMS + goalSpanMS * (1 - share) + min(packetMSBits / max(delivered, 100_000), 30)
    }

    /// Notes the queue of a report, also of one that another part decides about.
    mutating func observe(queueMS: Double, jitterMS: Double, goalMS: Double, at now: Int64) {
        busySince = queueMS > 8 + jitterMS ? busySince ?? now : nil
        calmSince = queueMS > max(2, 0.3 * goalMS) + 0.5 * jitterMS ? nil : calmSince ?? now
    }

    /// Skips a report that another part decides about.
    mutating func skip(queueMS: Double) { previousMS = queueMS }

    mutating func stopDraining() { isDraining = false }

    /// The rate after the queue has been drained. It is made of the last 200 ms: a drain that begins a moment after the rate
    /// rose would be taken for a path that carries what was sent before (measured: a start on 2.5 Mbit/s).
    func resumeRate(deliveredRecently: Double) -> Double {
        Self.resumeShare * (busyRateRecently > 0 ? busyRateRecently : deliveredRecently)
    }

    /// How fast the queue grew since the report before, in milliseconds.
    func growth(to queueMS: Double) -> Double { queueMS - previousMS }

    /// Makes the others of a busy link, whose rates fall in proportion, give a newcomer its share.
    private func newcomerRate(_ target: Double, _ input: Input) -> Double {
        let step = min(Self.newcomerGain * input.link, Self.growthMax * target) * input.elapsed
        return max(target, min(target + step, Self.newcomerShareMax * input.link))
    }

    /// - Returns: the next target rate.
    mutating func next(_ target: Double, _ input: Input, at now: Int64) -> Double {
        let queueMS = input.queueMS
        defer { previousMS = queueMS }
        let goalMS = Self.goalMS(delivered: input.delivered, link: input.link)
        var rate = resumed(target, input)
        if let calmSince, now &- calmSince >= Self.calmUS, !input.isTestingLoss,
            now &- lastSevereAt > Self.severePauseUS
        {
            isDraining = false
            let step = ramp(input, calmUS: now &- calmSince)
            return max(rate, min(input.delivered, rate) + step)
        }
        if input.isNewcomer, !input.isTestingLoss, queueMS < Self.newcomerQueueMS {
            return newcomerRate(target, input)
        }
        if queueMS > goalMS + Self.drainMS {
            isDraining = true
            lastSevereAt = now
            let excessMS = queueMS - goalMS
            let more = max(excessMS - Self.drainLongMS, 0) / Self.drainLongScaleMS
            let share = max(Self.drainShareMin, 1 - excessMS / Self.drainScaleMS - more)
            return min(rate, input.delivered * share)
        }
        let weight = queueMS > goalMS ? input.delivered : input.link
        let distance = Self.distanceGain * input.elapsed * (goalMS - queueMS) / 1e3
        let change = -Self.changeGain * (queueMS - previousMS) / 1e3
        let limit = min(Self.increaseMax * weight, Self.growthMax * input.elapsed * rate)
        var step = min(max(weight * distance + rate * change, -Self.decreaseMax * rate), limit)
        if !input.isLinkKnown { step = min(step, max(Self.unknownRateMax * input.delivered - rate, 0)) }
        rate += input.isTestingLoss ? min(step, 0) : step
        if let busySince, now &- busySince >= Self.busyUS, queueMS > goalMS { rate = min(rate, 1.05 * input.delivered) }
        return rate
    }

    /// A queue that has just been drained leaves the path at the rate that it delivered while it was busy.
    private mutating func resumed(_ target: Double, _ input: Input) -> Double {
        guard isDraining else { return target }
        if input.queueMS > Self.busyMS {
            (busyRate, busyRateRecently) = (input.delivered, input.deliveredRecently)
            return target
        }
        defer { (busyRate, busyRateRecently) = (0, 0) }
        return input.queueMS < 10 ? max(target, Self.resumeShare * busyRate) : target
    }

    private func ramp(_ input: Input, calmUS: Int64) -> Double {
        let seconds = Double(calmUS &- Self.calmUS) / 1e6
        let scale = min(max(seconds / Self.rampSeconds, Self.rampShareMin), 1)
        let gain = min(Self.rampMax, Self.rampQueue / (Double(input.roundTrip) / 1e6 + Self.rampDelay))
        return scale
            * min(
                gain * (input.link * input.delivered).squareRoot(),
                max(Self.rampStepMax * input.delivered, Self.rampStep)
            )
    }
}
