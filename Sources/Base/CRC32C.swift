/// The CRC-32C (Castagnoli), the checksum of SCTP packets (RFC 9260 appendix A). Incremental, eight bytes a step.
package struct CRC32C: Sendable {
    /// Eight tables of 256: the k-th is for a byte that k more bytes follow.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for index in 0..<256 {
            tables[index] = (0..<8).reduce(UInt32(index)) { value, _ in
                value & 1 == 0 ? value >> 1 : value >> 1 ^ 0x82F6_3B78
            }
        }
        for index in 256..<tables.count {
            let previous = tables[index - 256]
            tables[index] = tables[Int(previous & 0xFF)] ^ previous >> 8
        }
        return tables
    }()

    private var state: UInt32 = 0xFFFF_FFFF

    package init() {}

    /// The checksum of all bytes so far.
    package var value: UInt32 { ~state }

    /// Adds bytes.
    package mutating func update(_ bytes: RawSpan) {
        let tables = Self.tables.span
        var value = state
        var offset = 0
        while bytes.byteCount - offset >= 8 {
            let low = value ^ bytes.bigEndianUInt32(at: offset).byteSwapped
            let high = bytes.bigEndianUInt32(at: offset + 4).byteSwapped
            value = tables[Int(0x700 | low & 0xFF)]
            value ^= tables[Int(0x600 | low >> 8 & 0xFF)]
            value ^= tables[Int(0x500 | low >> 16 & 0xFF)]
            value ^= tables[Int(0x400 | low >> 24)]
            value ^= tables[Int(0x300 | high & 0xFF)]
            value ^= tables[Int(0x200 | high >> 8 & 0xFF)]
            value ^= tables[Int(0x100 | high >> 16 & 0xFF)]
            value ^= tables[Int(high >> 24)]
            offset += 8
        }
        while offset < bytes.byteCount {
            value = tables[Int((value ^ UInt32(bytes.byte(at: offset))) & 0xFF)] ^ value >> 8
            offset += 1
        }
        state = value
    }

    /// Adds bytes that are zero.
    package mutating func updateZeros(_ count: Int) {
        let tables = Self.tables.span
        for _ in 0..<count { state = tables[Int(state & 0xFF)] ^ state >> 8 }
    }
}
