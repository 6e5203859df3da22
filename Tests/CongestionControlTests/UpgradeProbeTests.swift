import Testing

@testable import CongestionControl

@Suite struct UpgradeProbeTests {
    private static let second: Int64 = 1_000_000

    /// The times in seconds at which a probe is planned while nothing rises.
    private func times(_ upgrade: inout UpgradeProbe, target: Double, for seconds: Int64) -> [Double] {
        stride(from: 0, to: seconds * Self.second, by: 25_000)
            .filter { upgrade.take(target: target, at: $0) != nil }
            .map { Double($0) / 1e6 }
    }

    @Test(arguments: [1_000_000, 140_000] as [Double])
    func `probes that fail follow at growing distances, but never wait for longer than two seconds`(rate: Double) {
        var upgrade = UpgradeProbe()
        upgrade.set(rate)
        let times = times(&upgrade, target: rate / 2, for: 120)
        #expect(times.first == 0)
        let gaps = zip(times, times.dropFirst()).map { $1 - $0 }
        #expect(Array(gaps.prefix(4)) == [0.5, 1, 2, 2])
        #expect(gaps.dropFirst(3).allSatisfy { $0 == 2 })
    }

    @Test func `a path that was just full is probed a second later`() {
        var upgrade = UpgradeProbe()
        upgrade.set(1_000_000)
        upgrade.postpone(at: 0)
        let times = times(&upgrade, target: 500_000, for: 5)
        #expect(times.first == 1)
    }

    private func expectNone(_ upgrade: inout UpgradeProbe) {
        let times = times(&upgrade, target: 500_000, for: 20)
        #expect(times == [])
    }

    @Test func `nothing is probed that is not wanted or known already`() {
        var upgrade = UpgradeProbe()
        expectNone(&upgrade)
        upgrade.set(400_000)
        expectNone(&upgrade)
        upgrade.set(.nan)
        expectNone(&upgrade)
    }

    @Test func `a wish for another rate is probed at once`() {
        var upgrade = UpgradeProbe()
        upgrade.set(1_000_000)
        _ = times(&upgrade, target: 500_000, for: 60)
        upgrade.set(2_000_000)
        let rate = upgrade.take(target: 500_000, at: 61 * Self.second)
        #expect(rate == 2_100_000)
    }
}
