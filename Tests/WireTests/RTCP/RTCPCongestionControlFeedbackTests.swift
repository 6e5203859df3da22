import TestSupport
import Testing
import Wire

struct RTCPCongestionControlFeedbackTests {
    typealias Status = CongestionControlFeedbackStatus

    /// A feedback packet with these bytes after the sender's SSRC.
    static func packet(_ body: [UInt8]) -> [UInt8] {
        [0x8B, 205, UInt8((body.count / 4 + 1) >> 8), UInt8((body.count / 4 + 1) & 0xFF), 0, 0, 0, 1] + body
    }

    static func status(_ ssrc: UInt32, _ sequence: UInt16, _ arrival: Status.Arrival, _ ecn: ECNCodepoint) -> Status {
        Status(ssrc: SSRC(rawValue: ssrc), sequence: SequenceNumber(rawValue: sequence), arrival: arrival, ecn: ecn)
    }

    /// - Returns: the timestamp and the statuses; `nil` when the packet is refused.
    static func read(_ bytes: [UInt8]) throws -> (timestamp: UInt32, statuses: [Status])? {
        let packet = try RTCPPacketView(unsafe bytes.span.bytes)
        guard var cursor = packet.makeCongestionControlFeedbackCursor() else { return nil }
        var found: [Status] = []
        while let status = cursor.next() { found.append(status) }
        return (cursor.timestamp, found)
    }

    @Test(
        arguments: [
            ("no stream", [], []),
            ("a stream without statuses", [0, 0, 0, 2, 0, 7, 0, 0], []),
            ("one, padded", [0, 0, 0, 2, 0, 7, 0, 1, 0x80, 0x05, 0, 0], [status(2, 7, .offset(5), .notCapable)]),
            ("other padding", [0, 0, 0, 2, 0, 7, 0, 1, 0, 0, 0x9F, 0xFF], [status(2, 7, .lost, .notCapable)]),
            (
                "the marks", [0, 0, 0, 2, 0, 7, 0, 4, 0x80, 0, 0xA0, 1, 0xC0, 2, 0xE0, 3],
                [
                    status(2, 7, .offset(0), .notCapable), status(2, 8, .offset(1), .capable1),
                    status(2, 9, .offset(2), .capable0), status(2, 10, .offset(3), .congestionExperienced),
                ]
            ),
            (
                "the offset's special values", [0, 0, 0, 2, 0, 7, 0, 3, 0x9F, 0xFD, 0x9F, 0xFE, 0x9F, 0xFF, 0, 0],
                [
                    status(2, 7, .offset(8189), .notCapable), status(2, 8, .early, .notCapable),
                    status(2, 9, .unknown, .notCapable),
                ]
            ),
            ("a lost packet", [0, 0, 0, 2, 0, 7, 0, 1, 0x7F, 0xFF, 0, 0], [status(2, 7, .lost, .notCapable)]),
            (
                "two streams, numbers that wrap",
                [0, 0, 0, 2, 0xFF, 0xFF, 0, 2, 0x80, 1, 0, 0, 0, 0, 0, 3, 0, 1, 0, 1, 0x80, 9, 0, 0],
                [
                    status(2, 65_535, .offset(1), .notCapable), status(2, 0, .lost, .notCapable),
                    status(3, 1, .offset(9), .notCapable),
                ]
            ),
        ] as [(String, [UInt8], [Status])]
    )
    func `statuses are read`(name: String, body: [UInt8], expected: [Status]) throws {
        let found = try Self.read(Self.packet(body + [0x12, 0x34, 0x56, 0x78]))
        #expect(found?.statuses == expected)
        #expect(found?.timestamp == 0x1234_5678)
    }

    @Test(
        arguments: [
            ("no timestamp", []),
            ("a stream's header cut", [0, 0, 0, 2, 1, 2, 3, 4]),
            ("statuses cut", [0, 0, 0, 2, 0, 7, 0, 3, 0x80, 0, 0x80, 0, 1, 2, 3, 4]),
            ("a count of 65535", [0, 0, 0, 2, 0, 7, 0xFF, 0xFF, 0x80, 0, 0x80, 0, 1, 2, 3, 4]),
            ("a word too many", [0, 0, 0, 2, 0, 7, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]),
        ] as [(String, [UInt8])]
    )
    func `a cut packet is refused`(name: String, body: [UInt8]) throws {
        #expect(try Self.read(Self.packet(body)) == nil)
    }

    @Test func `a packet of another kind has no statuses`() throws {
        var bytes = Self.packet([0, 0, 0, 2, 0, 7, 0, 0, 1, 2, 3, 4])
        bytes[0] = 0x8F
        #expect(try Self.read(bytes) == nil)
        bytes[0] = 0x8B
        bytes[1] = 206
        #expect(try Self.read(bytes) == nil)
    }

    @Test func `damaged feedback never traps`() {
        let streams: [UInt8] = [0, 0, 0, 2, 0xFF, 0xFF, 0, 2, 0x80, 1, 0, 0, 0, 0, 0, 3, 0, 1, 0, 1, 0x80, 9, 0, 0]
        forEachDamage(of: Self.packet(streams + [1, 2, 3, 4]), seed: 5, rounds: 20_000) { bytes in
            _ = try? readRTCP(bytes)
        }
    }
}
