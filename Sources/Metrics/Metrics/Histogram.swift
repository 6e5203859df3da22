/// A histogram with fixed buckets, and the sum of all values.
///
/// Observing does not allocate. Values and bounds are in the metric's base unit (seconds, bytes). For durations on the
/// per-packet path ``DurationHistogram`` does the same with integers.
public struct Histogram: Hashable, Sendable {
    /// The inclusive upper bounds of the buckets, ascending; one more bucket without a bound follows.
    public let bounds: [Double]
    /// The count of each bucket, not cumulative: one more than ``bounds``.
    public private(set) var counts: [UInt64]
    /// The sum of the observed values.
    public private(set) var sum: Double

    /// An empty histogram. `bounds` must be finite and strictly ascending.
    public init(bounds: [Double]) {
        precondition(bounds.allSatisfy(\.isFinite), "a histogram's bounds are finite")
        precondition(zip(bounds, bounds.dropFirst()).allSatisfy(<), "a histogram's bounds ascend")
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
        sum = 0
    }

    /// A histogram of values that were counted elsewhere.
    /// - Parameter counts: the count of each bucket, not cumulative; one more than the ascending `bounds`.
    public init(bounds: [Double], counts: [UInt64], sum: Double) {
        precondition(counts.count == bounds.count + 1, "each bucket has its count")
        self.bounds = bounds
        self.counts = counts
        self.sum = sum
    }

    /// The number of observed values.
    public var count: UInt64 { counts.reduce(0, &+) }

    /// Counts one value. NaN is ignored.
    public mutating func observe(_ value: Double) {
        guard !value.isNaN else { return }
        var index = 0
        while index < bounds.count, value > bounds[index] { index &+= 1 }
        counts[index] &+= 1
        sum += value
    }

    /// Adds another histogram of the same thing. Both must have the same bounds.
    public mutating func merge(_ other: Self) {
        precondition(bounds == other.bounds, "only histograms with equal bounds can be merged")
        for index in counts.indices { counts[index] &+= other.counts[index] }
        sum += other.sum
    }
}

/// A histogram of durations in integer nanoseconds. Observing does not allocate and uses no floating point. It is
/// exposed in seconds, the base unit of Prometheus.
public struct DurationHistogram: Hashable, Sendable {
    /// The inclusive upper bounds in nanoseconds, ascending; one more bucket without a bound follows.
    public let boundsNanoseconds: [Int64]
    /// The count of each bucket, not cumulative: one more than ``boundsNanoseconds``.
    public private(set) var counts: [UInt64]
    /// The sum of the observed durations in nanoseconds; it wraps after 292 years.
    public private(set) var sumNanoseconds: Int64

    /// An empty histogram. `boundsNanoseconds` must be strictly ascending.
    public init(boundsNanoseconds: [Int64]) {
        precondition(zip(boundsNanoseconds, boundsNanoseconds.dropFirst()).allSatisfy(<), "bounds ascend")
        self.boundsNanoseconds = boundsNanoseconds
        counts = Array(repeating: 0, count: boundsNanoseconds.count + 1)
        sumNanoseconds = 0
    }

    /// The number of observed durations.
    public var count: UInt64 { counts.reduce(0, &+) }

    /// Counts one duration. A negative one counts as zero.
    public mutating func observe(nanoseconds: Int64) { observe(nanoseconds: nanoseconds, count: 1) }

    /// Counts one duration `count` times, for several packets of one batch.
    public mutating func observe(nanoseconds: Int64, count: UInt64) {
        let value = max(nanoseconds, 0)
        var index = 0
        while index < boundsNanoseconds.count, value > boundsNanoseconds[index] { index &+= 1 }
        counts[index] &+= count
        sumNanoseconds &+= value &* Int64(truncatingIfNeeded: count)
    }

    /// Adds another histogram of the same thing. Both must have the same bounds.
    public mutating func merge(_ other: Self) {
        precondition(boundsNanoseconds == other.boundsNanoseconds, "only histograms with equal bounds can be merged")
        for index in counts.indices { counts[index] &+= other.counts[index] }
        sumNanoseconds &+= other.sumNanoseconds
    }

    /// The same histogram in seconds.
    public var seconds: Histogram {
        Histogram(
            bounds: boundsNanoseconds.map { Double($0) / 1e9 },
            counts: counts,
            sum: Double(sumNanoseconds) / 1e9
        )
    }
}

extension DurationHistogram {
    /// An empty histogram for loop turns and packet forwarding: bounds from 10 µs to 1 s in steps of 1-2-5.
    public static var shortTimes: Self {
        Self(
            boundsNanoseconds: [
                10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
                1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000,
                100_000_000, 200_000_000, 500_000_000, 1_000_000_000,
            ]
        )
    }

    /// An empty histogram for the phases of a set-up: bounds from 10 ms to 10 s in steps of 1-2-5.
    public static var setupTimes: Self {
        Self(
            boundsNanoseconds: [
                10_000_000, 20_000_000, 50_000_000, 100_000_000, 200_000_000, 500_000_000, 1_000_000_000, 2_000_000_000,
                5_000_000_000, 10_000_000_000,
            ]
        )
    }

    /// An empty histogram for requests to other servers: bounds from 5 ms to 30 s.
    public static var requestTimes: Self {
        Self(
            boundsNanoseconds: [
                5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000, 250_000_000, 500_000_000, 1_000_000_000,
                2_500_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000,
            ]
        )
    }
}
