import Metrics
import Testing

@Suite struct HistogramTests {
    struct Placement: CustomTestStringConvertible, Sendable {
        let value: Double
        let range: Int
        var testDescription: String { "\(value) in range \(range)" }
    }

    @Test(arguments: [
        Placement(value: -.infinity, range: 0),
        Placement(value: -1, range: 0),
        Placement(value: 0, range: 0),
        Placement(value: 1, range: 0),
        Placement(value: 1.nextUp, range: 1),
        Placement(value: 2, range: 1),
        Placement(value: 4, range: 2),
        Placement(value: 4.1, range: 3),
        Placement(value: .infinity, range: 3),
    ])
    func `upper bounds are inclusive`(placement: Placement) {
        var histogram = Histogram(bounds: [1, 2, 4])
        histogram.observe(placement.value)
        var expected: [UInt64] = [0, 0, 0, 0]
        expected[placement.range] = 1
        #expect(histogram.counts == expected)
        #expect(histogram.count == 1)
        #expect(histogram.sum == placement.value)
    }

    @Test func `NaN is ignored`() {
        var histogram = Histogram(bounds: [1])
        histogram.observe(.nan)
        #expect(histogram == Histogram(bounds: [1]))
    }

    @Test func `a histogram without bounds still counts and sums`() {
        var histogram = Histogram(bounds: [])
        histogram.observe(3)
        histogram.observe(4)
        #expect(histogram.counts == [2])
        #expect(histogram.sum == 7)
    }

    @Test func `merging adds the counts of each bucket`() {
        var left = Histogram(bounds: [1, 2])
        var right = left
        for value in [0.5, 1.5, 9] { left.observe(value) }
        for value in [1.5, 9, 10] { right.observe(value) }
        left.merge(right)
        #expect(left.counts == [1, 2, 3])
        #expect(left.sum == 31.5)
        #expect(right.counts == [0, 1, 2])
    }

    @Test func `merging with other bounds traps`() async {
        await #expect(processExitsWith: .failure) {
            var histogram = Histogram(bounds: [1, 2])
            histogram.merge(Histogram(bounds: [1, 3]))
        }
    }

    @Test func `bounds that are not ascending and finite trap`() async {
        await #expect(processExitsWith: .failure) { _ = Histogram(bounds: [1, 1]) }
        await #expect(processExitsWith: .failure) { _ = Histogram(bounds: [1, .infinity]) }
        await #expect(processExitsWith: .failure) { _ = DurationHistogram(boundsNanoseconds: [2, 1]) }
    }
}

@Suite struct DurationHistogramTests {
    @Test(arguments: [
        (Int64.min, 0), (-1, 0), (0, 0), (1_000, 0), (1_001, 1), (2_000, 1), (2_001, 2), (.max, 2),
    ])
    func `a duration is counted in the first bucket whose bound it does not exceed`(nanoseconds: Int64, range: Int) {
        var histogram = DurationHistogram(boundsNanoseconds: [1_000, 2_000])
        histogram.observe(nanoseconds: nanoseconds)
        var expected: [UInt64] = [0, 0, 0]
        expected[range] = 1
        #expect(histogram.counts == expected)
        #expect(histogram.sumNanoseconds == max(nanoseconds, 0))
    }

    @Test func `several packets of one batch are counted at once`() {
        var batch = DurationHistogram.shortTimes
        var single = batch
        batch.observe(nanoseconds: 70_000, count: 3)
        for _ in 0..<3 { single.observe(nanoseconds: 70_000) }
        #expect(batch == single)
        #expect(batch.count == 3)
    }

    @Test func `a duration histogram is exposed in seconds`() {
        var histogram = DurationHistogram(boundsNanoseconds: [1_000_000, 500_000_000])
        histogram.observe(nanoseconds: 250_000_000)
        var expected = Histogram(bounds: [0.001, 0.5])
        expected.observe(0.25)
        #expect(histogram.seconds == expected)
    }

    @Test func `the histograms of several loops can be merged`() {
        var node = DurationHistogram.shortTimes
        for loop in 1...3 {
            var histogram = DurationHistogram.shortTimes
            histogram.observe(nanoseconds: Int64(loop) * 1_000_000)
            node.merge(histogram)
        }
        #expect(node.count == 3)
        #expect(node.sumNanoseconds == 6_000_000)
    }
}
