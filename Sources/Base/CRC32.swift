/// The CRC-32 of ISO/IEC 3309 and ITU-T V.42, for FINGERPRINT of STUN (RFC 8489 §14.7).
package enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 0 ? value >> 1 : value >> 1 ^ 0xEDB8_8320 }
    }

    /// The checksum of `bytes`.
    package static func checksum(_ bytes: RawSpan) -> UInt32 {
        let table = table
        var value: UInt32 = 0xFFFF_FFFF
        for offset in 0..<bytes.byteCount {
            value = table[Int((value ^ UInt32(bytes.byte(at: offset))) & 0xFF)] ^ value >> 8
        }
        return ~value
    }
}
