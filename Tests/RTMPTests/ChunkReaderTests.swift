import Base
import Testing

@testable import RTMP

@Suite struct ChunkReaderTests {
    private func video(_ timestamp: UInt32, _ count: Int, stream: UInt32 = 1) -> RTMPMessage {
        RTMPMessage(.video, stream: stream, timestamp: timestamp, pattern(count, seed: Int(timestamp & 0xFF)))
    }

    private func publisherReader() -> RTMPChunkReader {
        var reader = RTMPChunkReader()
        reader.limits = .publisher
        return reader
    }

    // The smallest and largest identifier of each form of the basic header.
    @Test(arguments: [2, 3, 63, 64, 65, 319, 320, 4_096, 65_599], [0, 1, 127, 128, 129, 256, 1_000])
    func `all chunk streams and lengths read the same in any pieces`(id: Int, count: Int) throws {
        var encoder = ChunkEncoder()
        let messages = [video(5, count), video(10, count), video(15, count), video(15, 3)]
        let bytes = messages.flatMap { encoder.bytes($0, on: id) }
        for pieceBytes in [1, 2, 3, 5, 100, .max] {
            var reader = RTMPChunkReader()
            #expect(try reader.readAll(bytes, pieceBytes: pieceBytes) == messages)
            #expect(reader.incompleteBytes == 0)
        }
    }

    @Test func `each type of header says what the last one did not`() throws {
        var encoder = ChunkEncoder()
        var types: [UInt8] = []
        let messages = [
            video(1_000, 5), video(1_040, 7), video(1_060, 7), video(1_080, 7), video(1_100, 7),
            video(1_100, 7, stream: 2),
            RTMPMessage(.audio, stream: 2, timestamp: 1_101, [1, 2, 3, 4, 5, 6, 7]),
        ]
        var bytes: [UInt8] = []
        for message in messages {
            types.append(encoder.shortest(message, on: 4))
            bytes += encoder.bytes(message, on: 4)
        }
        #expect(types == [0, 1, 2, 3, 3, 0, 1])
        var reader = RTMPChunkReader()
        #expect(try reader.readAll(bytes) == messages)
    }

    // RTMP 1.0 §5.3.1.2.4: then the time of type 0 is the delta.
    @Test func `type 3 behind type 0 adds its time again`() throws {
        let first: [UInt8] = [0x04, 0, 0, 23, 0, 0, 1, 8, 1, 0, 0, 0, 0xAA]
        var reader = RTMPChunkReader()
        let messages = try reader.readAll(first + [0xC4, 0xBB, 0xC4, 0xCC])
        #expect(messages.map(\.timestamp) == [23, 46, 69])
        #expect(messages.map(\.body) == [[0xAA], [0xBB], [0xCC]])
    }

    // librtmp sends its first control message like this.
    @Test func `a chunk stream may begin with type 1`() throws {
        var reader = RTMPChunkReader()
        let messages = try reader.readAll([0x42, 0, 0, 7, 0, 0, 1, 4, 0xAA])
        #expect(messages == [RTMPMessage(.userControl, timestamp: 7, [0xAA])])
    }

    static let times: [[UInt32]] = [
        [0xFF_FFFE, 0xFF_FFFF, 0x100_0000, 0x100_0001], [0xFF_FFFD, 0x100_0020, 0x100_0043],
        [0, 0xFF_FFFF, 0x1FF_FFFE, 0x2FF_FFFD], [0xFFFF_FFF0, 0xFFFF_FFFF, 0, 5], [0xFFFF_FFF0, 0x10, 0x30],
        [0x8000_0000, 0x8000_0001, 0xFFFF_FFFF, 3], [5_000, 4_000, 4_500],
    ]

    @Test(arguments: times, [true, false])
    func `extended timestamps are read, repeated or not`(times: [UInt32], repeats: Bool) throws {
        for count in [0, 1, 5, 128, 129, 300] {
            for keepsType in [true, false] {
                var encoder = ChunkEncoder()
                encoder.repeatsExtended = repeats
                let messages = times.map { video($0, count) }
                // A message that has no type 3 tells nothing of the way of its sender, so all have the same type.
                let bytes = messages.flatMap { encoder.bytes($0, on: 6, type: keepsType ? 0 : nil) }
                for pieceBytes in [1, 3, .max] {
                    var reader = RTMPChunkReader()
                    let read = try reader.readAll(bytes + [0x03], pieceBytes: pieceBytes)
                    #expect(read == messages, "\(times) \(count) \(pieceBytes)")
                }
            }
        }
    }

    @Test func `payload that looks like the start of a timestamp is given back`() throws {
        // The time is 0x01020304; the payload of the second chunk begins with its first bytes, and ends before the last of them.
        for count in 1...8 {
            let tail = Array(([1, 2, 3, 9, 1, 2, 3, 4] as [UInt8]).prefix(count))
            let body = pattern(128) + tail
            let next: [UInt8] = [0x03, 0, 0, 1, 0, 0, 1, 8, 1, 0, 0, 0, 0xAA]
            let head: [UInt8] = [0x06, 0xFF, 0xFF, 0xFF, 0, 0, UInt8(body.count), 9, 1, 0, 0, 0, 1, 2, 3, 4]
            let bytes = head + body.prefix(128) + [0xC6] + tail + next
            for pieceBytes in [1, 2, .max] {
                var reader = RTMPChunkReader()
                let messages = try reader.readAll(bytes, pieceBytes: pieceBytes)
                #expect(messages.map(\.body) == [body, [0xAA]], "\(count)")
                #expect(messages.map(\.timestamp) == [0x0102_0304, 1])
            }
        }
    }

    @Test func `a repeated timestamp may be the message's time instead of its delta`() throws {
        var encoder = ChunkEncoder()
        let first = video(10, 200)
        var bytes = encoder.bytes(first, on: 6)
        let body = pattern(200)
        bytes += [0x46, 0xFF, 0xFF, 0xFF, 0, 0, 200, 9, 0x01, 0, 0, 0] + body.prefix(128)
        bytes += [0xC6, 0x01, 0, 0, 10] + body.dropFirst(128)
        var reader = RTMPChunkReader()
        #expect(try reader.readAll(bytes) == [first, RTMPMessage(.video, stream: 1, timestamp: 0x0100_000A, body)])
    }

    @Test func `the chunk size changes between chunks`() throws {
        var encoder = ChunkEncoder()
        let long = video(1, 500)
        let chunks = encoder.chunks(long, on: 6)
        var control = ChunkEncoder()
        // Behind the first chunk of a message, the rest comes in one.
        let bytes =
            chunks[0] + control.bytes(RTMPMessage(.setChunkSize, [0, 0, 0x10, 0]), on: 2)
            + [0xC6] + long.body.dropFirst(128)
        for pieceBytes in [1, 7, .max] {
            var reader = RTMPChunkReader()
            #expect(try reader.readAll(bytes, pieceBytes: pieceBytes).last == long)
            #expect(reader.chunkBytes == 4_096)
        }
    }

    @Test(
        arguments: [
            ([0, 0, 0, 1], nil), ([0, 1, 0, 0], nil), ([0, 0, 0, 0], 0), ([0, 1, 0, 1], 65_537),
            ([0x80, 0, 0, 1], 0x8000_0001),
        ] as [([UInt8], UInt32?)]
    )
    func `a chunk size has bounds`(body: [UInt8], refused: UInt32?) throws {
        var encoder = ChunkEncoder()
        var reader = RTMPChunkReader()
        let bytes = encoder.bytes(RTMPMessage(.setChunkSize, body), on: 2)
        if let refused {
            #expect(throws: RTMPError.chunkSize(refused)) { _ = try reader.readAll(bytes) }
        } else {
            _ = try reader.readAll(bytes)
        }
    }

    @Test func `a message is given up`() throws {
        var encoder = ChunkEncoder()
        let chunks = encoder.chunks(video(1, 300), on: 6)
        var control = ChunkEncoder()
        var reader = RTMPChunkReader()
        let unknown = control.bytes(RTMPMessage(.abort, [0xFF, 0, 0, 9]), on: 2)
        let abort = control.bytes(RTMPMessage(.abort, [0, 0, 0, 6]), on: 2)
        let next = video(41, 300)
        let bytes = chunks[0] + unknown + chunks[1] + abort + encoder.bytes(next, on: 6)
        #expect(try reader.readAll(bytes).last == next)
        #expect(reader.incompleteBytes == 0)
    }

    @Test(arguments: UInt64(1)...20)
    func `interleaved chunk streams read as they complete`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var encoder = ChunkEncoder()
        encoder.chunkBytes = [1, 64, 128, 4_096].randomElement(using: &generator) ?? 128
        encoder.repeatsExtended = seed % 2 == 0
        let ids = [3, 4, 6, 63, 64, 400, 65_599]
        var times = ids.map { _ in UInt32.random(in: 0...UInt32.max, using: &generator) }
        var bytes = ChunkEncoder().sizeMessage(encoder.chunkBytes)
        var waiting: [[[UInt8]]] = ids.map { _ in [] }
        var messages: [RTMPMessage?] = ids.map { _ in nil }
        var expected: [RTMPMessage] = []
        for _ in 0..<400 {
            let index = Int.random(in: 0..<ids.count, using: &generator)
            if waiting[index].isEmpty {
                times[index] &+= [0, 23, 23, 40, 0x100_0000].randomElement(using: &generator) ?? 0
                let count = [0, 5, 5, 200, 700].randomElement(using: &generator) ?? 0
                let message = RTMPMessage(
                    Bool.random(using: &generator) ? .audio : .video,
                    stream: 1,
                    timestamp: times[index],
                    pattern(count, seed: Int.random(in: 0..<50, using: &generator))
                )
                messages[index] = message
                waiting[index] = encoder.chunks(message, on: ids[index])
            }
            bytes += waiting[index].removeFirst()
            if waiting[index].isEmpty, let message = messages[index] { expected.append(message) }
        }
        // What does not repeat may leave a last chunk open until more bytes come.
        bytes += [0x03]
        for pieceBytes in [1, Int.random(in: 2...400, using: &generator), .max] {
            var reader = publisherReader()
            let read = try reader.readAll(bytes, pieceBytes: pieceBytes)
            #expect(Array(read.dropFirst()) == expected, "seed \(seed)")
        }
    }

    // MARK: - Errors and limits

    @Test(
        arguments: [
            ("type 2 on an unknown chunk stream", [0x84, 0, 0, 1], .missingHeader(chunkStream: 4)),
            ("type 3 on an unknown chunk stream", [0xC0, 9], .missingHeader(chunkStream: 73)),
            (
                "too long before publish", [0x04, 0, 0, 0, 0, 0x10, 1, 9, 1, 0, 0, 0],
                .messageTooLong(4_097, max: 4_096)
            ),
            (
                "a message within a message",
                [0x04, 0, 0, 0, 0, 0, 2, 9, 1, 0, 0, 0, 1, 2, 0x04, 0, 0, 0, 0, 1, 0, 9, 1, 0, 0, 0]
                    + [UInt8](repeating: 0, count: 128) + [0x44, 0, 0, 0, 0, 0, 1, 9], .brokenMessage(chunkStream: 4)
            ),
            ("a short chunk size", [0x02, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0, 0, 0, 0, 1], .shortControlMessage(type: 1)),
            ("a short abort", [0x02, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0], .shortControlMessage(type: 2)),
        ] as [(String, [UInt8], RTMPError)]
    )
    func `what no client sends is refused`(name: String, bytes: [UInt8], error: RTMPError) {
        for pieceBytes in [1, .max] {
            var reader = RTMPChunkReader()
            #expect(throws: error, "\(name)") { _ = try reader.readAll(bytes, pieceBytes: pieceBytes) }
        }
    }

    @Test func `sixteen chunk streams are read, and no more`() throws {
        var reader = RTMPChunkReader()
        var encoder = ChunkEncoder()
        for id in 10..<26 { _ = try reader.readAll(encoder.bytes(video(1, 1), on: id)) }
        #expect(throws: RTMPError.tooManyChunkStreams) { _ = try reader.readAll(encoder.bytes(video(1, 1), on: 26)) }
    }

    @Test func `incomplete messages have a bound`() throws {
        var reader = RTMPChunkReader()
        var encoder = ChunkEncoder()
        encoder.chunkBytes = 4_095
        _ = try reader.readAll(ChunkEncoder().sizeMessage(4_095))
        for id in 10..<14 { _ = try reader.readAll(encoder.chunks(video(1, 4_096), on: id)[0]) }
        #expect(reader.incompleteBytes == 4 * 4_095)
        #expect(throws: RTMPError.tooMuchIncomplete(max: 16_384)) {
            _ = try reader.readAll(encoder.chunks(video(1, 4_096), on: 14)[0])
        }
        var publisher = publisherReader()
        let header: [UInt8] = [0x04, 0, 0, 0, 0x80, 0, 1, 9, 1, 0, 0, 0]
        #expect(throws: RTMPError.messageTooLong(8_388_609, max: 8_388_608)) { _ = try publisher.readAll(header) }
    }

    @Test(arguments: UInt64(1)...50)
    func `no bytes trap`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var reader = publisherReader()
        for _ in 0..<2_000 {
            let piece = (0..<Int.random(in: 1...40, using: &generator)).map { _ in
                // Many small numbers, so that chunk streams and types come again.
                Bool.random(using: &generator)
                    ? generator.next() as UInt8
                    : [0, 1, 4, 0x44, 0x84, 0xC4, 0xFF][Int.random(in: 0..<7, using: &generator)]
            }
            do { _ = try reader.readAll(piece) } catch { break }
            #expect(reader.incompleteBytes <= RTMPLimits.incompleteBytesMax)
        }
    }

    // MARK: - Time

    @Test(
        arguments: [
            ([0, 23, 46], [0, 23, 46]), ([0xFFFF_FFF0, 0x10, 0x30], [0xFFFF_FFF0, 0x1_0000_0010, 0x1_0000_0030]),
            ([0x10, 0xFFFF_FFF0, 0x20], [0x10, -0x10, 0x20]),
            ([0xFFFF_FFFF, 0, 0xFFFF_FFFF], [0xFFFF_FFFF, 0x1_0000_0000, 0xFFFF_FFFF]),
            ([0, 0x7FFF_FFFF, 0xFFFF_FFFE, 0x7FFF_FFFD], [0, 0x7FFF_FFFF, 0xFFFF_FFFE, 0x1_7FFF_FFFD]),
        ] as [([UInt32], [Int64])]
    )
    func `times go on beyond 32 bits`(timestamps: [UInt32], times: [Int64]) {
        var clock = RTMPClock()
        #expect(timestamps.map { clock.time(of: $0) } == times)
    }
}

extension ChunkEncoder {
    /// A message that sets the chunk size.
    func sizeMessage(_ size: Int) -> [UInt8] {
        var encoder = ChunkEncoder()
        var body: [UInt8] = []
        body.append(bigEndian: UInt32(size))
        return encoder.bytes(RTMPMessage(.setChunkSize, body), on: 2)
    }
}
