/// Crockford's Base32: digits and upper-case letters without I, L, O and U.
package enum Crockford {
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    package static func isSymbol(_ byte: UInt8) -> Bool { alphabet.contains(byte) }

    /// The 128 bits of 26 symbols; `nil` for anything else, lower case and letters that only look alike included.
    package static func value(_ text: some StringProtocol) -> UInt128? {
        guard text.utf8.count == 26, let first = text.utf8.first, first <= UInt8(ascii: "7") else { return nil }
        return digits(text)
    }

    /// The 25 bits of 5 symbols; `nil` for anything else.
    package static func shortValue(_ text: some StringProtocol) -> UInt32? {
        guard text.utf8.count == 5 else { return nil }
        return digits(text).map { UInt32(truncatingIfNeeded: $0) }
    }

    private static func digits(_ text: some StringProtocol) -> UInt128? {
        var value: UInt128 = 0
        for byte in text.utf8 {
            guard let digit = alphabet.firstIndex(of: byte) else { return nil }
            value = value << 5 | UInt128(digit)
        }
        return value
    }

    /// The low 25 bits as 5 symbols, most significant first.
    package static func shortText(_ value: UInt32) -> String {
        let symbols = (0..<5).map { alphabet[Int(value >> UInt32(20 - 5 * $0)) & 31] }
        return String(decoding: symbols, as: UTF8.self)
    }

    /// 128 bits as 26 symbols, most significant first; the first symbol carries three bits.
    package static func text(high: UInt64, low: UInt64) -> String {
        let value = UInt128(high) << 64 | UInt128(low)
        let symbols = (0..<26).map { alphabet[Int(truncatingIfNeeded: value >> UInt128(125 - 5 * $0)) & 31] }
        return String(decoding: symbols, as: UTF8.self)
    }
}
