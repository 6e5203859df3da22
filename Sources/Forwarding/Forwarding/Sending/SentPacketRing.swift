package import Base
import CPrefetch
package import CongestionControl
package import Wire

/// The transport-wide sequence numbers of one peer and the packets that the last of them went to.
///
/// The ring has no tags: every number that is taken writes its record, so the last `capacity` numbers are there.
/// Plain memory that its owner frees with `deallocate`.
@safe
package struct SentPacketRing {
    /// Records kept: 5 s at 4 Mbit/s in packets of 1200 bytes, in 16 KiB a peer.
    package static let capacity = 2_048

    private var records: UnsafeMutablePointer<SentPacket>?
    /// The newest number taken, unwrapped: its low 16 bits are the one on the wire.
    package private(set) var newest: UInt64
    private let first: UInt64

    /// - Parameter first: the number before the first one that is taken.
    package init(first: UInt16) {
        newest = UInt64(first)
        self.first = UInt64(first)
    }

    /// Bytes that the ring holds of the machine's memory.
    package var footprintBytes: Int { isAllocated ? Self.capacity * MemoryLayout<SentPacket>.stride : 0 }
    package var isAllocated: Bool { unsafe records != nil }

    /// An instant as a packet's `sentAt` counts it.
    @inline(__always)
    package static func microseconds(_ now: Instant) -> UInt32 {
        UInt32(truncatingIfNeeded: now.nanoseconds / 1_000)
    }

    /// Whether packets are recorded. The ring is allocated with the first of them, so that an idle subscriber has none.
    package var isRecording = false

    @inline(never)
    private mutating func allocate() -> UnsafeMutablePointer<SentPacket> {
        let memory = UnsafeMutablePointer<SentPacket>.allocate(capacity: Self.capacity)
        unsafe memory.initialize(
            repeating: SentPacket(sentAt: 0, bytes: 0, kind: .media),
            count: Self.capacity
        )
        unsafe records = memory
        return unsafe memory
    }

    package mutating func deallocate() {
        isRecording = false
        unsafe records?.deallocate()
        unsafe records = nil
    }

    /// The number that the next packet is written with. It is taken by `record`, so a packet that could not be encrypted
    /// leaves no gap.
    @inline(__always)
    package var next: UInt16 { UInt16(truncatingIfNeeded: newest &+ 1) }

    /// Takes `next` for a packet that leaves.
    @inline(__always)
    package mutating func record(_ packet: SentPacket) {
        newest &+= 1
        guard let records = unsafe records ?? (isRecording ? allocate() : nil) else { return }
        unsafe records[Int(truncatingIfNeeded: newest) & (Self.capacity - 1)] = packet
    }

    /// Asks for the last records, which a report is about.
    func prefetch() {
        guard let records = unsafe records else { return }
        for line in 0..<UInt64(Self.prefetchedLines) {
            let place = Int(truncatingIfNeeded: newest &- 8 &* line) & (Self.capacity - 1)
            unsafe nagare_prefetch(records + place, 1)
        }
    }
    /// With eight records each: those of 100 ms of 3 Mbit/s.
    private static let prefetchedLines = 5

    /// The packet that took an unwrapped number left again under it. Reports on it do not tell which of the two arrived.
    package mutating func repeated(_ number: UInt64) {
        guard let packet = self[number: number], let records = unsafe records else { return }
        unsafe records[Int(truncatingIfNeeded: number) & (Self.capacity - 1)] = SentPacket(
            sentAt: packet.sentAt,
            bytes: Int(packet.bytes),
            kind: .repeated,
            cluster: packet.cluster
        )
    }

    /// Numbers taken since the first one.
    package var count: UInt64 { newest - first }

    /// The packet that took a number, counted from 0 for the first one; `nil` when it is overwritten or was not recorded.
    package subscript(taken index: UInt64) -> SentPacket? { self[number: first &+ 1 &+ index] }

    /// The packet that took an unwrapped number; `nil` when none did, when it is overwritten or was not recorded.
    package subscript(number number: UInt64) -> SentPacket? {
        guard let records = unsafe records, number > first, number <= newest,
            newest - number < UInt64(Self.capacity)
        else { return nil }
        return unsafe records[Int(truncatingIfNeeded: number) & (Self.capacity - 1)]
    }

    /// UDP payload bytes of the packets from one on, counted from 0 for the first one.
    package func bytes(from index: UInt64) -> Int {
        var sum = 0
        var index = index
        while index < count {
            sum += self[taken: index].map { Int($0.bytes) } ?? 0
            index += 1
        }
        return sum
    }

    /// The share of retransmissions in the bytes that left within a time of at most 71 minutes, 0…1.
    package func retransmissionShare(since start: Instant, until end: Instant) -> Double {
        let length = Self.microseconds(end) &- Self.microseconds(start)
        var (all, retransmitted) = (0, 0)
        var index = count
        while index > 0, let packet = self[taken: index - 1] {
            guard Self.microseconds(end) &- packet.sentAt <= length else { break }
            all += Int(packet.bytes)
            switch packet.kind {
            case .media, .padding: break
            case .retransmission: retransmitted += Int(packet.bytes)
            case .repeated:
                all += Int(packet.bytes)
                retransmitted += Int(packet.bytes)
            }
            index -= 1
        }
        return all == 0 ? 0 : Double(retransmitted) / Double(all)
    }

    /// The packet that left with a number; `nil` when none did, or so long ago that it is overwritten.
    package subscript(number: TransportSequenceNumber) -> SentPacket? {
        let age = UInt16(truncatingIfNeeded: newest) &- number.rawValue
        guard let records = unsafe records, Int(age) < Self.capacity, UInt64(age) < newest - first else { return nil }
        return unsafe records[Int(truncatingIfNeeded: newest &- UInt64(age)) & (Self.capacity - 1)]
    }
}
