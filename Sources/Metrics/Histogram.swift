/// How often a value fell into each of a fixed set of ranges, with the sum of all values.
///
/// The ranges are fixed at creation, so observing allocates nothing. Values and bounds are in the metric's base unit
/// (seconds, bytes). For times on the per-packet path `DurationHistogram` does the same with integers.
public struct Histogram: Hashable, Sendable {
    /// The inclusive upper bounds of the ranges, ascending; a last range without a bound follows them.
    public let bounds: [Double]
    /// How many values fell into each range: one more than `bounds`, not cumulative.
    public private(set) var counts: [UInt64]
    /// The sum of the values observed.
    public private(set) var sum: Double

    /// An empty histogram. `bounds` must be finite and strictly ascending.
    public init(bounds: [Double]) {
        precondition(bounds.allSatisfy(\.isFinite), "a histogram's bounds are finite")
        precondition(zip(bounds, bounds.dropFirst()).allSatisfy(<), "a histogram's bounds ascend")
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
        sum = 0
    }

    /// A histogram of what was counted elsewhere: `counts` has one place for each of the ascending `bounds` and one for
    /// what is above them, not cumulative.
    public init(bounds: [Double], counts: [UInt64], sum: Double) {
        precondition(counts.count == bounds.count + 1, "each range has its count")
        self.bounds = bounds
        self.counts = counts
        self.sum = sum
    }

    /// How many values were observed.
    public var count: UInt64 { counts.reduce(0, &+) }

    /// Counts one value. NaN, which no range holds, is left out.
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

    /// An upper estimate of the value below which `fraction` (0…1) of the observations lie: the bound of the range that
    /// holds it, infinity when that is the last range; `nil` while nothing was observed.
    public func quantile(_ fraction: Double) -> Double? {
        let total = count
        guard total > 0 else { return nil }
        let rank = (Double(total) * min(max(fraction, 0), 1)).rounded(.up)
        var seen: UInt64 = 0
        for (index, count) in counts.enumerated() {
            seen &+= count
            if Double(seen) >= rank, count > 0 { return index < bounds.count ? bounds[index] : .infinity }
        }
        return .infinity
    }
}

/// A histogram of times in integer nanoseconds: no floating point and no allocation when observing. It is exposed in
/// seconds, Prometheus' base unit.
public struct DurationHistogram: Hashable, Sendable {
    /// The inclusive upper bounds in nanoseconds, ascending; a last range without a bound follows them.
    public let boundsNanoseconds: [Int64]
    /// How many times fell into each range: one more than the bounds, not cumulative.
    public private(set) var counts: [UInt64]
    /// The sum of the times observed, in nanoseconds; it wraps after 292 years.
    public private(set) var sumNanoseconds: Int64

    /// An empty histogram. `boundsNanoseconds` must be strictly ascending.
    public init(boundsNanoseconds: [Int64]) {
        precondition(zip(boundsNanoseconds, boundsNanoseconds.dropFirst()).allSatisfy(<), "bounds ascend")
        self.boundsNanoseconds = boundsNanoseconds
        counts = Array(repeating: 0, count: boundsNanoseconds.count + 1)
        sumNanoseconds = 0
    }

    /// How many times were observed.
    public var count: UInt64 { counts.reduce(0, &+) }

    /// Counts one time. A negative time, which only a clock's fault could give, counts as zero.
    public mutating func observe(nanoseconds: Int64) { observe(nanoseconds: nanoseconds, count: 1) }

    /// Counts one time `count` times: what several packets of one batch have in common.
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

    /// As `Histogram.quantile`, in seconds.
    public func quantile(_ fraction: Double) -> Double? { seconds.quantile(fraction) }
}

extension DurationHistogram {
    /// For what takes microseconds to milliseconds, as a turn of a loop and the forwarding of a packet do: 16 ranges from
    /// 10 µs to 1 s in steps of 1-2-5.
    public static var shortTimes: Self {
        Self(
            boundsNanoseconds: [
                10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
                1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000,
                100_000_000, 200_000_000, 500_000_000, 1_000_000_000,
            ]
        )
    }

    /// For what takes milliseconds to seconds, as an HTTP request and a handshake do: 1 ms to 30 s.
    public static var longTimes: Self {
        Self(
            boundsNanoseconds: [
                1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000, 200_000_000,
                500_000_000, 1_000_000_000, 2_000_000_000, 5_000_000_000, 10_000_000_000, 30_000_000_000,
            ]
        )
    }
}
