import Base
import Testing
import Wire

@testable import CongestionControl

/// The law of control by CE marks, fed by hand: a report each 50 ms, the round trip.
struct ScalableRateTests {
    private struct Path {
        static let step: Int64 = 50_000
        var rate = ScalableRate()
        var target = 2_000_000.0
        var now: Int64 = 0

        /// One round trip of ten packets.
        mutating func step(
            marked: Int,
            law: Double = 1e9,
            isBounded: Bool = false,
            queueMS: Double = 20,
            cluster: UInt8 = 0
        ) {
            now += Self.step
            for index in 0..<10 {
                rate.add(
                    PacketResult(
                        sequence: 0,
                        sentAt: 0,
                        arrivedAt: 0,
                        bytes: 1_200,
                        cluster: cluster,
                        ecn: index < marked ? .congestionExperienced : .capable1
                    )
                )
            }
            target = rate.next(
                target,
                law: law,
                isBounded: isBounded,
                queueMS: queueMS,
                roundTrip: Self.step,
                at: now
            )
        }
    }

    @Test func `without marks the law by delay leads`() {
        var path = Path()
        path.step(marked: 0, law: 3_000_000)
        #expect(path.target == 3_000_000 && !path.rate.isLeading(at: path.now))
        path.step(marked: 10, law: 3_500_000, cluster: 1)
        #expect(path.target == 3_500_000, "a probe cluster is to fill the queue")
    }

    @Test func `a round trip with marks lowers the rate by their smoothed share, one without adds a packet`() {
        var path = Path()
        path.step(marked: 1)
        // A weight of 1/16 of 0.1 and 15/16 of 0.25, halved; nine tenths of 1200 bytes a round trip.
        let share = 0.25 + (0.1 - 0.25) / 16
        #expect(abs(path.target - (2_000_000 * (1 - share / 2) + 0.9 * 192_000)) < 1)
        #expect(path.rate.isLeading(at: path.now))
        let before = path.target
        path.step(marked: 0)
        #expect(abs(path.target - before - min(192_000, 0.1 * before)) < 1)
        for _ in 0..<200 { path.step(marked: 10) }
        #expect(path.rate.share > 0.99)
        #expect(path.target < 1, "the minimum of the controller bounds it")
    }

    @Test func `marks of a queue shorter than a packet weigh a quarter`() {
        var (short, long) = (Path(), Path())
        short.step(marked: 10, queueMS: 0)
        long.step(marked: 10, queueMS: 20)
        #expect(abs((2_000_000 - short.target) * 4 - (2_000_000 - long.target)) < 1)
    }

    @Test func `a queue bounds the rate by the law of delay, and marks do not raise it`() {
        var path = Path()
        path.step(marked: 1)
        path.step(marked: 0, law: 1_000_000, isBounded: true)
        #expect(path.target == 1_000_000)
        path.step(marked: 1, law: 500_000, isBounded: true)
        #expect(path.target <= 500_000)
    }

    @Test func `the memory of marks ends after 3 s`() {
        var path = Path()
        path.step(marked: 1)
        for _ in 0..<59 { path.step(marked: 0, law: 700_000) }
        #expect(path.target != 700_000)
        path.step(marked: 0, law: 700_000)
        #expect(path.target == 700_000)
    }

    @Test func `late marks count no more than arrivals`() {
        var path = Path()
        path.rate.addLateMarks(.max / 2)
        path.step(marked: 0)
        #expect(path.rate.share == 0)
    }

    @Test func `a path that marks everything is found out`() {
        var path = Path()
        for _ in 0..<60 { path.step(marked: 10) }
        #expect(!path.rate.marksAll(at: path.now))
        for _ in 0..<2 { path.step(marked: 10) }
        #expect(path.rate.marksAll(at: path.now))
        path.step(marked: 9)
        #expect(!path.rate.marksAll(at: path.now))
    }

    /// No lie about marks gets more than the laws allow: 1.5 times what was sent.
    @Test func `a peer that claims marks to be led by them gains nothing`() {
        var settings = SendController.Settings()
        settings.usesECN = true
        var controller = SendController(settings, at: 0)
        controller.setDemand(20_000_000)
        var highest = 0.0
        for round in 0..<400 as Range<Int64> {
            let now = round * 25_000
            let packets = (0..<3 as Range<Int64>).map { index -> PacketResult in
                let sequence = round * 3 + index
                controller.packetSent(bytes: 1_000, at: now + index * 8_000)
                return PacketResult(
                    sequence: sequence,
                    sentAt: now + index * 8_000,
                    arrivedAt: now + index * 8_000 + 20_000,
                    bytes: 1_000,
                    ecn: sequence % 40 == 0 ? .congestionExperienced : .capable1
                )
            }
            controller.received(FeedbackReport(arrivedAt: now + 45_000, packets: ContiguousArray(packets)))
            controller.handleTimeout(at: now + 46_000)
            if round > 40 { highest = max(highest, controller.target) }
        }
        #expect(controller.decision.isMarked)
        // 3 packets each 25 ms are 960 kbit/s.
        #expect(highest < 1.6 * 960_000 * 1.1)
    }
}
