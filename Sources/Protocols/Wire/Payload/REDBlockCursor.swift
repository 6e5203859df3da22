import Base

/// One block of a redundant audio payload (RFC 2198 §3).
public struct REDBlock: Hashable, Sendable {
    /// The format of the block.
    public let payloadType: PayloadType
    /// The offset of the byte with the payload type in its low seven bits. Its top bit is set when another block header
    /// follows.
    public let headerOffset: Int
    /// The age of the block relative to the packet's timestamp, in ticks; 0 for the primary block.
    public let timestampOffset: UInt16
    /// The position of the block's data in the payload.
    public let range: Range<Int>
    /// Whether this is the primary block, which is the last one.
    public let isPrimary: Bool
}

/// Iterates over the blocks of a redundant audio payload, oldest first.
public struct REDBlockCursor: ~Escapable {
    /// The most blocks of one payload. Senders use up to 9 redundant ones.
    public static let blocksMax = 32

    private let payload: RawSpan
    private var headerOffset = 0
    private var dataOffset: Int

    /// `nil` when the headers or the blocks exceed the payload, or when there are more than 32.
    @_lifetime(copy payload)
    public init?(_ payload: RawSpan) {
        var offset = 0
        var dataLength = 0
        var count = 1
        while true {
            guard offset < payload.byteCount else { return nil }
            if payload.byte(at: offset) & 0x80 == 0 { break }
            guard payload.byteCount - offset >= 4, count < Self.blocksMax else { return nil }
            dataLength += Int(payload.bigEndianUInt16(at: offset + 2) & 0x3FF)
            offset += 4
            count += 1
        }
        guard dataLength <= payload.byteCount - offset - 1 else { return nil }
        self.payload = payload
        dataOffset = offset + 1
    }

    /// The next block; `nil` after the primary block.
    @_lifetime(self: copy self)
    public mutating func next() -> REDBlock? {
        guard headerOffset < payload.byteCount else { return nil }
        let offset = headerOffset
        let start = dataOffset
        let type = PayloadType(wire: payload.byte(at: offset))
        guard payload.byte(at: offset) & 0x80 != 0 else {
            headerOffset = payload.byteCount
            return REDBlock(
                payloadType: type,
                headerOffset: offset,
                timestampOffset: 0,
                range: start..<payload.byteCount,
                isPrimary: true
            )
        }
        let word = payload.bigEndianUInt24(at: offset + 1)
        headerOffset = offset + 4
        dataOffset = start + Int(word & 0x3FF)
        return REDBlock(
            payloadType: type,
            headerOffset: offset,
            timestampOffset: UInt16(word >> 10),
            range: start..<dataOffset,
            isPrimary: false
        )
    }
}
