/// A subscriber of the testbed: its media, its path and its reports. Times are seconds, rates bits a second.
struct FlowSettings: Sendable {
    var startAt = 0.0
    var endAt = Double.infinity
    /// Nothing is sent in these times.
    var pauses: [ClosedRange<Double>] = []
    /// The base delay of each direction, in milliseconds.
    var baseDelayMS = 50.0
    /// The most that the video would use.
    var demand = 6e6
    /// Another demand from these times on.
    var demandSteps: [(at: Double, rate: Double)] = []
    /// The links of the packets, in their order.
    var route = [0]
    /// The links of the reports; without one, reports take the base delay only.
    var reportRoute: [Int] = []
    /// Packets leave as ECT(1), and reports have the ECN fields.
    var usesECN = false
    /// Milliseconds between reports.
    var reportMS = 100.0
    /// The share of reports that are lost, and how many at once.
    var reportLoss: (share: Double, burst: Int)?
    /// All reports are lost in this time.
    var reportsOff: ClosedRange<Double>?
    /// Milliseconds by which reports are late from these times on.
    var reportDelay: [(at: Double, ms: Double)] = []

    /// The demand of the video at a time; 0 while nothing is sent.
    func demand(at seconds: Double) -> Double {
        guard seconds >= startAt, seconds < endAt, !pauses.contains(where: { $0.contains(seconds) }) else { return 0 }
        return demandSteps.last { $0.at <= seconds }?.rate ?? demand
    }

    func reportDelay(at seconds: Double) -> Int64 {
        Int64((baseDelayMS + (reportDelay.last { $0.at <= seconds }?.ms ?? 0)) * 1_000)
    }
}
