/// The law of control by loss, for a bottleneck whose queue others keep full.
///
/// A little loss is TCP's way to share, so the rate rises until the loss passes it, between three and six tenths of the
/// bottleneck (measured: a share of .49 beside a long TCP transfer at a queue of 300 ms and .30 at 1 s, .61 beside short ones;
/// the law by delay alone .08, .08 and .12). Rates are in bits a second.
struct CompetingFlowController: Sendable {
    private static let lossMax = 0.03
    /// The rise a second, as a share of the bottleneck.
    private static let growth = 0.1
    private static let shareMax = 0.6
    private static let decrease = 0.8
    /// The span of the measured loss, so that one event lowers the rate once.
    private static let decreasePause: Int64 = 1_000_000
    private static let emptyMS = 20.0
    private static let emptyWait: Int64 = 1_000_000
    /// Nothing rises above this many times what arrives.
    private static let deliveredMax = 1.4
    /// What a sender keeps of the bottleneck while it loses few packets.
    static let share = 0.3

    private var queuedAt = Int64.min / 2
    private var decreasedAt = Int64.min / 2

    mutating func begin(at now: Int64) { queuedAt = now }

    /// - Returns: whether the queue has been empty for a second: the others are gone.
    mutating func isEmpty(queueMS: Double, at now: Int64) -> Bool {
        if queueMS > Self.emptyMS { queuedAt = now }
        return now &- queuedAt > Self.emptyWait
    }

    /// - Parameters:
    ///   - loss: the share of packets lost above the path's own.
    ///   - link: what the bottleneck carries in all.
    /// - Returns: the next target rate.
    mutating func next(
        _ target: Double,
        loss: Double,
        delivered: Double,
        link: Double,
        elapsed: Double,
        at now: Int64
    ) -> Double {
        guard loss > Self.lossMax else {
            guard target < Self.deliveredMax * delivered else { return target }
            return min(target + Self.growth * link * elapsed, max(Self.shareMax * link, target))
        }
        guard now &- decreasedAt > Self.decreasePause else { return target }
        decreasedAt = now
        let share = loss > 0.15 ? 0.05 : loss > 0.08 ? 0.15 : Self.share
        return max(Self.decrease * target, min(target, share * link))
    }
}
