package import Base

/// The payload of a synthetic packet, from which its receiver measures loss, duplicates, order and delay end to end.
package struct MediaStamp: Hashable, Sendable {
    package static let length = 32
    private static let magic: UInt32 = 0x6E61_6761

    /// The number of the source.
    package var source: UInt32
    /// Counts the source's packets from 0.
    package var packet: UInt32
    /// Counts the source's frames from 0; for audio equal to `packet`.
    package var frame: UInt32
    package var indexInFrame: UInt16
    package var packetsInFrame: UInt16
    package var isKeyFrame: Bool
    /// The time of sending on the sender's monotonic clock.
    package var sentAt: Instant

    package init(
        source: UInt32,
        packet: UInt32,
        frame: UInt32,
        indexInFrame: UInt16 = 0,
        packetsInFrame: UInt16 = 1,
        isKeyFrame: Bool = true,
        sentAt: Instant
    ) {
        self.source = source
        self.packet = packet
        self.frame = frame
        self.indexInFrame = indexInFrame
        self.packetsInFrame = packetsInFrame
        self.isKeyFrame = isKeyFrame
        self.sentAt = sentAt
    }

    /// Reads a stamp at the start of `bytes`; `nil` when there is none.
    package init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= Self.length, bytes.bigEndianUInt32(at: 0) == Self.magic else { return nil }
        source = bytes.bigEndianUInt32(at: 4)
        packet = bytes.bigEndianUInt32(at: 8)
        frame = bytes.bigEndianUInt32(at: 12)
        indexInFrame = bytes.bigEndianUInt16(at: 16)
        packetsInFrame = bytes.bigEndianUInt16(at: 18)
        isKeyFrame = bytes.byte(at: 20) != 0
        sentAt = Instant(nanoseconds: Int64(bitPattern: bytes.bigEndianUInt64(at: 24)))
    }

    package func append(to bytes: inout [UInt8]) {
        bytes.append(bigEndian: Self.magic)
        bytes.append(bigEndian: source)
        bytes.append(bigEndian: packet)
        bytes.append(bigEndian: frame)
        bytes.append(bigEndian: indexInFrame)
        bytes.append(bigEndian: packetsInFrame)
        bytes.append(isKeyFrame ? 1 : 0)
        for _ in 0..<3 { bytes.append(0) }
        bytes.append(bigEndian: UInt64(bitPattern: sentAt.nanoseconds))
    }
}
