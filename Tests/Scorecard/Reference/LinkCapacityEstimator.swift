/// Remembers the rate at which the path was full: the mean and the deviation of the delivered rate at each overuse
/// (libwebrtc's `LinkCapacityEstimator`). Rates are in bits a second.
struct LinkCapacityEstimator: Sendable {
    private static let overuseWeight = 0.05
    private static let probeWeight = 0.5
    private static let varianceLimits = 0.4...2.5

    /// In kbit/s, as the variance is normalised by it.
    private var mean: Double?
    private var variance = 0.4

    init() {}

    /// `nil` before the first overuse.
    var estimate: Double? { mean.map { $0 * 1e3 } }
    /// Three deviations above the estimate; infinite without one.
    var upperBound: Double { mean.map { ($0 + 3 * deviation($0)) * 1e3 } ?? .infinity }
    /// Three deviations below the estimate; 0 without one.
    var lowerBound: Double { mean.map { max(0, $0 - 3 * deviation($0)) * 1e3 } ?? 0 }

    mutating func reset() { mean = nil }
    mutating func overuseDetected(delivered: Double) { update(delivered / 1e3, weight: Self.overuseWeight) }
    mutating func probeSucceeded(_ rate: Double) { update(rate / 1e3, weight: Self.probeWeight) }

    private func deviation(_ mean: Double) -> Double { (variance * mean).squareRoot() }

    private mutating func update(_ sample: Double, weight: Double) {
        let mean = self.mean.map { (1 - weight) * $0 + weight * sample } ?? sample
        self.mean = mean
        let error = mean - sample
        variance = (1 - weight) * variance + weight * error * error / max(mean, 1)
        variance = min(max(variance, Self.varianceLimits.lowerBound), Self.varianceLimits.upperBound)
    }
}
