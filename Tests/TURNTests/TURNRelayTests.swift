import Base
import TURN
import TestSupport
import Testing
import Wire

struct TURNRelayTests {
    private static let media = TURNScene.mediaV4

    @Test func `a Send indication reaches the session with a permission only`() throws {
        var scene = TURNScene()
        var client = scene.allocated(1)
        #expect(client.indicate([1, 2, 3], to: Self.media, in: &scene).dropped == .noPermission)
        #expect(client.permit([Self.media], in: &scene).code == 0)
        let outcome = client.indicate([1, 2, 3], to: Self.media, in: &scene)
        let relayed = try #require(outcome.relayed)
        #expect(relayed.path.local == LocalEndpoint(.relayed, index: 0))
        #expect(relayed.payload == 36..<39)
        #expect(outcome.responses.isEmpty)
        #expect(scene.server.counters.packetsIn == 1)
        #expect(scene.server.counters.drops(.noPermission) == 1)
    }

    /// Nothing but the session's own media addresses is reached, whatever the client asks for.
    @Test(arguments: [
        "127.0.0.1:40000", "[::1]:40000", "[::]:40000", "[::ffff:127.0.0.1]:40000", "[64:ff9b::7f00:1]:40000",
        "169.254.169.254:80", "10.0.0.1:40000", "172.16.0.1:40000", "192.168.0.1:40000", "0.0.0.0:40000",
        "8.8.8.8:53", "255.255.255.255:40000", "224.0.0.1:40000", "[fe80::1]:40000", "203.0.113.3:40000",
    ])
    func `other hosts are not reached`(text: String) throws {
        let peer = try #require(TransportAddress(text))
        var scene = TURNScene()
        var client = scene.allocated(1)
        let code = peer.ip.isV4 ? 403 : 443
        #expect(client.permit([peer], in: &scene).code == code)
        #expect(client.permit([Self.media, peer], in: &scene).code == code, "all or none")
        #expect(client.indicate([1], to: Self.media, in: &scene).dropped == .noPermission)
        #expect(client.bind(0x4000, to: peer, in: &scene).code == code)
        #expect(client.permit([Self.media], in: &scene).code == 0)
        #expect(client.indicate([1], to: peer, in: &scene).dropped == .forbiddenPeer)
        #expect(client.channelData([1], 0x4000, in: &scene).dropped == .noChannel)
    }

    @Test func `other ports of the media address are not reached`() {
        var scene = TURNScene()
        var client = scene.allocated(1)
        let other = TransportAddress(ip: Self.media.ip, port: 40_001)
        #expect(client.permit([other], in: &scene).code == 0, "a permission has no port")
        #expect(client.bind(0x4000, to: other, in: &scene).code == 403)
        #expect(client.indicate([1], to: other, in: &scene).dropped == .forbiddenPeer)
        #expect(client.indicate([1], to: Self.media, in: &scene).relayed != nil)
    }

    @Test(
        arguments: [
            ("no peer", [(STUNAttributeType.channelNumber, [0x40, 0, 0, 0])]),
            ("no channel", []),
            ("a short channel", [(.channelNumber, [0x40, 0])]),
        ] as [(String, [(STUNAttributeType, [UInt8])])]
    )
    func `a ChannelBind without what it needs is a bad request`(
        name: String,
        attributes: [(STUNAttributeType, [UInt8])]
    ) {
        var scene = TURNScene()
        var client = scene.allocated(1)
        let outcome = client.perform(.channelBind, in: &scene) { request in
            for (type, value) in attributes { request.append(type, value) }
        }
        #expect(outcome.code == 400)
        #expect(client.perform(.createPermission, in: &scene).code == 400)
    }

    @Test(
        arguments: [(0x3FFF, 400), (0x4000, 0), (0x4FFF, 0), (0x5000, 400), (0x7FFF, 400), (0, 400), (0xFFFF, 400)]
            as [(UInt16, Int)]
    )
    func `channel numbers are 0x4000 to 0x4FFF`(number: UInt16, code: Int) {
        var scene = TURNScene()
        var client = scene.allocated(1)
        #expect(client.bind(number, to: Self.media, in: &scene).code == code)
    }

    @Test func `a channel relays to its peer, both ways`() throws {
        var scene = TURNScene()
        var client = scene.allocated(1)
        #expect(client.channelData([1], 0x4001, in: &scene).dropped == .noChannel)
        #expect(client.bind(0x4001, to: TURNScene.otherMediaV4, in: &scene).code == 0)
        let relayed = try #require(client.channelData([1, 2, 3], 0x4001, in: &scene).relayed)
        #expect(relayed.path.local.index == 1 && relayed.payload == 4..<7)
        #expect(client.channelData([1], 0x4002, in: &scene).dropped == .noChannel)
        let back = try scene.receive([9, 8, 7], over: relayed.path)
        #expect(back.bytes == [0x40, 0x01, 0, 3, 9, 8, 7])
        #expect(back.route.client == client.path)
        // A peer without a channel and without a permission.
        let other = NetworkPath(local: LocalEndpoint(.relayed, index: 0), remote: relayed.path.remote)
        #expect(scene.deliver([1], over: other) == nil)
        #expect(scene.server.counters.drops(.noPermission) == 1)
    }

    @Test(arguments: [1, 2, 3, 4, 5, 1_200])
    func `without a channel a datagram is a Data indication`(count: Int) throws {
        var scene = TURNScene()
        var client = scene.allocated(1)
        #expect(client.permit([Self.media], in: &scene).code == 0)
        let relayed = try #require(client.indicate([1], to: Self.media, in: &scene).relayed)
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 + 1) }
        let (bytes, route) = try scene.receive(payload, over: relayed.path)
        #expect(route.headerBytes == 36)
        let message = try STUNMessageView(unsafe bytes.span.bytes)
        #expect(message.method == .data && message.messageClass == .indication)
        var cursor = message.attributes
        let first = cursor.next()
        let peer = try #require(first)
        #expect(peer.type == .xorPeerAddress && message.xorAddress(at: peer.value) == Self.media)
        let second = cursor.next()
        let data = try #require(second)
        #expect(data.type == .data && Array(bytes[data.value]) == payload)
        let third = cursor.next()
        #expect(third == nil)
        #expect(bytes[data.value.upperBound...].allSatisfy { $0 == 0 }, "padding leaks no memory")
        let again = try scene.receive(payload, over: relayed.path)
        #expect(again.bytes[8..<20] != bytes[8..<20], "each indication has its own transaction")
    }

    @Test func `on a stream ChannelData is padded to four bytes`() throws {
        var scene = TURNScene()
        var client = scene.allocated(1, over: .tcp)
        #expect(client.bind(0x4000, to: Self.media, in: &scene).code == 0)
        let path = try #require(client.channelData([1], 0x4000, in: &scene).relayed?.path)
        #expect(try scene.receive([5], over: path).bytes == [0x40, 0, 0, 1, 5, 0, 0, 0])
        #expect(try scene.receive([1, 2, 3, 4], over: path).bytes == [0x40, 0, 0, 4, 1, 2, 3, 4])
    }

    @Test func `IPv6 allocations reach IPv6 addresses`() throws {
        var scene = TURNScene()
        var client = scene.addSession(1)
        let outcome = client.perform(.allocate, in: &scene) { request in
            request.append(.requestedTransport, 17 << 24 as UInt32)
            request.append(.requestedAddressFamily, [2, 0, 0, 0])
        }
        #expect(outcome.code == 0)
        #expect(client.permit([Self.media], in: &scene).code == 443)
        #expect(client.permit([TURNScene.mediaV6], in: &scene).code == 0)
        let path = try #require(client.indicate([1], to: TURNScene.mediaV6, in: &scene).relayed?.path)
        let (bytes, route) = try scene.receive([1, 2, 3, 4], over: path)
        #expect(route.headerBytes == 48 && bytes.count == 52)
    }

    @Test func `a permission lasts for six minutes, to the second`() throws {
        var scene = TURNScene()
        var client = scene.allocated(1)
        #expect(client.permit([Self.media], in: &scene).code == 0)
        let path = try #require(client.indicate([1], to: Self.media, in: &scene).relayed?.path)
        scene.now += .seconds(360) - .nanoseconds(1)
        #expect(client.indicate([1], to: Self.media, in: &scene).relayed != nil)
        #expect(scene.deliver([1], over: path) != nil)
        scene.now += .nanoseconds(1)
        #expect(client.indicate([1], to: Self.media, in: &scene).dropped == .noPermission)
        #expect(scene.deliver([1], over: path) == nil)
        #expect(client.permit([Self.media], in: &scene).code == 0)
        #expect(scene.deliver([1], over: path) != nil)
    }

    @Test func `a channel lasts for ten minutes, and its number rests for five`() throws {
        var scene = TURNScene()
        var client = scene.addSession(1)
        #expect(client.allocate(in: &scene, lifetime: 3_600).code == 0)
        let (first, second) = (Self.media, TURNScene.otherMediaV4)
        #expect(client.bind(0x4000, to: first, in: &scene).code == 0)
        #expect(client.bind(0x4000, to: second, in: &scene).code == 400, "the number is another peer's")
        #expect(client.bind(0x4001, to: first, in: &scene).code == 400, "the peer has another number")
        scene.now += .seconds(300)
        #expect(client.bind(0x4000, to: first, in: &scene).code == 0, "a binding is renewed")
        scene.now += .seconds(359)
        #expect(client.channelData([1], 0x4000, in: &scene).relayed != nil)
        // The permission is renewed apart from the channel.
        #expect(client.permit([first], in: &scene).code == 0)
        scene.now += .seconds(240)
        #expect(client.channelData([1], 0x4000, in: &scene).relayed != nil)
        scene.now += .seconds(1)
        #expect(client.channelData([1], 0x4000, in: &scene).dropped == .noChannel)
        let path = try #require(client.indicate([1], to: first, in: &scene).relayed?.path)
        #expect(try scene.receive([1], over: path).route.channel == nil)
        #expect(client.bind(0x4000, to: second, in: &scene).code == 400)
        scene.now += .seconds(299)
        #expect(client.bind(0x4001, to: first, in: &scene).code == 400)
        scene.now += .seconds(1)
        #expect(client.bind(0x4000, to: second, in: &scene).code == 0)
        #expect(client.bind(0x4001, to: first, in: &scene).code == 0)
        #expect(client.channelData([1], 0x4000, in: &scene).relayed?.path.local.index == 1)
        #expect(client.channelData([1], 0x4001, in: &scene).relayed?.path.local.index == 0)
    }

    @Test func `after the end nothing goes either way`() throws {
        var scene = TURNScene()
        var client = scene.allocated(1)
        #expect(client.bind(0x4000, to: Self.media, in: &scene).code == 0)
        let path = try #require(client.channelData([1], 0x4000, in: &scene).relayed?.path)
        var expired = scene
        expired.now += .seconds(600)
        #expect(client.channelData([1], 0x4000, in: &expired).dropped == .noAllocation)
        #expect(expired.deliver([1], over: path) == nil)
        #expect(client.refresh(in: &scene, lifetime: 0).code == 0)
        #expect(client.channelData([1], 0x4000, in: &scene).dropped == .noAllocation)
        #expect(client.indicate([1], to: Self.media, in: &scene).dropped == .noAllocation)
        #expect(scene.deliver([1], over: path) == nil)
    }

    @Test(
        arguments: [
            ("nothing", [], .malformed),
            ("three bytes", [0x40, 0, 0], .malformed),
            ("a length past the end", [0x40, 0, 0, 5, 1, 2, 3, 4], .malformed),
            ("the longest length", [0x40, 0, 0xFF, 0xFF, 1], .malformed),
            ("no data", [0x40, 0, 0, 0], .empty),
            ("an unbound channel", [0x4F, 0xFF, 0, 1, 1], .noChannel),
            ("DTLS", [22, 0xFE, 0xFD, 0, 0, 0, 0, 0], .malformed),
            ("a STUN header without its end", [0, 3, 0, 8, 0x21, 0x12, 0xA4, 0x42], .malformed),
            (
                "a Binding indication", [0, 0x11, 0, 0, 0x21, 0x12, 0xA4, 0x42] + [UInt8](repeating: 1, count: 12),
                .unexpectedClass
            ),
            (
                "a Data indication", [0, 0x17, 0, 0, 0x21, 0x12, 0xA4, 0x42] + [UInt8](repeating: 1, count: 12),
                .unexpectedClass
            ),
            (
                "an Allocate response", [1, 3, 0, 0, 0x21, 0x12, 0xA4, 0x42] + [UInt8](repeating: 1, count: 12),
                .unexpectedClass
            ),
            (
                "an empty Send", [0, 0x16, 0, 0, 0x21, 0x12, 0xA4, 0x42] + [UInt8](repeating: 1, count: 12),
                .badIndication
            ),
            (
                "a bare Allocate", [0, 3, 0, 0, 0x21, 0x12, 0xA4, 0x42] + [UInt8](repeating: 1, count: 12),
                .responseTooLarge
            ),
            (
                "an unknown method", [0, 10, 0, 0, 0x21, 0x12, 0xA4, 0x42] + [UInt8](repeating: 1, count: 12),
                .responseTooLarge
            ),
        ] as [(String, [UInt8], TURNDropReason)]
    )
    func `hostile bytes are dropped and counted`(name: String, bytes: [UInt8], reason: TURNDropReason) {
        var scene = TURNScene()
        let client = scene.allocated(1)
        let outcome = scene.send(bytes, from: client.path)
        #expect(outcome.dropped == reason)
        #expect(outcome.responses.isEmpty)
        #expect(scene.server.counters.drops(reason) == 1)
    }

    @Test(arguments: [LocalEndpoint.Kind.udp, .tcp], [1, 4, 12, 1_200])
    func `a datagram is found in its frame, in channels and indications`(
        kind: LocalEndpoint.Kind,
        count: Int
    ) throws {
        for media in [TURNScene.mediaV4, TURNScene.mediaV6] {
            var scene = TURNScene()
            var client = scene.addSession(1, over: kind)
            let family: UInt32 = media.ip.isV4 ? 1 : 2
            let allocated = client.perform(.allocate, in: &scene) { request in
                request.append(.requestedTransport, 17 << 24 as UInt32)
                request.append(.requestedAddressFamily, family << 24)
            }
            #expect(allocated.code == 0 && client.permit([media], in: &scene).code == 0)
            let path = try #require(client.indicate([1], to: media, in: &scene).relayed?.path)
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) }
            for isBound in [false, true] {
                if isBound { #expect(client.bind(0x4000, to: media, in: &scene).code == 0) }
                let frame = try scene.receive(payload, over: path).bytes
                let found = scene.server.payload(of: unsafe frame.span.bytes, to: client.path)
                #expect(found?.0 == TURNSessionID(rawValue: 1) && found.map { Array(frame[$0.1]) } == payload)
                let stranger = NetworkPath(local: LocalEndpoint(kind, index: 9), remote: client.path.remote)
                #expect(scene.server.payload(of: unsafe frame.span.bytes, to: stranger) == nil)
                for end in 0..<frame.count - (isBound ? 3 : 0) {
                    let cut = Array(frame[..<end])
                    let place = scene.server.payload(of: unsafe cut.span.bytes, to: client.path)
                    #expect((place?.1.upperBound ?? 0) <= end, "nothing behind the end is read")
                }
            }
            #expect(scene.server.client(of: path.remote) == client.path)
            #expect(scene.server.session(of: client.path) == TURNSessionID(rawValue: 1))
        }
    }

    @Test func `a datagram that has no room around it is refused`() throws {
        var scene = TURNScene()
        var client = scene.allocated(1)
        #expect(client.permit([Self.media], in: &scene).code == 0)
        let path = try #require(client.indicate([1], to: Self.media, in: &scene).relayed?.path)
        var route = try scene.server.route(over: path, at: scene.now)
        var frames: [Range<Int>?] = []
        var slot = [UInt8](repeating: 0, count: 64)
        unsafe slot.withUnsafeMutableBytes { buffer in
            var span = unsafe buffer.mutableBytes
            for payload in [35..<40, 36..<40, 48..<64, 48..<63, 48..<62, 40..<61] {
                frames.append(route.frame(payload, in: &span))
            }
        }
        #expect(frames == [nil, 0..<40, 12..<64, 12..<64, 12..<64, 4..<64])
    }

    @Test(
        arguments: [
            ([0x40, 0, 0, 0], true), ([0x4F, 0, 0, 0], true), ([0x50, 0, 0, 0], false), ([0x40, 0, 0], false),
            (STUNMessageBuilder(.request, transactionID: .init(high: 1, low: 1)).bytes, false),
            (STUNMessageBuilder(.success, transactionID: .init(high: 1, low: 1)).bytes, false),
            (STUNMessageBuilder(.error, transactionID: .init(high: 1, low: 1)).bytes, false),
            (STUNMessageBuilder(.indication, transactionID: .init(high: 1, low: 1)).bytes, false),
            (STUNMessageBuilder(.request, method: .allocate, transactionID: .init(high: 1, low: 1)).bytes, true),
            (STUNMessageBuilder(.indication, method: .send, transactionID: .init(high: 1, low: 1)).bytes, true),
            ([22, 0xFE, 0xFD] + [UInt8](repeating: 0, count: 20), false),
        ] as [([UInt8], Bool)]
    )
    func `TURN is told from ICE on one socket`(bytes: [UInt8], expected: Bool) {
        let isTURN = TURNServer.isTURN(unsafe bytes.span.bytes)
        #expect(isTURN == expected)
    }
}
