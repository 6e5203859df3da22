import Base
import CongestionControl
import TestSupport
import Testing
import Wire

/// A sender that has sent packets with these numbers, a millisecond apart, and reads reports about them.
private struct Sender: ~Copyable {
    /// When the packet with number 0 left, in microseconds.
    static let start: Int64 = 5_000_000_000

    var reader = TransportFeedbackReader()
    var report = FeedbackReport()
    var sent: ClosedRange<Int64>
    /// Those that left a second time.
    var repeated: Set<Int64> = []
    var now = Sender.start + 100_000_000

    init(sent: ClosedRange<Int64> = 0...1_000) { self.sent = sent }

    static func sentAt(_ number: Int64) -> Int64 { start + number * 1_000 }

    /// Reads a report.
    /// - Parameter deltas: ticks of 250 µs after the arrival before; `nil` for lost packets.
    /// - Returns: the numbers in the report, those of received packets alone.
    @discardableResult
    mutating func read(base: Int64, reference: Int = 0, count: UInt8 = 0, _ deltas: [Int?]) throws -> [Int64] {
        let bytes = Self.feedback(base: base, reference: reference, count: count, deltas)
        let packet = try RTCPPacketView(unsafe bytes.span.bytes)
        guard let feedback = packet.makeTransportFeedbackCursor() else {
            Issue.record("unreadable feedback")
            return []
        }
        let (sent, repeated) = (sent, repeated)
        reader.read(feedback, newest: sent.upperBound, at: now, into: &report) { number in
            guard sent.contains(number) else { return nil }
            return SentPacket(
                sentAt: UInt32(truncatingIfNeeded: Self.sentAt(number)),
                bytes: 1_000,
                kind: repeated.contains(number) ? .repeated : .media,
                cluster: 3
            )
        }
        return report.packets.filter(\.isReceived).map(\.sequence)
    }

    var lost: [Int64] { report.packets.filter { !$0.isReceived }.map(\.sequence) }

    /// A feedback packet with vectors of 7 symbols and 16-bit deltas.
    static func feedback(base: Int64, reference: Int, count: UInt8, _ deltas: [Int?]) -> [UInt8] {
        func word(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)] }
        var body = word(Int(base & 0xFFFF)) + word(deltas.count) + [UInt8(reference >> 16 & 0xFF)] + word(reference)
        body.append(count)
        for start in stride(from: 0, to: deltas.count, by: 7) {
            var chunk = 0xC000
            for (index, delta) in deltas[start...].prefix(7).enumerated() where delta != nil {
                chunk |= 2 << (12 - 2 * index)
            }
            body += word(chunk)
        }
        for delta in deltas { if let delta { body += word(delta) } }
        while body.count % 4 != 0 { body.append(0) }
        return [0x8F, 205] + word((12 + body.count) / 4 - 1) + [0, 0, 0, 1, 0, 0, 0, 2] + body
    }
}

struct TransportFeedbackReaderTests {
    @Test func `a packet that left again under its number counts as lost, once`() throws {
        var sender = Sender()
        sender.repeated = [8]
        #expect(try sender.read(base: 7, [1, 1, 1]) == [7, 9] && sender.lost == [8])
        #expect(try sender.read(base: 8, count: 1, [1]).isEmpty && sender.report.packets.isEmpty)
        // What arrived before it left again is not lost.
        try sender.read(base: 20, count: 2, [1])
        sender.repeated.insert(20)
        #expect(try sender.read(base: 20, count: 3, [1]).isEmpty && sender.lost.isEmpty)
    }

    @Test func `a packet's result has its record, its arrival and its bytes on the wire`() throws {
        var sender = Sender()
        sender.reader.headerBytes = 48
        try sender.read(base: 7, reference: 2, [3, nil, 1])
        let packets = sender.report.packets
        #expect(sender.report.arrivedAt == sender.now)
        #expect(packets.map(\.sequence) == [7, 8, 9])
        #expect(packets.map(\.sentAt) == [7, 8, 9].map { Sender.sentAt($0) })
        #expect(packets.map(\.isReceived) == [true, false, true])
        // 250 µs stay: trains of packets need them.
        #expect(packets[0].arrivedAt == 2 * 64_000 + 3 * 250)
        #expect(packets[2].arrivedAt == packets[0].arrivedAt + 250)
        #expect(packets.allSatisfy { $0.bytes == 1_048 && $0.cluster == 3 && !$0.wasReportedLost })
    }

    @Test(
        arguments: [
            ("never sent", 1_001, [4, 4, 4], 3), ("partly sent", 1_000, [4, 4], 1),
            ("older than the records", 1_000 - 2_048, [4], 1), ("half of the numbers away", 1_000 + 32_768, [4], 1),
            ("empty", 5, [], 0),
        ] as [(String, Int64, [Int?], Int)]
    )
    func `numbers that were not sent are unknown`(name: String, base: Int64, deltas: [Int?], unknown: Int) throws {
        var sender = Sender(sent: -5_000...1_000)
        let received = try sender.read(base: base, deltas)
        #expect(received.count == deltas.count - unknown)
        #expect(sender.report.unknownPackets == unknown)
    }

    @Test func `numbers are unwrapped against the newest one that was sent`() throws {
        var sender = Sender(sent: 64_000...65_540)
        #expect(try sender.read(base: 65_534, [4, 4, 4, 4]) == [65_534, 65_535, 65_536, 65_537])
        // The next wrap's numbers are not those of this one.
        sender.sent = 130_000...131_072
        #expect(try sender.read(base: 65_534, [4, 4, 4]) == [131_070, 131_071, 131_072])
    }

    @Test func `a packet counts as received once`() throws {
        var sender = Sender()
        #expect(try sender.read(base: 10, [4, 4]) == [10, 11])
        for count in 1...3 as ClosedRange<UInt8> {
            #expect(try sender.read(base: 10, reference: 9, count: count, [0, 0, 1]) == (count == 1 ? [12] : []))
        }
        #expect(try sender.read(base: 10, [nil, nil]) == [])
        #expect(sender.report.packets.isEmpty, "received stays received")
    }

    @Test func `received after lost is accepted once, lost again is no news`() throws {
        var sender = Sender()
        try sender.read(base: 10, [nil, 4])
        #expect(sender.lost == [10])
        try sender.read(base: 10, [nil, 4, 4])
        #expect(sender.lost == [])
        #expect(try sender.read(base: 10, [4, 4]) == [10])
        #expect(sender.report.packets[0].wasReportedLost)
        #expect(try sender.read(base: 10, [4]) == [])
    }

    @Test func `numbers between two reports are unknown, not lost`() throws {
        var sender = Sender()
        try sender.read(base: 10, count: 1, [4])
        #expect(try sender.read(base: 20, count: 3, [4]) == [20])
        #expect(sender.lost == [])
        #expect(sender.report.lostReports == 1)
        // The report between them comes last.
        #expect(try sender.read(base: 11, count: 2, Array(repeating: 4, count: 9)).count == 9)
        #expect(sender.report.lostReports == 0)
        #expect(sender.reader.lostReports == 0)
    }

    @Test(
        arguments: [
            ("in order", [254, 255, 0, 1], [0, 0, 0, 0]), ("two lost over the wrap", [254, 1], [0, 2]),
            ("repeated", [7, 7, 8], [0, 0, 0]), ("late", [7, 9, 8, 10], [0, 1, 0, 0]),
        ] as [(String, [UInt8], [Int])]
    )
    func `the count tells lost reports`(name: String, counts: [UInt8], lost: [Int]) throws {
        var sender = Sender()
        var found: [Int] = []
        for (index, count) in counts.enumerated() {
            try sender.read(base: Int64(index), count: count, [4])
            found.append(sender.report.lostReports)
        }
        #expect(found == lost)
    }

    @Test(
        arguments: [
            ("forward", 0x7F_FFFF, -0x80_0000, 64_000), ("backward", -0x80_0000, 0x7F_FFFF, -64_000),
            ("over zero", -1, 0, 64_000), ("out of order", 100, 98, -128_000),
        ] as [(String, Int, Int, Int64)]
    )
    func `the reference time is unwrapped`(name: String, first: Int, second: Int, difference: Int64) throws {
        var sender = Sender()
        try sender.read(base: 0, reference: first, [0])
        let before = sender.report.packets[0].arrivedAt
        try sender.read(base: 1, reference: second, [0])
        #expect(sender.report.packets[0].arrivedAt - before == difference)
    }

    @Test func `send times of the last 71 minutes are unwrapped`() throws {
        var sender = Sender()
        sender.now = Sender.sentAt(0) + 4_294_967_295
        try sender.read(base: 0, [0])
        #expect(sender.report.packets[0].sentAt == Sender.sentAt(0))
    }

    @Test func `packets of another path are unknown`() throws {
        var sender = Sender(sent: 0...20)
        sender.reader.pathChanged(newest: 20)
        sender.sent = 0...30
        #expect(try sender.read(base: 19, [0, 0, 0, 0]) == [21, 22])
        #expect(sender.report.unknownPackets == 2)
    }

    @Test func `one report has bounded work`() throws {
        var sender = Sender(sent: 0...70_000)
        sender.sent = 0...2_000
        let all = [Int?](repeating: 0, count: 60_000)
        #expect(try sender.read(base: 0, all).count == 2_001)
        #expect(sender.report.unknownPackets == 60_000 - 2_001)
        sender.sent = 0...(1 << 40)
        #expect(try sender.read(base: 1 << 40, [0]) == [1 << 40])
    }

    /// A peer that claims anything never makes a packet arrive twice, or one that was not sent.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func `reports that lie give nothing twice`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var sender = Sender(sent: 65_000...65_100)
        var received: Set<Int64> = []
        for _ in 0..<500 {
            sender.sent = 65_000...(sender.sent.upperBound + Int64.random(in: 0...40, using: &generator))
            let base = sender.sent.upperBound - Int64.random(in: -100...2_500, using: &generator)
            let deltas = (0..<Int.random(in: 0...300, using: &generator)).map { _ -> Int? in
                Bool.random(using: &generator) ? nil : Int.random(in: -32_768...32_767, using: &generator)
            }
            let new = try sender.read(
                base: base,
                reference: Int.random(in: 0...0xFF_FFFF, using: &generator),
                count: UInt8.random(in: 0...255, using: &generator),
                deltas
            )
            #expect(new.allSatisfy { sender.sent.contains($0) && !received.contains($0) })
            received.formUnion(new)
            #expect(sender.report.packets.map(\.sequence) == sender.report.packets.map(\.sequence).sorted())
        }
        #expect(received.count > 1_000)
    }
}
