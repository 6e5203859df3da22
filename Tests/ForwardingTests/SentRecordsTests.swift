import Base
import Testing
import Wire

@testable import Forwarding

/// The memory of what a link's datagrams carried.
@Suite struct SentRecordsTests {
    private static func record(_ number: Int) -> SentRecords.Record {
        SentRecords.Record(
            relay: MirrorID(place: 1, generation: 0),
            repairs: 0,
            stream: 7,
            sequence: ExtendedSequenceNumber(rawValue: Int64(number))
        )
    }

    /// Datagrams without packets have counters too, so the two rings end their laps at different times.
    @Test(arguments: [(240, 1), (600, 2), (1_200, 4), (100_000, 32)])
    func `the memory is what half a second of the rate needs`(perSecond: Int, factor: Int) {
        var records = SentRecords()
        var now = Instant(nanoseconds: 1_000_000_000)
        var counter: UInt64 = 0
        var first = 0
        for number in 0..<perSecond * 20 {
            counter += number % 12 == 0 ? 2 : 1
            records.note(Self.record(number), in: counter, at: now)
            if first == 0 { first = records.footprintBytes }
            now += Interval(nanoseconds: Int64(1_000_000_000 / perSecond))
        }
        #expect(records.footprintBytes == first * factor)
        let range = records.take(counter)
        #expect(range.count == 1)
        #expect(range.first.flatMap { records.record($0) }?.sequence.rawValue == Int64(perSecond * 20 - 1))
        #expect(records.take(counter).isEmpty, "a datagram is asked for once")
    }

    /// Datagrams with several packets use up the places of packets before those of datagrams.
    @Test func `a packet that was overwritten is not taken for the one in its place`() {
        var records = SentRecords()
        var now = Instant(nanoseconds: 1_000_000_000)
        // So slow that the memory stays at its 256 packets.
        for number in 0..<300 {
            records.note(Self.record(number), in: UInt64(1 + number / 4), at: now)
            now += .milliseconds(10)
        }
        var packets: [[Int64?]] = []
        for range in [records.take(1), records.take(12)] {
            packets.append(range.map { records.record($0)?.sequence.rawValue })
        }
        #expect(packets == [[nil, nil, nil, nil], [44, 45, 46, 47]])
    }
}
