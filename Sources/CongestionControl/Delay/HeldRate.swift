/// A rate that the path has carried, in bits a second. Media that pause, as a screen that stands still, do not lower it for a
/// minute; then it halves each half minute.
struct HeldRate: Sendable {
    private static let holdTime: Int64 = 60_000_000
    private static let halfLifeSeconds = 30.0
    /// A rate this close says that the path still carries it.
    private static let nearlyAll = 0.9

    private(set) var rate = 0.0
    private var shownAt: Int64 = 0

    /// Takes what the path carried.
    mutating func carried(_ rate: Double, at now: Int64) {
        guard rate >= Self.nearlyAll * self.rate else { return }
        self.rate = max(rate, self.rate)
        shownAt = now
    }

    /// Lets the rate fade.
    /// - Parameter elapsed: seconds since the report before.
    mutating func fade(elapsed: Double, at now: Int64) {
        if now &- shownAt > Self.holdTime { rate *= max(1 - 0.693 * elapsed / Self.halfLifeSeconds, 0) }
    }
}
