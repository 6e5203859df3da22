/// One block of a redundant audio payload (RFC 2198 §3).
public struct REDBlock: Hashable, Sendable {
    /// The format of the block.
    public let payloadType: PayloadType
    /// The byte whose low seven bits are the payload type; its top bit says that another block's header follows.
    public let headerOffset: Int
    /// How much older than the packet's timestamp the block is, in ticks; 0 for the primary one.
    public let timestampOffset: UInt16
    /// Where the block's data lies in the payload.
    public let range: Range<Int>
    /// The last block: the packet's own.
    public let isPrimary: Bool
}

/// Walks the blocks of a redundant audio payload, the oldest first as they stand.
public struct REDBlockCursor: ~Escapable {
    /// Blocks in one payload. Senders use up to 9 redundant ones.
    public static let blocksMax = 32

    private let payload: RawSpan
    private var headerOffset = 0
    private var dataOffset: Int

    /// `nil` when the headers or the blocks reach past the payload, or there are more than 32.
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

    /// The next block; `nil` behind the primary one.
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
