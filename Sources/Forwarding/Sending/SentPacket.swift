package import Wire

/// Why a datagram was sent.
package enum SentKind: UInt8, BitwiseCopyable, Sendable {
    case media, retransmission, padding, rtcp
}

/// One packet that left with a transport-wide sequence number: what a bandwidth estimator matches reports against.
package struct SentPacket: BitwiseCopyable, Equatable, Sendable {
    /// When it left, in microseconds of the loop's clock modulo 2³²: 71 minutes.
    package let sentAtMicroseconds: UInt32
    /// UDP payload bytes.
    package let bytes: UInt16
    package let kind: SentKind

    @inline(__always)
    package init(sentAtMicroseconds: UInt32, bytes: Int, kind: SentKind) {
        self.sentAtMicroseconds = sentAtMicroseconds
        self.bytes = UInt16(truncatingIfNeeded: bytes)
        self.kind = kind
    }

    /// An instant as `sentAtMicroseconds` counts it.
    @inline(__always)
    package static func microseconds(_ now: Instant) -> UInt32 {
        UInt32(truncatingIfNeeded: now.nanoseconds / 1_000)
    }
}

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
    private var newest: UInt64
    private let first: UInt64

    /// - Parameter first: the number before the first one that is taken.
    package init(first: UInt16) {
        newest = UInt64(first)
        self.first = UInt64(first)
    }

    /// Bytes that the ring holds of the machine's memory.
    package var footprintBytes: Int { isAllocated ? Self.capacity * MemoryLayout<SentPacket>.stride : 0 }
    package var isAllocated: Bool { unsafe records != nil }

    /// Whether packets are recorded. The ring is allocated with the first of them, so that an idle subscriber has none.
    package var isRecording = false

    @inline(never)
    private mutating func allocate() -> UnsafeMutablePointer<SentPacket> {
        let memory = UnsafeMutablePointer<SentPacket>.allocate(capacity: Self.capacity)
        unsafe memory.initialize(
            repeating: SentPacket(sentAtMicroseconds: 0, bytes: 0, kind: .media),
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

    /// The packet that left with a number; `nil` when none did, or so long ago that it is overwritten.
    package subscript(number: TransportSequenceNumber) -> SentPacket? {
        let age = UInt16(truncatingIfNeeded: newest) &- number.rawValue
        guard let records = unsafe records, Int(age) < Self.capacity, UInt64(age) < newest - first else { return nil }
        return unsafe records[Int(truncatingIfNeeded: newest &- UInt64(age)) & (Self.capacity - 1)]
    }
}
