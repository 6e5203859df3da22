import Base
import Client
import MediaTypes
import Testing
import Wire

@testable import Forwarding

/// Data channels whose peer moves to another address: the association is told of the new path.
@Suite struct DataPathTests {
    private static let away = TransportAddress(ip: IPAddress(v4: 0xCB00_7107), port: 5_000)

    private func nomination(_ world: World, _ host: World.Host) throws -> [UInt8] {
        let (client, node) = try #require(host.client.flatMap { world.credentials[$0.id] })
        var request = STUNMessageBuilder(.request, transactionID: STUNTransactionID(high: 9, low: 9))
        request.append(.username, "\(node.usernameFragment):\(client.usernameFragment)")
        request.append(.priority, 1_000 as UInt32)
        request.append(.iceControlling, 77 as UInt64)
        request.append(.useCandidate)
        request.appendMessageIntegrity(key: Array(node.password.utf8))
        request.appendFingerprint()
        return request.bytes
    }

    @Test func `a message that the old path lost arrives over the new one without the old one's backoff`() throws {
        let world = try World(seed: 191)
        let host = try world.publish(hasData: true)
        let id = try #require(host.client?.id)
        #expect(world.run(for: .seconds(10)) { host.client?.isConnected == true })
        host.core.perform([.open(id, DataChannelParameters(label: "#x"))], at: world.now, into: host.batch)
        world.settle(host)
        let channel = {
            world.nodeEvents.lazy.compactMap { peer, event -> DataChannelID? in
                guard case .data(.opened(let channel, _, _, _)) = event, peer == id else { return nil }
                return channel
            }.first
        }
        #expect(world.run(for: .seconds(20)) { channel() != nil })
        let address = DataAddress(peer: id, channel: try #require(channel()))
        let received = { host.dataEvents.count { if case .message = $0 { true } else { false } } }
        let send = { (byte: UInt8) in
            world.node.core.perform(
                [.send(DataMessage([byte], isText: false), to: [address])],
                at: world.now,
                into: world.node.batch
            )
            world.settle(world.node)
        }
        send(1)
        #expect(world.run(for: .seconds(5)) { received() == 1 })
        world.run(for: .seconds(1))

        // The client is elsewhere, and the node does not know yet: what it sends is lost, until its timer waits for seconds.
        let home = host.address
        world.move(host, to: Self.away)
        send(2)
        world.run(for: .seconds(15))
        #expect(world.nodePath(host) == home && received() == 1)
        let retransmissions = world.node.core.counters.data.retransmissions
        #expect(world.run(for: .seconds(5)) { world.node.core.counters.data.retransmissions > retransmissions })
        world.inject(try nomination(world, host), from: Self.away)
        #expect(world.run(for: .seconds(1)) { world.nodePath(host) == Self.away })
        let moved = world.now
        #expect(world.run(for: .seconds(5)) { received() == 2 })
        #expect(world.now - moved < .milliseconds(700), "\(world.now - moved)")
    }
}
