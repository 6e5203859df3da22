import CongestionControl

/// Estimates the rate that a path carries from the loss at different sending rates, told apart from loss that does not
/// depend on the rate (libwebrtc's `LossBasedBweV2` with its defaults). Rates are in bits a second, times in
/// microseconds.
struct LossBasedEstimator: Sendable {
    enum State: Equatable, Sendable {
        /// The delay-based rate is the lower one.
        case delayLimited
        case decreasing
        case increasing
    }

    /// What a path is supposed to be: it carries `rate` and loses this share of packets whatever the rate.
    private struct Path {
        var rate: Double
        var inherentLoss: Double
    }

    /// What was sent and lost in at least 250 ms.
    private struct Observation {
        var sentBytes = 0.0
        var lostBytes = 0.0
        var firstSentAt = Int64.max
        var lastSentAt = Int64.min
        var sendRate = 0.0
        var loss: Double { sentBytes > 0 ? lostBytes / sentBytes : 0 }
    }

    private static let observationUS: Int64 = 250_000
    private static let observationsMax = 15
    private static let observationsMin = 3
    private static let ageFactor = 0.9
    private static let candidateFactors = [1.02, 1, 0.95]
    private static let inherentLossMin = 0.001
    private static let inherentLossOffset = 0.05
    private static let inherentLossBalance = 100_000.0
    private static let newtonStep = 0.75
    private static let highLoss = 0.2
    private static let increaseFactorMax = 1.3
    private static let increaseWindowUS: Int64 = 300_000
    private static let rampUpFactor = 1.5
    private static let rampUpFactorAfterHold = 1.2
    private static let holdThreshold = 1.3
    private static let holdUS: Int64 = 300_000
    private static let holdMaxUS: Int64 = 60_000_000

    private(set) var state = State.delayLimited
    /// What the loss allows; `nil` before three observations.
    private(set) var rate: Double?
    /// The share of the bytes lost over the observations, weighted by their age.
    private(set) var averageLoss = 0.0

    private var best: Path?
    private var observations: ContiguousArray<Observation> = []
    private var partial = Observation()
    private var lastSentAt = Int64.min
    private var recoveringAt: Int64?
    private var windowLimit = Double.infinity
    private var holdUntil = Int64.min
    private var holdDurationUS = Self.holdUS
    private var holdRate = Double.infinity

    init() {}

    /// Forgets an earlier HOLD: the path was shown to carry more.
    mutating func endHold() {
        holdUntil = .min
        holdDurationUS = Self.holdUS
        holdRate = .infinity
    }

    /// - Parameters:
    ///   - delayRate: what the delay allows.
    ///   - delivered: the acknowledged rate; `nil` while it is not known.
    ///   - isApplicationLimited: less is sent than the target allows, so what is delivered says nothing of the path.
    mutating func update(
        _ packets: ContiguousArray<PacketResult>,
        delayRate: Double,
        delivered: Double?,
        isApplicationLimited: Bool,
        limits: ClosedRange<Double>
    ) {
        guard observe(packets), observations.count >= Self.observationsMin else { return }
        computeAverageLoss()
        let old = best ?? Path(rate: delayRate, inherentLoss: 0.01)
        var chosen = old
        var score = -Double.infinity
        for rate in candidates(old, delayRate: delayRate, delivered: isApplicationLimited ? nil : delivered) {
            var candidate = Path(rate: rate, inherentLoss: feasible(old.inherentLoss, at: rate))
            improve(&candidate)
            let candidateScore = objective(candidate)
            if candidateScore > score || (candidateScore == score && candidate.rate > chosen.rate) {
                score = candidateScore
                chosen = candidate
            }
        }
        if averageLoss > chosen.inherentLoss, old.rate < chosen.rate { chosen.rate = old.rate }
        if state != .delayLimited {
            if let recoveringAt, recoveringAt + Self.increaseWindowUS > lastSentAt, chosen.rate > windowLimit {
                chosen.rate = windowLimit
            }
            if chosen.rate >= old.rate, let delivered {
                let factor = delivered < Self.holdThreshold * holdRate ? Self.rampUpFactorAfterHold : Self.rampUpFactor
                chosen.rate = max(old.rate, min(chosen.rate, factor * delivered))
                if chosen.rate == old.rate { chosen.rate += 1 }
            }
        }
        best = chosen
        conclude(chosen, delayRate: delayRate, delivered: delivered, limits: limits)
    }

    private mutating func conclude(_ chosen: Path, delayRate: Double, delivered: Double?, limits: ClosedRange<Double>) {
        let before = rate ?? delayRate
        let floor = max(delivered ?? 0, limits.lowerBound)
        let bounded = max(floor, min(chosen.rate, lossLimit, delayRate))
        if bounded < chosen.rate { best?.rate = bounded }
        guard bounded < delayRate, bounded < limits.upperBound else {
            endHold()
            state = .delayLimited
            rate = bounded
            return
        }
        if holdUntil > lastSentAt {
            state = .decreasing
            rate = min(holdRate, bounded)
            return
        }
        if state != .delayLimited, bounded > before {
            state = .increasing
        } else if state != .decreasing {
            holdUntil = lastSentAt + holdDurationUS
            holdDurationUS = min(holdDurationUS * 2, Self.holdMaxUS)
            holdRate = bounded
            state = .decreasing
        }
        rate = bounded
        if recoveringAt.map({ $0 + Self.increaseWindowUS < lastSentAt }) ?? true {
            windowLimit = bounded * Self.increaseFactorMax
            recoveringAt = lastSentAt
        }
    }

    // MARK: - Observations

    /// - Returns: whether an observation was completed.
    private mutating func observe(_ packets: ContiguousArray<PacketResult>) -> Bool {
        for packet in packets {
            if packet.wasReportedLost {
                // It was counted as sent and lost.
                if packet.isReceived { partial.lostBytes = max(0, partial.lostBytes - Double(packet.bytes)) }
                continue
            }
            partial.sentBytes += Double(packet.bytes)
            if !packet.isReceived { partial.lostBytes += Double(packet.bytes) }
            partial.firstSentAt = min(partial.firstSentAt, packet.sentAt)
            partial.lastSentAt = max(partial.lastSentAt, packet.sentAt)
        }
        guard partial.sentBytes > 0 else { return false }
        let start = lastSentAt == .min ? partial.firstSentAt : lastSentAt
        let duration = partial.lastSentAt &- start
        guard duration >= Self.observationUS else { return false }
        partial.sendRate = partial.sentBytes * 8e6 / Double(duration)
        lastSentAt = partial.lastSentAt
        if observations.count == Self.observationsMax { observations.removeFirst() }
        observations.append(partial)
        partial = Observation()
        return true
    }

    private func weight(_ index: Int) -> Double {
        var weight = 1.0
        for _ in 0..<(observations.count - 1 - index) { weight *= Self.ageFactor }
        return weight
    }

    /// Without the best and the worst observation, unless the worst was sent far faster than most.
    private mutating func computeAverageLoss() {
        var lowest = 0
        var highest = 0
        for index in observations.indices {
            if observations[index].loss < observations[lowest].loss { lowest = index }
            if observations[index].loss > observations[highest].loss { highest = index }
        }
        let median = observations.map(\.sendRate).sorted()[observations.count / 2]
        let keepsHighest = observations[highest].sendRate >= 2 * median
        var sent = 0.0
        var lost = 0.0
        for index in observations.indices where index != lowest && (index != highest || keepsHighest) {
            sent += weight(index) * observations[index].sentBytes
            lost += weight(index) * observations[index].lostBytes
        }
        averageLoss = sent > 0 ? lost / sent : 0
    }

    /// The most that a loss of over 5 % allows.
    private var lossLimit: Double {
        averageLoss > Self.inherentLossOffset
            ? Self.inherentLossBalance / (averageLoss - Self.inherentLossOffset) : .infinity
    }

    // MARK: - Maximum likelihood

    private func candidates(_ old: Path, delayRate: Double, delivered: Double?) -> [Double] {
        var rates = Self.candidateFactors.map { $0 * old.rate }
        if let delivered { rates.append(delivered) }
        if delayRate > old.rate { rates.append(delayRate) }
        return rates.map { rate in
            guard state != .delayLimited, rate > old.rate else { return rate }
            return max(min(rate, windowLimit), old.rate)
        }
    }

    private func feasible(_ loss: Double, at rate: Double) -> Double {
        min(max(loss, Self.inherentLossMin), Self.inherentLossOffset + Self.inherentLossBalance / max(rate, 1))
    }

    /// The probability that a packet sent at a rate is lost.
    private func lossProbability(_ path: Path, sendRate: Double) -> Double {
        let excess = sendRate > path.rate ? (sendRate - path.rate) / sendRate : 0
        return min(max(path.inherentLoss + (1 - path.inherentLoss) * excess, 1e-6), 1 - 1e-6)
    }

    /// One step of Newton's method for the inherent loss.
    private func improve(_ path: inout Path) {
        var first = 0.0
        var second = 0.0
        for index in observations.indices {
            let observation = observations[index]
            let weight = weight(index)
            let probability = lossProbability(path, sendRate: observation.sendRate)
            let lost = observation.lostBytes / 1e3
            let received = (observation.sentBytes - observation.lostBytes) / 1e3
            first += weight * (lost / probability - received / (1 - probability))
            second -=
                weight * (lost / (probability * probability) + received / ((1 - probability) * (1 - probability)))
        }
        guard second < 0 else { return }
        path.inherentLoss = feasible(path.inherentLoss - Self.newtonStep * first / second, at: path.rate)
    }

    private func objective(_ path: Path) -> Double {
        let distance = Self.highLoss - averageLoss
        let gain = distance / (0.002 + abs(distance))
        let kilobits = path.rate / 1e3
        let bias = gain * (0.0002 * kilobits + 0.02 * naturalLogarithm(1 + kilobits))
        var sum = 0.0
        for index in observations.indices {
            let observation = observations[index]
            let probability = lossProbability(path, sendRate: observation.sendRate)
            let lost = observation.lostBytes / 1e3
            let received = (observation.sentBytes - observation.lostBytes) / 1e3
            sum +=
                weight(index)
                * (lost * naturalLogarithm(probability) + received * naturalLogarithm(1 - probability)
                    + bias * observation.sentBytes / 1e3)
        }
        return sum
    }
}
