import Base

/// Remembers upgrades that the path did not carry, and bars the like of them for a while: 5 s after the first, and twice as
/// long after each further one, up to a minute. Each minute of calm halves that, and so many probes in a row that the path carried as
/// upgrades failed end it: others have left the path.
struct UpgradeBackoff: Sendable {
    /// An upgrade fails when layers are taken away again within this time.
    static let trial = Interval.seconds(5)
    private static let calm = Interval.seconds(60)
    private static let durations: [5 of Interval] = [
        .seconds(5), .seconds(10), .seconds(20), .seconds(40), .seconds(60),
    ]
    /// A rate above that of the failed upgrade by this factor says that the path changed.
    private static let changedFactor = 1.2
    /// The part of the failed cost that is still allowed.
    private static let allowedPart = 0.85

    /// The newest upgrade: when it was, the rate then, and the cost of everything after it.
    private var upgrade: (at: Instant, rate: Int, cost: Int)?
    private var failed: (rate: Int, cost: Int)?
    private var failedAt = Instant(nanoseconds: 0)
    private var until: Instant?
    /// How many durations to skip next time. Small, and behind an optional value: an allocator is copied as a whole.
    private var failures: UInt8 = 0

    mutating func upgraded(to cost: Int, rate: Int, at now: Instant) { upgrade = (now, rate, cost) }

    /// Layers were taken away because the rate does not suffice for them.
    mutating func downgraded(from cost: Int, at now: Instant) {
        guard let upgrade, now - upgrade.at < Self.trial else { return }
        self.upgrade = nil
        failures = failuresLeft(at: now)
        failedAt = now
        let last = UInt8(Self.durations.count - 1)
        until = now + Self.durations[Int(min(failures, last))]
        failures = min(failures &+ 1, last)
        failed = (upgrade.rate, max(upgrade.cost, cost))
    }

    /// Takes how many times in a row the path carried a probe at the rate of the barred layers.
    mutating func looked(_ carried: Int, at now: Instant) {
        if carried >= max(Int(failures), 1), now - failedAt >= Self.durations[0], let until, until > now {
            self.until = now
        }
    }

    private func failuresLeft(at now: Instant) -> UInt8 {
        guard let until, now > until else { return failures }
        return UInt8(max(0, Int64(failures) - (now - until).nanoseconds / Self.calm.nanoseconds))
    }

    /// The highest cost that an upgrade may reach now at a rate; `nil` without a limit.
    /// - Parameter bottleneck: what the path's bottleneck carries, bit/s; `nil` while that is not known.
    func limit(atRate rate: Int, bottleneck: Int? = nil, at now: Instant) -> Int? {
        guard let until, now < until, let failed, Double(rate) < Double(failed.rate) * Self.changedFactor
        else { return nil }
        if let bottleneck, Double(bottleneck) >= Double(failed.cost) * Self.changedFactor { return nil }
        return Int(Double(failed.cost) * Self.allowedPart)
    }

    /// When the limit ends; `nil` without one.
    func end(after now: Instant) -> Instant? { until.flatMap { $0 > now ? $0 : nil } }
}
