import Base

/// A histogram of the times that packets took from the publisher's loop to a loop of another node. Recording does not
/// allocate.
public struct HopTimes: Hashable, Sendable {
    /// The inclusive upper bounds in nanoseconds of all buckets but the last, which has none. Ages of packets are told in
    /// steps of 0.1 ms.
    public static let boundsNanoseconds: [Int64] = bounds.indices.map { bounds[$0] }

    private static let bounds: [14 of Int64] = [
        50_000, 100_000, 200_000, 500_000,
        1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000,
        100_000_000, 200_000_000, 500_000_000, 1_000_000_000,
    ]

    private var buckets: [15 of UInt64] = .init(repeating: 0)
    /// The sum of the recorded times in nanoseconds.
    public private(set) var sumNanoseconds: UInt64 = 0

    public init() {}

    /// The count of each bucket, not cumulative: one for each of ``boundsNanoseconds`` and one for longer times.
    public var counts: [UInt64] { buckets.indices.map { buckets[$0] } }
    /// The number of recorded times.
    public var total: UInt64 { buckets.indices.reduce(0) { $0 &+ buckets[$1] } }

    /// Records one time; a negative one counts as zero.
    @inline(__always)
    mutating func record(_ time: Interval) {
        let nanoseconds = max(time.nanoseconds, 0)
        var bucket = 0
        while bucket < Self.bounds.count, nanoseconds > Self.bounds[bucket] { bucket &+= 1 }
        buckets[bucket] &+= 1
        sumNanoseconds &+= UInt64(nanoseconds)
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.sumNanoseconds == right.sumNanoseconds
            && left.buckets.indices.allSatisfy { left.buckets[$0] == right.buckets[$0] }
    }

    public func hash(into hasher: inout Hasher) {
        for index in buckets.indices { hasher.combine(buckets[index]) }
        hasher.combine(sumNanoseconds)
    }
}
