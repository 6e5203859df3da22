import MediaTypes
import Synchronization
import Testing

@testable import nagare

@Suite struct PeerEventRelayTests {
    @Test func `events reach the handler in their order`() {
        let relay = PeerEventRelay()
        let peers = Mutex<[PeerID]>([])
        relay.carry([(PeerID(rawValue: 1), .connected(over: .udp))])
        relay.connect { peer, _ in peers.withLock { $0.append(peer) } }
        relay.carry([(PeerID(rawValue: 2), .connected(over: .udp)), (PeerID(rawValue: 3), .connected(over: .udp))])
        #expect(peers.withLock { Array($0) } == [PeerID(rawValue: 2), PeerID(rawValue: 3)])
    }

    /// 64 bytes a call would be 256 MB. Other tests of the process allocate meanwhile, which is what the bound leaves
    /// room for.
    @Test func `carrying four million turns' events leaves nothing in memory`() throws {
        let relay = PeerEventRelay()
        relay.connect { _, _ in }
        let before = try #require(ProcessMetrics.current()).residentBytes
        for _ in 0..<4_000_000 { relay.carry([]) }
        let after = try #require(ProcessMetrics.current()).residentBytes
        #expect(after < before + 128 << 20, "the process grew from \(before) to \(after) bytes")
    }
}
