import Testing

@testable import CongestionControl

@Suite struct HeldRateTests {
    /// The rate after media of a few kbit/s for some seconds.
    private func rate(after seconds: Int64) -> Double {
        var held = HeldRate()
        held.carried(3_000_000, at: 0)
        for now in stride(from: 0, to: seconds * 1_000_000, by: 100_000) {
            held.fade(elapsed: 0.1, at: now)
            held.carried(30_000, at: now)
        }
        return held.rate
    }

    @Test func `a rate that was carried is held for a minute and then halves each half minute`() {
        #expect(rate(after: 60) == 3_000_000)
        #expect((1_400_000...1_600_000).contains(rate(after: 90)))
        #expect((650_000...850_000).contains(rate(after: 120)))
        #expect(rate(after: 600) < 30_000 / 0.9)
    }

    @Test func `a little less than the rate confirms it`() {
        var held = HeldRate()
        held.carried(3_000_000, at: 0)
        held.carried(2_800_000, at: 50_000_000)
        held.fade(elapsed: 0.1, at: 100_000_000)
        #expect(held.rate == 3_000_000)
    }
}
