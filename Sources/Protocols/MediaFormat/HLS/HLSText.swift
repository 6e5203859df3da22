import Base

/// The notations of playlists (rfc8216bis §4.2).
enum HLSText {
    /// Seconds with five decimals at most, never negative, without trailing zeros.
    static func seconds(_ interval: Interval) -> String {
        let (quotient, rest) = max(interval.nanoseconds, 0).quotientAndRemainder(dividingBy: 10_000)
        let units = quotient + (rest >= 5_000 ? 1 : 0)
        var decimals = String(100_000 + units % 100_000).dropFirst()
        while decimals.last == "0" { decimals = decimals.dropLast() }
        return decimals.isEmpty ? "\(units / 100_000)" : "\(units / 100_000).\(decimals)"
    }

    /// A quoted-string that people read or that other tags repeat, with a space for each character that it cannot have.
    static func name(_ text: String) -> String {
        let allowed = text.unicodeScalars.map { scalar -> Character in
            scalar.value < 0x20 || scalar.value == 0x7F || scalar == "\"" ? " " : Character(scalar)
        }
        return "\"\(String(allowed))\""
    }

    /// The quoted-string of a URI. Quotation marks and control characters, which it cannot have, are percent-encoded.
    static func quoted(_ text: String) -> String { "\"\(uri(text))\"" }

    /// A URI, in which quotation marks, spaces and control characters are percent-encoded: it stays on its line.
    static func uri(_ text: String) -> String {
        var result: [UInt8] = []
        for byte in text.utf8 {
            if byte <= 0x20 || byte == 0x22 || byte == 0x7F {
                result += "%\(hexadecimal(byte).uppercased())".utf8
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
