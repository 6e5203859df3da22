import Base
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

    @Test func `media moves to an address that nominates and then answers the node's own check`() throws {
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
        world.run(for: .milliseconds(30))
        #expect(world.nodePath(viewer) == home)
        #expect(world.node.core.counters.unprovedNominations == 1)
        world.run(for: .milliseconds(100))
        #expect(world.nodePath(viewer) == away)
        #expect(world.node.core.counters.pathChanges == 1)
        let decoded = viewer.client?.video?.framesDecoded ?? 0
        world.run(for: .seconds(2))
        #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 55)
        #expect(viewer.client?.video?.lost == 0)
    }

    /// Bytes that the node sends to each address from now on, without STUN.
    private func countBytes(_ world: World) -> BytesSent {
        let sent = BytesSent()
        world.onTransmit = { from, to, bytes in
            if from == World.nodeAddress { sent.all[to, default: 0] += bytes.count }
            if from == World.nodeAddress, bytes[0] > 3 { sent.secured[to, default: 0] += bytes.count }
        }
        return sent
    }

    private final class BytesSent {
        var all: [TransportAddress: Int] = [:]
        var secured: [TransportAddress: Int] = [:]
    }

    @Test func `checks with a false source get their answers, and no media goes there`() throws {
        let (world, _, viewer) = try startCall(seed: 127)
        let victim = address(66)
        let sent = countBytes(world)
        var received = 0
        for id in 0..<5 as Range<UInt64> {
            let bytes = try check(world, viewer, nominates: true, id: 100 + id)
            received += bytes.count
            world.inject(bytes, from: victim)
            world.run(for: .seconds(1))
        }
        world.run(for: .seconds(10))
        #expect(sent.secured[victim] == nil)
        #expect(sent.all[victim] ?? 0 <= 2 * received, "a response and a check for each")
        #expect(sent.all[victim] ?? 0 > 0)
        #expect(world.nodePath(viewer) == viewer.address)
        #expect(viewer.client?.video?.lost == 0)
        #expect(viewer.client?.video?.longestGap ?? .zero < .milliseconds(60))
        #expect(world.node.core.counters.unprovedNominations >= 1)
    }

    @Test func `the client's own checks, seen on the way and sent again later from elsewhere, move nothing`() throws {
        let (world, publisher, viewer) = try startCall(seed: 128)
        let victim = address(67)
        var seen: [[UInt8]] = []
        var reports: [[UInt8]] = []
        let homes = [publisher.address, viewer.address]
        world.onTransmit = { from, to, bytes in
            guard to == World.nodeAddress, homes.contains(from) else { return }
            if bytes[0] < 4 { seen.append(bytes) }
            if bytes[0] >= 128 { reports.append(bytes) }
        }
        for host in homes { try world.restartICE(host == homes[0] ? publisher : viewer) }
        world.run(for: .seconds(20))
        let sent = countBytes(world)
        #expect(seen.count > 8)
        for bytes in seen + reports.suffix(200) { world.inject(bytes, from: victim) }
        world.run(for: .seconds(5))
        #expect(sent.all[victim] == nil)
        #expect(world.nodePath(viewer) == viewer.address)
        #expect(world.nodePath(publisher) == publisher.address)
        #expect(viewer.client?.video?.lost == 0)
    }

    @Test func `a client that forges checks and fresh packets from a false source moves nothing there`() throws {
        let (world, publisher, _) = try startCall(seed: 135)
        let victim = address(70)
        var fresh: [[UInt8]] = []
        let home = publisher.address
        world.onTransmit = { from, to, bytes in
            if to == World.nodeAddress, from == home, bytes[0] >= 128 { fresh.append(bytes) }
        }
        // What the client makes arrives from the false source only.
        let conditions = world.network.conditions[home]
        var lossy = conditions ?? LinkConditions()
        lossy.loss = 1
        world.network.conditions[home] = lossy
        world.run(for: .milliseconds(500))
        world.network.conditions[home] = conditions
        #expect(fresh.count > 50)
        let sent = countBytes(world)
        world.inject(try check(world, publisher, nominates: true, id: 500), from: victim)
        for bytes in fresh { world.inject(bytes, from: victim) }
        world.run(for: .seconds(5))
        #expect(sent.secured[victim] == nil)
        #expect(world.nodePath(publisher) == home)
    }

    @Test func `replayed media does not prove a false source`() throws {
        let (world, publisher, _) = try startCall(seed: 129)
        let victim = address(68)
        var media: [[UInt8]] = []
        let home = publisher.address
        world.onTransmit = { from, to, bytes in
            if to == World.nodeAddress, from == home, bytes[0] >= 128 { media.append(bytes) }
        }
        world.run(for: .seconds(2))
        let sent = countBytes(world)
        world.inject(try check(world, publisher, nominates: true, id: 200), from: victim)
        for bytes in media { world.inject(bytes, from: victim) }
        world.run(for: .seconds(5))
        #expect(sent.secured[victim] == nil)
        #expect(world.nodePath(publisher) == home)
    }

    @Test func `a handshake with a false source gets no more than three times what came, and a few flights`() throws {
        let world = try World(seed: 130)
        let victim = address(69)
        var hello: [UInt8]?
        let publisher = try world.publish()
        let home = publisher.address
        world.onTransmit = { from, to, bytes in
            if to == World.nodeAddress, from == home, bytes[0] == 22, hello == nil { hello = bytes }
        }
        // The client sends its ClientHello; the node's answers to it are lost, and it says no more.
        world.network.conditions[home] = LinkConditions(delay: .milliseconds(20))
        #expect(world.run(for: .seconds(2)) { hello != nil })
        world.vanish(publisher)
        let sent = countBytes(world)
        let nominating = try check(world, publisher, nominates: true, id: 300)
        world.inject(nominating, from: victim)
        world.run(for: .milliseconds(50))
        world.inject(try #require(hello), from: victim)
        world.run(for: .seconds(31))
        let received = nominating.count + (hello?.count ?? 0)
        #expect(sent.all[victim] ?? 0 > 0)
        #expect(sent.all[victim] ?? 0 <= HandshakeAllowance.initialBytes + 4 * received + 3 * 2_000)
        #expect(world.node.core.counters.handshakeDatagramsHeld > 0)
        #expect(world.node.core.peerCount == 0)
    }

    @Test func `a client whose address changes under it goes on at once`() throws {
        for seed in [131, 132, 133] as [UInt64] {
            let (world, publisher, viewer) = try startCall(seed: seed)
            for (index, host) in [viewer, publisher].enumerated() {
                // As when a NAT forgets: checks and packets come from another address, and the old one is gone.
                world.move(host, to: address(UInt32(80 + index)))
                world.inject(try check(world, host, nominates: true, id: UInt64(400 + index)), from: host.address)
                world.run(for: .seconds(2))
                #expect(world.nodePath(host) == host.address)
                let decoded = viewer.client?.video?.framesDecoded ?? 0
                world.run(for: .seconds(2))
                #expect(viewer.client?.video?.framesDecoded ?? 0 > decoded + 50)
            }
        }
    }

    /// With restarts, checks of the client go on for a while after it left.
    @Test(arguments: [false, true])
    func `media ends thirty seconds after the client's last answer, however often ICE restarts`(restarts: Bool) throws {
        let (world, _, viewer) = try startCall(seed: 134)
        let home = viewer.address
        var lastMedia = world.now
        world.onTransmit = { [unowned world] from, to, bytes in
            if from == World.nodeAddress, to == home, bytes[0] > 3 { lastMedia = world.now }
        }
        world.run(for: .seconds(8))
        let leftAt = world.now
        world.vanish(viewer)
        for _ in 0..<30 {
            // Of the client's side or the node's, whichever is still there.
            if restarts { try? world.restartICE(viewer) }
            world.run(for: .seconds(5))
        }
        #expect(lastMedia - leftAt > .seconds(20))
        #expect(lastMedia - leftAt <= .seconds(30))
        #expect(world.nodePeer(viewer) == nil)
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
        let peer = try #require(world.nodePeer(viewer))
        let paths = ([viewer.address] + (0..<100).map(address)).map {
            NetworkPath(socket: SocketIndex(rawValue: 0), remote: $0)
        }
        let known = paths.count { world.node.core.directory.peer(over: $0)?.refers(to: peer) == true }
        #expect(known == PeerDirectory.pathsPerPeerMax)
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
