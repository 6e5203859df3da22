/// Decides how much is sent to a subscriber that reports no packet's arrival: by its own estimate (REMB) and by the loss in its
/// receiver reports, as libwebrtc's `SendSideBandwidthEstimation` does.
///
/// A peer that reports nothing at all is sent a little more each second, up to the demand. It knows no clock: times are
/// microseconds of the sender's monotonic clock, rates are bits a second from the IP header on.
package struct FallbackController: Sendable {
    /// Loss up to this share raises the rate, loss above the other lowers it.
    private static let lossLow = 0.02
    private static let lossHigh = 0.1
    /// The rise a second.
    private static let growth = 0.08
    /// One loss event lowers the rate once: not again within this and a round trip.
    private static let decreasePause: Int64 = 300_000
    private static let roundTripMax: Int64 = 2_000_000
    /// The fall a second of a rate whose estimate from the peer stays away.
    private static let silenceDecay = 0.2
    private static let demandMargin = 1.1
    private static let demandMax = 1e10
    private static let pacing = 1.5
    private static let tickMax: Int64 = 300_000
    /// A peer's estimate never exceeds about 1.5 times what it receives, and counts what it received within a second.
    private static let probeFactor = 1.5
    private static let probeDuration = 500_000.0
    private static let probePause: Int64 = 2_000_000
    private static let probePauseMax: Int64 = 32_000_000
    /// A cluster that raises the peer's estimate by less brings nothing.
    private static let probeSuccess = 1.1

    private let settings: SendController.Settings
    private var maximum: Double
    private var demand = 0.0
    /// The rate that loss allows.
    private var rate: Double
    private var loss = ReportedLoss()
    private var receiver = ReceiverEstimate()
    private var isSilent = false
    private var tickedAt: Int64
    private var decreasedAt = Int64.min / 2
    private var pending: ProbeCluster?
    private var nextID: UInt8 = 1
    private var probedAt: Int64
    private var probePause = FallbackController.probePause
    /// The peer's estimate when the last cluster was planned.
    private var estimateBefore = 0.0

    package init(_ settings: SendController.Settings = .init(), at now: Int64) {
        self.settings = settings
        maximum = settings.maximum
        rate = settings.start
        tickedAt = now
        probedAt = now
    }

    package var decision: SendDecision {
        SendDecision(
            target: target,
            sustainedRate: target,
            pacingRate: target * Self.pacing,
            phase: isSilent ? .stale : .steady,
            limit: limit,
            lossRatio: loss.ratio,
            isProbing: pending != nil,
            hasProbe: pending != nil
        )
    }

    /// Bits a second for all media, repairs and padding together.
    package var target: Double {
        min(max(min(rate, receiver.rate ?? .infinity, demandLimit), settings.minimum), maximum)
    }

    package var limit: SendDecision.Limit {
        if target >= min(demand, maximum) { return demand <= maximum ? .demand : .maximum }
        if isSilent { return .silence }
        if let estimate = receiver.rate, estimate <= rate { return .receiver }
        return loss.ratio > Self.lossLow ? .loss : .delay
    }

    // MARK: - Events

    /// Takes a packet that leaves.
    package mutating func packetSent(at now: Int64) { receiver.packetSent(at: now) }

    /// Takes what all the media together would send.
    package mutating func setDemand(_ rate: Double) { demand = rate > 0 ? min(rate, Self.demandMax) : 0 }

    /// Takes another maximum.
    package mutating func setMaximum(_ rate: Double) { maximum = rate > 0 ? rate : 0 }

    /// Begins again on another path.
    package mutating func pathChanged(at now: Int64) {
        let (demand, maximum) = (demand, maximum)
        var settings = settings
        settings.start = min(target, settings.start)
        self = FallbackController(settings, at: now)
        (self.demand, self.maximum) = (demand, maximum)
    }

    /// Takes the peer's estimate (REMB).
    package mutating func receiverEstimate(_ estimate: Double) {
        receiver.update(estimate)
        isSilent = false
        if loss.ratio <= Self.lossLow { rate = max(rate, min(receiver.rate ?? 0, demandLimit)) }
    }

    /// Takes the report blocks of a receiver report.
    /// - Parameters:
    ///   - lost: packets lost since the report before, without those that never reached this server.
    ///   - expected: packets sent since the report before.
    ///   - roundTrip: microseconds, if the report tells.
    package mutating func receiverReport(lost: Int, expected: Int, roundTrip: Int64?, at now: Int64) {
        guard loss.add(lost: lost, expected: expected), loss.ratio > Self.lossHigh else { return }
        let pause = Self.decreasePause &+ min(max(roundTrip ?? 0, 0), Self.roundTripMax)
        guard now &- decreasedAt > pause else { return }
        decreasedAt = now
        rate = max(target * (1 - loss.ratio / 2), settings.minimum)
    }

    /// Takes a tick; one each 25 ms.
    package mutating func handleTimeout(at now: Int64) {
        let elapsed = Double(min(max(now &- tickedAt, 0), Self.tickMax)) / 1e6
        tickedAt = now
        if receiver.isStale(at: now) {
            // What the peer said last is no longer known to hold; the start rate is as good.
            isSilent = true
            rate = max(target * (1 - Self.silenceDecay * elapsed), min(target, settings.start))
        } else if loss.ratio <= Self.lossLow, rate < demandLimit {
            rate = min(rate * (1 + Self.growth * elapsed), demandLimit)
        }
        plan(at: now)
    }

    /// - Returns: a probe cluster to send now.
    package mutating func takeProbe(at now: Int64) -> ProbeCluster? {
        defer { pending = nil }
        return pending
    }

    // MARK: - Probes

    /// Plans a cluster while the peer's estimate is the limit.
    private mutating func plan(at now: Int64) {
        guard settings.isProbing, limit == .receiver, let estimate = receiver.rate, loss.ratio <= Self.lossLow,
            now &- probedAt > probePause
        else { return }
        let isFirst = estimateBefore == 0
        probePause =
            isFirst || estimate > Self.probeSuccess * estimateBefore
            ? Self.probePause : min(2 * probePause, Self.probePauseMax)
        probedAt = now
        estimateBefore = estimate
        pending = ProbeCluster(
            id: nextID,
            rate: min(Self.probeFactor * target, demandLimit),
            durationUS: Self.probeDuration
        )
        nextID = nextID == .max ? 1 : nextID + 1
    }

    private var demandLimit: Double { min(demand * Self.demandMargin, maximum) }
}
