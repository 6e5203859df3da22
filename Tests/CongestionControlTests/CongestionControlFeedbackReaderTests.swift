import Base
import CongestionControl
import TestSupport
import Testing
import Wire

/// A sender of two streams, 2 and 3, whose packets alternate; number n of all packets has the RTP sequence number n / 2.
private struct Sender: ~Copyable {
    static let now: Int64 = 5_000_000_000

    var reader = CongestionControlFeedbackReader()
    var report = FeedbackReport()
    var newest: Int64 = 1_000
    /// Those that left a second time.
    var repeated: Set<Int64> = []

    /// - Parameter streams: the streams with their first sequence number and their statuses: the offset in 1/1024 s, or `nil` for
    ///   a lost packet.
    /// - Returns: the numbers of received packets.
    @discardableResult
    mutating func read(
        timestamp: UInt32 = 0,
        ecn: ECNCodepoint = .notCapable,
        _ streams: [(ssrc: UInt8, first: Int, [Int?])]
    ) throws -> [Int64] {
        func word(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)] }
        var body: [UInt8] = []
        for (ssrc, first, statuses) in streams {
            body += [0, 0, 0, ssrc] + word(first) + word(statuses.count)
            for status in statuses {
                body += word(status.map { 0x8000 | Int(ecn.rawValue) << 13 | $0 } ?? 0)
            }
            if statuses.count % 2 == 1 { body += [0, 0] }
        }
        body += word(Int(timestamp >> 16)) + word(Int(timestamp & 0xFFFF))
        let bytes: [UInt8] = [0x8B, 205] + word(body.count / 4 + 1) + [0, 0, 0, 1] + body
        let packet = try RTCPPacketView(unsafe bytes.span.bytes)
        guard let feedback = packet.makeCongestionControlFeedbackCursor() else {
            Issue.record("unreadable feedback")
            return []
        }
        let (newest, repeated) = (newest, repeated)
        reader.read(feedback, newest: newest, at: Self.now, into: &report) { ssrc, sequence in
            let number = Int64(sequence.rawValue) * 2 + Int64(ssrc.rawValue) - 2
            guard number <= newest, (2...3).contains(ssrc.rawValue) else { return nil }
            let packet = SentPacket(
                sentAt: UInt32(truncatingIfNeeded: Self.now - 1_000_000),
                bytes: 1_000,
                kind: repeated.contains(number) ? .repeated : .media
            )
            return (number, packet)
        }
        return report.packets.filter(\.isReceived).map(\.sequence)
    }
}

struct CongestionControlFeedbackReaderTests {
    @Test func `a packet that left again under its number counts as lost, once`() throws {
        var sender = Sender()
        sender.repeated = [22]
        #expect(try sender.read(ecn: .capable1, [(2, 10, [0, 1, 2])]) == [20, 24])
        let lost = sender.report.packets.filter { !$0.isReceived }
        #expect(lost.map(\.sequence) == [22] && lost.allSatisfy { $0.ecn == nil })
        #expect(try sender.read([(2, 11, [1])]).isEmpty && sender.report.packets.isEmpty)
    }

    @Test func `packets of several streams are in the order in which they were sent`() throws {
        var sender = Sender()
        #expect(try sender.read([(2, 10, [0, 1, 2]), (3, 9, [3, nil, 5])]) == [19, 20, 22, 23, 24])
        #expect(sender.report.packets.map(\.sequence) == [19, 20, 21, 22, 23, 24])
        #expect(sender.report.packets.allSatisfy { $0.bytes == 1_028 && $0.sentAt == Sender.now - 1_000_000 })
    }

    @Test func `arrivals are before the report's timestamp, which wraps`() throws {
        var sender = Sender()
        try sender.read(timestamp: 0xFFFF_0000, [(2, 10, [512])])
        let first = sender.report.packets[0].arrivedAt
        try sender.read(timestamp: 0x0000_8000, [(2, 11, [256])])
        // 1.5 s from timestamp to timestamp.
        #expect(sender.report.packets[0].arrivedAt - first == 1_500_000 - 250_000 + 500_000)
        try sender.read(timestamp: 0xFFFF_8000, [(2, 12, [0])])
        #expect(sender.report.packets[0].arrivedAt - first == 500_000 + 500_000)
    }

    @Test func `a packet counts once, also when its time is not known`() throws {
        var sender = Sender()
        #expect(try sender.read([(2, 10, [0, nil, 0x1FFF, 0x1FFE])]) == [20])
        #expect(sender.report.packets.map(\.sequence) == [20, 22])
        #expect(try sender.read([(2, 10, [5, 5, 5, 5]), (2, 10, [0, 0])]) == [22])
        #expect(sender.report.packets[0].wasReportedLost)
        try sender.read([(2, 10, [nil, nil, nil, nil])])
        #expect(sender.report.packets.isEmpty)
    }

    @Test func `a packet has the ECN field with which it arrived`() throws {
        var sender = Sender()
        try sender.read(ecn: .capable1, [(2, 10, [0, nil])])
        #expect(sender.report.packets.map(\.ecn) == [.capable1, nil])
        try sender.read(ecn: .congestionExperienced, [(2, 11, [0])])
        #expect(sender.report.packets.map(\.ecn) == [.congestionExperienced])
        #expect(sender.report.lateMarks == 0)
    }

    @Test func `of the copies of a packet the marked one counts, once`() throws {
        var sender = Sender()
        try sender.read(ecn: .capable1, [(2, 10, [0, 0, nil, 0x1FFF])])
        try sender.read(ecn: .congestionExperienced, [(2, 10, [0, nil, nil, 0x1FFF]), (2, 10, [0])])
        #expect(sender.report.packets.isEmpty && sender.report.hasNews)
        #expect(sender.report.lateMarks == 2)
        try sender.read(ecn: .congestionExperienced, [(2, 10, [0, 0, 0, 0])])
        #expect(sender.report.packets.map(\.ecn) == [.congestionExperienced])
        #expect(sender.report.lateMarks == 1)
        try sender.read(ecn: .capable1, [(2, 10, [0, 0, 0, 0])])
        #expect(!sender.report.hasNews)
        try sender.read(ecn: .congestionExperienced, [(2, 40_000, [0, 0, 0, 0])])
        #expect(!sender.report.hasNews, "never sent")
    }

    @Test func `packets that were not sent are unknown`() throws {
        var sender = Sender()
        #expect(try sender.read([(2, 499, [0, 0, 0]), (9, 1, [0])]) == [998, 1_000])
        #expect(sender.report.unknownPackets == 2)
        sender.newest = 40_000
        try sender.read([(2, 1, [0])])
        #expect(sender.report.unknownPackets == 1, "too old")
        sender.reader.pathChanged(newest: 40_000)
        #expect(try sender.read([(2, 20_000, [0])]) == [])
    }

    @Test func `one report has bounded work`() throws {
        var sender = Sender()
        let all = [Int?](repeating: 0, count: 10_000)
        #expect(try sender.read([(2, 0, all), (3, 0, all)]).count == 501)
        #expect(sender.report.unknownPackets == 20_000 - 501)
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `reports that lie give nothing twice`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var sender = Sender()
        var received: Set<Int64> = []
        for _ in 0..<300 {
            sender.newest += Int64.random(in: 0...40, using: &generator)
            let streams = (0..<4).map { _ in
                let first = Int(sender.newest) / 2 - Int.random(in: -100...1_200, using: &generator)
                let statuses = (0..<Int.random(in: 0...100, using: &generator)).map { _ -> Int? in
                    Bool.random(using: &generator) ? nil : Int.random(in: 0...0x1FFF, using: &generator)
                }
                return (ssrc: UInt8.random(in: 1...4, using: &generator), first: first & 0xFFFF, statuses)
            }
            let timestamp = UInt32.random(in: 0 ... .max, using: &generator)
            let new = try sender.read(timestamp: timestamp, streams)
            #expect(new.allSatisfy { $0 <= sender.newest && !received.contains($0) })
            received.formUnion(new)
            #expect(sender.report.packets.map(\.sequence) == sender.report.packets.map(\.sequence).sorted())
        }
        #expect(received.count > 1_000)
    }
}
