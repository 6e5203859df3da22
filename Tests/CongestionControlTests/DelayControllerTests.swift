import Testing

@testable import CongestionControl

@Suite struct DelayControllerTests {
    /// A report a tenth of a second after the one before, of a path whose bottleneck is known.
    private func input(
        queueMS: Double,
        delivered: Double = 1_000_000,
        deliveredRecently: Double? = nil,
        link: Double = 1_000_000
    ) -> DelayController.Input {
        DelayController.Input(
            queueMS: queueMS,
            jitterMS: 2,
            delivered: delivered,
            deliveredRecently: deliveredRecently ?? delivered,
            link: link,
            roundTrip: 100_000,
            isTestingLoss: false,
            isNewcomer: false,
            isLinkKnown: true,
            elapsed: 0.1
        )
    }

    @Test func `a queue that exceeds its goal by more than 25 ms is drained at once`() {
        let goalMS = DelayController.goalMS(delivered: 1_000_000, link: 1_000_000)
        var law = DelayController()
        _ = law.next(1_000_000, input(queueMS: goalMS + 24), at: 0)
        #expect(!law.isDraining)
        let drained = law.next(1_000_000, input(queueMS: goalMS + 26), at: 100_000)
        #expect(law.isDraining)
        #expect(drained < 970_000, "less than what arrives, although the queue has hardly grown")
    }

    @Test func `what follows a drain is made of the last moment`() {
        var law = DelayController()
        // The rate has just risen.
        _ = law.next(900_000, input(queueMS: 80, delivered: 400_000, deliveredRecently: 1_000_000), at: 0)
        #expect(law.isDraining)
        #expect(law.resumeRate(deliveredRecently: 1_000_000) == 900_000)
        _ = law.next(400_000, input(queueMS: 30, delivered: 700_000, deliveredRecently: 1_100_000), at: 100_000)
        // Now less arrives, because less is sent.
        #expect(law.resumeRate(deliveredRecently: 300_000) == 990_000)
    }

    @Test func `a report raises the rate at most at the pace of twice in a second`() {
        var law = DelayController()
        // A long way below what the link carries.
        let rate = law.next(300_000, input(queueMS: 0, delivered: 300_000, link: 100_000_000), at: 0)
        #expect((329_999...330_001).contains(rate))
    }

    @Test func `a queue that empties at once raises the rate by a twentieth of the link at most`() {
        var law = DelayController()
        law.skip(queueMS: 100)
        let rate = law.next(1_000_000, input(queueMS: 0), at: 0)
        #expect((1_049_999...1_050_001).contains(rate))
    }
}
