import Base
import Testing
import Wire

struct TransferEnvelopeTests {
    private func read<Result>(_ bytes: [UInt8], _ body: (RawSpan) -> Result) -> Result {
        body(unsafe bytes.span.bytes)
    }

    private func written(_ count: Int, _ body: (inout MutableRawSpan) -> Int?) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var span = bytes.mutableSpan
        var target = unsafe span.mutableBytes
        return body(&target).map { Array(bytes.prefix($0)) }
    }

    @Test func `a packet of 1200 bytes costs at most 4 per cent`() { #expect(TransferEnvelope.overheadBytes <= 48) }

    @Test(arguments: TransferEnvelope.Kind.allCases)
    func `a header is read as it was written`(kind: TransferEnvelope.Kind) throws {
        let header = TransferEnvelope.Header(kind: kind, phase: 0xAB, link: 0x1234, counter: 0x0102_0304_0506_0708)
        let bytes = try #require(
            written(29) {
                header.write(into: &$0)
                return 29
            }
        )
        #expect(bytes.prefix(12) == [0xD0 + kind.rawValue, 0xAB, 0x12, 0x34, 1, 2, 3, 4, 5, 6, 7, 8])
        #expect(read(bytes) { TransferEnvelope.Header($0) } == header)
        #expect(PacketProtocol(firstByte: bytes[0]) == .relay)
        for count in 0..<29 { #expect(read(Array(bytes.prefix(count))) { TransferEnvelope.Header($0) } == nil) }
        for first: UInt8 in [0xCF, 0xD2, 0xDF, 0xE0] {
            #expect(read([first] + bytes.dropFirst()) { TransferEnvelope.Header($0) } == nil)
        }
    }

    @Test func `records follow one another`() throws {
        let messages = TransferMessageTests.messages
        let bytes = try #require(
            written(600) { target in
                var offset = 0
                for (index, message) in messages.enumerated() {
                    let body = message == TransferMessageTests.packet ? TransferMessageTests.rtp : []
                    let age = Int64(index) * TransferEnvelope.ageUnit
                    let count = TransferEnvelope.write(
                        message,
                        unsafe body.span.bytes,
                        age: age,
                        at: offset,
                        of: &target
                    )
                    guard let count else { return nil }
                    offset += count
                }
                return offset
            }
        )
        read(bytes) { contents in
            var (offset, found) = (0, 0)
            while let record = TransferEnvelope.record(at: offset, of: contents) {
                let decoded = try? TransferMessage.decode(contents.extracting(record.range))
                #expect(decoded?.message == messages[found])
                #expect(record.age == Int64(found) * TransferEnvelope.ageUnit)
                found += 1
                offset = record.range.upperBound
            }
            #expect(found == messages.count && offset == contents.byteCount)
        }
    }

    @Test(arguments: [(-1, 0), (.max, 6_553_500_000), (.min, 0)] as [(Int64, Int64)])
    func `an age outside of the range is cut to it`(age: Int64, read expected: Int64) throws {
        let bytes = try #require(
            written(16) { TransferEnvelope.write(TransferMessageTests.layers, RawSpan(), age: age, at: 0, of: &$0) }
        )
        #expect(read(bytes) { TransferEnvelope.record(at: 0, of: $0)?.age } == expected)
        #expect(
            written(8) { TransferEnvelope.write(TransferMessageTests.layers, RawSpan(), age: 0, at: 0, of: &$0) } == nil
        )
    }

    @Test(
        arguments: [[], [0], [0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 2, 0, 0, 1], [0xFF, 0xFF, 0, 0, 1, 2]] as [[UInt8]]
    )
    func `a broken record is none`(bytes: [UInt8]) {
        #expect(read(bytes) { TransferEnvelope.record(at: 0, of: $0) } == nil)
    }

    private static let report = TransferFeedback(
        sentAt: -5,
        echo: 1 << 60,
        echoDelay: 7,
        newest: 1_000,
        missing: [TransferFeedback.Missing(first: 990, count: 10), TransferFeedback.Missing(first: 1, count: 1)]
    )

    @Test func `a report is read as it was written, and no part of it`() throws {
        for report in [Self.report, TransferFeedback(sentAt: 1, echo: nil, echoDelay: 0, newest: 0)] {
            let bytes = try #require(written(300) { report.encode(at: 0, of: &$0) })
            #expect(read(bytes) { TransferFeedback($0) } == report)
            for count in 0..<bytes.count { #expect(read(Array(bytes.prefix(count))) { TransferFeedback($0) } == nil) }
            #expect(read(bytes + [0]) { TransferFeedback($0) } == nil)
        }
        #expect(written(TransferFeedback.bytesMax - 1) { Self.report.encode(at: 0, of: &$0) } == nil)
    }

    @Test func `ranges that cannot be are not written`() throws {
        var report = Self.report
        report.missing = [
            TransferFeedback.Missing(first: 999, count: 2), TransferFeedback.Missing(first: 5, count: 0),
            TransferFeedback.Missing(first: .max, count: 1),
        ]
        let bytes = try #require(written(300) { report.encode(at: 0, of: &$0) })
        #expect(read(bytes) { TransferFeedback($0) }?.missing == [])
        report.missing = (0..<100).map { TransferFeedback.Missing(first: $0 * 2, count: 1) }
        let many = try #require(written(300) { report.encode(at: 0, of: &$0) })
        #expect(read(many) { TransferFeedback($0) }?.missing.count == TransferFeedback.missingMax)
    }

    @Test(arguments: 0..<10)
    func `no bytes trap`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<2_000 {
            let bytes = (0..<Int(generator.next() % 300)).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            read(bytes) { bytes in
                _ = TransferEnvelope.Header(bytes)
                _ = TransferFeedback(bytes)
                var offset = 0
                while let record = TransferEnvelope.record(at: offset, of: bytes) {
                    _ = try? TransferMessage.decode(bytes.extracting(record.range))
                    offset = record.range.upperBound
                }
            }
        }
    }
}
