import CongestionControl
import Testing
import Wire

@testable import Forwarding

/// The record of what left with a transport-wide sequence number.
@Suite struct SentPacketRingTests {
    private static func packet(_ count: Int) -> SentPacket {
        let kind = count % 2 == 0 ? SentKind.media : .retransmission
        return SentPacket(sentAt: UInt32(count), bytes: count % 1_500, kind: kind)
    }

    @Test func `a record takes a store of eight bytes`() {
        #expect(MemoryLayout<SentPacket>.stride == 8)
        #expect(SentPacketRing.capacity.nonzeroBitCount == 1)
    }

    @Test(arguments: [0, 7, 0xFFF0] as [UInt16])
    func `the last packets are found by their number, and no others`(first: UInt16) {
        var ring = SentPacketRing(first: first)
        ring.isRecording = true
        defer { ring.deallocate() }
        #expect(ring[TransportSequenceNumber(rawValue: first)] == nil)
        let count = SentPacketRing.capacity + 100
        for index in 1...count {
            #expect(ring.next == first &+ UInt16(truncatingIfNeeded: index))
            ring.record(Self.packet(index))
        }
        for index in 0...count + 1 {
            let number = TransportSequenceNumber(rawValue: first &+ UInt16(truncatingIfNeeded: index))
            let isKept = index > count - SentPacketRing.capacity && index <= count
            #expect(ring[number] == (isKept ? Self.packet(index) : nil), "\(index)")
        }
    }

    @Test func `a packet that leaves again keeps its number and its time, and its bytes count twice`() throws {
        var ring = SentPacketRing(first: 7)
        ring.isRecording = true
        defer { ring.deallocate() }
        for time in [1_000, 2_000] as [UInt32] {
            ring.record(SentPacket(sentAt: time, bytes: 500, kind: .media, cluster: 2))
        }
        ring.repeated(8)
        ring.repeated(100)
        #expect(ring.count == 2)
        #expect(
            ring[number: 8] == SentPacket(sentAt: 1_000, bytes: 500, kind: .repeated, cluster: 2)
        )
        #expect(ring[number: 9]?.kind == .media)
        let share = ring.retransmissionShare(since: .ms(0), until: .ms(3))
        #expect(abs(share - 1.0 / 3) < 0.001)
    }

    @Test func `a number is taken only by a packet that leaves`() {
        var ring = SentPacketRing(first: 0xFFFF)
        #expect(ring.next == 0 && ring.next == 0)
        ring.record(Self.packet(1))
        #expect(ring.next == 1)
    }

    @Test func `without negotiated numbers there is no memory and no record`() {
        var ring = SentPacketRing(first: 3)
        ring.record(Self.packet(1))
        #expect(ring.footprintBytes == 0)
        #expect(ring[TransportSequenceNumber(rawValue: 4)] == nil)
        ring.isRecording = true
        defer { ring.deallocate() }
        #expect(ring.footprintBytes == 0)
        ring.record(Self.packet(2))
        #expect(ring.footprintBytes == SentPacketRing.capacity * 8)
    }
}
