import Client
import Testing
import Wire

@testable import Forwarding

/// Peers whose network changes under a running call.
@Suite struct PathTests {
    private func startCall(seed: UInt64) throws -> (world: World, publisher: World.Host, viewer: World.Host) {
        let world = try World(seed: seed)
        let publisher = try world.publish()
        let viewer = try world.watch()
        try world.connect(viewer, to: publisher)
        #expect(world.run(for: .seconds(5)) { viewer.client?.video?.framesDecoded ?? 0 > 30 })
        return (world, publisher, viewer)
    }

    private func address(_ last: UInt32) -> TransportAddress {
        TransportAddress(ip: IPAddress(v4: 0xCB00_7100 + last), port: 5_000)
    }

    /// A check as the host's ICE agent makes it.
    private func check(
        _ world: World,
        _ host: World.Host,
        nominates: Bool,
        password: String? = nil,
        id: UInt64
    ) throws -> [UInt8] {
        let (client, node) = try #require(host.client.flatMap { world.credentials[$0.id] })
        var request = STUNMessageBuilder(.request, transactionID: STUNTransactionID(high: 9, low: id))
        request.append(.username, "\(node.usernameFragment):\(client.usernameFragment)")
        request.append(.priority, 1_000 as UInt32)
        request.append(.iceControlling, 77 as UInt64)
        if nominates { request.append(.useCandidate) }
        request.appendMessageIntegrity(key: Array((password ?? node.password).utf8))
        request.appendFingerprint()
        return request.bytes
    }

    @Test func `an ICE restart in mid-call loses nothing`() throws {
        let (world, publisher, viewer) = try startCall(seed: 121)
        for host in [publisher, viewer, publisher] {
            try world.restartICE(host)
            world.run(for: .seconds(3))
        }
        // Long enough for consent by the credentials before to have run out.
        world.run(for: .seconds(40))
        let video = try #require(viewer.client?.video)
        #expect(video.lost == 0)
        #expect(video.duplicates == 0)
        #expect(video.longestGap < .milliseconds(60))
        #expect(world.node.core.peerCount == 2)
        for host in [publisher, viewer] {
            world.remove(host)
        }
        world.run(for: .seconds(1))
        #expect(world.node.core.isEmpty)
    }

    @Test func `an ICE restart from another address moves the media there`() throws {
        let (world, publisher, viewer) = try startCall(seed: 122)
        for (index, host) in [viewer, publisher].enumerated() {
            world.move(host, to: address(UInt32(index + 1)))
            try world.restartICE(host)
            world.run(for: .seconds(3))
            #expect(world.nodePath(host) == address(UInt32(index + 1)))
        }
        let video = try #require(viewer.client?.video)
        #expect(world.now - (try #require(video.lastDecodedAt)) < .milliseconds(100))
        #expect(video.duplicates == 0)
        #expect(video.longestGap < .seconds(1))
    }

    @Test func `a nominating check from another address moves the media, and nothing less does`() throws {
        let (world, _, viewer) = try startCall(seed: 123)
        let home = viewer.address
        let away = address(7)
        world.inject(
            try check(world, viewer, nominates: true, password: "wrongwrongwrongwrongwrong", id: 1),
            from: away
        )
        world.run(for: .milliseconds(100))
        #expect(world.nodePath(viewer) == home)
        #expect(world.node.core.counters[DropReason.stunUnauthenticated] == 1)
        world.inject(try check(world, viewer, nominates: false, id: 2), from: away)
        world.run(for: .milliseconds(100))
        #expect(world.nodePath(viewer) == home)
        world.move(viewer, to: away)
        world.inject(try check(world, viewer, nominates: true, id: 3), from: away)
        world.run(for: .milliseconds(300))
        #expect(world.nodePath(viewer) == away)
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        world.run(for: .seconds(2))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 55)
        #expect(viewer.client?.video?.lost == 0)
    }

    @Test func `media from an address that was never checked changes nothing`() throws {
        let (world, publisher, viewer) = try startCall(seed: 124)
        var captured: [[UInt8]] = []
        let home = publisher.address
        world.onTransmit = { from, to, bytes in
            if from == home, to == World.nodeAddress, bytes[0] >= 128 { captured.append(bytes) }
        }
        // The publisher's own next packets, but from elsewhere: authentic, and yet not accepted.
        world.move(publisher, to: address(9))
        world.onTransmit = nil
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        world.run(for: .seconds(1))
        #expect(viewer.client?.video?.framesDecoded ?? 0 <= decoded + 2)
        #expect(world.node.core.counters[DropReason.unvalidatedAddress] > 100)
        #expect(world.nodePath(publisher) == home)
        world.move(publisher, to: home)
        world.run(for: .seconds(2))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 30)
        #expect(captured.isEmpty)
    }

    @Test func `paths that a peer has used are bounded`() throws {
        let (world, _, viewer) = try startCall(seed: 125)
        for number in 0..<100 as Range<UInt32> {
            world.inject(try check(world, viewer, nominates: false, id: UInt64(number) + 10), from: address(number))
        }
        world.run(for: .milliseconds(200))
        #expect(world.nodePeer(viewer)?.paths.count == Forwarder.pathsPerPeerMax)
        #expect(world.nodePath(viewer) == viewer.address)
        world.run(for: .seconds(1))
        #expect(viewer.client?.video?.lost == 0)
        world.remove(viewer)
        world.vanish(viewer)
        world.run(for: .milliseconds(100))
        let before = world.node.core.counters[DropReason.unvalidatedAddress]
        world.inject([0x80, 111, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], from: address(99))
        world.run(for: .milliseconds(100))
        #expect(world.node.core.counters[DropReason.unvalidatedAddress] == before + 1)
    }

    @Test func `a server that repeats the user name in its responses is connected to`() throws {
        let world = try World(seed: 126)
        let publisher = try world.publish()
        let (client, node) = try #require(publisher.client.flatMap { world.credentials[$0.id] })
        var altered = 0
        world.alters = { from, bytes in
            guard from == World.nodeAddress, let message = try? STUNMessageView(unsafe bytes.span.bytes),
                message.messageClass == .success, let mapped = message.xorMappedAddress
            else { return bytes }
            altered += 1
            var response = STUNMessageBuilder(.success, transactionID: message.transactionID)
            response.appendXORMappedAddress(mapped)
            response.append(.username, "\(node.usernameFragment):\(client.usernameFragment)")
            response.appendMessageIntegrity(key: Array(node.password.utf8))
            response.appendFingerprint()
            return response.bytes
        }
        #expect(world.run(for: .seconds(5)) { publisher.client?.isConnected == true })
        #expect(altered > 0)
    }
}
