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
    func `an upper bound belongs to its range`(placement: Placement) {
        var histogram = Histogram(bounds: [1, 2, 4])
        histogram.observe(placement.value)
        var expected: [UInt64] = [0, 0, 0, 0]
        expected[placement.range] = 1
        #expect(histogram.counts == expected)
        #expect(histogram.count == 1)
        #expect(histogram.sum == placement.value)
    }

    @Test func `not a number is left out`() {
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

    @Test func `merging adds range by range`() {
        var left = Histogram(bounds: [1, 2])
        var right = left
        for value in [0.5, 1.5, 9] { left.observe(value) }
        for value in [1.5, 9, 10] { right.observe(value) }
        left.merge(right)
        #expect(left.counts == [1, 2, 3])
        #expect(left.sum == 31.5)
        #expect(right.counts == [0, 1, 2])
    }

    @Test func `merging with other bounds is our own mistake`() async {
        await #expect(processExitsWith: .failure) {
            var histogram = Histogram(bounds: [1, 2])
            histogram.merge(Histogram(bounds: [1, 3]))
        }
    }

    @Test func `bounds that do not ascend are our own mistake`() async {
        await #expect(processExitsWith: .failure) { _ = Histogram(bounds: [1, 1]) }
        await #expect(processExitsWith: .failure) { _ = Histogram(bounds: [1, .infinity]) }
        await #expect(processExitsWith: .failure) { _ = DurationHistogram(boundsNanoseconds: [2, 1]) }
    }

    @Test func `a quantile is the bound of the range that holds it`() {
        var histogram = Histogram(bounds: [1, 2, 4])
        #expect(histogram.quantile(0.5) == nil)
        for value in [0.1, 0.2, 0.3, 1.5, 1.6, 1.7, 3, 3, 3, 100] { histogram.observe(value) }
        #expect(histogram.quantile(0) == 1)
        #expect(histogram.quantile(0.3) == 1)
        #expect(histogram.quantile(0.31) == 2)
        #expect(histogram.quantile(0.9) == 4)
        #expect(histogram.quantile(0.91) == .infinity)
        #expect(histogram.quantile(7) == .infinity)
    }
}

@Suite struct DurationHistogramTests {
    @Test(arguments: [
        (Int64.min, 0), (-1, 0), (0, 0), (1_000, 0), (1_001, 1), (2_000, 1), (2_001, 2), (.max, 2),
    ])
    func `a time falls into the range whose bound it does not exceed`(nanoseconds: Int64, range: Int) {
        var histogram = DurationHistogram(boundsNanoseconds: [1_000, 2_000])
        histogram.observe(nanoseconds: nanoseconds)
        var expected: [UInt64] = [0, 0, 0]
        expected[range] = 1
        #expect(histogram.counts == expected)
        #expect(histogram.sumNanoseconds == max(nanoseconds, 0))
    }

    @Test func `many packets of one batch are counted at once`() {
        var batch = DurationHistogram.shortTimes
        var single = batch
        batch.observe(nanoseconds: 70_000, count: 3)
        for _ in 0..<3 { single.observe(nanoseconds: 70_000) }
        #expect(batch == single)
        #expect(batch.count == 3)
        #expect(batch.quantile(0.5) == 0.0001)
    }

    @Test func `it is exposed in seconds`() {
        var histogram = DurationHistogram(boundsNanoseconds: [1_000_000, 500_000_000])
        histogram.observe(nanoseconds: 250_000_000)
        var expected = Histogram(bounds: [0.001, 0.5])
        expected.observe(0.25)
        #expect(histogram.seconds == expected)
    }

    @Test func `loops' histograms merge into the node's`() {
        var node = DurationHistogram.longTimes
        for loop in 1...3 {
            var histogram = DurationHistogram.longTimes
            histogram.observe(nanoseconds: Int64(loop) * 1_000_000)
            node.merge(histogram)
        }
        #expect(node.count == 3)
        #expect(node.sumNanoseconds == 6_000_000)
    }
}

@Suite struct CounterTests {
    @Test func `a counter grows, and a negative amount adds nothing`() {
        var counter = Counter()
        counter.increment()
        counter += 41
        counter.increment(by: -5)
        #expect(counter.value == 42)
    }

    @Test func `a counter wraps and does not trap`() {
        var counter = Counter(.max)
        counter.increment(by: 2 as UInt64)
        #expect(counter.value == 1)
    }

    @Test func `a gauge goes both ways`() {
        var gauge = Gauge()
        gauge.increment()
        gauge.decrement(by: 3)
        gauge.merge(Gauge(10))
        #expect(gauge.value == 8)
    }
}
