/// Wall time as the protocols write it.
enum Timestamp {
    /// RFC 3339 in UTC with microseconds: `2025-01-02T03:04:05.678901Z`.
    static func text(unixNanoseconds: Int64) -> String {
        let (seconds, nanoseconds) = divided(unixNanoseconds, by: 1_000_000_000)
        let (days, second) = divided(seconds, by: 86_400)
        let (year, month, day) = civil(days: days)
        let time = "\(padded(second / 3_600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2))"
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(time).\(padded(nanoseconds / 1_000, 6))Z"
    }

    /// Rounds down, as times before 1970 need it.
    private static func divided(_ value: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let remainder = ((value % divisor) + divisor) % divisor
        return ((value - remainder) / divisor, remainder)
    }

    /// The Gregorian date of a day counted from 1970. Years are taken to begin in March, so that the leap day is a year's
    /// last and months have a regular length; 400 years have 146,097 days.
    private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = divided(days + 719_468, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }

    private static func padded(_ value: Int64, _ width: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(width - text.utf8.count, 0)) + text
    }
}
