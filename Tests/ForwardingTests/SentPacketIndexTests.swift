import Base
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Packets by their stream and RTP sequence number.
@Suite struct SentPacketIndexTests {
    @Test(arguments: 0..<6 as Range<UInt64>)
    func `the last packets of all streams are found, and no others`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var index = SentPacketIndex()
        defer { index.deallocate() }
        var streams = (0..<12).map { _ in
            (
                ssrc: UInt32.random(in: 0 ... .max, using: &generator),
                next: UInt16.random(in: 0 ... .max, using: &generator)
            )
        }
        var newest = UInt64(UInt16.random(in: 0 ... .max, using: &generator))
        var sent: [(ssrc: SSRC, sequence: SequenceNumber, number: UInt64)] = []
        for _ in 0..<80_000 {
            // A few streams have most packets.
            let stream = min(Int.random(in: 0..<12, using: &generator), Int.random(in: 0..<12, using: &generator))
            newest += 1
            index.insert(streams[stream].ssrc, streams[stream].next, number: newest)
            sent.append(
                (SSRC(rawValue: streams[stream].ssrc), SequenceNumber(rawValue: streams[stream].next), newest)
            )
            streams[stream].next &+= 1
        }
        for packet in sent.suffix(SentPacketRing.capacity) {
            #expect(index.number(of: packet.ssrc, packet.sequence, newest: newest) == packet.number)
        }
        for packet in sent.dropLast(SentPacketRing.capacity).suffix(5_000) {
            #expect(index.number(of: packet.ssrc, packet.sequence, newest: newest) == nil)
        }
        for (ssrc, next) in streams {
            #expect(index.number(of: SSRC(rawValue: ssrc), SequenceNumber(rawValue: next), newest: newest) == nil)
            #expect(index.number(of: SSRC(rawValue: ssrc ^ 1), SequenceNumber(rawValue: next), newest: newest) == nil)
        }
    }

    @Test func `an index without packets holds no memory and finds nothing`() {
        let index = SentPacketIndex()
        #expect(index.footprintBytes == 0)
        #expect(index.number(of: SSRC(rawValue: 0), SequenceNumber(rawValue: 0), newest: 0) == nil)
    }
}
