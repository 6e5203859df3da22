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

    @Test func `barred layers are looked at by longer probes each two seconds although the target suffices`() {
        var upgrade = UpgradeProbe()
        upgrade.set(1_000_000, isBarred: true)
        let probes = stride(from: 0, to: 7 * Self.second, by: 25_000).compactMap { now in
            upgrade.take(target: 1_500_000, at: now).map { (now, $0.rate, $0.durationUS) }
        }
        #expect(probes.map(\.0) == [0, 2_000_000, 4_000_000, 6_000_000])
        #expect(probes.allSatisfy { $0.1 == 1_050_000 && $0.2 == 100_000 })
    }

    @Test func `looks count while the path carries one after the other`() {
        var upgrade = UpgradeProbe()
        func look(at seconds: Int64, isCarried: Bool?) -> Int {
            upgrade.set(1_000_000, isBarred: true)
            _ = upgrade.take(target: 1_500_000, at: seconds * Self.second)
            if let isCarried { upgrade.probed(isCarried: isCarried) }
            return upgrade.carriedLooks
        }
        #expect([look(at: 0, isCarried: true), look(at: 2, isCarried: true)] == [1, 2])
        #expect([look(at: 4, isCarried: false), look(at: 6, isCarried: true)] == [0, 1])
        // One without a result counts as one that the path did not carry.
        #expect([look(at: 8, isCarried: nil), look(at: 10, isCarried: nil)] == [1, 0])
        #expect(look(at: 12, isCarried: true) == 1)
        upgrade.set(1_000_000)
        #expect(upgrade.carriedLooks == 0)
    }

    @Test func `a wish for another rate is probed at once`() {
        var upgrade = UpgradeProbe()
        upgrade.set(1_000_000)
        _ = times(&upgrade, target: 500_000, for: 60)
        upgrade.set(2_000_000)
        let rate = upgrade.take(target: 500_000, at: 61 * Self.second)
        #expect(rate?.rate == 2_100_000)
    }
}
