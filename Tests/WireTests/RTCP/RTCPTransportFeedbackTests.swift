import Base
import TestSupport
import Testing
import Wire

struct RTCPTransportFeedbackTests {
    /// A feedback packet with these bytes after the two SSRCs, padded to 32-bit words.
    static func packet(_ body: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = [0x8F, 205, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2] + body
        while bytes.count % 4 != 0 { bytes.append(0) }
        bytes[3] = UInt8(bytes.count / 4 - 1)
        return bytes
    }

    static func statuses(_ bytes: [UInt8]) throws -> [Int?]? {
        let packet = try RTCPPacketView(unsafe bytes.span.bytes)
        guard var cursor = packet.makeTransportFeedbackCursor() else { return nil }
        var found: [Int?] = []
        while let status = cursor.next() { found.append(status.arrivalTicks) }
        return found
    }

    @Test func `a captured packet with padding is read`() throws {
        let bytes: [UInt8] = [
            0xAF, 0xCD, 0x00, 0x05, 0xFA, 0x17, 0xFA, 0x17, 0x43, 0x03, 0x2F, 0xA0,
            0x00, 0x99, 0x00, 0x01, 0x3D, 0xE8, 0x02, 0x17, 0x20, 0x01, 0x94, 0x01,
        ]
        #expect(
            try readRTCP(bytes) == [
                .feedback(base: 153, count: 1, reference: 4_057_090, number: 23), .status(153, 148),
            ]
        )
        var encoder = TransportFeedbackEncoder(
            base: TransportSequenceNumber(rawValue: 153),
            firstArrivalTicks: 4_057_090 * 256 + 148
        )
        #expect(encoder.append(missing: 0, arrivalTicks: 4_057_090 * 256 + 148) == true)
        var writer = RTCPWriter()
        writer.appendTransportFeedback(
            sender: SSRC(rawValue: 0xFA17_FA17),
            media: SSRC(rawValue: 0x4303_2FA0),
            feedbackCount: 23,
            encoder
        )
        #expect(writer.bytes == bytes)
    }

    /// The chunk examples of draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.3 and §3.1.4.
    @Test(
        arguments: [
            ("run of 221 not received", 221, [0x00, 0xDD], [], [Int?](repeating: nil, count: 221)),
            ("run of 24 without a delta", 24, [0x60, 0x18], [], [Int?](repeating: nil, count: 24)),
            (
                "one-bit vector", 14, [0x9F, 0x1C], [1, 2, 3, 4, 5, 6, 7, 8],
                [nil, 1, 3, 6, 10, 15, nil, nil, nil, 21, 28, 36, nil, nil]
            ),
            ("two-bit vector", 7, [0xCD, 0x50], [1, 2, 3], [nil, nil, 1, 3, 6, nil, nil]),
            ("large deltas, one back", 2, [0x40, 0x02], [0x7F, 0xFF, 0x80, 0x00], [32767, -1]),
            ("a vector longer than the count", 1, [0xA0, 0x00], [9], [9]),
            ("a run longer than the count", 1, [0x3F, 0xFF], [9], [9]),
            ("a run of none", 1, [0x00, 0x00, 0x20, 0x01], [9], [9]),
            ("no packets", 0, [], [], []),
        ] as [(String, Int, [UInt8], [UInt8], [Int?])]
    )
    func `chunks are read`(name: String, count: Int, chunks: [UInt8], deltas: [UInt8], expected: [Int?]) throws {
        let head: [UInt8] = [0xFF, 0xF0, UInt8(count >> 8), UInt8(count & 0xFF), 0xFF, 0xFF, 0xFF, 0]
        #expect(try Self.statuses(Self.packet(head + chunks + deltas)) == expected)
    }

    @Test(
        arguments: [
            ("no head", [0, 1, 0, 1, 0, 0, 0]), ("no chunk", [0, 1, 0, 1, 0, 0, 0, 0]),
            ("chunks too short", [0, 1, 0, 200, 0, 0, 0, 0, 0, 1, 0, 1]),
            ("deltas too short", [0, 1, 0, 7, 0, 0, 0, 0, 0x40, 7, 0, 1]),
            ("count of 65535", [0, 1, 0xFF, 0xFF, 0, 0, 0, 0, 0x3F, 0xFF, 0x3F, 0xFF]),
        ] as [(String, [UInt8])]
    )
    func `a cut packet is refused`(name: String, body: [UInt8]) throws {
        #expect(try Self.statuses(Self.packet(body)) == nil)
    }

    @Test func `the reference time is signed`() throws {
        let bytes = Self.packet([0, 1, 0, 1, 0xFF, 0xFF, 0xFF, 0, 0x20, 1, 5])
        #expect(try readRTCP(bytes).first == .feedback(base: 1, count: 1, reference: -1, number: 0))
    }

    @Test(
        arguments: [
            ("one", [1], [0x20, 0x01]),
            ("run of small", [Int?](repeating: 1, count: 20), [0x20, 0x14]),
            ("run of large", [Int?](repeating: 300, count: 20), [0x40, 0x14]),
            ("one-bit vector", [1, nil, 1, nil, 1, nil, 1, nil, 1, nil, 1, nil, 1, 1], [0xAA, 0xAB]),
            ("short mix", [1, nil, 1], [0xA8, 0x00]),
            ("two-bit vector", [1, 300, nil, 1], [0xD8, 0x40]),
            ("large cuts a mix of ten", [1, nil, 1, nil, 1, nil, 1, nil, 1, 300], [0xD1, 0x11, 0xC6, 0x00]),
            ("run, then a large one", [Int?](repeating: 1, count: 8) + [300], [0x20, 0x08, 0x40, 0x01]),
        ] as [(String, [Int?], [UInt8])]
    )
    func `statuses are packed`(name: String, deltas: [Int?], chunks: [UInt8]) throws {
        let (encoder, ticks) = Self.encode(deltas)
        var writer = RTCPWriter()
        writer.appendTransportFeedback(
            sender: SSRC(rawValue: 1),
            media: SSRC(rawValue: 2),
            feedbackCount: 0,
            encoder
        )
        #expect(Array(writer.bytes[20..<(20 + chunks.count)]) == chunks)
        #expect(try Self.statuses(writer.bytes) == ticks)
    }

    /// Encodes these deltas, the first from tick 0; returns the encoder and the expected statuses.
    static func encode(_ deltas: [Int?]) -> (TransportFeedbackEncoder, [Int?]) {
        var encoder = TransportFeedbackEncoder(base: TransportSequenceNumber(rawValue: 0), firstArrivalTicks: 0)
        var missing = 0
        var now = 0
        var ticks: [Int?] = []
        for delta in deltas {
            guard let delta else {
                missing += 1
                ticks.append(nil)
                continue
            }
            now += delta
            guard encoder.append(missing: missing, arrivalTicks: Int64(now)) else { break }
            missing = 0
            ticks.append(now)
        }
        return (encoder, Array(ticks.prefix(encoder.statusCount)))
    }

    @Test func `random statuses round trip within the limit`() throws {
        var generator = SeededGenerator(seed: 13)
        for round in 0..<3000 {
            let lossPercent = [0, 1, 10, 50, 95][round % 5]
            let largePercent = [0, 2, 30, 100][round % 4]
            var deltas: [Int?] = []
            for _ in 0..<Int.random(in: 1...(round % 10 == 0 ? 2500 : 60), using: &generator) {
                if Int.random(in: 0..<100, using: &generator) < lossPercent {
                    deltas.append(nil)
                } else if Int.random(in: 0..<100, using: &generator) < largePercent {
                    deltas.append(Int.random(in: -32768...32767, using: &generator))
                } else {
                    deltas.append(Int.random(in: 0...255, using: &generator))
                }
            }
            let (encoder, expected) = Self.encode(deltas)
            guard encoder.statusCount > 0 else { continue }
            var writer = RTCPWriter()
            writer.appendTransportFeedback(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: 2),
                feedbackCount: 0,
                encoder
            )
            #expect(writer.count <= 1200 && writer.count % 4 == 0)
            #expect(try Self.statuses(writer.bytes) == expected)
        }
    }

    @Test(arguments: [(32767, true), (32768, false), (-32768, true), (-32769, false)])
    func `a delta takes 16 bits`(delta: Int, fits: Bool) {
        var encoder = TransportFeedbackEncoder(base: TransportSequenceNumber(rawValue: 0), firstArrivalTicks: 0)
        #expect(encoder.append(missing: 0, arrivalTicks: 0) == true)
        #expect(encoder.append(missing: 0, arrivalTicks: Int64(delta)) == fits)
        #expect(encoder.statusCount == (fits ? 2 : 1))
    }
}
