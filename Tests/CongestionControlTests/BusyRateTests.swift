import Testing

@testable import CongestionControl

@Suite struct BusyRateTests {
    private static let report: Int64 = 100_000

    /// Reports of a queue in milliseconds, one each 100 ms.
    private func run(_ busy: inout BusyRate, _ queues: [Double], delivered: Double, from start: Int64 = 0) {
        for (index, queueMS) in queues.enumerated() {
            let now = start + Int64(index) * Self.report
            busy.observe(queueMS: queueMS, jitterMS: 2, delivered: delivered, at: now)
        }
    }

    private func rate(_ queues: [Double]) -> Double? {
        var busy = BusyRate()
        run(&busy, queues, delivered: 100_000)
        return busy.rate
    }

    @Test func `a queue that stands for half a second shows what the path carries`() {
        #expect(rate([300, 300, 300, 300, 300]) == nil)
        #expect(rate([300, 300, 300, 300, 300, 300]) == 100_000)
        #expect(rate([300, 300, 300, 20, 300, 300, 300]) == nil)
        #expect(rate([51, 51, 51, 51, 51, 51]) == nil)
    }

    @Test func `more that arrives than the rate ends it`() {
        var busy = BusyRate()
        run(&busy, Array(repeating: 300, count: 6), delivered: 100_000)
        run(&busy, [0], delivered: 105_000, from: 1_000_000)
        #expect(busy.rate == 100_000)
        run(&busy, [0], delivered: 120_000, from: 1_100_000)
        #expect(busy.rate == nil)
    }

    @Test func `a cluster that makes a long queue shows the rate, and one that passes ends it`() {
        var busy = BusyRate()
        func probe(_ rate: Double, stretchMS: Double, isSaturated: Bool) {
            let outcome = ProbePlanner.Outcome(
                rate: rate,
                isSaturated: isSaturated,
                stretchMS: stretchMS,
                clusterRate: 900_000
            )
            busy.probed(outcome, jitterMS: 2, at: 0)
        }
        probe(600_000, stretchMS: 20, isSaturated: true)
        #expect(busy.rate == nil)
        probe(100_000, stretchMS: 120, isSaturated: true)
        #expect(busy.rate == 100_000)
        probe(90_000, stretchMS: 0, isSaturated: false)
        #expect(busy.rate == 100_000)
        probe(150_000, stretchMS: 0, isSaturated: false)
        #expect(busy.rate == nil)
    }

    @Test func `what nothing confirms for half a minute is not known any more`() {
        var busy = BusyRate()
        run(&busy, Array(repeating: 300, count: 6), delivered: 100_000)
        busy.handleTimeout(at: 30_000_000)
        #expect(busy.rate == 100_000)
        busy.handleTimeout(at: 30_600_000)
        #expect(busy.rate == nil)
    }
}
