/// What a path was measured to carry while its queue never emptied, in bits a second: the path carries that and no more.
///
/// It holds until more is delivered, a probe cluster passes at a higher rate, or nothing has confirmed it for a while.
struct BusyRate: Sendable {
    /// A queue of this length over half a second leaves no time in which the link was idle.
    private static let queueMinMS = 50.0
    private static let timeMin: Int64 = 500_000
    /// Rates that differ by less are the same one: deliveries are measured over 400 ms.
    private static let tolerance = 1.1
    /// Without probes the path is tried again after this.
    private static let ageMax: Int64 = 30_000_000

    /// `nil` while it is not known.
    private(set) var rate: Double?
    private var busySince: Int64?
    private var confirmedAt: Int64 = 0

    /// Takes the queue of a report and the rate at which packets arrive.
    mutating func observe(queueMS: Double, jitterMS: Double, delivered: Double, at now: Int64) {
        if let rate, delivered > Self.tolerance * rate { self.rate = nil }
        guard queueMS > Self.queueMinMS + jitterMS else {
            busySince = nil
            return
        }
        let since = busySince ?? now
        busySince = since
        guard now &- since >= Self.timeMin else { return }
        rate = delivered
        confirmedAt = now
    }

    /// Takes what a probe cluster showed.
    mutating func probed(_ outcome: ProbePlanner.Outcome, jitterMS: Double, at now: Int64) {
        if outcome.isSaturated {
            if outcome.stretchMS > Self.queueMinMS + jitterMS { rate = min(rate ?? outcome.rate, outcome.rate) }
            confirmedAt = now
        } else if let rate, outcome.rate > rate {
            self.rate = nil
        }
    }

    mutating func handleTimeout(at now: Int64) { if now &- confirmedAt > Self.ageMax { rate = nil } }
}
