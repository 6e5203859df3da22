import Base
import ICE
import Testing
import Wire

/// The identifiers of a lite agent's own checks. Whoever knows one can claim to receive what is sent over its pair, so only a
/// receiver on that pair may learn it: each is derived from a secret of the agent.
struct ICECheckIdentifierTests {
    /// An agent with a verified pair, `path(1)`.
    private func scene(secret: UInt64) -> LiteScene {
        var scene = LiteScene()
        scene.agent = ICELiteAgent(
            local: LiteScene.server,
            remote: LiteScene.client,
            at: at(0),
            tieBreaker: 1,
            pathSecret: secret
        )
        _ = scene.check(1, on: path(1), at: at(0), nominates: true)
        #expect(scene.agent.markVerified(path(1), at: at(0)) == nil)
        scene.batch.removeAll()
        return scene
    }

    /// The identifier of the check that the agent sends when its client nominates `target`.
    private func identifier(
        _ scene: inout LiteScene,
        nominating target: NetworkPath,
        number: UInt64 = 2,
        at now: Instant = at(1),
        isRestarted: Bool = false
    ) throws -> STUNTransactionID {
        let outcome =
            isRestarted
            ? scene.restartedCheck(number, on: target, at: now, nominates: true)
            : scene.check(number, on: target, at: now, nominates: true)
        #expect(outcome == .event(nil))
        let check = try #require(scene.batch.take().first { $0.messageClass == .request })
        #expect(check.path == target)
        return try #require(check.transactionID)
    }

    /// A client's answer to a check with this identifier: valid in all the rest.
    private func answer(
        _ id: STUNTransactionID,
        from client: ICECredentials = LiteScene.client,
        on path: NetworkPath
    ) -> [UInt8] {
        var response = STUNMessageBuilder(.success, transactionID: id)
        response.appendXORMappedAddress(path.remote)
        response.appendMessageIntegrity(key: Array(client.password.utf8))
        response.appendFingerprint()
        return response.bytes
    }

    @Test func `agents that differ in their secret alone check the same pair with different identifiers`() throws {
        var identifiers: Set<STUNTransactionID> = []
        for secret in 0..<64 as Range<UInt64> {
            var low = scene(secret: secret)
            var high = scene(secret: secret << 58 | 1)
            identifiers.insert(try identifier(&low, nominating: path(2)))
            identifiers.insert(try identifier(&high, nominating: path(2)))
        }
        // 0 << 58 | 1 is 1.
        #expect(identifiers.count == 127)
    }

    @Test func `an answer that was made with another secret does not verify a pair`() throws {
        for secret in [0, 1, 8, 10, 9 << 32, .max] as [UInt64] {
            var other = scene(secret: secret)
            var own = scene(secret: 9)
            let forged = answer(try identifier(&other, nominating: path(2)), on: path(2))
            let id = try identifier(&own, nominating: path(2))
            #expect(own.deliver(forged, on: path(2), at: at(1.1)) == .dropped(.unknownTransaction))
            #expect(own.agent.selectedPath == path(1))
            #expect(own.agent.counters.checksAnswered == 0)
            #expect(own.deliver(answer(id, on: path(2)), on: path(2), at: at(1.2)) == .event(.pathSelected(path(2))))
        }
    }

    @Test func `an answer to a check of another agent does not verify a pair, with either client's password`() throws {
        var own = scene(secret: 9)
        // The other client's agent has its secret from the same node, and the check comes over the same pair.
        var other = LiteScene()
        other.agent = ICELiteAgent(
            local: LiteScene.serverRestarted,
            remote: LiteScene.clientRestarted,
            at: at(0),
            tieBreaker: 1,
            pathSecret: 10
        )
        _ = other.restartedCheck(1, on: path(1), at: at(0), nominates: true)
        #expect(other.agent.markVerified(path(1), at: at(0)) == nil)
        other.batch.removeAll()
        let theirs = try identifier(&other, nominating: path(2), isRestarted: true)
        _ = try identifier(&own, nominating: path(2))
        for client in [LiteScene.client, LiteScene.clientRestarted] {
            let answer = answer(theirs, from: client, on: path(2))
            #expect(own.deliver(answer, on: path(2), at: at(1.1)) == .dropped(.unknownTransaction))
        }
        #expect(own.agent.selectedPath == path(1))
    }

    @Test func `the identifier of one pair verifies no other, by address, port or socket`() throws {
        let others = [path(3), path(2, port: 5001), path(2, socket: 1)]
        for other in others {
            var scene = scene(secret: 9)
            let known = try identifier(&scene, nominating: path(2))
            let id = try identifier(&scene, nominating: other, number: 3)
            #expect(id != known)
            // A client that left for where it receives nothing has this identifier only.
            #expect(scene.deliver(answer(known, on: other), on: other, at: at(1.1)) == .dropped(.unknownTransaction))
            #expect(scene.agent.selectedPath == path(1))
        }
    }

    @Test func `every part of a pair counts in its identifier`() throws {
        let ip = IPAddress(v4: 0xC000_0202)
        let addresses = [
            TransportAddress(ip: ip, port: 5000), TransportAddress(ip: ip, port: 0x8813),
            TransportAddress(ip: IPAddress(high: 1, low: ip.low), port: 5000),
            TransportAddress(ip: IPAddress(high: ip.low, low: ip.high), port: 5000),
        ]
        var identifiers: Set<STUNTransactionID> = []
        for address in addresses {
            var scene = scene(secret: 9)
            let path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: address)
            identifiers.insert(try identifier(&scene, nominating: path))
        }
        #expect(identifiers.count == addresses.count)
    }

    @Test func `an answer from before an ICE restart does not verify a pair after it`() throws {
        var scene = scene(secret: 9)
        let old = try identifier(&scene, nominating: path(2))
        scene.restart(at: at(2))
        let new = try identifier(&scene, nominating: path(2), number: 3, at: at(3), isRestarted: true)
        #expect(new != old)
        for client in [LiteScene.client, LiteScene.clientRestarted] {
            let late = answer(old, from: client, on: path(2))
            #expect(scene.deliver(late, on: path(2), at: at(3.1)) == .dropped(.unknownTransaction))
        }
        // With the old password the new identifier is worth nothing.
        let mixed = answer(new, on: path(2))
        #expect(scene.deliver(mixed, on: path(2), at: at(3.1)) == .dropped(.wrongIntegrity))
        #expect(scene.agent.selectedPath == path(1))
        let right = answer(new, from: LiteScene.clientRestarted, on: path(2))
        #expect(scene.deliver(right, on: path(2), at: at(3.2)) == .event(.pathSelected(path(2))))
    }

    @Test func `restarts to credentials that were used before do not bring back their identifiers`() throws {
        var scene = scene(secret: 9)
        let first = try identifier(&scene, nominating: path(2))
        scene.restart(at: at(2))
        scene.agent.restart(local: LiteScene.server, remote: LiteScene.client, at: at(3))
        let third = try identifier(&scene, nominating: path(2), number: 3, at: at(4))
        #expect(third != first)
        let late = answer(first, on: path(2))
        #expect(scene.deliver(late, on: path(2), at: at(4.1)) == .dropped(.unknownTransaction))
        #expect(scene.agent.selectedPath == path(1))
    }

    @Test func `a prefix or suffix of an identifier is not enough`() throws {
        var scene = scene(secret: 9)
        let id = try identifier(&scene, nominating: path(2))
        let near = [
            STUNTransactionID(high: id.high, low: 0), STUNTransactionID(high: 0, low: id.low),
            STUNTransactionID(high: ~id.high, low: id.low), STUNTransactionID(high: id.high, low: ~id.low),
        ]
        let bits =
            (0..<32).map { STUNTransactionID(high: id.high ^ 1 << UInt32($0), low: id.low) }
            + (0..<64).map { STUNTransactionID(high: id.high, low: id.low ^ 1 << UInt64($0)) }
        for guess in near + bits {
            let outcome = scene.deliver(answer(guess, on: path(2)), on: path(2), at: at(1.1))
            #expect(outcome == .dropped(.unknownTransaction))
        }
        #expect(scene.agent.selectedPath == path(1))
    }
}
