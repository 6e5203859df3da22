import TestSupport
import Testing

@testable import Cluster

@Suite struct RESPTests {
    /// Every reply of `bytes`, fed in pieces of `size`.
    private static func replies(_ bytes: [UInt8], pieces size: Int) throws(RESPError) -> [RESPValue] {
        let reader = try RESPReader()
        var replies: [RESPValue] = []
        var index = 0
        while index < bytes.count {
            let piece = Array(bytes[index..<min(index + size, bytes.count)])
            unsafe reader.feed(piece.span.bytes)
            while let reply = try reader.next() { replies.append(reply) }
            index += size
        }
        return replies
    }

    private static func failure(_ bytes: [UInt8], pieces size: Int = 65_536) -> RESPError? {
        do throws(RESPError) {
            _ = try replies(bytes, pieces: size)
            return nil
        } catch { return error }
    }

    static let table: [(text: String, replies: [RESPValue])] = [
        ("+OK\r\n", [.status("OK")]),
        ("+\r\n", [.status("")]),
        ("-NOSCRIPT No matching script.\r\n", [.error("NOSCRIPT No matching script.")]),
        (":42\r\n:-1\r\n:9223372036854775807\r\n", [.integer(42), .integer(-1), .integer(.max)]),
        ("$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n", [.bytes(Array("a\r\nbc".utf8)), .bytes([]), .null]),
        ("*0\r\n*-1\r\n", [.array([]), .null]),
        (
            "*3\r\n:1\r\n*2\r\n+a\r\n*0\r\n$-1\r\n+next\r\n",
            [.array([.integer(1), .array([.status("a"), .array([])]), .null]), .status("next")]
        ),
        (
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n",
            [.array([.array([.array([.array([.array([.array([.array([.integer(7)])])])])])])])]
        ),
    ]

    @Test(arguments: table.indices)
    func `replies are read however the stream is cut`(row: Int) throws {
        let (text, expected) = Self.table[row]
        for size in 1...text.utf8.count { #expect(try Self.replies(Array(text.utf8), pieces: size) == expected) }
    }

    static let malformed = [
        "?\r\n", "HTTP/1.1 400 Bad Request\r\n", ":12a\r\n", ":\r\n", "$abc\r\n", "$-2\r\n", "*-2\r\n", "*x\r\n",
        "*99999999999\r\n", ":9223372036854775808\r\n", "*2\r\n:1\r\nx\r\n",
        String(repeating: "*1\r\n", count: 8) + ":1\r\n", String(repeating: "*1\r\n", count: 100_000),
    ]

    @Test(arguments: malformed.indices)
    func `what is not the protocol is refused`(row: Int) {
        #expect(Self.failure(Array(Self.malformed[row].utf8)) == .malformed)
    }

    @Test func `a stream that failed stays failed`() throws {
        let reader = try RESPReader()
        unsafe reader.feed(Array("!\r\n".utf8).span.bytes)
        #expect(throws: RESPError.malformed) { try reader.next() }
        unsafe reader.feed(Array("+OK\r\n".utf8).span.bytes)
        #expect(throws: RESPError.malformed) { try reader.next() }
    }

    @Test func `a reply has a longest length, whatever it consists of`() {
        let limit = RESPReader.replyBytesMax
        let fits = limit - 64
        #expect(Self.failure(Array("$\(fits)\r\n".utf8) + [UInt8](repeating: 65, count: fits) + [13, 10]) == nil)
        let long = Array("$\(limit)\r\n".utf8) + [UInt8](repeating: 65, count: limit) + [13, 10]
        #expect(Self.failure(long) == .tooLong)
        // A length is not believed, and a line has an end.
        #expect(Self.failure(Array("$2000000000\r\n".utf8)) == nil)
        #expect(Self.failure(Array("$2000000000\r\n".utf8) + [UInt8](repeating: 0, count: limit)) == .tooLong)
        #expect(Self.failure(Array("+".utf8) + [UInt8](repeating: 65, count: 2 * limit)) == .tooLong)
        // Values that are short on the wire.
        #expect(Self.failure(Array("*2147483647\r\n".utf8)) == .tooLong)
        let count = limit / RESPReader.valueBytes
        let many = "*\(count)\r\n" + String(repeating: ":0\r\n", count: count)
        #expect(Self.failure(Array(many.utf8)) == .tooLong)
        let half = "*\(count / 2)\r\n" + String(repeating: ":0\r\n", count: count / 2)
        #expect(Self.failure(Array((half + half).utf8)) == nil)
        let nested = "*70\r\n" + String(repeating: "*1000\r\n" + String(repeating: "*0\r\n", count: 1_000), count: 70)
        #expect(Self.failure(Array(nested.utf8)) == .tooLong)
    }

    @Test func `random streams neither trap nor grow`() throws {
        let samples = Self.table.map { Array($0.text.utf8) }
        for seed in 0..<2_000 {
            var generator = SeededGenerator(seed: UInt64(seed))
            var bytes = (0..<4).flatMap { _ in samples[Int.random(in: 0..<samples.count, using: &generator)] }
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
            }
            let size = Int.random(in: 1...bytes.count, using: &generator)
            let whole = Result { () throws(RESPError) in try Self.replies(bytes, pieces: bytes.count) }
            let cut = Result { () throws(RESPError) in try Self.replies(bytes, pieces: size) }
            #expect(whole == cut, "seed \(seed)")
        }
    }

    @Test func `a command is written as an array of bulk strings`() throws {
        #expect(try RESPCommand("PING").encoded() == Array("*1\r\n$4\r\nPING\r\n".utf8))
        let set = RESPCommand([Array("SET".utf8), [], [0, 13, 10, 255]])
        #expect(try set.encoded() == Array("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n".utf8) + [0, 13, 10, 255, 13, 10])
        #expect(try RESPCommand([[], []]).encoded() == Array("*2\r\n$0\r\n\r\n$0\r\n\r\n".utf8))
        // A command is an array of the protocol that the reader reads.
        let words = try Self.replies(try set.encoded(), pieces: 3)
        #expect(words == [.array(set.arguments.map(RESPValue.bytes))])
    }

    @Test func `numbers, texts and codes are taken from replies`() {
        #expect(RESPValue.bytes(Array("12".utf8)).number == 12)
        #expect(RESPValue.integer(-3).number == -3)
        #expect(RESPValue.bytes(Array("1x".utf8)).number == nil)
        #expect(RESPValue.bytes([0xFF]).text == "\u{FFFD}")
        #expect(RESPValue.error("OOM command not allowed").errorCode == "OOM")
        #expect(RESPValue.error("").errorCode == "")
        #expect(RESPValue.status("OK").errorCode == nil)
    }
}
