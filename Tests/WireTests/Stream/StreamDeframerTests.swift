import Base
import TestSupport
import Testing
import Wire

struct StreamDeframerTests {
    /// Feeds a stream in pieces and collects its packets.
    private struct Reader {
        var deframer: StreamDeframer
        var packets: [[UInt8]] = []

        mutating func read(_ bytes: some Collection<UInt8>) -> StreamFramingError? {
            let piece = Array(bytes)
            var received: [[UInt8]] = []
            defer { packets += received }
            do throws(StreamFramingError) {
                try deframer.append(unsafe piece.span.bytes) { received.append($0.array()) }
                return nil
            } catch {
                return error
            }
        }
    }

    private static let stun: [UInt8] = {
        var builder = STUNMessageBuilder(.request, method: .allocate, transactionID: .init(high: 1, low: 2))
        builder.append(.requestedTransport, 17 << 24 as UInt32)
        return builder.bytes
    }()

    private static func channelData(_ count: Int, padded: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: 0x4001 as UInt16)
        bytes.append(bigEndian: UInt16(count))
        bytes += (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        if padded { while bytes.count % 4 != 0 { bytes.append(0xEE) } }
        return bytes
    }

    private static func framed(_ packet: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: UInt16(packet.count))
        return bytes + packet
    }

    @Test func `ChannelData and STUN come out whole wherever the stream is cut`() {
        let parts =
            [1, 2, 3, 4, 5].map { Self.channelData($0) } + [Self.stun, Self.channelData(0), Self.channelData(7)]
        let stream = parts.flatMap { $0 }
        let expected =
            [1, 2, 3, 4, 5].map { Self.channelData($0, padded: false) }
            + [Self.stun, Self.channelData(0), Self.channelData(7, padded: false)]
        for cut in 0...stream.count {
            var reader = Reader(deframer: StreamDeframer(.turn))
            #expect(reader.read(stream[..<cut]) == nil)
            #expect(reader.read(stream[cut...]) == nil)
            #expect(reader.packets == expected, "cut at \(cut)")
            #expect(reader.deframer.pendingBytes == 0)
        }
    }

    @Test func `a stream in pieces of random length has the same packets`() {
        var generator = SeededGenerator(seed: 7)
        for framing in [StreamFraming.turn, .rfc4571] {
            let packets = (0..<200).map { _ in
                Self.channelData(Int.random(in: 1...1_532, using: &generator), padded: false)
            }
            var stream: [UInt8] = []
            for packet in packets {
                stream += framing == .turn ? packet : Self.framed(packet)
                if framing == .turn { stream += [UInt8](repeating: 0, count: -packet.count & 3) }
            }
            var reader = Reader(deframer: StreamDeframer(framing))
            var rest = stream[...]
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...3_000, using: &generator))
                rest = rest.dropFirst(piece.count)
                #expect(reader.read(piece) == nil)
                #expect(reader.deframer.pendingBytes <= StreamDeframer.packetBytesMax + 2)
            }
            #expect(reader.packets == packets)
        }
    }

    @Test func `frames of RFC 4571 come out byte by byte, and empty ones do not`() {
        var reader = Reader(deframer: StreamDeframer(.rfc4571))
        for byte in Self.framed([1, 2, 3]) + [0, 0] + Self.framed([4]) { #expect(reader.read([byte]) == nil) }
        #expect(reader.packets == [[1, 2, 3], [4]])
    }

    @Test(arguments: [
        (StreamFraming.rfc4571, [0x06, 0x01] as [UInt8], StreamFramingError.tooLong(1_537)),
        (.rfc4571, [0xFF, 0xFF], .tooLong(65_535)),
        (.turn, [0x40, 0x00, 0x05, 0xFD], .tooLong(1_537)),
        (.turn, [0x40, 0x00, 0xFF, 0xFF], .tooLong(65_539)),
        (.turn, [0x00, 0x01, 0xFF, 0xFC, 0x21, 0x12, 0xA4, 0x42], .tooLong(65_552)),
        (.turn, [0x00, 0x01, 0x00, 0x00, 0x21, 0x12, 0xA4, 0x43], .unknownProtocol(firstByte: 0)),
        (.turn, [0x16], .unknownProtocol(firstByte: 0x16)),
        (.turn, [0x50], .unknownProtocol(firstByte: 0x50)),
        (.turn, [0x80], .unknownProtocol(firstByte: 0x80)),
    ])
    func `a stream that cannot be followed is closed, at once and for good`(
        framing: StreamFraming,
        bytes: [UInt8],
        error: StreamFramingError
    ) {
        var whole = Reader(deframer: StreamDeframer(framing))
        #expect(whole.read(bytes) == error)
        var split = Reader(deframer: StreamDeframer(framing))
        for byte in bytes.dropLast() { #expect(split.read([byte]) == nil) }
        #expect(split.read(bytes.suffix(1)) == error)
        #expect(split.read(Self.stun) == error)
        #expect(split.packets.isEmpty && split.deframer.pendingBytes == 0)
    }

    @Test(arguments: [
        ("STUN", stun, StreamFraming.turn),
        ("a check", framed(STUNMessageBuilder(.request, transactionID: .init(high: 1, low: 2)).bytes), .rfc4571),
        ("the longest packet with STUN", [6, 0, 0, 1, 5, 0xEC, 0x21, 0x12, 0xA4, 0x42], .rfc4571),
        ("an empty frame before a check", [0, 0, 0, 20, 0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42], .rfc4571),
        ("ChannelData", channelData(4), .rfc4571),
        ("HTTP", Array("GET / HTTP/1.1".utf8), .rfc4571),
        ("TLS", [22, 3, 1, 0, 200, 1, 0, 0], .rfc4571),
        ("a cookie behind a byte that is not STUN's", [4, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42], .rfc4571),
        ("another cookie", [0, 3, 0, 8, 0x21, 0x12, 0xA4, 0x43], .rfc4571),
        ("zeros", [UInt8](repeating: 0, count: 8), .rfc4571),
    ])
    func `the first bytes tell TURN from ICE, however few come first`(
        name: String,
        bytes: [UInt8],
        framing: StreamFraming
    ) {
        var told: [StreamFraming?] = []
        for count in 0...bytes.count {
            let first = Array(bytes.prefix(count))
            told.append(StreamFraming(opening: unsafe first.span.bytes))
        }
        #expect(told.last == framing)
        let decided = told.firstIndex { $0 != nil } ?? 0
        #expect(decided <= StreamFraming.openingBytesMax)
        #expect(told[decided...].allSatisfy { $0 == framing }, "more bytes change nothing")
    }

    @Test func `the longest packet fits`() {
        var reader = Reader(deframer: StreamDeframer(.rfc4571))
        #expect(reader.read(Self.framed([UInt8](repeating: 9, count: 1_536))) == nil)
        #expect(reader.packets.first?.count == 1_536)
    }
}
