/// Wall clock time as text: RFC 3339 in UTC.
package enum Timestamp {
    private static let secondsPerDay: Int64 = 86_400
    /// The years 0000 to 9999, which four digits tell.
    private static let seconds: ClosedRange<Int64> = -62_167_219_200...253_402_300_799

    /// `2025-01-02T03:04:05Z`. Times that four digits do not tell the year of count as the first or the last of them.
    package static func text(unixSeconds: Int64) -> String { second(unixSeconds) + "Z" }

    /// With milliseconds: `2025-01-02T03:04:05.678Z`.
    package static func text(unixMilliseconds: Int64) -> String { text(unixMilliseconds, 1_000) }

    /// With microseconds, truncated: `2025-01-02T03:04:05.678901Z`.
    package static func text(unixNanoseconds: Int64) -> String {
        text(floored(unixNanoseconds, 1_000).quotient, 1_000_000)
    }

    /// - Parameter units: in a second, a power of ten.
    private static func text(_ count: Int64, _ units: Int64) -> String {
        let (seconds, fraction) = floored(count, units)
        // The units and the fraction have one digit more than the fraction alone.
        return "\(second(seconds)).\(String(units + fraction).dropFirst())Z"
    }

    /// Rounded down, so that the rest is never negative.
    private static func floored(_ value: Int64, _ divisor: Int64) -> (quotient: Int64, rest: Int64) {
        let (quotient, rest) = value.quotientAndRemainder(dividingBy: divisor)
        return rest < 0 ? (quotient - 1, rest + divisor) : (quotient, rest)
    }

    private static func second(_ unixSeconds: Int64) -> String {
        let clamped = min(max(unixSeconds, seconds.lowerBound), seconds.upperBound)
        let (days, rest) = floored(clamped, secondsPerDay)
        // Eras of 400 years that begin in March, so that the leap day is the last of a year.
        let (era, day) = floored(days + 719_468, 146_097)
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * year + year / 4 - year / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let dayOfMonth = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let calendarYear = year + era * 400 + (month <= 2 ? 1 : 0)
        let date = "\(digits(calendarYear, 4))-\(digits(month, 2))-\(digits(dayOfMonth, 2))"
        return "\(date)T\(digits(rest / 3_600, 2)):\(digits(rest / 60 % 60, 2)):\(digits(rest % 60, 2))"
    }

    private static func digits(_ value: Int64, _ count: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(count - text.count, 0)) + text
    }
}
