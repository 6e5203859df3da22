import Base
import Testing
import Wire

@testable import Media

/// Connections of TURN clients in virtual time.
struct StreamTURNTests {
    static let allocate: [UInt8] = {
        var builder = STUNMessageBuilder(.request, method: .allocate, transactionID: .init(high: 1, low: 1))
        builder.append(.requestedTransport, 17 << 24 as UInt32)
        return builder.bytes
    }()
    static let channelData: [UInt8] = [0x40, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0]

    /// A connection with an allocation.
    private static func allocated(in scene: StreamScene) throws -> NetworkPath {
        let path = try #require(scene.open())
        scene.receive(allocate, on: path)
        scene.allocated.insert(path)
        scene.receive(allocate, on: path)
        return path
    }

    @Test func `messages are delivered without their padding, wherever the connection is cut`() throws {
        let bytes = Self.allocate + Self.allocate + Self.channelData + Self.allocate
        for cut in 0...bytes.count {
            let scene = StreamScene()
            let path = try #require(scene.open())
            scene.allocated.insert(path)
            scene.receive(Array(bytes[..<cut]), on: path)
            scene.receive(Array(bytes[cut...]), on: path)
            #expect(
                scene.delivered.map(\.bytes)
                    == [Self.allocate, Self.allocate, Array(Self.channelData.prefix(9)), Self.allocate]
            )
            #expect(scene.isOpen(path))
        }
    }

    @Test func `what is sent has no other frame`() throws {
        let scene = StreamScene()
        let path = try Self.allocated(in: scene)
        scene.append(7, 8, .control, to: path)
        scene.flush()
        #expect(scene.read[path.local] == [UInt8](repeating: 7, count: 8))
    }

    @Test func `a client without an allocation stays for the time of authentication, whatever it sends`() throws {
        let scene = StreamScene(TCPLimits(unauthenticatedMax: 10))
        let path = try #require(scene.open())
        for _ in 0..<9 {
            scene.receive(Self.allocate, on: path)
            scene.pass(.seconds(1))
        }
        #expect(scene.isOpen(path) && scene.admission.counts == (1, 1))
        scene.pass(.seconds(1))
        #expect(!scene.isOpen(path) && scene.ended == [.authenticationTimeout: 1])
        #expect(scene.streams.takeEndedClients().isEmpty, "it has no allocation")
        let second = try #require(scene.open())
        scene.receive((0..<16).flatMap { _ in Self.allocate }, on: second)
        #expect(scene.isOpen(second))
        scene.delivered = []
        scene.receive((0..<100).flatMap { _ in Self.allocate }, on: second)
        #expect(scene.delivered.count == 1, "what comes after the last try is not looked at")
        #expect(!scene.isOpen(second) && scene.ended[.notAuthenticated] == 1)
        #expect(scene.admission.counts == (0, 0))
    }

    @Test func `a flood of connections takes the place of none with an allocation`() throws {
        let scene = StreamScene(TCPLimits(unauthenticatedMax: 5))
        let path = try Self.allocated(in: scene)
        for number in 0..<100 {
            let stranger = try #require(scene.open(UInt32(100 + number)))
            scene.receive(Self.allocate, on: stranger)
        }
        #expect(scene.isOpen(path) && scene.admission.counts == (6, 5))
    }

    @Test func `a connection lasts as long as its allocation, also while nothing comes`() throws {
        let scene = StreamScene()
        let path = try Self.allocated(in: scene)
        for _ in 0..<600 { scene.pass(.seconds(1)) }
        #expect(scene.isOpen(path))
        scene.allocated = []
        scene.receive(Self.allocate, on: path)
        #expect(scene.isOpen(path), "a response may wait")
        scene.pass(.seconds(1))
        #expect(!scene.isOpen(path) && scene.ended == [.sessionEnded: 1])
    }

    @Test func `the end of each connection with an allocation is told once`() throws {
        let scene = StreamScene()
        let paths = try (0..<4).map { _ in try Self.allocated(in: scene) }
        scene.streams.ended(paths[0].local)
        scene.receive([0x50], on: paths[1])
        scene.failed = [paths[2].local]
        scene.append(1, 8, .control, to: paths[2])
        scene.flush()
        scene.room[paths[3].local] = 4
        scene.append(1, 8, .control, to: paths[3])
        scene.flush()
        for _ in 0..<10 { scene.pass(.seconds(1)) }
        #expect(scene.ended == [.ended: 2, .malformed: 1, .stalled: 1])
        #expect(scene.streams.takeEndedClients() == paths && scene.streams.takeEndedClients().isEmpty)
        _ = try scene.openValidated()
        scene.streams.removeAll()
        #expect(scene.streams.takeEndedClients().isEmpty, "ICE over TCP has no allocations")
    }

    @Test func `a client that reads too little loses whole video frames in its channel, and no audio`() throws {
        let scene = StreamScene()
        let path = try Self.allocated(in: scene)
        scene.room[path.local] = 0
        scene.append(9, 8, .control, to: path)
        scene.flush()
        scene.video(1, frame: 1, to: path)
        scene.now += StreamSendQueue.videoWaitMax + .nanoseconds(1)
        for frame in 2...4 as ClosedRange<UInt32> { scene.video(UInt8(frame), frame: frame, to: path) }
        scene.append(8, 12, .audio, to: path)
        scene.room[path.local] = nil
        scene.writable(path)
        let expected = [(9, 8), (8, 12), (1, 1_000)] as [(UInt8, Int)]
        #expect(scene.read[path.local] == expected.flatMap { [UInt8](repeating: $0.0, count: $0.1) })
        #expect(scene.streams.takeKeyFrameRequests().map(\.path) == [path])
        #expect(scene.streams.metrics.dropped == [.blocked: 3])
    }

    @Test(
        arguments: [
            ("a STUN length that no packet has", [0, 3, 0xFF, 0xFC, 0x21, 0x12, 0xA4, 0x42]),
            ("an unknown first byte behind a message", allocate + [0x16, 3, 1]),
            ("another cookie behind a message", allocate + [0, 3, 0, 8, 1, 2, 3, 4]),
            ("ChannelData that no packet is as long as", allocate + [0x40, 0, 5, 0xFD]),
        ] as [(String, [UInt8])]
    )
    func `what cannot be followed ends the connection`(name: String, bytes: [UInt8]) throws {
        let scene = StreamScene()
        let path = try #require(scene.open())
        scene.receive(bytes, on: path)
        #expect(!scene.isOpen(path) && scene.ended == [.malformed: 1])
        #expect(scene.admission.counts == (0, 0))
    }
}
