package import Base

/// A histogram of delays from nanoseconds to two minutes, to within 3 %, in 9 KiB.
///
/// Below 64 ns every value has a range of its own; above, each doubling is divided into 32 ranges.
package struct DelayHistogram: Sendable, Equatable {
    private static let rangesPerDoubling = 32
    /// Longer delays count as this one.
    private static let nanosecondsMax: Int64 = 1 << 37 - 1

    private var counts: [UInt64]
    package private(set) var count: UInt64 = 0
    private var longest: Int64 = 0

    package init() {
        counts = Array(repeating: 0, count: Self.index(of: Self.nanosecondsMax) + 1)
    }

    /// The longest delay, exact, or to within 3 % after ``since(_:)``. Zero without observations.
    package var max: Interval { Interval(nanoseconds: longest) }

    /// Counts one delay. A negative one, from clocks of two machines, counts as zero.
    @inline(__always)
    package mutating func observe(_ delay: Interval) {
        let value = Swift.min(Swift.max(delay.nanoseconds, 0), Self.nanosecondsMax)
        counts[Self.index(of: value)] &+= 1
        count &+= 1
        if value > longest { longest = value }
    }

    /// The delay that `fraction` (0…1) of the observations do not exceed, to within 3 %; `nil` without observations.
    package func quantile(_ fraction: Double) -> Interval? {
        guard count > 0 else { return nil }
        let rank = Swift.max((Double(count) * Swift.min(Swift.max(fraction, 0), 1)).rounded(.up), 1)
        var seen: UInt64 = 0
        for (index, count) in counts.enumerated() where count > 0 {
            seen &+= count
            if Double(seen) >= rank { return Interval(nanoseconds: Swift.min(Self.upperBound(of: index), longest)) }
        }
        return max
    }

    package mutating func merge(_ other: Self) {
        for index in counts.indices { counts[index] &+= other.counts[index] }
        count &+= other.count
        longest = Swift.max(longest, other.longest)
    }

    /// The observations since `earlier`, a copy of this histogram from then.
    package func since(_ earlier: Self) -> Self {
        var difference = self
        difference.longest = 0
        for index in counts.indices {
            difference.counts[index] = counts[index] &- earlier.counts[index]
            if difference.counts[index] > 0 { difference.longest = Swift.min(Self.upperBound(of: index), longest) }
        }
        difference.count = count &- earlier.count
        return difference
    }

    private static func index(of nanoseconds: Int64) -> Int {
        guard nanoseconds >= 64 else { return Int(nanoseconds) }
        let shift = 58 - nanoseconds.leadingZeroBitCount
        return shift * rangesPerDoubling + Int(nanoseconds >> Int64(shift))
    }

    private static func upperBound(of index: Int) -> Int64 {
        guard index >= 64 else { return Int64(index) }
        let shift = index / rangesPerDoubling - 1
        let mantissa = Int64(index % rangesPerDoubling + rangesPerDoubling)
        return (mantissa + 1) << Int64(shift) - 1
    }
}

/// A histogram that several receivers on one thread share.
package final class DelayRecorder {
    package private(set) var histogram = DelayHistogram()
    package init() {}
    @inline(__always)
    package func observe(_ delay: Interval) { histogram.observe(delay) }
}
