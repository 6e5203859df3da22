/// How the delay of a path develops.
enum PathUsage: Equatable, Sendable {
    case normal
    /// The queue grows.
    case overuse
    /// The queue drains.
    case underuse
}

/// Detects a growing queue from the slope of the accumulated delay (libwebrtc's `TrendlineEstimator`): least squares
/// over the last 20 groups of packets, against a threshold that adapts to the path.
struct TrendlineEstimator: Sendable {
    private struct Sample {
        var arrivalMS: Double
        var delayMS: Double
    }

    private static let samplesMax = 20
    private static let smoothing = 0.9
    private static let gain = 4.0
    private static let groupsMax = 60
    private static let thresholdLimits = 6.0...600.0
    private static let thresholdRise = 0.0087
    private static let thresholdFall = 0.039
    /// A trend this far above the threshold is a spike, which does not raise it.
    private static let spike = 15.0
    private static let thresholdStepMaxMS = 100.0
    private static let overuseMS = 10.0

    private(set) var usage = PathUsage.normal
    /// The slope times its gain: what is compared with `threshold`.
    private(set) var trend = 0.0
    private(set) var threshold = 12.5

    private var samples: ContiguousArray<Sample> = []
    private var next = 0
    private var groups = 0
    private var firstArrivalMS: Double?
    private var accumulatedMS = 0.0
    private var smoothedMS = 0.0
    private var slope = 0.0
    private var overusedMS: Double?
    private var overuses = 0
    private var thresholdAtMS: Double?

    init() {}

    /// Takes the difference between two groups, the later of which ended at `arrivalMS` of the receiver's clock.
    mutating func update(_ delta: PacketGroups.Delta, arrivalMS: Double) {
        groups = min(groups + 1, 1000)
        let first = firstArrivalMS ?? arrivalMS
        firstArrivalMS = first
        accumulatedMS += delta.arrivalMS - delta.sendMS
        smoothedMS = Self.smoothing * smoothedMS + (1 - Self.smoothing) * accumulatedMS
        let sample = Sample(arrivalMS: arrivalMS - first, delayMS: smoothedMS)
        if samples.count < Self.samplesMax {
            samples.append(sample)
        } else {
            samples[next] = sample
            next = (next + 1) % Self.samplesMax
        }
        let before = slope
        if samples.count == Self.samplesMax { slope = leastSquaresSlope() ?? slope }
        detect(sendMS: delta.sendMS, slopeBefore: before)
        adaptThreshold(atMS: arrivalMS)
    }

    private func leastSquaresSlope() -> Double? {
        var meanX = 0.0
        var meanY = 0.0
        for sample in samples {
            meanX += sample.arrivalMS
            meanY += sample.delayMS
        }
        meanX /= Double(samples.count)
        meanY /= Double(samples.count)
        var numerator = 0.0
        var denominator = 0.0
        for sample in samples {
            let x = sample.arrivalMS - meanX
            numerator += x * (sample.delayMS - meanY)
            denominator += x * x
        }
        return denominator == 0 ? nil : numerator / denominator
    }

    private mutating func detect(sendMS: Double, slopeBefore: Double) {
        guard groups >= 2 else { return }
        trend = Double(min(groups, Self.groupsMax)) * slope * Self.gain
        if trend > threshold {
            overusedMS = overusedMS.map { $0 + sendMS } ?? sendMS / 2
            overuses += 1
            if (overusedMS ?? 0) > Self.overuseMS, overuses > 1, slope >= slopeBefore {
                overusedMS = 0
                overuses = 0
                usage = .overuse
            }
        } else {
            overusedMS = nil
            overuses = 0
            usage = trend < -threshold ? .underuse : .normal
        }
    }

    private mutating func adaptThreshold(atMS now: Double) {
        defer { thresholdAtMS = now }
        let size = abs(trend)
        guard groups >= 2, size <= threshold + Self.spike else { return }
        let elapsed = min(max(now - (thresholdAtMS ?? now), 0), Self.thresholdStepMaxMS)
        let rate = size < threshold ? Self.thresholdFall : Self.thresholdRise
        threshold += rate * (size - threshold) * elapsed
        threshold = min(max(threshold, Self.thresholdLimits.lowerBound), Self.thresholdLimits.upperBound)
    }
}
