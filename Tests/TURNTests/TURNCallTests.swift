import Base
import TURN
import TestSupport
import Testing
import Wire

/// Calls of two clients of one server.
@Suite struct TURNCallTests {
    /// A call whose members have an allocation each.
    private struct Call {
        var scene: TURNScene
        var one: TURNClient
        var two: TURNClient
        var addresses: [TransportAddress] = []

        init(_ change: (inout TURNConfiguration) -> Void = { _ in }, over kinds: [LocalEndpoint.Kind] = [.udp, .udp])
            throws
        {
            scene = TURNScene(change)
            (one, two) = try scene.call(1, over: kinds)
            addresses = [try one.relayed(in: &scene), try two.relayed(in: &scene)]
        }

        /// Both permit each other.
        mutating func permit() {
            #expect(one.permit([addresses[1]], in: &scene).code == 0)
            #expect(two.permit([addresses[0]], in: &scene).code == 0)
        }
    }

    /// The sender's address and the content of a Data indication.
    private func indication(_ bytes: [UInt8]) throws -> (peer: TransportAddress?, data: [UInt8]) {
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.method == .data && message.messageClass == .indication)
        var cursor = message.attributes
        var peer: TransportAddress?
        var data: [UInt8] = []
        while let (type, value) = cursor.next() {
            if type == .xorPeerAddress { peer = message.xorAddress(at: value) }
            if type == .data { data = Array(bytes[value]) }
        }
        return (peer, data)
    }

    // MARK: Between the members

    @Test func `what one member indicates reaches the other one's own address as a Data indication`() throws {
        var call = try Call()
        call.permit()
        let outcome = call.one.indicate([1, 2, 3, 4, 5], to: call.addresses[1], in: &call.scene)
        #expect(outcome.event == nil && outcome.dropped == nil)
        #expect(outcome.destinations == [call.two.path])
        let (peer, data) = try indication(try #require(outcome.responses.first))
        #expect(peer == call.addresses[0] && data == [1, 2, 3, 4, 5])
        let back = call.two.indicate([9], to: call.addresses[0], in: &call.scene)
        #expect(back.destinations == [call.one.path])
        let (sender, answer) = try indication(try #require(back.responses.first))
        #expect(sender == call.addresses[1] && answer == [9])
        let counters = call.scene.server.counters
        #expect([counters.callPackets, counters.callBytes, counters.packetsIn, counters.packetsOut] == [2, 6, 2, 2])
    }

    @Test(arguments: [[LocalEndpoint.Kind.udp, .udp], [.udp, .tcp], [.tcp, .udp], [.tcp, .tcp]])
    func `channels relay both ways, each with the receiver's own number`(kinds: [LocalEndpoint.Kind]) throws {
        var call = try Call(over: kinds)
        #expect(call.one.bind(0x4001, to: call.addresses[1], in: &call.scene).code == 0)
        #expect(call.two.bind(0x4FFF, to: call.addresses[0], in: &call.scene).code == 0)
        let there = call.one.channelData([1, 2, 3], 0x4001, in: &call.scene)
        // ChannelData has padding on streams only.
        #expect(there.responses == [[0x4F, 0xFF, 0, 3, 1, 2, 3] + (kinds[1] == .tcp ? [0] : [])])
        #expect(there.destinations == [call.two.path])
        let back = call.two.channelData([7], 0x4FFF, in: &call.scene)
        #expect(back.responses.first?.prefix(5) == [0x40, 0x01, 0, 1, 7] && back.destinations == [call.one.path])
        #expect(call.one.channelData([1], 0x4002, in: &call.scene).dropped == .noChannel)
    }

    @Test func `each of the two needs a permission for the other one`() throws {
        var call = try Call()
        let (first, second) = (call.addresses[0], call.addresses[1])
        #expect(call.one.indicate([1], to: second, in: &call.scene).dropped == .noPermission)
        #expect(call.one.permit([second], in: &call.scene).code == 0)
        #expect(call.one.indicate([1], to: second, in: &call.scene).dropped == .noPermission, "the other has none")
        #expect(call.two.indicate([1], to: first, in: &call.scene).dropped == .noPermission)
        #expect(call.two.permit([first], in: &call.scene).code == 0)
        #expect(call.one.indicate([1], to: second, in: &call.scene).destinations == [call.two.path])
        // Six minutes later, with what libwebrtc is given beyond the five of the RFC.
        call.scene.now += .seconds(360) - .nanoseconds(1)
        #expect(call.one.indicate([1], to: second, in: &call.scene).dropped == nil)
        call.scene.now += .nanoseconds(1)
        #expect(call.one.indicate([1], to: second, in: &call.scene).dropped == .noPermission)
        call.permit()
        #expect(call.one.indicate([1], to: second, in: &call.scene).dropped == nil)
    }

    @Test func `a channel number rests before it is bound to another address`() throws {
        var call = try Call()
        var other = call.two
        other.path = NetworkPath(
            local: other.path.local,
            remote: TransportAddress(ip: other.path.remote.ip, port: 50_001)
        )
        other.nonce = ""
        let third = try other.relayed(in: &call.scene)
        #expect(call.one.bind(0x4000, to: call.addresses[1], in: &call.scene).code == 0)
        #expect(call.one.bind(0x4000, to: third, in: &call.scene).code == 400, "the number is the other address's")
        #expect(call.one.bind(0x4001, to: call.addresses[1], in: &call.scene).code == 400, "the address has a number")
        #expect(call.one.bind(0x4001, to: third, in: &call.scene).code == 0)
        for number in [0x3FFF, 0x5000] as [UInt16] {
            #expect(call.one.bind(number, to: third, in: &call.scene).code == 400)
        }
        call.scene.now += .seconds(500)
        #expect(call.one.refresh(in: &call.scene, lifetime: 3_600).code == 0)
        #expect(other.refresh(in: &call.scene, lifetime: 3_600).code == 0)
        call.scene.now += .seconds(399)
        #expect(call.one.channelData([1], 0x4000, in: &call.scene).dropped == .noChannel)
        #expect(call.one.bind(0x4000, to: third, in: &call.scene).code == 400, "it rests")
        call.scene.now += .seconds(1)
        #expect(call.one.bind(0x4000, to: third, in: &call.scene).code == 0)
    }

    @Test func `channels are bounded, however many addresses the other member has had`() throws {
        var call = try Call {
            $0.sessionCreationsMax = 100
            $0.challengeBurst = 100
        }
        var codes: [Int?] = []
        for number in 0..<40 as Range<UInt16> {
            var other = call.two
            other.path = NetworkPath(
                local: other.path.local,
                remote: TransportAddress(ip: other.path.remote.ip, port: 51_000 + number)
            )
            other.nonce = ""
            let address = try other.relayed(in: &call.scene)
            codes.append(call.one.bind(0x4000 + number, to: address, in: &call.scene).code)
            #expect(other.refresh(in: &call.scene, lifetime: 0).code == 0)
        }
        #expect(codes == Array(repeating: 0, count: 32) + Array(repeating: 508, count: 8))
    }

    // MARK: Nobody else

    @Test(arguments: [
        "127.0.0.1:40000", "169.254.169.254:80", "10.0.0.1:40000", "192.168.0.1:40000", "0.0.0.0:40000", "8.8.8.8:53",
        "255.255.255.255:40000", "224.0.0.1:40000", "203.0.113.2:40000", "198.51.100.11:50000", "[::1]:40000",
        "[::ffff:127.0.0.1]:40000", "[64:ff9b::7f00:1]:40000",
    ])
    func `a member reaches no address but the other one's`(text: String) throws {
        let peer = try #require(TransportAddress(text))
        var call = try Call()
        let code = peer.ip.isV4 ? 403 : 443
        #expect(call.one.permit([peer], in: &call.scene).code == code)
        #expect(call.one.permit([call.addresses[1], peer], in: &call.scene).code == code, "all or none")
        #expect(call.one.indicate([1], to: call.addresses[1], in: &call.scene).dropped == .noPermission)
        #expect(call.one.bind(0x4000, to: peer, in: &call.scene).code == code)
        call.permit()
        #expect(call.one.indicate([1], to: peer, in: &call.scene).dropped == .forbiddenPeer)
        #expect(call.one.indicate([1], to: call.addresses[1], in: &call.scene).dropped == nil, "no harm is done")
    }

    /// All of these have the same IP address as the other member's relayed address.
    @Test func `a member reaches no other call, no session, no port of the node and not itself`() throws {
        var call = try Call()
        call.permit()
        var pair = try call.scene.call(2)
        let other = try pair.0.relayed(in: &call.scene)
        #expect(pair.1.allocate(in: &call.scene).code == 0)
        var peer = call.scene.addSession(77)
        let session = try peer.relayed(in: &call.scene)
        let strangers = [
            other, session, call.addresses[0], TURNScene.mediaV4,
            TransportAddress(ip: TURNScene.mediaV4.ip, port: 8_080),
        ]
        for stranger in strangers {
            #expect(stranger.ip == call.addresses[1].ip)
            #expect(call.one.bind(0x4000, to: stranger, in: &call.scene).code == 403)
            #expect(call.one.indicate([1], to: stranger, in: &call.scene).dropped == .forbiddenPeer)
        }
        // Nor does a client of a session reach a call.
        #expect(peer.bind(0x4000, to: call.addresses[0], in: &call.scene).code == 403)
        #expect(peer.indicate([1], to: call.addresses[0], in: &call.scene).dropped == .forbiddenPeer)
        // Nothing leads from a media socket to a member.
        let path = NetworkPath(local: LocalEndpoint(.relayed, index: 0), remote: call.addresses[0])
        #expect(call.scene.deliver([1], over: path) == nil)
    }

    @Test func `without the other one's allocation there is nothing to permit`() throws {
        var scene = TURNScene()
        var (one, two) = try scene.call(1)
        let first = try one.relayed(in: &scene)
        #expect(one.permit([first], in: &scene).code == 403)
        #expect(one.permit([TURNScene.mediaV4], in: &scene).code == 403)
        #expect(two.allocate(in: &scene).code == 0)
        #expect(one.permit([first], in: &scene).code == 0, "a permission has no port")
    }

    @Test func `an address that the other member gave up is not reached, whoever has it next`() throws {
        var call = try Call { $0.reservedPorts = Set(1_026...65_535 as ClosedRange<UInt16>) }
        call.permit()
        #expect(call.one.bind(0x4000, to: call.addresses[1], in: &call.scene).code == 0)
        #expect(call.two.refresh(in: &call.scene, lifetime: 0).code == 0)
        #expect(call.one.channelData([1], 0x4000, in: &call.scene).dropped == .forbiddenPeer)
        call.scene.now += .seconds(300)
        #expect(call.one.bind(0x4001, to: call.addresses[1], in: &call.scene).code == 403)
        var (next, _) = try call.scene.call(2)
        #expect(try next.relayed(in: &call.scene) == call.addresses[1])
        #expect(next.permit([call.addresses[0]], in: &call.scene).code == 403)
        #expect(call.one.channelData([1], 0x4000, in: &call.scene).dropped == .forbiddenPeer)
        #expect(call.one.indicate([1], to: call.addresses[1], in: &call.scene).dropped == .forbiddenPeer)
    }

    @Test func `an allocation that has expired gets nothing`() throws {
        var call = try Call()
        call.permit()
        call.scene.now += .seconds(300)
        #expect(call.one.refresh(in: &call.scene, lifetime: 3_600).code == 0)
        call.permit()
        call.scene.now += .seconds(300)
        #expect(call.one.indicate([1], to: call.addresses[1], in: &call.scene).dropped == .noAllocation)
        #expect(call.scene.timeouts().count == 1)
        #expect(call.one.indicate([1], to: call.addresses[1], in: &call.scene).dropped == .forbiddenPeer)
    }

    @Test func `credentials are the member's own`() throws {
        var call = try Call()
        let stolen = call.one
        call.one = TURNClient(
            TURNCredentials(username: call.one.credentials.username, password: call.two.credentials.password),
            path: stolen.path
        )
        #expect(call.one.permit([call.addresses[1]], in: &call.scene).code == 401)
        // Another member's credentials do not command an allocation.
        call.two.path = stolen.path
        call.two.nonce = ""
        #expect(call.two.permit([call.addresses[1]], in: &call.scene).code == 441)
    }

    // MARK: The end

    @Test func `the end of a call ends the credentials and allocations of both`() throws {
        var call = try Call()
        call.permit()
        #expect(call.scene.server.callCount == 1 && call.scene.server.callAllocationCount == 2)
        call.scene.server.removeCall(of: TURNSessionID(rawValue: 1_001), at: call.scene.now)
        #expect(call.scene.server.callCount == 0 && call.scene.server.sessionCount == 0)
        #expect(call.scene.server.allocationCount == 0 && call.scene.server.callAllocationCount == 0)
        #expect(call.one.indicate([1], to: call.addresses[1], in: &call.scene).dropped == .noAllocation)
        for var client in [call.one, call.two] { #expect(client.allocate(in: &call.scene).code == 401) }
        call.scene.server.removeCall(of: TURNSessionID(rawValue: 1_001), at: call.scene.now)
        call.scene.server.releaseCall(of: TURNSessionID(rawValue: 1_001), at: call.scene.now)
        #expect(call.scene.server.nextDeadline == nil)
    }

    @Test func `a released call lasts as long as its allocations, and makes none`() throws {
        var call = try Call()
        call.permit()
        call.scene.server.releaseCall(of: TURNSessionID(rawValue: 1_000), at: call.scene.now)
        #expect(call.one.indicate([1], to: call.addresses[1], in: &call.scene).destinations == [call.two.path])
        var again = call.one
        again.path = NetworkPath(local: again.path.local, remote: TransportAddress(ip: .loopbackV4, port: 9))
        again.nonce = ""
        #expect(again.allocate(in: &call.scene).code == 486)
        #expect(call.scene.server.callCount == 0 && call.scene.server.sessionCount == 2)
        #expect(call.one.refresh(in: &call.scene, lifetime: 0).code == 0)
        #expect(call.scene.server.sessionCount == 0 && call.scene.server.allocationCount == 0, "one alone is no call")
    }

    @Test func `a released call ends at last, however often it is refreshed`() throws {
        var call = try Call()
        call.scene.server.releaseCall(of: TURNSessionID(rawValue: 1_000), at: call.scene.now)
        for _ in 1...12 {
            for refreshed in [
                call.one.refresh(in: &call.scene, lifetime: 3_600), call.two.refresh(in: &call.scene, lifetime: 3_600),
            ] {
                #expect(refreshed.code == 0)
            }
            call.scene.now += .seconds(3_599)
        }
        call.scene.now += .seconds(12)
        _ = call.scene.timeouts()
        #expect(call.scene.server.allocationCount == 0 && call.scene.server.sessionCount == 0)
    }

    @Test func `a member alone keeps nothing of a call that is released`() throws {
        var scene = TURNScene()
        var (one, _) = try scene.call(1)
        #expect(one.allocate(in: &scene).code == 0)
        scene.server.releaseCall(of: TURNSessionID(rawValue: 1_000), at: scene.now)
        #expect(scene.server.allocationCount == 0 && scene.server.sessionCount == 0)
    }

    @Test func `a released call without an allocation has ended`() throws {
        var scene = TURNScene()
        #expect(scene.addCall(1) != nil)
        scene.server.releaseCall(of: TURNSessionID(rawValue: 1_000), at: scene.now)
        #expect(scene.server.callCount == 0 && scene.server.sessionCount == 0)
    }

    @Test func `a member may make its first allocation late, when the other one comes`() throws {
        var scene = TURNScene()
        var (one, _) = try scene.call(1)
        scene.now += .seconds(86_400)
        #expect(one.allocate(in: &scene).code == 0)
    }

    // MARK: Limits

    @Test func `calls are bounded`() throws {
        var scene = TURNScene { $0.calls.callsMax = 2 }
        #expect(scene.addCall(1) != nil && scene.addCall(2) != nil)
        #expect(scene.addCall(3) == nil)
        #expect(scene.server.callCount == 2 && scene.server.sessionCount == 4)
        scene.server.removeCall(of: TURNSessionID(rawValue: 1_000), at: scene.now)
        #expect(scene.addCall(3) != nil)
    }

    @Test func `a member that sends more than it may is metered, and the other one is not`() throws {
        var call = try Call { $0.calls.memberBytesPerSecond = 10_000 }
        call.permit()
        let data = [UInt8](repeating: 1, count: 1_000)
        let drops = (0..<6).map { _ in call.one.indicate(data, to: call.addresses[1], in: &call.scene).dropped }
        #expect(drops == [nil, nil, nil, nil, nil, .overRate])
        #expect(call.two.indicate(data, to: call.addresses[0], in: &call.scene).dropped == nil)
        call.scene.now += .milliseconds(100)
        #expect(call.one.indicate(data, to: call.addresses[1], in: &call.scene).dropped == nil)
        #expect(call.one.indicate(data, to: call.addresses[1], in: &call.scene).dropped == .overRate)
        #expect(call.scene.server.counters.callBytes == 7_000)
        #expect(call.scene.server.counters.drops(.overRate) == 2)
    }

    @Test func `all calls together have a rate`() throws {
        var call = try Call { $0.calls.bytesPerSecond = 4_000 }
        call.permit()
        var (three, four) = try call.scene.call(2)
        let addresses = [try three.relayed(in: &call.scene), try four.relayed(in: &call.scene)]
        #expect(three.permit([addresses[1]], in: &call.scene).code == 0)
        #expect(four.permit([addresses[0]], in: &call.scene).code == 0)
        let data = [UInt8](repeating: 1, count: 1_000)
        #expect(call.one.indicate(data, to: call.addresses[1], in: &call.scene).dropped == nil)
        #expect(three.indicate(data, to: addresses[1], in: &call.scene).dropped == nil)
        #expect(three.indicate(data, to: addresses[1], in: &call.scene).dropped == .overRate)
        #expect(call.one.indicate(data, to: call.addresses[1], in: &call.scene).dropped == .overRate)
    }

    @Test func `a datagram that does not fit with its header is dropped`() throws {
        var call = try Call()
        call.permit()
        let fits = [UInt8](repeating: 1, count: DatagramBatch.slotBytes - 36)
        #expect(call.one.indicate(fits, to: call.addresses[1], in: &call.scene).dropped == nil)
        #expect(call.one.indicate(fits + [1], to: call.addresses[1], in: &call.scene).dropped == .tooLong)
        #expect(call.one.indicate([], to: call.addresses[1], in: &call.scene).dropped == .empty)
    }

    @Test func `random and changed messages of a member change nothing for others`() throws {
        var call = try Call()
        call.permit()
        #expect(call.one.bind(0x4000, to: call.addresses[1], in: &call.scene).code == 0)
        var generator = SeededGenerator(seed: 31)
        var valid = call.one.request(.channelBind, 5) { request in
            request.append(.channelNumber, 0x4000_0000 as UInt32)
            request.appendXORAddress(.xorPeerAddress, call.addresses[1])
        }
        for _ in 0..<5_000 {
            let bytes: [UInt8]
            if Bool.random(using: &generator) {
                let count = Int.random(in: 0...80, using: &generator)
                bytes = [UInt8.random(in: 0...0x4F, using: &generator)] + generator.bytes(count)
            } else {
                bytes = valid
                valid[Int.random(in: valid.indices, using: &generator)] ^= UInt8.random(in: 0...3, using: &generator)
            }
            let outcome = call.scene.send(bytes, from: call.one.path)
            for destination in outcome.destinations {
                #expect(destination == call.one.path || destination == call.two.path)
            }
        }
        #expect(call.scene.server.callCount == 1 && call.scene.server.sessionCount == 2)
        #expect(call.two.indicate([1], to: call.addresses[0], in: &call.scene).destinations == [call.one.path])
    }
}

extension TURNScene {
    /// A call that the server has room for.
    fileprivate mutating func call(
        _ number: UInt64,
        over kinds: [LocalEndpoint.Kind] = [.udp, .udp]
    ) throws -> (TURNClient, TURNClient) {
        let clients = addCall(number, over: kinds)
        return try #require(clients)
    }

    /// A call with two clients that know their credentials, of sessions 1,000 and 1,001 for the first call; `nil` when the server
    /// has as many as it may.
    fileprivate mutating func addCall(
        _ number: UInt64,
        over kinds: [LocalEndpoint.Kind] = [.udp, .udp]
    ) -> (TURNClient, TURNClient)? {
        var generator = SeededGenerator(seed: 90 + number)
        let ids = [998 + 2 * number, 999 + 2 * number].map(TURNSessionID.init)
        let credentials = ids.map { TURNCredentials(username: "member\($0.rawValue)", using: &generator) }
        guard server.addCall((ids[0], credentials[0]), (ids[1], credentials[1]), at: now) else { return nil }
        let clients = zip(credentials, kinds).enumerated().map { index, member in
            let ip = IPAddress(v4: 0xC633_6400 + UInt32(8 + 2 * number) + UInt32(index))
            let path = NetworkPath(
                local: LocalEndpoint(member.1, index: 0),
                remote: TransportAddress(ip: ip, port: 50_000)
            )
            return TURNClient(member.0, path: path)
        }
        return (clients[0], clients[1])
    }
}

extension TURNClient {
    /// Makes an allocation, and tells its relayed address.
    fileprivate mutating func relayed(in scene: inout TURNScene) throws -> TransportAddress {
        let outcome = allocate(in: &scene)
        return try #require(outcome.response?.relayed)
    }
}

extension SeededGenerator {
    fileprivate mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
    }
}
