import Base
import MediaTypes
import TLS
import TestSupport
import Testing
import Wire

@testable import Media

/// Connections of TURN clients over TLS in virtual time.
struct StreamTLSTests {
    /// A client of one connection.
    private final class Client {
        let scene: StreamScene
        let path: NetworkPath
        let tls: TLSStream
        var received: [UInt8] = []

        init(_ scene: StreamScene) throws {
            self.scene = scene
            path = try #require(scene.open(isTLS: true))
            tls = try TLSStream.client(name: "localhost")
        }

        /// Carries everything both ways until there is no more.
        func run() {
            while true {
                let sent = tls.takeOutput()
                if !sent.isEmpty { scene.receive(sent, on: path) }
                scene.flush()
                let bytes = scene.read.removeValue(forKey: path.local) ?? []
                guard !sent.isEmpty || !bytes.isEmpty else { return }
                tls.receive(unsafe bytes.span.bytes) { received += $0.array() }
            }
        }

        func send(_ bytes: [UInt8]) {
            _ = tls.send(unsafe bytes.span.bytes)
            run()
        }

        func allocate() -> Self {
            run()
            scene.allocated.insert(path)
            send(StreamTURNTests.allocate)
            return self
        }
    }

    private static func scene(_ limits: TCPLimits = TCPLimits()) throws -> StreamScene {
        let certificate = try TLSCertificate(
            chain: Array(TestCertificate.chain.utf8),
            key: Array(TestCertificate.key.utf8)
        )
        return StreamScene(limits, certificate: certificate)
    }

    @Test func `messages are delivered, and answers come back`() throws {
        let scene = try Self.scene()
        let client = try Client(scene).allocate()
        #expect(client.tls.status == .open && scene.isOpen(client.path))
        client.send(StreamTURNTests.channelData + StreamTURNTests.allocate)
        #expect(
            scene.delivered.map(\.bytes)
                == [StreamTURNTests.allocate, Array(StreamTURNTests.channelData.prefix(9)), StreamTURNTests.allocate]
        )
        scene.append(4, 100, .control, to: client.path)
        client.run()
        #expect(client.received == [UInt8](repeating: 4, count: 100))
    }

    @Test func `what is queued within a turn is one record, control first`() throws {
        let scene = try Self.scene()
        let client = try Client(scene).allocate()
        scene.video(1, frame: 1, key: true, count: 1_000, to: client.path)
        scene.append(2, 200, .audio, to: client.path)
        scene.append(3, 100, .control, to: client.path)
        scene.flush()
        let bytes = try #require(scene.read[client.path.local])
        #expect(bytes[0] == 23 && Int(bytes[3]) << 8 + Int(bytes[4]) == bytes.count - 5)
        client.run()
        let expected: [(UInt8, Int)] = [(3, 100), (2, 200), (1, 1_000)]
        #expect(client.received == expected.flatMap { [UInt8](repeating: $0.0, count: $0.1) })
    }

    @Test func `a connection of another loop takes along what was received for it and what waits to be written`()
        throws
    {
        let first = try Self.scene()
        let client = try Client(first)
        client.run()
        first.owner = { _ in LoopIndex(rawValue: 1) }
        first.room[client.path.local] = 0
        first.append(4, 100, .control, to: client.path)
        // A message, padded data, another message and a part of one, in one record.
        let message = StreamTURNTests.allocate
        let bytes = message + StreamTURNTests.channelData + message + message[..<10]
        _ = client.tls.send(unsafe bytes.span.bytes)
        first.receive(client.tls.takeOutput(), on: client.path)
        #expect(first.delivered.isEmpty && !first.isOpen(client.path) && first.streams.takeClosing().isEmpty)
        let moved = try #require(first.streams.takeDeparting().first)
        #expect(first.streams.takeDeparting().isEmpty && moved.departure?.loop == LoopIndex(rawValue: 1))
        #expect(first.admission.counts == (1, 1))
        let second = StreamScene(sharing: first)
        let path = second.arrive(moved)
        second.allocated.insert(path)
        #expect(second.delivered.map(\.bytes) == [message, Array(StreamTURNTests.channelData.prefix(9)), message])
        second.flush()
        let read = try #require(second.read[path.local])
        client.tls.receive(unsafe read.span.bytes) { client.received += $0.array() }
        #expect(client.received == [UInt8](repeating: 4, count: 100))
        let rest = Array(message[10...]) + message
        _ = client.tls.send(unsafe rest.span.bytes)
        second.owner = { _ in LoopIndex(rawValue: 0) }
        second.receive(client.tls.takeOutput(), on: path)
        #expect(second.delivered.count == 5 && second.isOpen(path) && second.streams.takeDeparting().isEmpty)
        second.streams.ended(path.local)
        #expect(second.admission.counts == (0, 0))
    }

    @Test func `a connection departs with its first request of a session, whatever records carry it`() throws {
        let scene = try Self.scene()
        let client = try Client(scene)
        client.run()
        // Another method stands for the user name of a session.
        let request = StreamTURNTests.allocate
        scene.owner = { $0.byte(at: 1) == 1 ? LoopIndex(rawValue: 3) : nil }
        client.send(request)
        #expect(scene.delivered.count == 1 && scene.isOpen(client.path), "it stays without a user name")
        let named: [UInt8] = [request[0], 1] + request[2...]
        for bytes in [request, named, request] { _ = client.tls.send(unsafe bytes.span.bytes) }
        scene.receive(client.tls.takeOutput(), on: client.path)
        let moved = try #require(scene.streams.takeDeparting().first)
        #expect(scene.delivered.count == 2 && !scene.isOpen(client.path))
        #expect(moved.departure?.loop == LoopIndex(rawValue: 3) && moved.departure?.messages == [named, request])
        #expect(scene.admission.counts == (1, 1))
        // No more is kept than the media loop takes before an allocation.
        let other = try Client(scene)
        other.run()
        let bytes = named + (0..<30).flatMap { _ in request }
        _ = other.tls.send(unsafe bytes.span.bytes)
        scene.receive(other.tls.takeOutput(), on: other.path)
        #expect(scene.streams.takeDeparting().first?.departure?.messages.count == 17)
    }

    @Test func `handshakes are rated for each address and for all, and connections without TLS are not`() throws {
        let scene = try Self.scene(TCPLimits(handshakesPerSecond: 5, handshakesPerNetworkPerSecond: 2))
        func isAccepted(_ ip: UInt32) -> Bool { scene.open(ip, isTLS: true) != nil }
        #expect((0..<3).map { _ in isAccepted(1) } == [true, true, false])
        // What one address may not do is not taken from the others.
        #expect([2, 2, 3, 3].map(isAccepted) == [true, true, true, false])
        #expect(scene.streams.metrics.refused == [.networkHandshakeRate: 1, .handshakeRate: 1])
        #expect(scene.open(1) != nil && scene.admission.counts == (6, 6))
        scene.pass(.milliseconds(500))
        #expect([1, 1, 2].map(isAccepted) == [true, false, true])
        #expect(scene.streams.metrics.refused == [.networkHandshakeRate: 2, .handshakeRate: 1])
    }

    @Test func `connections over TLS that wait keep no others out, nor others them`() throws {
        let acceptor = try Self.scene(TCPLimits(unauthenticatedMax: 10))
        let loop = StreamScene(sharing: acceptor)
        let waiting = try (0..<7 as Range<UInt32>).map { try #require(acceptor.open(100 + $0, isTLS: true)) }
        #expect(waiting.prefix(2).allSatisfy { !acceptor.isOpen($0) } && waiting.suffix(5).allSatisfy(acceptor.isOpen))
        #expect(acceptor.streams.takeClosing() == waiting.prefix(2).map(\.local))
        #expect(acceptor.ended == [.displaced: 2] && acceptor.admission.counts == (5, 5))
        for number in 0..<5 as Range<UInt32> { #expect(loop.open(200 + number) != nil) }
        #expect(loop.ended.isEmpty)
        // All places are taken.
        #expect(acceptor.open(300, isTLS: true) != nil && acceptor.ended == [.displaced: 3])
        acceptor.streams.removeAll()
        for number in 0..<20 as Range<UInt32> { #expect(loop.open(400 + number) != nil) }
        #expect(acceptor.open(500, isTLS: true) != nil, "none waits at the acceptor, and 10 at the loop")
        #expect(acceptor.streams.metrics.refused.isEmpty)
    }

    @Test func `connections that arrive without an allocation take the places of older ones like them`() throws {
        let acceptor = try Self.scene(TCPLimits(unauthenticatedMax: 4))
        let loop = StreamScene(sharing: acceptor)
        acceptor.owner = { _ in LoopIndex(rawValue: 1) }
        func arrive(isAllocated: Bool) throws -> NetworkPath {
            let client = try Client(acceptor)
            client.run()
            client.send(StreamTURNTests.allocate)
            return loop.arrive(try #require(acceptor.streams.takeDeparting().first), isAllocated: isAllocated)
        }
        let member = try arrive(isAllocated: true)
        loop.allocated.insert(member)
        var flood: [NetworkPath] = []
        for _ in 0..<20 { flood.append(try arrive(isAllocated: false)) }
        #expect(flood.filter(loop.isOpen) == Array(flood.suffix(4)) && loop.isOpen(member))
        #expect(loop.ended == [.displaced: 16] && loop.admission.counts == (5, 4))
    }

    @Test func `half a handshake ends after the time for authentication`() throws {
        let scene = try Self.scene()
        let hello = try TLSStream.client(name: "localhost").takeOutput()
        // Nothing, a part of the hello, all of it, and a complete handshake without an allocation.
        for count in [0, 5, hello.count - 1, hello.count] {
            let path = try #require(scene.open(isTLS: true))
            scene.receive(Array(hello.prefix(count)), on: path)
        }
        let idle = try Client(scene)
        idle.run()
        #expect(idle.tls.status == .open)
        for _ in 0..<9 {
            idle.send(StreamTURNTests.allocate)
            scene.pass(.seconds(1))
        }
        #expect(scene.streams.metrics.connections == 5 && scene.admission.counts == (5, 5))
        scene.pass(.seconds(1))
        #expect(scene.ended == [.authenticationTimeout: 5] && scene.admission.counts == (0, 0))
    }

    @Test(arguments: [
        ("HTTP", Array("GET / HTTP/1.1\r\n\r\n".utf8)), ("TURN without TLS", StreamTURNTests.allocate),
        ("a check without TLS", StreamScene.frame([0, 1, 0, 0])),
    ])
    func `what is no TLS ends the connection at once`(name: String, bytes: [UInt8]) throws {
        let scene = try Self.scene()
        let path = try #require(scene.open(isTLS: true))
        scene.receive(bytes, on: path)
        #expect(!scene.isOpen(path) && scene.ended == [.malformed: 1] && scene.delivered.isEmpty)
    }

    @Test func `what is no TURN inside ends the connection, ICE over TCP included`() throws {
        let scene = try Self.scene()
        let first = try Client(scene)
        first.run()
        scene.validated.insert(first.path)
        let check = StreamScene.frame(STUNMessageBuilder(.request, transactionID: .init(high: 1, low: 1)).bytes)
        first.send(check)
        #expect(!scene.isOpen(first.path) && scene.delivered.isEmpty)
        let second = try Client(scene)
        second.run()
        second.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
        #expect(scene.ended == [.malformed: 2])
    }

    @Test func `a client that does not read is bounded and ended, in a record or in the handshake`() throws {
        let scene = try Self.scene()
        let client = try Client(scene).allocate()
        scene.room[client.path.local] = 100
        let stuck = try #require(scene.open(isTLS: true))
        scene.room[stuck.local] = 100
        scene.receive(try TLSStream.client(name: "localhost").takeOutput(), on: stuck)
        for second in 0..<10 {
            for number in 0..<500 {
                scene.append(1, 1_200, .control, to: client.path)
                scene.append(2, 200, .audio, to: client.path)
                scene.video(3, frame: UInt32(second * 500 + number), key: number == 0, to: client.path)
            }
            scene.flush()
            #expect(scene.isOpen(client.path) && scene.isOpen(stuck))
            scene.pass(.seconds(1))
        }
        #expect(scene.ended[.stalled] == 2 && !scene.isOpen(client.path) && !scene.isOpen(stuck))
        #expect(scene.streams.takeEndedClients() == [client.path])
        let dropped = scene.streams.metrics.dropped
        #expect(dropped[.full, default: 0] > 4_000 && dropped[.blocked, default: 0] >= 4_000)
    }

    @Test func `a client that reads too little loses whole video frames, and gets a key frame`() throws {
        let scene = try Self.scene()
        let client = try Client(scene).allocate()
        scene.room[client.path.local] = 50
        scene.video(1, frame: 1, key: true, count: 200, to: client.path)
        scene.flush()
        scene.video(2, frame: 2, count: 200, to: client.path)
        scene.now += StreamSendQueue.videoWaitMax + .nanoseconds(1)
        scene.video(3, frame: 3, count: 200, to: client.path)
        scene.append(9, 12, .audio, to: client.path)
        scene.flush()
        scene.room[client.path.local] = nil
        scene.writable(client.path)
        #expect(scene.streams.takeKeyFrameRequests().map(\.path) == [client.path])
        client.run()
        let expected = [(1, 200), (9, 12), (2, 200)] as [(UInt8, Int)]
        #expect(client.received == expected.flatMap { [UInt8](repeating: $0.0, count: $0.1) })
        #expect(scene.streams.metrics.dropped == [.blocked: 1])
    }

    @Test func `a changed record ends the connection and its allocation`() throws {
        let scene = try Self.scene()
        let client = try Client(scene).allocate()
        let message = StreamTURNTests.allocate
        _ = client.tls.send(unsafe message.span.bytes)
        var record = client.tls.takeOutput()
        record[10] ^= 1
        scene.receive(record, on: client.path)
        #expect(!scene.isOpen(client.path) && scene.ended == [.malformed: 1])
        #expect(scene.streams.takeEndedClients() == [client.path])
    }
}
