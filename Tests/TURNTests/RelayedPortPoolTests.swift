import Base
import TestSupport
import Testing
import Wire

@testable import TURN

struct RelayedPortPoolTests {
    @Test func `one network takes a quarter of all ports, and leaves the others to others`() {
        var generator = SeededGenerator(seed: 1)
        let most = TURNConfiguration(addresses: [], reservedPorts: []).portsPerNetworkMax
        var pool = RelayedPortPool(reserved: [], networkMax: most, using: &generator)
        let now = Instant(nanoseconds: 1)
        let greedy = IPAddress(v4: 0xC633_6401)
        var taken: Set<UInt16> = []
        while let port = pool.acquire(for: greedy, at: now) { taken.insert(port) }
        #expect(taken.count == most && most == 65_536 / 4)
        let other = pool.acquire(for: IPAddress(v4: 0xC633_6402), at: now)
        #expect(other.map { !taken.contains($0) } == true)
    }
}
