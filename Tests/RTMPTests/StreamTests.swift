import Base
import Testing

@testable import RTMP

/// What happens while a stream is published, and when nothing does.
@Suite struct StreamTests {
    @Test func `media comes out with its time`() {
        var peer = Peer.publishing()
        peer.receive(RTMPMessage(.audio, stream: 1, timestamp: 0xFFFF_FFF0, [0xAF, 1, 2]), on: 4)
        peer.receive(RTMPMessage(.video, stream: 1, timestamp: 0xFFFF_FFFF, [0x17, 1]), on: 6)
        // A command's time, mostly zero, changes nothing.
        peer.command("hello", 0, [.null])
        peer.receive(RTMPMessage(.audio, stream: 1, timestamp: 7, [0xAF, 1, 3]), on: 4)
        peer.receive(RTMPMessage(.video, stream: 1, timestamp: 0xFFFF_FFFF, []), on: 6)
        peer.receive(RTMPMessage(.video, stream: 1, timestamp: 23, [0x27, 1]), on: 6)
        #expect(
            peer.media == [
                RTMPMedia(.audio, timestamp: 0xFFFF_FFF0, body: [0xAF, 1, 2]),
                RTMPMedia(.video, timestamp: 0xFFFF_FFFF, body: [0x17, 1]),
                RTMPMedia(.audio, timestamp: 0x1_0000_0007, body: [0xAF, 1, 3]),
                RTMPMedia(.video, timestamp: 0x1_0000_0017, body: [0x27, 1]),
            ]
        )
    }

    // OBS sets 4,096 bytes before `connect`, and sends sound and pictures on one chunk stream with headers of all types.
    @Test func `sound and pictures share a chunk stream`() {
        var peer = Peer()
        var encoder = ChunkEncoder()
        encoder.chunkBytes = 4_096
        peer.receive(encoder.sizeMessage(4_096))
        let connect: [AMF0Value] = [.object([AMF0Member("app", .string("live"))])]
        peer.receive(encoder.bytes(Peer.message("connect", 1, connect), on: 3))
        let publish = Peer.message("publish", 5, [.null, .string("demo"), .string("live")], stream: 1)
        peer.receive(encoder.bytes(publish, on: 4))
        peer.accept()
        peer.clear()
        var expected: [RTMPMedia] = []
        for number in 0..<50 as Range<UInt32> {
            let audio = RTMPMessage(.audio, stream: 1, timestamp: number * 23, pattern(number % 5 == 0 ? 7 : 371))
            peer.receive(encoder.bytes(audio, on: 4))
            expected.append(RTMPMedia(.audio, timestamp: Int64(audio.timestamp), body: audio.body))
            guard number % 3 == 0 else { continue }
            let video = RTMPMessage(.video, stream: 1, timestamp: number * 23 + 5, pattern(20_000))
            peer.receive(encoder.bytes(video, on: 4))
            expected.append(RTMPMedia(.video, timestamp: Int64(video.timestamp), body: video.body))
        }
        #expect(peer.actions == expected.map { .media($0) })
    }

    private func tag(_ type: UInt8, _ time: UInt32, _ body: [UInt8], hasTrailer: Bool = true) -> [UInt8] {
        let times = [time >> 16, time >> 8, time, time >> 24].map { UInt8(truncatingIfNeeded: $0) }
        let header = [type, 0, UInt8(body.count >> 8), UInt8(body.count & 0xFF)] + times + [0, 0, 0]
        return header + body + (hasTrailer ? [0, 0, 0, UInt8(body.count + 11)] : [])
    }

    @Test(arguments: [true, false])
    func `an aggregate is split`(hasTrailer: Bool) {
        var peer = Peer.publishing()
        let body =
            tag(8, 0x0100_0000, [0xAF, 1]) + tag(18, 0x0100_0000, [1]) + tag(9, 0x0100_0017, [0x27, 2])
            + tag(8, 0x00FF_FFF0, [0xAF, 3], hasTrailer: hasTrailer)
        peer.receive(RTMPMessage(.aggregate, stream: 1, timestamp: 1_000, body), on: 4)
        #expect(
            peer.actions == [
                .media(RTMPMedia(.audio, timestamp: 1_000, body: [0xAF, 1])),
                .media(RTMPMedia(.video, timestamp: 1_023, body: [0x27, 2])),
                .media(RTMPMedia(.audio, timestamp: 984, body: [0xAF, 3])),
            ]
        )
    }

    @Test func `a broken aggregate ends the connection`() {
        let whole = tag(8, 0, pattern(20), hasTrailer: false)
        for count in 1..<whole.count {
            var peer = Peer.publishing()
            peer.receive(RTMPMessage(.aggregate, stream: 1, Array(whole.prefix(count))), on: 4)
            #expect(peer.end == .failed(.brokenAggregate), "\(count)")
        }
        var peer = Peer.publishing()
        peer.receive(
            RTMPMessage(.aggregate, stream: 1, Array([[UInt8]](repeating: tag(8, 0, []), count: 513).joined())),
            on: 4
        )
        #expect(peer.end == .failed(.brokenAggregate))
    }

    @Test func `the limits grow with the acceptance`() {
        var peer = Peer.connected()
        peer.publish("demo")
        peer.accept()
        peer.clear()
        let frame = RTMPMessage(.video, stream: 1, timestamp: 40, pattern(1 << 20))
        peer.receive(frame, on: 6)
        #expect(peer.media.map(\.body) == [frame.body])
        peer.receive(RTMPMessage(.dataAMF0, stream: 1, pattern(65_537)), on: 4)
        #expect(peer.end == .failed(.messageTooLong(65_537, max: 65_536)))
    }

    // MARK: - Control messages

    @Test func `a ping is answered`() {
        var peer = Peer.publishing()
        peer.receive(RTMPMessage(.userControl, [0, 6, 1, 2, 3, 4]), on: 2)
        peer.receive(RTMPMessage(.userControl, [0, 3, 0, 0, 0, 1, 0, 0, 3, 0xE8]), on: 2)
        peer.receive(RTMPMessage(.userControl, [0, 31, 9]), on: 2)
        peer.receive(RTMPMessage(.acknowledgement, [0, 0, 0, 1]), on: 2)
        peer.receive(RTMPMessage(.setPeerBandwidth, [0, 0, 0, 1, 2]), on: 2)
        peer.receive(RTMPMessage(rawType: 77, stream: 1, timestamp: 0, body: [1]), on: 5)
        #expect(peer.takeAnswers() == [RTMPMessage(.userControl, [0, 7, 1, 2, 3, 4])])
        #expect(peer.actions.isEmpty)
        peer.receive(RTMPMessage(.userControl, [0, 6, 1, 2, 3]), on: 2)
        #expect(peer.end == .failed(.shortControlMessage(type: 4)))
    }

    // Bytes of each piece, the window that the client sets, and after how many bytes it is acknowledged.
    @Test(
        arguments: [(nil, 2_500_000), (5_000_000, 2_500_000), (500_000, 500_000), (1, 1_024), (0, 1_024)]
            as [(UInt32?, Int)]
    )
    func `received bytes are acknowledged unasked`(window: UInt32?, every: Int) {
        var peer = Peer.publishing()
        if let window {
            var body: [UInt8] = []
            body.append(bigEndian: window)
            peer.receive(RTMPMessage(.windowAcknowledgementSize, body), on: 2)
        }
        var acknowledged = 0
        if let first = peer.takeAnswers().last { acknowledged = (try? first.number()).map(Int.init) ?? 0 }
        var encoder = ChunkEncoder()
        encoder.chunkBytes = 65_536
        peer.receive(encoder.sizeMessage(65_536))
        let frame = encoder.bytes(RTMPMessage(.audio, stream: 1, pattern(600)), on: 4)
        let count = min(2 * every / frame.count + 20, 10_000)
        for _ in 0..<count {
            peer.receive(frame)
            for answer in peer.takeAnswers() {
                #expect(answer.type == .acknowledgement)
                let number = (try? answer.number()).map(Int.init) ?? 0
                #expect(number == peer.receivedBytes)
                #expect(number - acknowledged >= every && number - acknowledged < every + 4_000)
                acknowledged = number
            }
        }
        #expect(acknowledged > every)
    }

    // MARK: - Deadlines

    @Test func `the handshake has five seconds`() {
        var peer = Peer(isPastHandshake: false)
        peer.receive([3])
        peer.now += .milliseconds(4_999)
        peer.receive([1, 2, 3])
        peer.handleTimeout()
        #expect(peer.actions.isEmpty)
        peer.now += .milliseconds(1)
        peer.handleTimeout()
        #expect(peer.actions == [.ended(.failed(.handshakeTimeout)), .close])
    }

    @Test(arguments: [true, false])
    func `publish has ten seconds from the handshake, whatever comes`(isConnected: Bool) {
        var peer = isConnected ? Peer.connected() : Peer()
        for _ in 0..<9 {
            peer.now += .seconds(1)
            peer.receive(RTMPMessage(.userControl, [0, 6, 1, 2, 3, 4]), on: 2)
        }
        #expect(peer.connection.nextDeadline == Peer.start + .seconds(10))
        peer.now += .seconds(1)
        peer.handleTimeout()
        #expect(peer.end == .failed(.publishTimeout) && peer.hasClosed)
    }

    @Test func `a publisher is silent for ten seconds at most`() {
        var peer = Peer.publishing()
        for _ in 0..<5 {
            peer.now += .milliseconds(9_999)
            peer.handleTimeout()
            // A part of a message is a sign of life.
            peer.receive(RTMPMessage(.audio, stream: 1, [0xAF]), on: 4)
        }
        #expect(peer.end == nil)
        peer.now += .seconds(10)
        #expect(peer.connection.nextDeadline == peer.now)
        peer.handleTimeout()
        #expect(peer.end == .failed(.silence) && peer.hasClosed)
    }

    @Test func `a decision may take its time`() {
        var peer = Peer.connected()
        peer.publish("demo")
        peer.now += .seconds(60)
        peer.handleTimeout()
        #expect(peer.end == nil)
        peer.accept()
        #expect(peer.connection.nextDeadline == peer.now + .seconds(10))
    }

    // MARK: - Bounds

    /// The shortest messages that are answered, again and again.
    @Test func `output is bounded by input`() {
        let messages: [(String, [RTMPMessage])] = [
            ("pings", [RTMPMessage(.userControl, [0, 6, 1, 2, 3, 4])]),
            ("createStream", [Peer.message("createStream", 1, [])]),
            ("releaseStream", [Peer.message("releaseStream", 1, [])]),
            ("FCPublish", [Peer.message("FCPublish", 1, [])]),
            ("windows", [RTMPMessage(.windowAcknowledgementSize, [0, 0, 0, 1])]),
        ]
        for (name, repeated) in messages {
            var peer = Peer.publishing()
            let before = (peer.receivedBytes, peer.sentBytes)
            for _ in 0..<200 { for message in repeated { peer.receive(message, on: 2) } }
            let factor = Double(peer.sentBytes - before.1) / Double(peer.receivedBytes - before.0)
            #expect(factor <= 3, "\(name)")
            #expect(before.1 <= 5_000)
        }
    }

    @Test(arguments: UInt64(1)...30)
    func `no bytes trap`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var peer = seed % 2 == 0 ? Peer.publishing() : Peer.connected()
        for _ in 0..<300 where !peer.connection.hasEnded {
            let count = Int.random(in: 0...60, using: &generator)
            let body = (0..<count).map { _ in UInt8.random(in: 0...20, using: &generator) }
            let type = UInt8.random(in: 0...23, using: &generator)
            // Media and chunk sizes would end or blind most runs.
            guard type != 1, seed % 2 == 0 || ![8, 9, 22].contains(type) else { continue }
            peer.receive(
                RTMPMessage(rawType: type, stream: 1, timestamp: generator.next(), body: body),
                on: Int(type) + 2
            )
            if peer.actions.count == 1, case .publish = peer.actions[0] { peer.accept() }
        }
        #expect(peer.sentBytes <= 5_000 + 3 * peer.receivedBytes)
    }
}
