import Base
import Testing

@testable import Forwarding

/// The histogram of the way between nodes.
@Suite struct HopTimesTests {
    @Test(
        arguments: [
            (-1, 0), (0, 0), (50_000, 0), (50_001, 1), (1_000_000, 4), (1_000_001, 5), (1_000_000_000, 13),
            (1_000_000_001, 14), (.max, 14),
        ] as [(Int64, Int)]
    )
    func `a time counts in the first bucket whose bound it does not exceed`(nanoseconds: Int64, bucket: Int) {
        var times = HopTimes()
        times.record(Interval(nanoseconds: nanoseconds))
        var expected = [UInt64](repeating: 0, count: HopTimes.boundsNanoseconds.count + 1)
        expected[bucket] = 1
        #expect(times.counts == expected)
        #expect(times.total == 1 && times.sumNanoseconds == UInt64(max(nanoseconds, 0)))
        #expect(times != HopTimes())
    }
}
