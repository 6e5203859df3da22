import Base
import TestSupport
import Wire

/// Active queue management of a link: the PI controller of DualPI2 (RFC 9332 appendix A) on its one queue, so for links that
/// either L4S senders or others use. Times are microseconds.
struct QueueMarker: Sendable {
    struct Settings: Sendable {
        /// L4S packets that waited longer are marked, in milliseconds; `nil` for a queue that knows classic ECN only.
        var stepMS: Double?
        var targetMS = 15.0
        /// Gains a second.
        var alpha = 0.16
        var beta = 3.2
        /// L4S packets are marked with this many times the root of the probability for others.
        var coupling = 2.0
        var interval: Int64 = 16_000
    }

    /// A step marks no packet that would leave the queue empty.
    private static let backlogMin = 2

    private let settings: Settings
    /// The root of the probability with which classic packets are dropped or marked.
    private var probability = 0.0
    private var updatedAt: Int64 = 0
    private var waitBefore: Int64 = 0

    init(_ settings: Settings) { self.settings = settings }

    private mutating func update(wait: Int64, at now: Int64) {
        while now - updatedAt >= settings.interval {
            updatedAt += settings.interval
            let excess = (Double(wait) - settings.targetMS * 1e3) / 1e6
            let change = Double(wait - waitBefore) / 1e6
            probability = min(max(probability + settings.alpha * excess + settings.beta * change, 0), 1)
            waitBefore = wait
        }
    }

    /// Whether a packet that arrives is dropped.
    mutating func drops(_ packet: Packet, wait: Int64, at now: Int64, using generator: inout SeededGenerator) -> Bool {
        update(wait: wait, at: now)
        return packet.ecn == .notCapable && generator.uniform() < probability * probability
    }

    /// Whether a packet that leaves gets the CE mark.
    mutating func marks(
        _ packet: Packet,
        wait: Int64,
        backlog: Int,
        at now: Int64,
        using generator: inout SeededGenerator
    ) -> Bool {
        update(wait: wait, at: now)
        guard packet.ecn != .notCapable else { return false }
        guard let step = settings.stepMS, packet.ecn == .capable1 else {
            return generator.uniform() < probability * probability
        }
        if Double(wait) > step * 1e3, backlog >= Self.backlogMin { return true }
        return generator.uniform() < settings.coupling * probability
    }
}
