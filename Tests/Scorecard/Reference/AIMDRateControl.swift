/// Additive increase and multiplicative decrease of the delay-based rate (libwebrtc's `AimdRateControl`). Rates are in
/// bits a second, times in microseconds.
struct AIMDRateControl: Sendable {
    private enum Phase { case hold, increase }

    private static let decreaseFactor = 0.85
    private static let decreaseOffset = 5_000.0
    private static let growthPerSecond = 1.08
    private static let responseExtraUS = 100_000.0

    /// The rate that the path's delay allows.
    private(set) var rate: Double
    private(set) var capacity = LinkCapacityEstimator()
    private(set) var lastDecreaseAt: Int64?
    /// In microseconds; 200 ms until it is known.
    var roundTripUS = 200_000.0
    private let limits: ClosedRange<Double>
    private var phase = Phase.hold
    private var lastChangeAt: Int64
    private var delivered: Double

    init(start: Double, limits: ClosedRange<Double>, at now: Int64) {
        self.limits = limits
        rate = start
        delivered = start
        lastChangeAt = now
    }

    /// Replaces the rate, with the result of a probe for one.
    mutating func set(_ rate: Double, at now: Int64) {
        let before = self.rate
        self.rate = clamp(rate)
        lastChangeAt = now
        if self.rate < before { lastDecreaseAt = now }
    }

    /// Whether a further decrease may follow: one round trip after the last change, or at once when less than half of
    /// the rate is delivered.
    func mayDecrease(at now: Int64, delivered: Double) -> Bool {
        let spacing = min(max(roundTripUS, 10_000), 200_000)
        return Double(now &- lastChangeAt) >= spacing || delivered < 0.5 * rate
    }

    /// - Parameter delivered: the acknowledged rate; `nil` while it is not known.
    mutating func update(_ usage: PathUsage, delivered measured: Double?, at now: Int64) {
        if let measured { delivered = measured }
        switch usage {
        case .overuse: decrease(at: now)
        case .underuse: phase = .hold
        case .normal:
            if phase == .hold {
                phase = .increase
                lastChangeAt = now
            }
            increase(at: now)
        }
    }

    mutating func probeSucceeded(_ rate: Double) { capacity.probeSucceeded(rate) }

    private mutating func increase(at now: Int64) {
        if delivered > capacity.upperBound { capacity.reset() }
        let limit = 1.5 * delivered + 10_000
        let elapsed = Double(now &- lastChangeAt) / 1e6
        if rate < limit {
            let growth =
                capacity.estimate != nil
                ? additiveIncreasePerSecond * elapsed
                : max(rate * (Self.power(Self.growthPerSecond, min(elapsed, 1)) - 1), 1_000)
            rate = clamp(min(rate + growth, limit))
        }
        lastChangeAt = now
    }

    private mutating func decrease(at now: Int64) {
        var decreased = Self.decreaseFactor * delivered
        if decreased > Self.decreaseOffset { decreased -= Self.decreaseOffset }
        if decreased > rate, let capacity = capacity.estimate { decreased = Self.decreaseFactor * capacity }
        if delivered < capacity.lowerBound { capacity.reset() }
        capacity.overuseDetected(delivered: delivered)
        rate = clamp(min(rate, decreased))
        phase = .hold
        lastChangeAt = now
        lastDecreaseAt = now
    }

    /// Half a packet a response time, where the packets are those of a video of 30 pictures a second.
    private var additiveIncreasePerSecond: Double {
        let pictureBits = rate / 30
        let packets = max((pictureBits / (8 * 1_200)).rounded(.up), 1)
        let responseSeconds = 2 * (roundTripUS + Self.responseExtraUS) / 1e6
        return max(pictureBits / packets / responseSeconds, 4_000)
    }

    private func clamp(_ rate: Double) -> Double { min(max(rate, limits.lowerBound), limits.upperBound) }

    /// A power with an exponent of 0 to 1 by its series, which gives the same bits on every machine.
    private static func power(_ base: Double, _ exponent: Double) -> Double {
        // ln(base) by its series around 1, which base is close to.
        let x = base - 1
        let logarithm = x - x * x / 2 + x * x * x / 3 - x * x * x * x / 4
        let y = logarithm * exponent
        return 1 + y * (1 + y / 2 * (1 + y / 3 * (1 + y / 4)))
    }
}
