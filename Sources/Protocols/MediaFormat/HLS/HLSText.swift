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

    /// A date and time in UTC with milliseconds (ISO 8601).
    /// - Parameter milliseconds: since 1970; times before it count as 1970, those after 9999 as its end.
    static func date(milliseconds: Int64) -> String {
        let clamped = min(max(milliseconds, 0), 253_402_300_799_999)
        let (days, rest) = (clamped / 86_400_000, clamped % 86_400_000)
        // Eras of 400 years that begin in March, so that the leap day is the last of a year.
        let shifted = days + 719_468
        let (era, day) = (shifted / 146_097, shifted % 146_097)
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * year + year / 4 - year / 100)
        let month = (5 * dayOfYear + 2) / 153
        let dayOfMonth = dayOfYear - (153 * month + 2) / 5 + 1
        let calendarMonth = month < 10 ? month + 3 : month - 9
        let calendarYear = year + era * 400 + (calendarMonth <= 2 ? 1 : 0)
        let time = [rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60].map { twoDigits(Int($0)) }
        let fraction = String(1_000 + rest % 1_000).dropFirst()
        let date = "\(calendarYear)-\(twoDigits(Int(calendarMonth)))-\(twoDigits(Int(dayOfMonth)))"
        return "\(date)T\(time.joined(separator: ":")).\(fraction)Z"
    }
}
