import Deflate
import TestSupport
import Testing

@Suite struct ZlibTests {
    @Test(arguments: [0, 1, 7, 100, 4_096, 4_097, 262_144])
    func `a message is what it was compressed from`(count: Int) throws {
        var generator = SeededGenerator(seed: UInt64(count))
        let random = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
        for bytes in [random, [UInt8](repeating: 65, count: count)] {
            let stream = Zlib.compress(bytes)
            #expect(stream.count >= 8 && stream[0] & 0x0F == 8, "a header of RFC 1950")
            #expect(try Zlib.decompress(stream, bytesMax: 262_144) == bytes)
        }
    }

    @Test func `a stream of another implementation is read`() throws {
        // Python: zlib.compress(b'{"type":"pong"}')
        let stream: [UInt8] = [
            0x78, 0x9C, 0xAB, 0x56, 0x2A, 0xA9, 0x2C, 0x48, 0x55, 0xB2, 0x52, 0x2A, 0xC8, 0xCF, 0x4B, 0x57, 0xAA, 0x05,
            0x00, 0x29, 0xDB, 0x05, 0x31,
        ]
        #expect(try Zlib.decompress(stream, bytesMax: 100) == Array(#"{"type":"pong"}"#.utf8))
    }

    private static func refusal(
        _ bytes: [UInt8],
        bytesMax: Int = 1_000,
        inflated: (Int) -> Void = { _ in }
    ) -> ZlibError? {
        do throws(ZlibError) {
            _ = try Zlib.decompress(bytes, bytesMax: bytesMax, inflated: inflated)
            return nil
        } catch { return error }
    }

    @Test func `content is made once, in pieces that are told when they are made`() throws {
        let content = [UInt8](repeating: 0, count: 262_144)
        var pieces: [Int] = []
        let decompressed = try Zlib.decompress(Zlib.compress(content), bytesMax: content.count) { pieces.append($0) }
        #expect(decompressed == content)
        #expect(pieces.reduce(0, +) == content.count)
        #expect(pieces.allSatisfy { $0 <= 16_384 })
    }

    @Test func `what is made of a stream that is refused counts, and no more than its bound is made`() {
        // What 277 bytes were worth before: 256 KiB.
        let bomb = Zlib.compress([UInt8](repeating: 0, count: 262_144))
        #expect(bomb.count < 400)
        var made = 0
        let bytesMax = Zlib.contentMax(of: bomb.count)
        let refusal = Self.refusal(bomb, bytesMax: bytesMax) { made += $0 }
        #expect(refusal == .tooLong && made == bytesMax)
        #expect(bytesMax < 60_000)
        // One whose damage is at its end.
        made = 0
        let damaged = Array(bomb.dropLast()) + [bomb[bomb.count - 1] ^ 1]
        let malformed = Self.refusal(damaged, bytesMax: 262_144) { made += $0 }
        #expect(malformed == .malformed && made == 262_144)
    }

    @Test func `text that clients send is far from the bound`() {
        let sections = (0..<200).map { number in
            "m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=mid:\(number)\r\na=ssrc:\(number * 7_919) cname:x\r\n"
        }
        let line = #"{"id":"RTCInboundRTPVideoStream","type":"inbound-rtp","packetsReceived":"#
        let reports = (0..<500).map { "\(line)\($0 * 104_729)}" }
        for text in [sections.joined(), reports.joined(separator: ","), #"{"type":"pong"}"#] {
            let stream = Zlib.compress(Array(text.utf8))
            #expect(text.utf8.count * 3 < Zlib.contentMax(of: stream.count))
        }
    }

    @Test func `what is longer than allowed is refused`() {
        let stream = Zlib.compress([UInt8](repeating: 0, count: 10_000_000))
        #expect(stream.count < 50_000)
        #expect(Self.refusal(stream, bytesMax: 262_144) == .tooLong)
        #expect(Self.refusal(stream, bytesMax: 9_999_999) == .tooLong)
        #expect(Self.refusal(stream, bytesMax: 10_000_000) == nil)
        // What does not become shorter, and what is short.
        var generator = SeededGenerator(seed: 2)
        let random = Zlib.compress((0..<1_000).map { _ in UInt8.random(in: 0...255, using: &generator) })
        #expect(Self.refusal(random, bytesMax: 999) == .tooLong)
        #expect(Self.refusal(random, bytesMax: 1_000) == nil)
        #expect(Self.refusal(Zlib.compress([1, 2, 3]), bytesMax: 2) == .tooLong)
    }

    @Test func `damaged streams are refused`() {
        let stream = Zlib.compress(Array("some text, some text, some text".utf8))
        #expect(Self.refusal([]) == .malformed)
        #expect(Self.refusal(stream + [0]) == .malformed)
        for length in 0..<stream.count { #expect(Self.refusal(Array(stream[..<length])) == .malformed) }
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<300 {
            var damaged = stream
            let index = Int.random(in: 0..<stream.count, using: &generator)
            damaged[index] ^= UInt8.random(in: 1...255, using: &generator)
            // The header's window size and the padding of the last block do not count.
            let content = try? Zlib.decompress(damaged, bytesMax: 1_000)
            #expect(content == nil || content == Array("some text, some text, some text".utf8))
        }
    }
}
