import CongestionControl
import TestSupport
import Testing

struct FallbackControllerTests {
    private static let settings = SendController.Settings(minimum: 30_000, start: 600_000, maximum: 5_000_000)

    /// A controller of a peer that is sent media all the time.
    private struct Peer {
        var controller: FallbackController
        var now: Int64 = 0
        var probes: [ProbeCluster] = []

        init(_ settings: SendController.Settings = settings, demand: Double = 3_000_000) {
            controller = FallbackController(settings, at: 0)
            controller.setDemand(demand)
        }

        /// - Parameter report: is called once a second.
        mutating func run(seconds: Int, _ report: (inout FallbackController, Int64) -> Void = { _, _ in }) {
            for tick in 0..<(40 * seconds) {
                now += 25_000
                controller.packetSent(at: now)
                controller.handleTimeout(at: now)
                if let probe = controller.takeProbe(at: now) { probes.append(probe) }
                if tick % 40 == 0 { report(&controller, now) }
            }
        }
    }

    @Test func `a peer that reports nothing is sent more each second, and never less`() {
        var peer = Peer()
        #expect(peer.controller.target == 600_000)
        var before = 0.0
        for _ in 0..<40 {
            peer.run(seconds: 1)
            #expect(peer.controller.target >= before)
            before = peer.controller.target
        }
        #expect(peer.controller.target > 3_000_000)
        #expect(peer.controller.limit == .demand)
        #expect(peer.probes.isEmpty)
    }

    @Test(
        arguments: [("little loss", 1, 1.07...1.1), ("some loss", 5, 1...1), ("much loss", 20, 0.85...0.95)]
            as [(String, Int, ClosedRange<Double>)]
    )
    func `loss that receiver reports tell leads`(name: String, lost: Int, change: ClosedRange<Double>) {
        var peer = Peer()
        peer.run(seconds: 1) { $0.receiverReport(lost: lost, expected: 100, roundTrip: 50_000, at: $1) }
        let before = peer.controller.target
        peer.run(seconds: 1) { $0.receiverReport(lost: lost, expected: 100, roundTrip: 50_000, at: $1) }
        #expect(change.contains(peer.controller.target / before))
        #expect(peer.controller.limit == (lost > 2 ? .loss : .delay))
    }

    @Test func `one loss event lowers the rate once`() {
        var peer = Peer()
        peer.run(seconds: 1)
        let before = peer.controller.target
        for _ in 0..<50 {
            peer.now += 6_000
            peer.controller.receiverReport(lost: 50, expected: 100, roundTrip: 100_000, at: peer.now)
        }
        #expect(peer.controller.target == 0.75 * before)
    }

    @Test func `reports of few packets are gathered`() {
        var peer = Peer()
        for _ in 0..<3 {
            peer.controller.receiverReport(lost: 5, expected: 5, roundTrip: nil, at: 0)
            #expect(peer.controller.decision.lossRatio == 0)
        }
        peer.controller.receiverReport(lost: 0, expected: 5, roundTrip: nil, at: 0)
        #expect(peer.controller.decision.lossRatio == 0.75)
    }

    @Test func `the peer's estimate leads at once, in both directions`() {
        var peer = Peer()
        peer.controller.receiverEstimate(2_000_000)
        #expect(peer.controller.target == 2_000_000)
        #expect(peer.controller.limit == .receiver)
        peer.controller.receiverEstimate(400_000)
        #expect(peer.controller.target == 400_000)
        peer.controller.receiverEstimate(9e18)
        #expect(peer.controller.limit == .demand)
        peer.controller.receiverEstimate(0)
        #expect(peer.controller.target == 30_000)
    }

    @Test func `an estimate does not hide loss`() {
        var peer = Peer()
        peer.run(seconds: 5) {
            $0.receiverReport(lost: 30, expected: 100, roundTrip: nil, at: $1)
            $0.receiverEstimate(3_000_000)
        }
        #expect(peer.controller.target < 400_000)
        #expect(peer.controller.limit == .loss)
    }

    @Test func `an estimate that is no longer repeated is left slowly, down to the start rate`() {
        var peer = Peer()
        peer.controller.receiverEstimate(2_500_000)
        peer.run(seconds: 5)
        #expect(peer.controller.target == 2_500_000)
        peer.run(seconds: 3)
        #expect((1_000_000...1_700_000).contains(peer.controller.target))
        #expect(peer.controller.limit == .silence)
        peer.run(seconds: 60)
        #expect(peer.controller.target == 600_000)
        peer.controller.receiverEstimate(2_500_000)
        #expect(peer.controller.target == 2_500_000)
    }

    @Test func `a peer that is sent nothing may be silent`() {
        var peer = Peer()
        peer.controller.receiverEstimate(2_500_000)
        for _ in 0..<10_000 {
            peer.now += 25_000
            peer.controller.handleTimeout(at: peer.now)
        }
        #expect(peer.controller.target == 2_500_000)
    }

    @Test func `clusters let an estimate rise, and seldom when it does not`() {
        var peer = Peer()
        peer.run(seconds: 3) { controller, _ in controller.receiverEstimate(700_000) }
        #expect(peer.probes.count == 1)
        #expect(peer.probes[0].rate == 1.5 * 700_000)
        peer.run(seconds: 60) { controller, _ in controller.receiverEstimate(700_000) }
        #expect((3...6).contains(peer.probes.count))
        var settings = Self.settings
        settings.isProbing = false
        peer = Peer(settings)
        peer.run(seconds: 60) { controller, _ in controller.receiverEstimate(700_000) }
        #expect(peer.probes.isEmpty)
    }

    @Test(arguments: [Double.nan, -1, 0, .infinity, 1e300])
    func `no number of the peer traps`(number: Double) {
        var peer = Peer(demand: number)
        peer.run(seconds: 5) {
            $0.receiverReport(lost: .max, expected: .max, roundTrip: .max, at: $1)
            $0.receiverReport(lost: .min, expected: .min, roundTrip: .min, at: $1)
            $0.receiverEstimate(number)
            $0.setDemand(3_000_000)
        }
        peer.controller.setMaximum(number)
        peer.run(seconds: 5)
        peer.controller.pathChanged(at: peer.now)
        #expect(peer.controller.target.isFinite)
        #expect(peer.controller.target >= 0)
    }
}
