/// Decides how much is sent to one subscriber: the target rate of its media, the rate of its pacer and the probe clusters.
///
/// The standing queue of the path leads (`DelayController`); loss without a queue is tested (`LossTest`), and so is a queue that stays
/// (`CompetitionTest`). It knows no clock: times are microseconds of the sender's monotonic clock, which all controllers of a
/// server share, rates are bits a second from the IP header on.
package struct SendController: ~Copyable, Sendable {
    // Pacing, as multiples of the target. Twice and more makes a queue of a picture's length at each picture (measured: p95 of
    // the queue 66 ms at 2.0, 60 at 1.5); short buffers and policers bear no bursts. An L4S queue marks every burst.
    private static let pacingStart = 2.5
    private static let pacing = 1.5
    private static let pacingSmooth = 1.1
    private static let pacingMarked = 1.05
    private static let burstMarked = 0.001
    /// The target may exceed what the media want, so that a probe is not needed for a little more.
    private static let demandMargin = 1.1
    /// The first cluster: three times the usual start rate of 300 kbit/s.
    private static let firstProbe = 900_000.0
    /// A saturated cluster says this much of its result at the start, when little is known, and later.
    private static let probeTrustStart = 0.85
    private static let probeTrust = 0.5
    private static let probeQueueMaxMS = 30.0
    /// What a loss test sends of the delivered rate (measured: .85 costs a tenth of the rate at a random loss of 5 %).
    private static let lossTestShare = 0.92
    /// What it sends where the media have all that they want, for how long, and how much of that has to arrive if as much of it
    /// is lost as of the media.
    private static let raisedShare = 1.5
    private static let raisedUS = 200_000.0
    private static let raisedArrival = 0.9
    /// A bottleneck that carries this many times the target bears a raised rate.
    private static let roomRatio = 2.0
    /// A path that nothing is known of starts with half of the rate of the one before.
    private static let changedPathShare = 0.5
    /// 10 Gbit/s.
    private static let demandMax = 1e10
    /// A target this close to a bound is limited by it.
    private static let nearlyAll = 0.98
    /// A first cluster whose result does not come within this time from the first report on says nothing.
    private static let guessTime: Int64 = 300_000
    /// A sender of less than this much of its target never shows that the path has changed.
    private static let idleShare = 0.5
    /// No report raises the target above this many times what was sent, but a probe cluster that the path carried.
    private static let growthMax = 1.5
    /// A rate has been tried when this much of it arrives.
    private static let triedShare = 0.6

    /// Bits a second for all media, repairs and padding together.
    package private(set) var target: Double
    private let settings: Settings
    private var maximum: Double
    private var receiver = ReceiverEstimate()
    private var demand = 0.0
    private var isStarting = true
    /// Nothing that the path did has shown whether it carries the target rate.
    private var isGuess = true
    private var guessUntil: Int64?
    private var isCompeting = false
    private var hasFeedback = false

    private var path = PathMeter()
    private var silence: ReportSilence
    private var law = DelayController()
    private var standing = StandingDelay()
    private var busy = BusyRate()
    private var held = HeldRate()
    private var competition = CompetitionTest()
    private var competing = CompetingFlowController()
    private var loss = LossTest()
    private var lossCap = LossCap()
    private var probes: ProbePlanner
    private var upgrade = UpgradeProbe()
    /// The target that the newest trial of layers without a probe raised; 0 before the first.
    private var triedRate = 0.0
    private var ecn: ECNPath
    private var scalable = ScalableRate()
    /// CE marks lead the target.
    private var isMarked = false

    package init(_ settings: Settings = Settings(), at now: Int64) {
        self.settings = settings
        maximum = settings.maximum
        target = min(max(settings.start, settings.minimum), settings.maximum)
        silence = ReportSilence(at: now)
        probes = ProbePlanner(isEnabled: settings.isProbing)
        ecn = ECNPath(isOn: settings.usesECN)
    }

    package var decision: SendDecision {
        let phase = phase
        return SendDecision(
            target: target,
            sustainedRate: phase == .drain ? max(target, rateAfterDrain) : target,
            pacingRate: pacingRate(phase),
            pacingBurst: isMarked ? Self.burstMarked : SendDecision.burst,
            phase: phase,
            limit: limit,
            busyRate: isCompeting ? nil : busy.rate,
            bottleneckRate: !isCompeting && path.isHintAgreed ? path.hint : nil,
            delivered: path.delivered,
            queueMS: path.queue.delayMS,
            lossRatio: loss.ratio,
            inherentLoss: loss.inherent,
            isGuess: isGuess,
            isTrying: isTrying,
            isTestingCompetition: competition.isRunning && phase != .stale,
            marksPackets: ecn.isMarking,
            isMarked: isMarked,
            isProbing: !probes.isIdle,
            hasProbe: probes.hasPending,
            carriedLooks: upgrade.carriedLooks
        )
    }

    package var phase: SendDecision.Phase {
        if silence.targetBefore != nil { return .stale }
        if isCompeting { return .compete }
        if law.isDraining { return .drain }
        return isStarting ? .start : .steady
    }

    package var limit: SendDecision.Limit {
        if target >= wanted { return demand <= cap ? .demand : cap < maximum ? .receiver : .maximum }
        if !hasFeedback || silence.targetBefore != nil { return .silence }
        if isCompeting { return .competition }
        let isLossLimited = loss.isTesting || lossCap.rate.map { target >= Self.nearlyAll * $0 } ?? false
        return isLossLimited ? .loss : .delay
    }

    private var rateAfterDrain: Double {
        clamp(min(law.resumeRate(deliveredRecently: path.deliveredRecently), demandLimit))
    }

    private func pacingRate(_ phase: SendDecision.Phase) -> Double {
        guard hasFeedback else { return target * Self.pacingStart }
        let isSmooth = phase == .drain || loss.isTesting || lossCap.rate != nil
        return target * (isMarked ? Self.pacingMarked : isSmooth ? Self.pacingSmooth : Self.pacing)
    }

    private var isTrying: Bool {
        path.delivered <= Self.triedShare * triedRate && target >= Self.nearlyAll * triedRate
    }

    // MARK: - Events

    /// Takes a packet that leaves.
    package mutating func packetSent(bytes: Int, at now: Int64) { packetsSent(bytes: bytes, last: bytes, at: now) }

    /// Takes packets that leave at one instant.
    /// - Parameters:
    ///   - bytes: of all of them.
    ///   - last: of the last one.
    package mutating func packetsSent(bytes: Int, last: Int, at now: Int64) {
        silence.packetSent(at: now)
        receiver.packetSent(at: now)
        path.packetsSent(bytes: bytes, last: last, at: now)
    }

    /// Takes what all the media together would send.
    package mutating func setDemand(_ rate: Double) {
        let before = wanted
        demand = rate > 0 ? min(rate, Self.demandMax) : 0
        wantedChanged(from: before)
    }

    /// How the path is asked whether it carries the next better layers.
    package enum UpgradeMeans: Sendable {
        /// By a probe cluster.
        case probe
        /// By these layers themselves, where no cluster can be sent: without RTX there are no packets for one.
        case trial
        /// Not at all: the peer does not report on their packets.
        case none
    }

    /// Takes the rate that the next better layers need; `nil` when nothing better is wanted.
    /// - Parameter isBarred: whether they are not to be sent although the target suffices, until
    ///   ``SendDecision/carriedLooks`` says that the path carries them.
    package mutating func setUpgrade(_ rate: Double?, _ means: UpgradeMeans = .probe, isBarred: Bool = false) {
        probes.isEnabled = settings.isProbing && means == .probe
        upgrade.set(means == .none ? nil : rate, isBarred: isBarred && probes.isEnabled)
    }

    /// Takes another maximum: that of a grant, for one.
    package mutating func setMaximum(_ rate: Double) {
        let before = wanted
        maximum = rate > 0 ? rate : 0
        target = min(target, maximum)
        wantedChanged(from: before)
    }

    /// Takes the peer's estimate (REMB), which caps the target until it is 5 s old.
    package mutating func receiverEstimate(_ rate: Double) {
        let before = wanted
        receiver.update(rate)
        target = clamp(target)
        wantedChanged(from: before)
    }

    private mutating func wantedChanged(from before: Double) {
        if !hasFeedback {
            guard before == 0, wanted > 0 else { return }
            probes.planNext(min(Self.firstProbe, demandLimit))
        } else if wanted > 1.5 * before, target > 0.8 * before, target < wanted, phase == .steady {
            // What was wanted was the limit, so nothing above it is known.
            isStarting = true
            probes.planNext(min(max(2 * target, Self.firstProbe), demandLimit))
        }
    }

    /// Begins again on another path. Its reports alone count from now on: readers are told, too.
    package mutating func pathChanged(at now: Int64) {
        let (demand, maximum) = (demand, maximum)
        var settings = settings
        settings.start = min(Self.changedPathShare * target, maximum)
        self = SendController(settings, at: now)
        self.maximum = maximum
        setDemand(demand)
    }

    /// - Returns: a probe cluster to send now.
    package mutating func takeProbe(at now: Int64) -> ProbeCluster? { probes.take(at: now) }

    /// Media that are far below the rate of the next layers never show that the path carries those, so a probe does.
    private mutating func planUpgrade(at now: Int64) {
        guard hasFeedback, settings.isProbing, phase == .steady, !loss.isTesting, probes.isIdle,
            lossCap.rate == nil || path.delivered < Self.idleShare * target,
            path.queue.delayMS < path.goalMS, let probe = upgrade.take(target: target, at: now)
        else { return }
        let rate = min(probe.rate, demandLimit)
        if probes.isEnabled { probes.planNext(rate, durationUS: probe.durationUS) } else { tryUpgrade(rate) }
    }

    /// Raises the target to what the next layers need, so that they are sent. One trial at a time: the rate of the one before has to
    /// arrive first, or to be taken back.
    private mutating func tryUpgrade(_ rate: Double) {
        guard !isTrying else { return }
        let raised = clamp(max(target, rate))
        guard raised > target else { return }
        (target, triedRate) = (raised, raised)
    }

    /// Asks for the memory that a report changes, beside the controller itself.
    package func prefetch() {
        path.prefetch()
        loss.prefetch()
    }

    /// Takes a tick; one each 25 ms.
    package mutating func handleTimeout(at now: Int64) {
        planUpgrade(at: now)
        probes.handleTimeout(at: now)
        busy.handleTimeout(at: now)
        if receiver.isStale(at: now) {
            let before = wanted
            receiver.clear()
            wantedChanged(from: before)
        }
        target = silence.handleTimeout(target, roundTrip: path.roundTrip, at: now)
    }

    /// Takes a feedback report.
    package mutating func received(_ report: borrowing FeedbackReport) {
        let now = report.arrivedAt
        scalable.addLateMarks(report.lateMarks)
        var hasArrival = false
        let isProbing = probes.isUnderWay
        for packet in report.packets {
            loss.add(packet)
            guard packet.isReceived else { continue }
            hasArrival = true
            if packet.ecn != nil {
                ecn.add(packet)
                scalable.add(packet)
            }
            if isProbing { probes.add(packet, jitterMS: path.queue.jitterMS) }
        }
        // A report that says nothing new, or of lost packets only, is like none.
        guard hasArrival else { return }
        let sinceReport = silence.reported(at: now)
        let elapsed = Double(min(max(sinceReport, 0), 300_000)) / 1e6
        hasFeedback = true
        let guessUntil = guessUntil ?? now &+ Self.guessTime
        self.guessUntil = guessUntil
        if let before = silence.targetBefore {
            target = silence.end(target)
            probes.plan(before, at: now)
        }
        let before = target
        path.take(report, sinceReport: sinceReport)
        takeLoss(elapsed: elapsed, at: now)
        let proven = takeOutcome(at: now)
        guard path.delivered > 0 else { return }
        control(elapsed: elapsed, at: now)
        held.fade(elapsed: elapsed, at: now)
        held.carried(max(path.delivered, proven), at: now)
        // What is wanted bounds the rise of the target. Its fall says nothing about the path.
        let limit = max(demandLimit, min(before, held.rate))
        target = clamp(min(target, max(before, proven, Self.growthMax * path.sent.peak), limit))
        if isStarting, probes.isIdle || law.isDraining { isStarting = false }
        if !isStarting || probes.isIdle || now >= guessUntil { isGuess = false }
    }

    // MARK: - Loss and probes

    private mutating func takeLoss(elapsed: Double, at now: Int64) {
        // Loss is the queue's while others fill it, however short it seems to a sender that never saw it empty.
        let queueMS = isCompeting ? .infinity : path.queue.delayMS
        let advice = loss.update(
            target: target,
            queueMS: queueMS,
            canRaise: probes.isEnabled && probes.isIdle && hasRoom,
            roundTrip: path.roundTrip,
            at: now
        )
        switch advice {
        case .none: break
        case .raise: probes.planNext(Self.raisedShare * path.delivered, durationUS: Self.raisedUS)
        case .lower:
            target = clamp(min(target, max(path.delivered, 0.3 * target)) * Self.lossTestShare)
            probes.cancel()
        case .restore(let rate): target = max(target, min(rate, 1.2 * path.delivered))
        case .inherent(let rate):
            lossCap.clear()
            target = max(target, min(rate, 1.2 * path.delivered))
        case .cap: lossCap.set(target, holds: competition.evidence <= 0.5, at: now)
        }
        lossCap.update(target: target, demand: demandLimit, elapsed: elapsed, at: now)
    }

    /// Whether more than the target can be sent for a moment: the media have all that they want, or the bottleneck carries much more.
    private var hasRoom: Bool {
        target >= Self.nearlyAll * wanted || !isCompeting && path.hint.map { $0 >= Self.roomRatio * target } ?? false
    }

    /// - Returns: the rate that a probe cluster proved; 0 for none.
    private mutating func takeOutcome(at now: Int64) -> Double {
        guard let outcome = probes.outcome(roundTrip: path.roundTrip, at: now) else { return 0 }
        if loss.isRaised {
            let expected = (1 - loss.ratio) * outcome.clusterRate
            loss.raised(isCarried: outcome.rate >= Self.raisedArrival * expected, at: now)
        }
        busy.probed(outcome, jitterMS: path.queue.jitterMS, at: now)
        let isFree = path.queue.delayMS < Self.probeQueueMaxMS
        upgrade.probed(isCarried: isFree && !outcome.isSaturated)
        if isFree, !outcome.isSaturated || upgrade.isMet(by: outcome.rate), outcome.rate > target {
            isGuess = false
            if let cap = lossCap.rate, outcome.rate > cap {
                lossCap.clear()
                loss.refuteCap()
            }
            target = clamp(max(target, min(outcome.rate, demandLimit)))
            if isStarting, outcome.rate > 0.9 * outcome.clusterRate, target < demandLimit {
                probes.plan(min(2 * outcome.rate, demandLimit), at: now)
            }
            return target
        }
        defer { (isStarting, isGuess) = (false, false) }
        if isGuess, outcome.isSaturated, outcome.rate < target {
            // A rate that was only guessed yields to the first one that is measured.
            target = clamp(max(outcome.rate, path.delivered))
            upgrade.postpone(at: now)
        }
        guard isFree, outcome.rate > 1.2 * target else { return 0 }
        let trust = isStarting ? Self.probeTrustStart : Self.probeTrust
        target = clamp(max(target, min(target + trust * (outcome.rate - target), demandLimit)))
        return target
    }

    // MARK: - Control

    private mutating func control(elapsed: Double, at now: Int64) {
        let goalMS = path.goalMS
        law.observe(queueMS: path.queue.delayMS, jitterMS: path.queue.jitterMS, goalMS: goalMS, at: now)
        if standing.update(
            delayMS: path.queue.delayMS,
            jitterMS: path.queue.jitterMS,
            target: target,
            roundTrip: path.roundTrip,
            at: now
        ) {
            path.acceptDelay()
            target = max(target, min(standing.targetBefore, 1.5 * path.delivered))
        }
        let queueMS = path.queue.delayMS
        busy.observe(queueMS: queueMS, jitterMS: path.queue.jitterMS, delivered: path.delivered, at: now)
        path.prove(elapsed: elapsed)
        if isCompeting {
            compete(goalMS: goalMS, elapsed: elapsed, at: now)
            law.skip(queueMS: queueMS)
        } else {
            competition.observe(
                queueMS: queueMS,
                growthMS: law.growth(to: queueMS),
                goalMS: goalMS,
                delivered: path.delivered,
                link: path.link,
                isAlone: path.isAlone,
                hasLoss: loss.newLosses > 0,
                elapsed: elapsed,
                at: now
            )
            if test(goalMS: goalMS, at: now) {
                law.skip(queueMS: queueMS)
            } else {
                let input = DelayController.Input(
                    queueMS: queueMS,
                    jitterMS: path.queue.jitterMS,
                    delivered: path.delivered,
                    deliveredRecently: path.queue.delayMS > DelayController.busyMS ? path.deliveredRecently : 0,
                    link: path.likelyLink,
                    roundTrip: path.roundTrip,
                    isTestingLoss: loss.isTesting,
                    isNewcomer: path.isNewcomer(at: now),
                    isLinkKnown: path.hint != nil,
                    elapsed: elapsed
                )
                var next = law.next(target, input, at: now)
                if ecn.state == .confirmed {
                    let isBounded = law.isDraining || queueMS > goalMS
                    next = scalable.next(
                        target,
                        law: next,
                        isBounded: isBounded,
                        queueMS: queueMS,
                        roundTrip: path.roundTrip,
                        at: now
                    )
                    isMarked = scalable.isLeading(at: now)
                    if !isBounded, scalable.marksAll(at: now) { ecn.fail() }
                } else {
                    isMarked = false
                }
                target = min(next, lossCap.rate ?? .infinity)
            }
        }
    }

    /// Lets loss lead while others fill the path.queue.
    private mutating func compete(goalMS: Double, elapsed: Double, at now: Int64) {
        if competing.isEmpty(queueMS: path.queue.delayMS, at: now) || path.isAlone {
            isCompeting = false
            competition.queueEmptied()
        } else if !test(goalMS: goalMS, at: now) {
            target = competing.next(
                target,
                loss: loss.ratio - loss.inherent,
                delivered: path.delivered,
                link: path.wholeLink,
                elapsed: elapsed,
                at: now
            )
        }
    }

    /// - Returns: whether the test of competition decides about the rate.
    private mutating func test(goalMS: Double, at now: Int64) -> Bool {
        let step = competition.step(
            queueMS: path.queue.delayMS,
            goalMS: goalMS,
            target: target,
            delivered: path.delivered,
            roundTrip: path.roundTrip,
            isCompeting: isCompeting,
            at: now
        )
        switch step {
        case .none: return false
        case .hold(let rate): target = rate
        case .own:
            isCompeting = false
            law.stopDraining()
            return false
        case .others(let rate):
            isCompeting = true
            isStarting = false
            competing.begin(at: now)
            law.stopDraining()
            lossCap.clear()
            target = max(target, CompetingFlowController.share * path.wholeLink, 0.9 * rate)
        }
        return true
    }

    /// What the media would send and may.
    private var wanted: Double { min(demand, cap) }
    private var demandLimit: Double { min(demand * Self.demandMargin, cap) }
    private var cap: Double { min(maximum, receiver.rate ?? .infinity) }
    private func clamp(_ rate: Double) -> Double { min(max(min(rate, cap), settings.minimum), maximum) }
}
