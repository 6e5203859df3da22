import Base
import TestSupport
import Testing
import Wire

@testable import TURN

struct TURNScenarioTests {
    /// Random clients for hours of virtual time: whatever they do, what is relayed goes between a client and its own
    /// session, and the tables stay bounded.
    @Test(arguments: 0..<3 as Range<UInt64>)
    func `random clients reach only their own sessions`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var scene = TURNScene({ $0.challengesPerSecond = 1_000 }, seed: seed)
        var clients = (1...4 as ClosedRange<UInt64>).map { scene.addSession($0) }
        /// Who owns each relayed address, by the events.
        var owners: [TransportAddress: UInt64] = [:]
        var relayedCount = 0
        func note(_ event: TURNEvent?) {
            switch event {
            case .allocated(let session, let relayed, _):
                #expect(owners.updateValue(session.rawValue, forKey: relayed) == nil, "one owner at a time")
            case .ended(let session, let relayed, _):
                #expect(owners.removeValue(forKey: relayed) == session.rawValue)
            case .relayed(let session, let path, _):
                relayedCount += 1
                #expect(owners[path.remote] == session.rawValue)
            case nil: break
            }
        }
        let peers = [
            TURNScene.mediaV4, TURNScene.otherMediaV4, TURNScene.mediaV6,
            TransportAddress(ip: IPAddress(v4: 0x7F00_0001), port: 40_000),
        ]
        for _ in 0..<600 {
            let index = Int.random(in: clients.indices, using: &generator)
            let peer = peers[Int.random(in: peers.indices, using: &generator)]
            let channel = UInt16.random(in: 0x3FFF...0x4002, using: &generator)
            let session = UInt64(index + 1)
            let outcome: TURNScene.Outcome
            switch UInt8.random(in: 0..<12, using: &generator) {
            case 0, 1: outcome = clients[index].allocate(in: &scene)
            case 2:
                let seconds: UInt32 = Bool.random(using: &generator) ? 0 : .random(in: 0...4_000, using: &generator)
                outcome = clients[index].refresh(in: &scene, lifetime: seconds)
            case 3, 4: outcome = clients[index].permit([peer], in: &scene)
            case 5, 6: outcome = clients[index].bind(channel, to: peer, in: &scene)
            case 7, 8: outcome = clients[index].channelData([1, 2, 3], channel, in: &scene)
            case 9, 10: outcome = clients[index].indicate([1, 2, 3], to: peer, in: &scene)
            default:
                // Another client's address.
                let other = Int.random(in: clients.indices, using: &generator)
                let path = clients[index].path
                clients[index].path = clients[other].path
                outcome = clients[index].channelData([1], channel, in: &scene)
                clients[index].path = path
                note(outcome.event)
                continue
            }
            note(outcome.event)
            if case .relayed(let id, let path, _) = outcome.event {
                #expect(id.rawValue == session)
                #expect(path.local.index < 2, "loopback and IPv6 are not reached")
                let back = try scene.receive([7], over: path)
                #expect(back.route.client == clients[index].path)
            }
            if UInt8.random(in: 0..<8, using: &generator) == 0 {
                scene.now += .seconds(Int.random(in: 0...100, using: &generator))
                for event in scene.timeouts() { note(event) }
            }
            #expect(scene.server.allocationCount <= 4)
        }
        #expect(relayedCount > 5)
        scene.now += .seconds(3_600)
        for event in scene.timeouts() { note(event) }
        #expect(owners.isEmpty && scene.server.allocationCount == 0 && scene.server.nextDeadline == nil)
        let counters = scene.server.counters
        #expect(counters.allocationsCreated == counters.allocationsEnded)
    }

    /// Every byte of every message of a session, changed: nothing traps, and a signed request is never accepted.
    @Test func `a changed byte never traps and never passes`() {
        var scene = TURNScene { $0.challengesPerSecond = 1_000_000 }
        var client = scene.allocated(1)
        #expect(client.bind(0x4000, to: TURNScene.mediaV4, in: &scene).code == 0)
        let refresh = client.request(.refresh, 50) { $0.append(.lifetime, 0 as UInt32) }
        for index in refresh.indices {
            for mask in [1, 0x80] as [UInt8] {
                var bytes = refresh
                bytes[index] ^= mask
                scene.now += .microseconds(10)
                let outcome = scene.send(bytes, from: client.path)
                #expect(outcome.code != 0, "byte \(index)")
            }
        }
        #expect(scene.server.allocationCount == 1)
    }

    @Test func `an allocation takes less than a kibibyte`() {
        // The allocation, its table of eight media addresses, and its entries in two dictionaries and the heap.
        let table = 32 + 8 * MemoryLayout<TURNAllocation.PeerState>.stride
        let entries = 2 * (MemoryLayout<NetworkPath>.stride + MemoryLayout<TransportAddress>.stride + 32)
        #expect(MemoryLayout<TURNAllocation?>.stride + table + entries + 32 <= 1_024)
    }
}
