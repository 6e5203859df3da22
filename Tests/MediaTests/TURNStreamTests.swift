import Base
import EventLoop
import Forwarding
import Media
import MediaTypes
import TURN
import TestSupport
import Testing
import Wire

/// TURN over TCP and TLS on loopback.
@Suite(.timeLimit(.minutes(10))) struct TURNStreamTests {
    enum Transport: String, CaseIterable {
        case tcp, tls
    }

    /// A loop with a TURN server, and a peer with credentials for it.
    private struct Scene {
        let media: MediaLoop
        /// `nil` without TLS.
        let acceptor: TLSAcceptor?
        let client: TestClient
        let node: NodePeer
        let access: TURNAccess
        /// The media address that the client reaches.
        let peer: TransportAddress
        /// Of the listener for TCP.
        let address: TransportAddress
        let transport: Transport

        init(_ transport: Transport = .tcp) async throws {
            self.transport = transport
            let admission = TCPAdmission()
            let acceptor = try await transport == .tls ? MediaBench.makeAcceptor(admission) : nil
            self.acceptor = acceptor
            media = try await MediaBench.makeLoop(
                turn: TURNSettings(),
                turnTLS: acceptor.map { TURNTLSSettings(acceptor: $0, port: 0, name: "turn.example") },
                tcp: admission
            )
            client = try TestClient(1)
            node = NodePeer(of: client)
            access = try #require(await Self.access(media, client.id))
            try await media.addPeer(node.parameters)
            let described = media.transport
            peer = try #require(described.candidates.first)
            address = try #require(described.tcpCandidates.first)
        }

        /// Through the protocol, because its asynchronous default would be called otherwise.
        static func access(_ media: any MediaPlane, _ peer: PeerID) async -> TURNAccess? {
            await media.openTURN(for: peer)
        }

        func connect(_ access: TURNAccess? = nil) throws -> TURNConnection {
            let stream: any ByteStream =
                switch transport {
                case .tcp: try TCPClient(address)
                case .tls: try TLSClient(TCPClient(MediaBench.tlsAddress(self.access)))
                }
            return TURNConnection(stream, access ?? self.access)
        }

        func allocations(become count: Int) async throws {
            try await eventually("the loop has \(count) allocations") {
                await media.metrics().turn?.allocations == count
            }
        }

        func end() async {
            await acceptor?.shutdown()
            await media.shutdown()
            await client.stop()
        }
    }

    @Test func `the URLs name TCP where the loop listens on it`() async throws {
        let scene = try await Scene()
        #expect(
            scene.access.urls == ["turn:\(scene.peer)?transport=udp", "turn:\(scene.address)?transport=tcp"]
        )
        await scene.end()
        let secure = try await Scene(.tls)
        #expect(secure.access.urls.count == 3 && secure.access.urls[2].hasPrefix("turns:turn.example:"))
        #expect(secure.access.urls[2].hasSuffix("?transport=tcp"))
        await secure.end()
        let without = try await MediaBench.makeLoop(turn: TURNSettings())
        let access = try #require(await Scene.access(without, PeerID(rawValue: 1)))
        #expect(access.urls.count == 1 && access.urls[0].hasSuffix("?transport=udp"))
        await without.shutdown()
    }

    @Test(arguments: Transport.allCases)
    func `a check through an allocation over a stream selects its path, in indications and over a channel`(
        transport: Transport
    )
        async throws
    {
        let scene = try await Scene(transport)
        let connection = try scene.connect()
        let answer = try connection.allocate()
        let relayed = try #require(answer.relayed)
        #expect(answer.code == 0 && answer.mapped == connection.stream.local)
        #expect(try connection.exchange(connection.permit(scene.peer)).code == 0)
        var check = TCPTests.checkMessage(scene.node, scene.client.credentials)
        let indication = try #require(connection.exchangeRaw(connection.indication(check, to: scene.peer)))
        #expect(indication[0...1] == [0, 0x17])
        let response = try #require(connection.datagram(in: indication))
        #expect(try TCPTests.mappedAddress(response) == relayed)
        let path = try #require(await scene.media.statistics(of: scene.client.id)?.path)
        #expect(path.local.kind == .relayed && path.remote == relayed)
        #expect(try connection.exchange(connection.bind(scene.peer)).code == 0)
        check = TCPTests.checkMessage(scene.node, scene.client.credentials, 2)
        // Three messages at once, cut within the second.
        let bytes = (0..<3).flatMap { _ in connection.channelData(check) }
        connection.stream.send(Array(bytes[..<150]))
        connection.stream.send(Array(bytes[150...]))
        for _ in 0..<3 {
            let message = try #require(connection.message())
            #expect(message[0...1] == [0x40, 0])
            let inner = try #require(connection.datagram(in: message))
            #expect(try TCPTests.mappedAddress(inner) == relayed)
        }
        let metrics = await scene.media.metrics()
        #expect(metrics.turn?.allocations == 1 && metrics.turn?.streamAllocations == 1)
        #expect(metrics.turn?.counters.packetsIn == 4)
        #expect(metrics.turn?.counters.packetsOut == 4)
        // The first request of a connection over TLS has no user name, and stays off the media loop.
        #expect(metrics.tcp?.connections == 1 && metrics.tcp?.packetsReceived == (transport == .tls ? 7 : 8))
        await scene.end()
    }

    @Test func `connections over TLS reach the media loop with their first request of a session`() async throws {
        let scene = try await Scene(.tls)
        let acceptor = try #require(scene.acceptor)
        let silent = try scene.connect()
        var strangers: [TURNConnection] = []
        for _ in 0..<20 {
            let stranger = try scene.connect()
            let binding = STUNMessageBuilder(.request, transactionID: .init(high: 1, low: 1)).bytes
            #expect(try stranger.exchange(binding).mapped == stranger.stream.local)
            #expect(try stranger.exchange(stranger.allocateRequest()).code == 401)
            strangers.append(stranger)
        }
        var media = await scene.media.metrics()
        #expect(media.tcp?.connections == 0 && media.tcp?.bytesReceived == 0 && media.turn?.counters.challenges == 0)
        var accepted = await acceptor.metrics()
        #expect(accepted.tcp.connections == 21 && accepted.tcp.accepted == 21)
        #expect(accepted.turn.counters.challenges == 20 && accepted.turn.counters.bindings == 20)
        // The user name of a loop that does not exist leads nowhere.
        var generator = SeededGenerator(seed: 1)
        let unknown = TURNCredentials(loop: 7, using: &generator)
        let access = TURNAccess(urls: [], username: unknown.username, password: unknown.password)
        let other = TURNConnection(strangers[0].stream, access)
        #expect(try other.exchange(other.allocateRequest()).code == 401)
        #expect(try other.exchange(other.allocateRequest()).code == 401)
        #expect(try strangers[1].exchange(strangers[1].allocateRequest()).code == 0)
        media = await scene.media.metrics()
        accepted = await acceptor.metrics()
        #expect(media.tcp?.connections == 1 && accepted.tcp.connections == 20)
        // What is here ends with the acceptor, and what is at a media loop does not.
        await acceptor.shutdown()
        #expect(silent.waitForEnd() && strangers[0].waitForEnd())
        #expect(try strangers[1].exchange(strangers[1].permit(scene.peer)).code == 0)
        await scene.end()
    }

    /// At the port of either loop, or at that of another listener.
    @Test func `a connection over TLS reaches the loop of its session`() async throws {
        let admission = TCPAdmission()
        let acceptor = try await MediaBench.makeAcceptor(admission)
        let settings = TURNTLSSettings(acceptor: acceptor, port: 0, name: "turn.example")
        var loops: [MediaLoop] = []
        var accesses: [TURNAccess] = []
        for index in 0..<2 as Range<UInt16> {
            let loop = try await MediaBench.makeLoop(
                loop: index,
                turn: TURNSettings(),
                turnTLS: settings,
                tcp: admission
            )
            accesses.append(try #require(await Scene.access(loop, PeerID(rawValue: 1))))
            loops.append(loop)
        }
        let listener = try TCPServer()
        for (index, access) in accesses.enumerated() {
            for other in accesses {
                let client = TURNConnection(try TLSClient(TCPClient(MediaBench.tlsAddress(other))), access)
                #expect(try client.allocate().code == 0)
                #expect(await loops[index].metrics().turn?.allocations == 1)
                let refresh = client.request(.refresh) { $0.append(.lifetime, 0 as UInt32) }
                #expect(try client.exchange(refresh).code == 0)
                #expect(client.waitForEnd())
            }
            let tcp = try TCPClient(listener.address)
            acceptor.take(try listener.accept(), received: [])
            let client = TURNConnection(try TLSClient(tcp), access)
            #expect(try client.allocate().code == 0)
            #expect(await loops[index].metrics().turn?.allocations == 1)
        }
        for loop in loops { await loop.shutdown() }
        await acceptor.shutdown()
    }

    @Test func `a connection is answered as by a STUN server, and no check on it validates a path`() async throws {
        let scene = try await Scene()
        let connection = try scene.connect()
        let binding = STUNMessageBuilder(.request, transactionID: .init(high: 1, low: 1)).bytes
        #expect(try connection.exchange(binding).mapped == connection.stream.local)
        // With the framing of TURN a check is no check.
        connection.stream.send(TCPTests.checkMessage(scene.node, scene.client.credentials))
        #expect(try connection.exchange(connection.allocateRequest()).code == 401)
        #expect(await scene.media.statistics(of: scene.client.id)?.path == nil)
        await scene.end()
    }

    @Test(arguments: Transport.allCases)
    func `the end of a connection ends its allocation`(transport: Transport) async throws {
        let scene = try await Scene(transport)
        var connection: TURNConnection? = try scene.connect()
        #expect(try connection?.allocate().code == 0)
        let other = try scene.connect()
        #expect(try other.allocate().code == 0)
        try await scene.allocations(become: 2)
        connection = nil
        try await scene.allocations(become: 1)
        // A frame that cannot be followed ends it too.
        other.stream.send([0x80, 0, 0, 0])
        #expect(other.waitForEnd())
        try await scene.allocations(become: 0)
        await scene.end()
    }

    @Test(arguments: Transport.allCases)
    func `the connection ends with the session, and with its allocation`(transport: Transport) async throws {
        let scene = try await Scene(transport)
        let first = try scene.connect()
        #expect(try first.allocate().code == 0)
        let refresh = first.request(.refresh) { $0.append(.lifetime, 0 as UInt32) }
        #expect(try first.exchange(refresh).code == 0, "the response comes before the end")
        #expect(first.waitForEnd())
        let second = try scene.connect()
        #expect(try second.allocate().code == 0)
        await scene.media.removePeer(scene.client.id)
        #expect(second.waitForEnd())
        #expect(await scene.media.metrics().tcp?.ended == [.sessionEnded: 2])
        await scene.end()
    }

    @Test(arguments: Transport.allCases)
    func `an allocation serves its own user and its own connection only`(transport: Transport) async throws {
        let scene = try await Scene(transport)
        let owner = try scene.connect()
        #expect(try owner.allocate().code == 0)
        #expect(try owner.exchange(owner.bind(scene.peer)).code == 0)
        // Another user on the same connection.
        let access = try #require(await Scene.access(scene.media, PeerID(rawValue: 2)))
        let stranger = TURNConnection(owner.stream, access)
        #expect(try stranger.exchange(stranger.allocateRequest()).code == 401)
        #expect(try stranger.exchange(stranger.allocateRequest()).code == 437)
        #expect(try stranger.exchange(stranger.permit(scene.peer)).code == 441)
        let refresh = stranger.request(.refresh) { $0.append(.lifetime, 0 as UInt32) }
        #expect(try stranger.exchange(refresh).code == 441)
        // The same user, and nobody, on another connection.
        let second = try scene.connect()
        #expect(try second.exchange(second.allocateRequest()).code == 401)
        #expect(try second.exchange(second.permit(scene.peer)).code == 437)
        let check = TCPTests.checkMessage(scene.node, scene.client.credentials)
        second.stream.send(second.channelData(check) + second.indication(check, to: scene.peer))
        #expect(try second.exchange(second.permit(scene.peer)).code == 437)
        let metrics = await scene.media.metrics()
        #expect(metrics.turn?.counters.drops(.noAllocation) == 2 && metrics.turn?.counters.packetsIn == 0)
        #expect(await scene.media.statistics(of: scene.client.id)?.path == nil)
        await scene.end()
    }

    @Test func `a client that only tries is closed after a few messages`() async throws {
        let scene = try await Scene()
        let connection = try scene.connect()
        for _ in 0..<16 { connection.stream.send(TURNConnection(connection.stream, scene.access).allocateRequest()) }
        for _ in 0..<16 { #expect(connection.message() != nil) }
        connection.stream.send(connection.allocateRequest())
        #expect(connection.waitForEnd())
        #expect(await scene.media.metrics().tcp?.ended == [.notAuthenticated: 1])
        await scene.end()
    }

    @Test func `a loop that is no TURN server closes what begins as TURN`() async throws {
        let media = try await MediaBench.makeLoop(tcp: TCPAdmission())
        let address = try #require(media.transport.tcpCandidates.first)
        let connection = TURNConnection(
            try TCPClient(address),
            TURNAccess(urls: [], username: "a", password: "b")
        )
        connection.stream.send(connection.allocateRequest())
        #expect(connection.waitForEnd())
        #expect(await media.metrics().tcp?.ended == [.notAuthenticated: 1])
        await media.shutdown()
    }
}
