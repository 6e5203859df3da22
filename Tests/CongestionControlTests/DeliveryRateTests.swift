import Testing

@testable import CongestionControl

@Suite struct DeliveryRateTests {
    /// Packets of 1,000 bytes, one each `interval` milliseconds, until `end`.
    private func add(_ rate: inout DeliveryRate, from start: Int64, to end: Int64, each interval: Int64) {
        for at in stride(from: start, to: end, by: Int(interval)) {
            rate.add(PacketResult(sequence: at, sentAt: at * 1_000, arrivedAt: at * 1_000, bytes: 1_000))
        }
    }

    @Test func `the last 200 ms tell of a change before 400 ms do`() {
        var rate = DeliveryRate()
        add(&rate, from: 0, to: 1_000, each: 20)
        add(&rate, from: 1_000, to: 1_200, each: 5)
        let delivered = rate.update(newest: 1_195_000)
        let recent = rate.recent(newest: 1_195_000)
        #expect((900_000...1_100_000).contains(delivered))
        #expect((1_450_000...1_600_000).contains(recent))
    }

    @Test func `a rate that stays is the same in both`() {
        var rate = DeliveryRate()
        add(&rate, from: 0, to: 1_000, each: 10)
        let (delivered, recent) = (rate.update(newest: 990_000), rate.recent(newest: 990_000))
        #expect(delivered == 800_000)
        #expect(recent == 800_000)
    }

    @Test func `time of which no report came does not count`() {
        var rate = DeliveryRate()
        add(&rate, from: 0, to: 800, each: 10)
        rate.add(PacketResult(sequence: 900, sentAt: 900_000, arrivedAt: 900_000, bytes: 1_000), followsGap: true)
        add(&rate, from: 910, to: 950, each: 10)
        let recent = rate.recent(newest: 940_000)
        #expect((750_000...900_000).contains(recent))
    }

    @Test func `too little is no rate`() {
        var rate = DeliveryRate()
        let empty = rate.recent(newest: 0)
        add(&rate, from: 0, to: 1, each: 1)
        let (delivered, recent) = (rate.update(newest: 0), rate.recent(newest: 0))
        #expect(empty == 0)
        #expect(delivered == 0)
        #expect(recent == 0)
    }
}
