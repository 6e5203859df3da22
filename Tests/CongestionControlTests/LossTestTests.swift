import Testing

@testable import CongestionControl

@Suite struct LossTestTests {
    /// A sender of 130 packets a second, whose reports come each 100 ms.
    private struct Sender: ~Copyable {
        var loss = LossTest()
        var canRaise = false
        private var sequence: Int64 = 0
        private var now: Int64 = 0

        /// - Returns: the advices but `.none`.
        mutating func run(seconds: Double, loses: (Int64) -> Bool) -> [LossTest.Advice] {
            let end = now + Int64(seconds * 1e6)
            var advices: [LossTest.Advice] = []
            while now < end {
                for _ in 0..<13 {
                    now += 7_692
                    sequence += 1
                    loss.add(
                        PacketResult(
                            sequence: sequence,
                            sentAt: now,
                            arrivedAt: loses(sequence) ? nil : now,
                            bytes: 1_200
                        )
                    )
                }
                let advice = loss.update(target: 1e6, queueMS: 0, canRaise: canRaise, roundTrip: 60_000, at: now)
                if advice != .none { advices.append(advice) }
            }
            return advices
        }

        /// - Returns: what ended a test without loss at the lower rate.
        mutating func test(loses: (Int64) -> Bool) -> LossTest.Advice? {
            for _ in 0..<50 {
                if run(seconds: 0.1, loses: loses) == [.lower] { return run(seconds: 2, loses: { _ in false }).first }
            }
            return nil
        }
    }

    @Test func `a rate is capped when single losses end below it`() {
        var sender = Sender()
        #expect(sender.test { $0 % 15 == 0 } == .cap)
    }

    @Test func `a moment without any of the few runs of losses caps no rate`() {
        var sender = Sender()
        #expect(sender.test { $0 % 140 < 10 } == .inherent(1e6))
    }

    @Test func `more is sent before less is, twice where losses come in runs`() {
        var singles = Sender()
        singles.canRaise = true
        #expect(singles.run(seconds: 10) { $0 % 15 == 0 }.prefix(2) == [.raise, .lower])
        var runs = Sender()
        runs.canRaise = true
        #expect(runs.run(seconds: 10) { $0 % 60 < 4 }.prefix(3) == [.raise, .raise, .lower])
    }

    @Test func `a rate that a probe carried is raised in the next test`() {
        var sender = Sender()
        #expect(sender.test { $0 % 15 == 0 } == .cap)
        sender.canRaise = true
        sender.loss.refuteCap()
        #expect(sender.run(seconds: 5) { $0 % 15 == 0 }.first == .raise)
    }
}
