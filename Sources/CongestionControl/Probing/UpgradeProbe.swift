/// When to probe for the rate that the next better layers need. Rates are bits a second.
///
/// Probes that fail follow each other at growing distances, up to 2 s: each costs the path a queue of some 20 ms, and a path that
/// carries more again is found in that time, whatever it was before.
///
/// Layers that the path did not carry are barred for a while although the target suffices for them: others used what a short probe
/// found free. Longer probes look whether they still do.
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
    /// A look takes three pictures of others, who send each for itself. What it sends too much makes a queue of some 25 ms.
    private static let lookUS = 100_000.0

    private var rate: Double?
    private var wait = UpgradeProbe.waitMin
    private var probedAt = Int64.min / 2
    private var probedRate = 0.0
    private var isBarred = false
    private var isLooking = false
    /// Looks of late that the path carried, one after the other.
    private(set) var carriedLooks = 0

    /// Takes the rate that the next better layers need.
    /// - Parameter isBarred: whether the target alone does not decide about them.
    mutating func set(_ rate: Double?, isBarred: Bool = false) {
        self.rate = rate.flatMap { $0 > 0 ? $0 : nil }
        if self.rate == nil || !isBarred { (isLooking, carriedLooks) = (false, 0) }
        self.isBarred = isBarred
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

    /// Takes what a probe cluster showed.
    mutating func probed(isCarried: Bool) {
        guard isLooking else { return }
        isLooking = false
        carriedLooks = isCarried ? carriedLooks &+ 1 : 0
    }

    /// - Returns: the rate to probe now, and how long in microseconds.
    mutating func take(target: Double, at now: Int64) -> (rate: Double, durationUS: Double)? {
        guard let rate, isBarred || rate > target else {
            wait = Self.waitMin
            return nil
        }
        let isLook = rate <= target
        guard now &- probedAt >= (isLook ? Self.waitMax : wait) else { return nil }
        if isLooking { probed(isCarried: false) }
        isLooking = isLook
        if probedRate > 0 { wait = min(2 * wait, Self.waitMax) }
        probedAt = now
        probedRate = rate
        return (Self.margin * rate, isLook ? Self.lookUS : ProbeCluster.durationUS)
    }
}
