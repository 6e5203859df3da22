/// When to probe for the rate that the next better layers need. Rates are bits a second.
///
/// Probes that fail follow each other at growing distances, up to 2 s: each costs the path a queue of some 20 ms, and a path that
/// carries more again is found in that time, whatever it was before.
struct UpgradeProbe: Sendable {
    /// A probe shows a little more than what is needed.
    private static let margin = 1.05
    private static let waitMin: Int64 = 500_000
    private static let waitPostponed: Int64 = 1_000_000
    /// With 16 s a picture is back 14 s after its link, with 2 s after two (measured: 3 Mbit/s, 600 kbit/s for 20 s). With 1 s
    /// the queue of a link of 100 kbit/s is twice as long.
    private static let waitMax: Int64 = 2_000_000
    /// A wish that differs by less is the same one.
    private static let tolerance = 0.8...1.25

    private var rate: Double?
    private var wait = UpgradeProbe.waitMin
    private var probedAt = Int64.min / 2
    private var probedRate = 0.0

    /// Takes the rate that the next better layers need.
    mutating func set(_ rate: Double?) {
        self.rate = rate.flatMap { $0 > 0 ? $0 : nil }
        guard let rate = self.rate, probedRate > 0, !Self.tolerance.contains(rate / probedRate) else { return }
        wait = Self.waitMin
        probedRate = 0
    }

    /// Whether a probe showed what is needed, without the margin: a path that it stretched a little carries that much, too.
    func isMet(by rate: Double) -> Bool { probedRate > 0 && rate >= probedRate }

    /// The path was just seen to be full.
    mutating func postpone(at now: Int64) {
        probedAt = now
        wait = Self.waitPostponed
    }

    /// - Returns: the rate to probe now.
    mutating func take(target: Double, at now: Int64) -> Double? {
        guard let rate, rate > target else {
            wait = Self.waitMin
            return nil
        }
        guard now &- probedAt >= wait else { return nil }
        if probedRate > 0 { wait = min(2 * wait, Self.waitMax) }
        probedAt = now
        probedRate = rate
        return Self.margin * rate
    }
}
