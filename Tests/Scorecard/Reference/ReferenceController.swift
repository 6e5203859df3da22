import CongestionControl

/// Google Congestion Control: a port of libwebrtc's `GoogCcNetworkController` (M153) with its constants, which the
/// scorecard compares the product's controller with. Rates are bits a second, times microseconds.
struct ReferenceController: RateController {
    private let limits: ClosedRange<Double>
    private let startRate: Double
    private(set) var target: Double
    private var groups = PacketGroups()
    private var trendline = TrendlineEstimator()
    private var throughput = ThroughputEstimator()
    private var rateControl: AIMDRateControl
    private var loss = LossBasedEstimator()
    private var probes = ProbeEstimator()
    private var lastPacketAt = Int64.min
    private var lastReportAt: Int64
    private var demand = 0.0
    // Application limited
    private var budget = 0.0
    private var budgetAt: Int64
    private var limitedSince: Int64?
    private var limitedEndedAt: Int64?
    // Probing
    private enum ProbeState {
        case initial
        case waiting(until: Int64)
        case complete
    }
    private var probeState = ProbeState.initial
    private var minRateToProbeFurther = Double.infinity
    private var pending: [ProbeCluster] = []
    private var nextCluster: UInt8 = 1
    private var hasFeedback = false
    private var startedAt: Int64
    private var rateBeforeDrop = 0.0
    private var dropAt: Int64 = -100_000_000
    private var lastDropProbeAt: Int64 = -100_000_000
    private var lastRTT = 200_000.0
    private var lastBackoffAt: Int64 = 0
    private var sentSinceReport = false
    private var firstSendAt: Int64?

    init(start: Double = 300_000, limits: ClosedRange<Double> = 5_000...20_000_000, at now: Int64) {
        self.limits = limits
        startRate = start
        target = start
        rateControl = AIMDRateControl(start: start, limits: limits, at: now)
        budgetAt = now
        lastReportAt = now
        startedAt = now
    }

    var pacingRate: Double { target * (hasFeedback ? 1.1 : 2.5) }

    mutating func packetSent(bytes: Int, at now: Int64) {
        if firstSendAt == nil { firstSendAt = now }
        budget -= Double(bytes) * 8
        sentSinceReport = true
        let elapsed = Double(now - budgetAt) / 1e6
        budgetAt = now
        let size = 0.65 * target * 0.5
        budget = min(budget + 0.65 * target * elapsed, size)
        budget = max(budget, -size)
        let ratio = budget / max(size, 1)
        if ratio > 0.8, limitedSince == nil {
            limitedSince = now
        } else if ratio < 0.5, limitedSince != nil {
            limitedSince = nil
            limitedEndedAt = now
        }
    }

    mutating func setDemand(_ rate: Double, at now: Int64) {
        let before = demand
        demand = rate
        if case .initial = probeState {
            probe([3 * startRate, 6 * startRate], further: true, at: now)
            return
        }
        if case .complete = probeState, rate > before, rate > target {
            probe([min(rate, 2 * target), min(2 * rate, 2 * target)], further: false, at: now)
        }
    }

    private mutating func probe(_ rates: [Double], further: Bool, at now: Int64) {
        var cap = demand > 0 ? min(2 * demand, limits.upperBound) : min(5_000_000, limits.upperBound)
        switch loss.state {
        case .decreasing: return
        case .increasing: cap = min(cap, 1.5 * target)
        case .delayLimited: break
        }
        var further = further
        for rate in rates {
            var rate = rate
            if rate >= cap {
                rate = cap
                further = false
            }
            pending.append(ProbeCluster(id: nextCluster, rate: rate))
            nextCluster = nextCluster == 255 ? 1 : nextCluster + 1
            minRateToProbeFurther = 0.7 * rate
            if rate == cap { break }
        }
        if further {
            probeState = .waiting(until: now + 1_000_000)
        } else {
            probeState = .complete
            minRateToProbeFurther = .infinity
        }
    }

    mutating func takeProbe(at now: Int64) -> ProbeCluster? {
        guard !pending.isEmpty else { return nil }
        let cluster = pending.removeFirst()
        probes.begin(cluster)
        return cluster
    }

    mutating func received(_ report: FeedbackReport) {
        let now = report.arrivedAt
        hasFeedback = true
        lastReportAt = now
        sentSinceReport = false
        let received = report.packets.filter(\.isReceived).sorted { $0.arrivedAt < $1.arrivedAt }
        guard let newest = received.last else {
            updateLoss(report, delivered: throughput.rate, at: now)
            return
        }
        var rtt = Int64.max
        for packet in received { rtt = min(rtt, now - packet.sentAt - (newest.arrivedAt - packet.arrivedAt)) }
        lastRTT = Double(max(rtt, 1))
        rateControl.roundTripUS = lastRTT
        var probeRate: Double?
        var recovered = false
        for packet in received {
            throughput.add(packet)
            if packet.cluster != 0, let result = probes.add(packet) { probeRate = result.rate }
        }
        let delivered = throughput.rate
        if lastPacketAt != .min, now - lastPacketAt > 2_000_000 {
            groups = PacketGroups()
            trendline = TrendlineEstimator()
        }
        lastPacketAt = now
        for packet in received {
            let before = trendline.usage
            if let delta = groups.add(packet, reportedAt: now) {
                trendline.update(delta, arrivalMS: Double(packet.arrivedAt) / 1e3)
            }
            if before == .underuse, trendline.usage == .normal { recovered = true }
        }
        if let rate = probeRate, let delivered {
            probeRate = max(rate, min(rateControl.rate, 0.85 * delivered))
        }
        let before = rateControl.rate
        if trendline.usage == .overuse {
            if let delivered {
                if rateControl.mayDecrease(at: now, delivered: delivered) {
                    rateControl.update(.overuse, delivered: delivered, at: now)
                }
            } else if rateControl.mayDecrease(at: now, delivered: rateControl.rate / 2 - 1) {
                rateControl.set(rateControl.rate / 2, at: now)
            }
        } else if let probeRate {
            rateControl.set(probeRate, at: now)
            rateControl.probeSucceeded(probeRate)
        } else {
            rateControl.update(trendline.usage, delivered: delivered, at: now)
        }
        if rateControl.rate < 0.66 * before { (rateBeforeDrop, dropAt) = (before, now) }
        updateLoss(report, delivered: delivered, at: now)
        if let probeRate { probed(probeRate, at: now) }
        if recovered, now - dropAt < 5_000_000, now - lastDropProbeAt > 5_000_000,
            limitedSince != nil || (limitedEndedAt.map { now - $0 < 3_000_000 } ?? false)
        {
            lastDropProbeAt = now
            probe([0.85 * rateBeforeDrop], further: false, at: now)
        }
    }

    private mutating func probed(_ rate: Double, at now: Int64) {
        guard case .waiting = probeState, rate > minRateToProbeFurther else { return }
        probe([2 * rate], further: true, at: now)
    }

    private mutating func updateLoss(_ report: FeedbackReport, delivered: Double?, at now: Int64) {
        loss.update(
            report.packets,
            delayRate: rateControl.rate,
            delivered: delivered,
            isApplicationLimited: limitedSince != nil,
            limits: limits
        )
        target = min(max(min(rateControl.rate, loss.rate ?? .infinity), limits.lowerBound), limits.upperBound)
    }

    mutating func handleTimeout(at now: Int64) {
        if case .waiting(let until) = probeState, now >= until {
            probeState = .complete
            minRateToProbeFurther = .infinity
        }
        // The round trip is over the limit.
        if sentSinceReport, Double(now - lastReportAt) + lastRTT > 3_000_000, now - lastBackoffAt >= 1_000_000 {
            lastBackoffAt = now
            target = max(target * 0.8, limits.lowerBound)
            rateControl.set(target, at: now)
        }
    }
}
