import CongestionControl
import TestSupport
import Testing

struct SendControllerTests {
    static let gigabit = 1e9

    // MARK: - Settings

    @Test func `the target is within the settings' limits`() {
        var path = SimulatedPath(
            .init(minimum: 30_000, start: 600_000, maximum: 1_000_000),
            capacity: Self.gigabit,
            demand: 5_000_000
        )
        #expect(path.controller.target == 600_000)
        path.run(seconds: 3)
        #expect(path.controller.target == 1_000_000)
        #expect(path.controller.limit == .maximum)
        path.isReporting = false
        path.run(seconds: 60)
        #expect((30_000...60_000).contains(path.controller.target))
    }

    @Test func `without probing no cluster is sent and the rate rises nevertheless`() {
        var path = SimulatedPath(.init(isProbing: false), capacity: 3_000_000, demand: 2_000_000)
        path.run(seconds: 15)
        #expect(path.probes == 0)
        #expect(path.controller.target > 1_800_000)
    }

    @Test func `media that pause leave the target where the path has proven it`() {
        var path = SimulatedPath(capacity: 5_000_000, demand: 3_000_000)
        path.run(seconds: 5)
        #expect(path.controller.target > 2_900_000)
        path.controller.setDemand(30_000)
        path.media = 30_000
        path.run(seconds: 50)
        #expect(path.controller.target > 2_400_000)
        path.run(seconds: 120)
        #expect(path.controller.target < 1_000_000)
    }

    @Test func `a rate that was only guessed yields to what the first cluster measured`() {
        var path = SimulatedPath(capacity: 200_000, demand: 3_000_000)
        path.run(seconds: 1)
        #expect(path.controller.target < 250_000)
        #expect(!path.controller.decision.isGuess)
        #expect((150_000...250_000).contains(path.controller.decision.busyRate ?? 0))
    }

    @Test func `a maximum that falls holds at once, and one that rises is probed`() {
        var path = SimulatedPath(capacity: Self.gigabit, demand: 2_000_000)
        path.run(seconds: 3)
        path.controller.setMaximum(500_000)
        #expect(path.controller.target == 500_000)
        path.run(seconds: 5)
        #expect(path.controller.target == 500_000)
        let probes = path.probes
        path.controller.setMaximum(20_000_000)
        path.run(seconds: 2)
        #expect(path.probes > probes)
        #expect(path.controller.target > 1_800_000)
        #expect(path.controller.limit == .demand)
    }

    @Test func `the peer's own estimate caps the rate while it is repeated`() {
        var path = SimulatedPath(capacity: 2_500_000, demand: 2_000_000)
        path.run(seconds: 3)
        for _ in 0..<5 {
            path.controller.receiverEstimate(1_000_000)
            path.run(seconds: 1)
            #expect(path.controller.target == 1_000_000)
            #expect(path.controller.limit == .receiver)
        }
        path.controller.receiverEstimate(5_000_000)
        path.run(seconds: 2)
        #expect(path.controller.target > 1_800_000)
        path.controller.receiverEstimate(0)
        #expect(path.controller.target == 5_000)
        path.run(seconds: 12)
        #expect(path.controller.target > 1_800_000)
    }

    @Test(arguments: [Double.nan, -1, 0, .infinity, 1e300, .leastNonzeroMagnitude])
    func `no demand or maximum traps`(rate: Double) {
        for isMaximum in [true, false] {
            var path = SimulatedPath(capacity: Self.gigabit, demand: 2_000_000)
            path.run(seconds: 1)
            if isMaximum { path.controller.setMaximum(rate) } else { path.controller.setDemand(rate) }
            path.media = 4_000_000
            path.run(seconds: 2)
            #expect(path.controller.target.isFinite)
            #expect(path.controller.target >= 0)
        }
    }

    @Test func `another path starts with half of the rate`() {
        var path = SimulatedPath(capacity: Self.gigabit, demand: 2_000_000)
        path.run(seconds: 3)
        let before = path.controller.target
        path.controller.pathChanged(at: path.now)
        #expect(path.controller.target == before / 2)
        path.run(seconds: 3)
        #expect(path.controller.target > 1_800_000)
    }

    // MARK: - Limits

    @Test func `the limit is the demand, the path's delay or silence`() {
        var path = SimulatedPath(capacity: 1_000_000, demand: 500_000)
        #expect(path.controller.limit == .silence)
        path.run(seconds: 5)
        #expect(path.controller.limit == .demand)
        path.controller.setDemand(4_000_000)
        path.run(seconds: 10)
        #expect(path.controller.limit == .delay)
        #expect((800_000...1_150_000).contains(path.controller.target))
        path.isReporting = false
        path.run(seconds: 2)
        #expect(path.controller.limit == .silence)
        #expect(path.controller.phase == .stale)
    }

    @Test func `reports that say nothing new are silence`() {
        var path = SimulatedPath(capacity: Self.gigabit, demand: 1_000_000)
        path.run(seconds: 2)
        path.lie = { $0.packets.removeAll() }
        path.run(seconds: 5)
        #expect(path.controller.limit == .silence)
        #expect(path.controller.target < 500_000)
    }

    // MARK: - Pauses, clocks and numbers

    @Test func `a pause holds the rate`() {
        var path = SimulatedPath(capacity: 3_000_000, demand: 2_000_000)
        path.run(seconds: 5)
        let before = path.controller.target
        path.media = 0
        path.run(seconds: 20)
        #expect(path.controller.target == before)
        path.media = .infinity
        path.run(seconds: 2)
        #expect(path.controller.target > 0.9 * before)
    }

    @Test func `lost reports do not lower the rate`() {
        var path = SimulatedPath(capacity: 1_000_000, demand: 2_000_000)
        path.run(seconds: 20)
        for _ in 0..<10 {
            path.isReporting = false
            path.run(seconds: 0.3)
            path.isReporting = true
            path.run(seconds: 1.5)
            #expect(path.controller.decision.delivered > 800_000)
            #expect(path.controller.target > 700_000)
        }
    }

    @Test func `media that go on after a pause have their rate before the first report`() {
        var path = SimulatedPath(capacity: 1_000_000, demand: 2_000_000)
        path.run(seconds: 10)
        let before = path.controller.target
        path.media = 0
        path.run(seconds: 20)
        path.media = .infinity
        for _ in 0..<5 {
            path.run(seconds: 0.1)
            #expect(path.controller.target > 0.7 * before)
        }
        #expect(path.controller.decision.delivered > 0.7 * before)
    }

    @Test func `media that send little do not raise the rate without a probe`() {
        var path = SimulatedPath(.init(isProbing: false), capacity: Self.gigabit, demand: 5_000_000)
        path.media = 200_000
        path.run(seconds: 30)
        #expect(path.controller.target <= max(300_000, 1.5 * path.sentRate))
    }

    @Test func `without probe clusters the next layers are tried, one after the other`() {
        var path = SimulatedPath(capacity: 20_000_000, demand: 6_000_000)
        path.media = 500_000
        path.controller.setUpgrade(2_000_000, .trial)
        path.run(seconds: 5)
        #expect(path.probes == 0)
        #expect((2_000_000...2_200_000).contains(path.controller.target))
        var isTrying = path.controller.decision.isTrying
        #expect(isTrying)
        // The layers of the trial have to be sent first.
        path.controller.setUpgrade(5_000_000, .trial)
        path.run(seconds: 5)
        #expect(path.controller.target < 2_300_000)
        path.controller.setUpgrade(nil, .trial)
        path.media = 1_900_000
        path.run(seconds: 5)
        isTrying = path.controller.decision.isTrying
        #expect(!isTrying)
        path.controller.setUpgrade(5_000_000, .trial)
        path.run(seconds: 5)
        #expect((5_000_000...5_500_000).contains(path.controller.target) && path.probes == 0)
    }

    @Test func `loss on a path that carries much more costs no rate`() {
        var path = SimulatedPath(capacity: 10_000_000, demand: 2_000_000)
        path.media = 2_000_000
        path.run(seconds: 5)
        let probes = path.probes
        // Bursts of four.
        path.loses = { sequence, _ in sequence % 80 < 4 }
        var lowest = Double.infinity
        for _ in 0..<200 {
            path.run(seconds: 0.1)
            lowest = min(lowest, path.controller.target)
        }
        #expect(lowest >= 1_990_000)
        #expect((0.04...0.06).contains(path.controller.decision.inherentLoss))
        #expect(path.probes == probes + 1)
    }

    @Test(arguments: [true, false])
    func `loss of a path that carries no more caps the rate`(isProbing: Bool) {
        var path = SimulatedPath(.init(isProbing: isProbing), capacity: 10_000_000, demand: 2_000_000)
        path.media = 2_000_000
        path.run(seconds: 20)
        let policer = Policer(rate: 1_800_000)
        path.loses = { _, now in policer.drops(at: now) }
        path.run(seconds: 60)
        #expect(path.controller.decision.inherentLoss < 0.01)
        // A sender that kept its rate would lose a tenth.
        #expect(policer.dropped < 0.02)
    }

    /// Drops what exceeds a rate, with a bucket of 8 kB.
    private final class Policer {
        private let rate: Double
        private var tokens = 8_000.0
        private var filledAt: Int64 = 0
        private var counts = (dropped: 0.0, all: 0.0)

        init(rate: Double) { self.rate = rate }

        /// The share of all packets.
        var dropped: Double { counts.dropped / counts.all }

        func drops(at now: Int64) -> Bool {
            counts.all += 1
            tokens = min(tokens + Double(now - filledAt) * rate / 8e6, 8_000)
            filledAt = now
            guard tokens >= Double(SimulatedPath.bytes) else {
                counts.dropped += 1
                return true
            }
            tokens -= Double(SimulatedPath.bytes)
            return false
        }
    }

    @Test func `where the layers' packets are not reported, they are not tried`() {
        var path = SimulatedPath(capacity: 20_000_000, demand: 6_000_000)
        path.media = 500_000
        path.controller.setUpgrade(2_000_000, .none)
        path.run(seconds: 10)
        #expect(path.controller.target < 1_500_000 && path.probes == 0)
    }

    @Test func `a receiver's clock that jumps changes little`() {
        var path = SimulatedPath(capacity: 3_000_000, demand: 2_000_000)
        path.run(seconds: 5)
        let before = path.controller.target
        path.lie = { report in
            for index in report.packets.indices { report.packets[index].arrivedAt += 3_600_000_000 }
        }
        path.run(seconds: 5)
        #expect(path.controller.target > 0.8 * before)
    }

    @Test func `spans of zero and of the whole number range do not trap`() {
        var controller = SendController(at: 0)
        controller.setDemand(1e9)
        let times: [Int64] = [0, .max, .min, -1, 1, .max, .max, 0, 0]
        for (index, arrivedAt) in times.enumerated() {
            let sentAt = times[times.count - 1 - index]
            let packets = (0..<4 as Range<Int64>).map {
                PacketResult(sequence: $0, sentAt: sentAt, arrivedAt: arrivedAt, bytes: 65_535, cluster: 1)
            }
            controller.packetSent(bytes: 1_000, at: Int64(index) * 1_000_000)
            controller.handleTimeout(at: Int64(index) * 1_000_000)
            _ = controller.takeProbe(at: Int64(index) * 1_000_000)
            controller.received(FeedbackReport(arrivedAt: Int64(index) * 1_000_000, packets: .init(packets)))
            #expect(controller.target.isFinite)
        }
    }

    // MARK: - Reports that lie

    enum Lie: CaseIterable {
        /// Every packet arrived when the first one did.
        case noDelay
        case anyTime, extremes, backward, noTime
        /// Arrived when it left, on a clock that falls behind or runs ahead.
        case falling, growing
        /// Nothing is lost, although the link drops most.
        case receivedAfterLoss
        case allLost
        /// The packets of a cluster are reported in the reverse order, or only its last ones.
        case reversed, partial
    }

    @Test(arguments: Lie.allCases, [1, 2, 3, 4])
    func `no report raises the target above what was sent or a cluster left at`(lie: Lie, seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var path = SimulatedPath(capacity: 4_000_000, demand: 1e9)
        path.media = 1_000_000
        for second in 0..<20 as Range<Int64> {
            let random = Int64(bitPattern: generator.next())
            path.lie = { report in tell(lie, random, second, &report) }
            path.run(seconds: 1)
            let bound = max(1.5 * path.sentRate, path.clusterRate, 300_000)
            #expect(path.controller.target <= 1.01 * bound)
            #expect(path.controller.decision.pacingRate.isFinite)
        }
    }

    private func tell(_ lie: Lie, _ random: Int64, _ second: Int64, _ report: inout FeedbackReport) {
        let first = report.packets[0].arrivedAt
        for index in report.packets.indices {
            let sentAt = report.packets[index].sentAt
            let noise = random &* Int64(index &+ 1)
            switch lie {
            case .noDelay: report.packets[index].arrivedAt = first
            case .noTime: report.packets[index].arrivedAt = 0
            case .anyTime: report.packets[index].arrivedAt = noise
            case .extremes: report.packets[index].arrivedAt = noise & 8 == 0 ? .max : .min
            case .backward: report.packets[index].arrivedAt = 0 &- sentAt
            case .falling: report.packets[index].arrivedAt = sentAt - second * 4_000
            case .growing: report.packets[index].arrivedAt = sentAt + second * 40_000
            case .receivedAfterLoss: report.packets[index].wasReportedLost = noise & 8 == 0
            case .allLost: report.packets[index].isReceived = false
            case .reversed, .partial: report.packets[index].arrivedAt = sentAt
            }
        }
        if lie == .reversed { report.packets.reverse() }
        if lie == .partial, report.packets.contains(where: { $0.cluster > 0 }) {
            report.packets.removeAll { $0.cluster > 0 && $0.sequence % 5 == 0 }
        }
    }
}
