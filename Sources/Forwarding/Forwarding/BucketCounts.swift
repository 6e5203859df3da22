/// The counts of a histogram with ten bounds, and the sum of its values.
///
/// It holds no references, so that counting neither allocates nor retains. The bounds are the caller's.
struct BucketCounts: Sendable {
    private static let boundsCount = 10

    private var buckets: [11 of UInt64] = .init(repeating: 0)
    /// The sum of the values.
    private(set) var sum = 0.0

    /// The count of each bucket, not cumulative: one for each bound and one for larger values.
    var counts: [UInt64] { buckets.indices.map { buckets[$0] } }

    /// Counts one value. One that is not finite is ignored.
    /// - Parameter bounds: the inclusive upper bounds of the buckets, ascending; ten of them.
    mutating func observe(_ value: Double, bounds: [Double]) {
        guard value.isFinite else { return }
        var index = 0
        while index < Self.boundsCount, value > bounds[index] { index += 1 }
        buckets[index] &+= 1
        sum += value
    }
}
