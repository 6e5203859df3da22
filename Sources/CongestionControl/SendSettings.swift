extension SendController {
    /// What bounds the target rate of one subscriber. Rates are bits a second from the IP header on.
    package struct Settings: Equatable, Sendable {
        /// The target rate never falls below this, unless the maximum is lower.
        package var minimum: Double
        /// The target rate before the first report.
        package var start: Double
        /// The target rate never exceeds this.
        package var maximum: Double
        /// Without it no probe clusters are planned: the rate rises only as media show that the path carries more.
        package var isProbing: Bool
        /// Packets leave as ECT(1) as long as the path carries the mark, and reports say with which ECN field they arrive.
        package var usesECN: Bool

        package init(
            minimum: Double = 5_000,
            start: Double = 300_000,
            maximum: Double = 20_000_000,
            isProbing: Bool = true,
            usesECN: Bool = false
        ) {
            self.minimum = minimum
            self.start = start
            self.maximum = maximum
            self.isProbing = isProbing
            self.usesECN = usesECN
        }
    }
}
