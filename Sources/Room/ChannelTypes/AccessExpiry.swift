/// The expiry of what a client presented to join: its token or its signed URL.
package struct AccessExpiry: Hashable, Sendable, Codable {
    /// How long before its expiry a token's client is warned, in seconds.
    package static let tokenWarningSeconds: Int64 = 30
    /// The same for a signed URL.
    package static let urlWarningSeconds: Int64 = 60

    /// In seconds since 1970.
    package var unixSeconds: Int64
    /// How long before the expiry the client is warned.
    package var warningSeconds: Int64

    package init(unixSeconds: Int64, warningSeconds: Int64 = Self.tokenWarningSeconds) {
        self.unixSeconds = unixSeconds
        self.warningSeconds = warningSeconds
    }

    /// Nanoseconds to the expiry, clamped to 64 bits; 0 or less if it is past.
    /// - Parameter unixNanoseconds: from when on, in nanoseconds since 1970 UTC.
    package func nanoseconds(from unixNanoseconds: Int64) -> Int64 {
        let (expiry, overflows) = unixSeconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflows else { return unixSeconds < 0 ? .min : .max }
        let (wait, isFar) = expiry.subtractingReportingOverflow(unixNanoseconds)
        return isFar ? (expiry < 0 ? .min : .max) : wait
    }
}
