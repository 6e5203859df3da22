#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Wall clock time as text.
package enum Timestamp {
    private static let nanosecondsPerSecond: Int64 = 1_000_000_000

    /// RFC 3339 in UTC: `2025-01-02T03:04:05Z`.
    static func text(unixSeconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(unixSeconds)).formatted(.iso8601)
    }

    /// RFC 3339 in UTC with microseconds, truncated: `2025-01-02T03:04:05.678901Z`. Foundation formats milliseconds at most,
    /// so this adds the fraction.
    package static func text(unixNanoseconds: Int64) -> String {
        // Times before 1970 round down too, so that the fraction is never negative.
        let remainder = unixNanoseconds % nanosecondsPerSecond
        let fraction = remainder < 0 ? remainder + nanosecondsPerSecond : remainder
        let seconds = (unixNanoseconds - remainder) / nanosecondsPerSecond - (remainder < 0 ? 1 : 0)
        let second = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
        // A million and the microseconds have seven digits, of which the last six are those of the fraction.
        return "\(second.dropLast()).\(String(1_000_000 + fraction / 1_000).dropFirst())Z"
    }
}
