import Base
import CongestionControl
import TestSupport
import Testing
import Wire

/// The content of one feedback packet: arrival times in ticks since the clock's start, modulo 2³².
private struct Feedback: Equatable {
    var base: UInt16
    var number: UInt8
    var arrivals: [Int?]
    var length: Int
}

struct TransportFeedbackGeneratorTests {
    static let start = Instant(nanoseconds: 10_000_000_000)

    /// Generates all feedback packets that are due.
    private func drain(_ generator: inout TransportFeedbackGenerator, at now: Instant) throws -> [Feedback] {
        var found: [Feedback] = []
        var writer = RTCPWriter()
        while generator.makeFeedback(
            at: now,
            writer: &writer,
            senderSSRC: SSRC(rawValue: 1),
            mediaSSRC: SSRC(rawValue: 2)
        ) {
            let bytes = writer.bytes
            writer.removeAll()
            let packet = try RTCPPacketView(unsafe bytes.span.bytes)
            #expect(packet.senderSSRC == SSRC(rawValue: 1))
            #expect(packet.mediaSSRC == SSRC(rawValue: 2))
            #expect(bytes.count <= 1200)
            var arrivals: [Int?] = []
            if var cursor = packet.makeTransportFeedbackCursor() {
                while let status = cursor.next() {
                    arrivals.append(status.arrivalTicks.map { cursor.referenceTime * 256 + $0 })
                }
                found.append(
                    Feedback(
                        base: cursor.base.rawValue,
                        number: cursor.feedbackCount,
                        arrivals: arrivals,
                        length: bytes.count
                    )
                )
            } else {
                Issue.record("unreadable feedback")
            }
            guard found.count < 10_000 else { break }
        }
        #expect(generator.nextDeadline == nil)
        return found
    }

    /// The ticks at `milliseconds` after the start.
    private func ticks(_ milliseconds: Int) -> Int { 40_000 + 4 * milliseconds }

    private func receive(
        _ generator: inout TransportFeedbackGenerator,
        _ arrivals: [(number: UInt16, milliseconds: Int)]
    ) {
        for arrival in arrivals {
            generator.received(
                TransportSequenceNumber(rawValue: arrival.number),
                at: Self.start + .milliseconds(arrival.milliseconds)
            )
        }
    }

    @Test(
        arguments: [
            ("in order", [(7, 0), (8, 5), (9, 10)], 7, [0, 5, 10]),
            ("loss", [(7, 0), (10, 5)], 7, [0, nil, nil, 5]),
            ("reordered", [(7, 0), (9, 5), (8, 6)], 7, [0, 6, 5]),
            ("the first ones reordered", [(8, 0), (7, 1)], 7, [1, 0]),
            ("duplicates keep the first arrival", [(7, 0), (7, 3), (8, 4), (7, 9)], 7, [0, 4]),
            ("wrap", [(65534, 0), (65535, 1), (1, 3)], 65534, [0, 1, nil, 3]),
            ("reordered over the wrap", [(0, 0), (65535, 1)], 65535, [1, 0]),
        ] as [(String, [(UInt16, Int)], UInt16, [Int?])]
    )
    func `one feedback reports`(
        name: String,
        arrivals: [(UInt16, Int)],
        base: UInt16,
        expected: [Int?]
    ) throws {
        var generator = TransportFeedbackGenerator()
        receive(&generator, arrivals.map { (number: $0.0, milliseconds: $0.1) })
        let found = try drain(&generator, at: Self.start + .milliseconds(100))
        #expect(found.count == 1)
        #expect(found.first?.base == base)
        #expect(found.first?.arrivals == expected.map { $0.map { ticks($0) } })
    }

    @Test func `no feedback is due for a silent peer`() throws {
        var generator = TransportFeedbackGenerator()
        #expect(generator.nextDeadline == nil)
        #expect(try drain(&generator, at: Self.start).isEmpty)
        receive(&generator, [(1, 0)])
        #expect(generator.nextDeadline == Self.start + .milliseconds(100))
        #expect(try drain(&generator, at: Self.start + .milliseconds(100)).count == 1)
        #expect(try drain(&generator, at: Self.start + .seconds(60)).isEmpty)
        // The first packet after a silence is reported at once, without loss.
        receive(&generator, [(2, 60_000)])
        #expect(generator.nextDeadline == Self.start + .seconds(60))
        #expect(try drain(&generator, at: Self.start + .seconds(60)).map(\.arrivals) == [[ticks(60_000)]])
    }

    @Test(arguments: [(10, 50), (50, 50), (100, 100), (250, 250), (1000, 250)])
    func `the interval is clamped to its limits`(asked: Int, kept: Int) {
        var generator = TransportFeedbackGenerator(interval: .milliseconds(asked))
        receive(&generator, [(1, 0)])
        #expect(generator.nextDeadline == Self.start + .milliseconds(kept))
        generator.interval = .milliseconds(asked)
        #expect(generator.interval == .milliseconds(kept))
    }

    @Test func `each packet is reported once, and the next feedback continues after it`() throws {
        var generator = TransportFeedbackGenerator()
        receive(&generator, [(1, 0), (2, 1)])
        _ = try drain(&generator, at: Self.start + .milliseconds(100))
        receive(&generator, [(4, 120)])
        #expect(generator.nextDeadline == Self.start + .milliseconds(200))
        let found = try drain(&generator, at: Self.start + .milliseconds(200))
        #expect(found.map(\.base) == [3])
        #expect(found.map(\.number) == [1])
        #expect(found.first?.arrivals == [nil, ticks(120)])
    }

    @Test func `a packet that was reported as lost is reported when it arrives`() throws {
        var generator = TransportFeedbackGenerator()
        receive(&generator, [(1, 0), (3, 1)])
        _ = try drain(&generator, at: Self.start + .milliseconds(100))
        receive(&generator, [(2, 150)])
        let found = try drain(&generator, at: Self.start + .milliseconds(200))
        #expect(found.map(\.base) == [2])
        #expect(found.first?.arrivals == [ticks(150), ticks(1)])
    }

    @Test func `a packet that arrives after the back window is ignored`() throws {
        var generator = TransportFeedbackGenerator()
        receive(&generator, [(1, 0), (3, 1), (4, 2)])
        _ = try drain(&generator, at: Self.start + .milliseconds(100))
        receive(&generator, [(5, 700)])
        _ = try drain(&generator, at: Self.start + .milliseconds(700))
        receive(&generator, [(2, 800)])
        #expect(generator.nextDeadline == nil)
    }

    @Test func `the feedback count wraps at 256`() throws {
        var generator = TransportFeedbackGenerator()
        for index in 0..<300 {
            receive(&generator, [(UInt16(index), index * 100)])
            let found = try drain(&generator, at: Self.start + .milliseconds(index * 100 + 100))
            #expect(found.map(\.number) == [UInt8(index & 0xFF)])
        }
    }

    @Test func `sequence numbers wrap several times`() throws {
        var generator = TransportFeedbackGenerator()
        var number: UInt16 = 65000
        for turn in 0..<200 {
            receive(&generator, (0..<997).map { (number: number &+ UInt16($0), milliseconds: turn * 100 + $0 / 10) })
            let found = try drain(&generator, at: Self.start + .milliseconds(turn * 100 + 100))
            #expect(found.first?.base == number)
            #expect(found.flatMap(\.arrivals).count == 997)
            #expect(!found.flatMap(\.arrivals).contains(nil))
            number &+= 997
        }
    }

    @Test func `the reference time wraps at 24 bits`() throws {
        var generator = TransportFeedbackGenerator()
        let wrap = Instant(nanoseconds: 0x100_0000 * 64_000_000)
        generator.received(TransportSequenceNumber(rawValue: 1), at: wrap - .milliseconds(1))
        generator.received(TransportSequenceNumber(rawValue: 2), at: wrap + .milliseconds(1))
        let found = try drain(&generator, at: wrap + .milliseconds(100))
        #expect(found.map(\.arrivals) == [[-4, 4]])
    }

    @Test(arguments: [8191, 8192, 20_000, 32_767])
    func `a jump beyond the window restarts the window, a smaller one is loss`(jump: Int) throws {
        var generator = TransportFeedbackGenerator()
        receive(&generator, [(100, 0), (100 + UInt16(jump), 1)])
        let arrivals = try drain(&generator, at: Self.start + .milliseconds(100)).flatMap(\.arrivals)
        #expect(arrivals.last == ticks(1))
        #expect(arrivals.count == (jump <= 8191 ? jump + 1 : jump == 8192 ? 8192 : 1))
    }

    @Test func `a sender that restarts before the window is followed after some packets`() throws {
        var generator = TransportFeedbackGenerator()
        receive(&generator, [(30_000, 0)])
        _ = try drain(&generator, at: Self.start + .milliseconds(100))
        receive(&generator, (0..<100).map { (number: UInt16(10 + $0), milliseconds: 200 + $0) })
        let found = try drain(&generator, at: Self.start + .milliseconds(300))
        #expect(found.map(\.base) == [73])
        #expect(found.flatMap(\.arrivals).count == 37)
    }

    @Test func `arrivals too far apart for a delta go into separate packets`() throws {
        var generator = TransportFeedbackGenerator()
        // 8,191.75 ms is the largest 16-bit delta, in both directions because of reordering.
        receive(&generator, [(1, 0), (2, 8191), (4, 20_000), (3, 30_000)])
        let found = try drain(&generator, at: Self.start + .seconds(30))
        #expect(found.map(\.base) == [1, 3, 4])
        #expect(found.map(\.number) == [0, 1, 2])
        #expect(found.map(\.arrivals) == [[ticks(0), ticks(8191)], [ticks(30_000)], [ticks(20_000)]])
    }

    @Test func `no packet exceeds the size limit, and every arrival is reported`() throws {
        var random = SeededGenerator(seed: 17)
        for bytesMax in [64, 200, 1200] {
            var generator = TransportFeedbackGenerator(bytesMax: bytesMax)
            var sent: [(number: UInt16, milliseconds: Int)] = []
            for index in 0..<6000 where index == 0 || !random.next().isMultiple(of: 5) {
                sent.append((UInt16(truncatingIfNeeded: 64_000 + index), index / 60))
            }
            receive(&generator, sent)
            let found = try drain(&generator, at: Self.start + .milliseconds(200))
            #expect(found.allSatisfy { $0.length <= bytesMax })
            var reported: [UInt16] = []
            for feedback in found {
                for (index, arrival) in feedback.arrivals.enumerated() where arrival != nil {
                    reported.append(feedback.base &+ UInt16(index))
                }
            }
            #expect(reported == sent.map(\.number))
        }
    }

    @Test func `no sequence of numbers and times traps`() throws {
        var random = SeededGenerator(seed: 19)
        var generator = TransportFeedbackGenerator()
        var now = Self.start
        for round in 0..<40_000 {
            now += .microseconds(Int(random.next() % 5000))
            let dice = random.next()
            let step = dice & 15 == 0 ? UInt16(truncatingIfNeeded: dice >> 16) : UInt16(round & 0xFFFF)
            generator.received(TransportSequenceNumber(rawValue: step), at: now)
            if let deadline = generator.nextDeadline, now >= deadline { _ = try drain(&generator, at: now) }
        }
    }
}
