/// A histogram of sizes with eight buckets, each twice as wide as the one before. It holds no references, so that
/// recording neither allocates nor retains.
package struct SizeHistogram: Hashable, Sendable {
    /// The inclusive upper bounds of all buckets but the last, which has none.
    package static let bounds = [1, 2, 4, 8, 16, 32, 64]

    private var buckets = InlineArray<8, UInt64>(repeating: 0)
    /// The sum of the recorded sizes.
    package private(set) var sum: UInt64 = 0

    package init() {}

    /// The count of each bucket, not cumulative: one for each of ``bounds`` and one for larger sizes.
    package var counts: [UInt64] { buckets.indices.map { buckets[$0] } }
    /// The number of recorded sizes.
    package var total: UInt64 { buckets.indices.reduce(0) { $0 &+ buckets[$1] } }

    /// Records one size; a size below 1 counts as 1.
    @inline(__always)
    package mutating func record(_ size: Int) {
        let size = max(size, 1)
        // Bits of size - 1: 0 for 1, 1 for 2, 2 for 3 and 4, and so on.
        let bucket = min(Int.bitWidth - (size - 1).leadingZeroBitCount, 7)
        buckets[bucket] &+= 1
        sum &+= UInt64(size)
    }

    /// Adds another histogram's counts.
    package mutating func merge(_ other: Self) {
        for index in buckets.indices { buckets[index] &+= other.buckets[index] }
        sum &+= other.sum
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.sum == right.sum && left.buckets.indices.allSatisfy { left.buckets[$0] == right.buckets[$0] }
    }

    package func hash(into hasher: inout Hasher) {
        for index in buckets.indices { hasher.combine(buckets[index]) }
        hasher.combine(sum)
    }
}
