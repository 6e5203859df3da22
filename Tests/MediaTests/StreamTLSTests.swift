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

        init(_ scene: StreamScene, mayMove: Bool = false) throws {
            self.scene = scene
            path = try #require(scene.open(isTLS: true, mayMove: mayMove))
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
        let client = try Client(first, mayMove: true)
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
