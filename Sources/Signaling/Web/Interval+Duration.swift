import Base

extension Interval {
    /// The duration in whole nanoseconds, clamped.
    package init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let (nanoseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        self.init(nanoseconds: overflow ? .max : nanoseconds &+ attoseconds / 1_000_000_000)
    }
}
