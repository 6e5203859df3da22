import Base
import Client
import Testing
import Wire

@testable import Forwarding

/// The secret from which a node derives the identifiers of its own checks is each peer's own, and not the node's: what one client
/// was sent at an address tells nothing of what another will be sent there.
@Suite struct CheckIdentifierTests {
    private static let away = TransportAddress(ip: IPAddress(v4: 0xCB00_7107), port: 5_000)

    /// A check of the host's client, which nominates the pair that it is sent on.
    private func nomination(_ world: World, _ host: World.Host, id: UInt64) throws -> [UInt8] {
        let (client, node) = try #require(host.client.flatMap { world.credentials[$0.id] })
        var request = STUNMessageBuilder(.request, transactionID: STUNTransactionID(high: 9, low: id))
        request.append(.username, "\(node.usernameFragment):\(client.usernameFragment)")
        request.append(.priority, 1_000 as UInt32)
        request.append(.iceControlling, 77 as UInt64)
        request.append(.useCandidate)
        request.appendMessageIntegrity(key: Array(node.password.utf8))
        request.appendFingerprint()
        return request.bytes
    }

    /// The answer of the host's client to a check with this identifier.
    private func answer(_ world: World, _ host: World.Host, to id: STUNTransactionID) throws -> [UInt8] {
        let (client, _) = try #require(host.client.flatMap { world.credentials[$0.id] })
        var response = STUNMessageBuilder(.success, transactionID: id)
        response.appendXORMappedAddress(Self.away)
        response.appendMessageIntegrity(key: Array(client.password.utf8))
        response.appendFingerprint()
        return response.bytes
    }

    /// The identifier of the check that the node sends to an address that the client nominates without being there.
    private func identifier(_ world: World, _ host: World.Host, number: UInt64) throws -> STUNTransactionID {
        var id: STUNTransactionID?
        world.onTransmit = { from, to, bytes in
            guard from == World.nodeAddress, to == Self.away, bytes[0] == 0, bytes[1] == 1 else { return }
            id = STUNTransactionID(
                high: bytes[8..<12].reduce(0) { $0 << 8 | UInt32($1) },
                low: bytes[12..<20].reduce(0) { $0 << 8 | UInt64($1) }
            )
        }
        world.inject(try nomination(world, host, id: number), from: Self.away)
        world.run(for: .milliseconds(200))
        world.onTransmit = nil
        return try #require(id)
    }

    @Test func `an identifier that one client was sent at an address is not what another is sent there`() throws {
        let world = try World(seed: 181)
        let clients = try (0..<3).map { _ in try world.publish() }
        #expect(world.run(for: .seconds(5)) { clients.allSatisfy { $0.client?.isConnected == true } })
        var known: [STUNTransactionID] = []
        for (index, client) in clients.enumerated() {
            let id = try identifier(world, client, number: UInt64(index + 1))
            #expect(!known.contains(id))
            for other in known {
                world.inject(try answer(world, client, to: other), from: Self.away)
                world.run(for: .milliseconds(200))
                #expect(world.nodePath(client) == client.address)
            }
            // Nothing but the identifier was wrong.
            if index == clients.count - 1 {
                world.inject(try answer(world, client, to: id), from: Self.away)
                world.run(for: .milliseconds(200))
                #expect(world.nodePath(client) == Self.away)
            } else {
                known.append(id)
                world.remove(client)
                world.run(for: .seconds(1))
            }
        }
    }
}
