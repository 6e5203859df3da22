import Base
import Client
import Testing

@Suite struct DelayHistogramTests {
    @Test(arguments: [0, 1, 63, 64, 65, 999, 1_000_000, 123_456_789, 60_000_000_000] as [Int64])
    func `a single delay is recorded to within 3 percent`(nanoseconds: Int64) throws {
        var histogram = DelayHistogram()
        histogram.observe(Interval(nanoseconds: nanoseconds))
        for fraction in [0, 0.5, 1] {
            let found = try #require(histogram.quantile(fraction)).nanoseconds
            #expect(found == nanoseconds)
        }
        #expect(histogram.max.nanoseconds == nanoseconds)
    }

    @Test func `quantiles are within 3 percent of the true ones`() throws {
        var histogram = DelayHistogram()
        for number in 1...100_000 { histogram.observe(.microseconds(number)) }
        for (fraction, expected) in [(0.5, 50_000.0), (0.95, 95_000), (0.99, 99_000), (0.999, 99_900)] {
            let found = Double(try #require(histogram.quantile(fraction)).nanoseconds) / 1_000
            #expect(found >= expected && found <= expected * 1.0313)
        }
        #expect(histogram.max == .microseconds(100_000))
        #expect(histogram.count == 100_000)
    }

    @Test(arguments: [(-5, 0), (Int64.min, 0), (Int64.max, 1 << 37 - 1)] as [(Int64, Int64)])
    func `a delay beyond the range counts as the maximum`(nanoseconds: Int64, counted: Int64) {
        var histogram = DelayHistogram()
        histogram.observe(Interval(nanoseconds: nanoseconds))
        #expect(histogram.max.nanoseconds == counted)
        #expect(histogram.count == 1)
    }

    @Test func `an empty histogram has no quantile`() {
        #expect(DelayHistogram().quantile(0.5) == nil)
        #expect(DelayHistogram().max == .zero)
    }

    @Test func `merging and subtracting an earlier copy are inverse`() throws {
        var histogram = DelayHistogram()
        for number in 1...100 { histogram.observe(.microseconds(number)) }
        let before = histogram
        var later = DelayHistogram()
        for number in 1...50 { later.observe(.milliseconds(number)) }
        histogram.merge(later)
        #expect(histogram.count == 150)
        let difference = histogram.since(before)
        #expect(difference.count == 50)
        #expect(difference.quantile(0.5) == later.quantile(0.5))
        #expect(difference.max == .milliseconds(50))
        #expect(before.since(before).quantile(0.5) == nil)
    }
}
