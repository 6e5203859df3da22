/// Finds a delay that stays although less is sent: it belongs to the path, not to a queue (a handover, for one).
struct StandingDelay: Sendable {
    private static let delayMinMS = 45.0
    /// Below this range a delay stands still.
    private static let rangeMS = 5.0
    private static let waitUS: Int64 = 1_300_000

    private var since: Int64?
    private var lowMS = 0.0
    private var highMS = 0.0
    /// The target rate when the delay appeared, in bits a second.
    private(set) var targetBefore = 0.0

    /// - Returns: whether the delay has stood still for 1.3 s and four round trips.
    mutating func update(
        delayMS: Double,
        jitterMS: Double,
        target: Double,
        roundTrip: Int64,
        at now: Int64
    ) -> Bool {
        guard delayMS > Self.delayMinMS else {
            since = nil
            return false
        }
        guard let since else {
            targetBefore = target
            restart(delayMS, at: now)
            return false
        }
        lowMS = min(lowMS, delayMS)
        highMS = max(highMS, delayMS)
        if highMS - lowMS > Self.rangeMS + 2 * jitterMS {
            restart(delayMS, at: now)
            return false
        }
        guard now &- since > Self.waitUS &+ 4 &* roundTrip else { return false }
        self.since = nil
        return true
    }

    private mutating func restart(_ delayMS: Double, at now: Int64) {
        since = now
        (lowMS, highMS) = (delayMS, delayMS)
    }
}
