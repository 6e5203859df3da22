package import Base

/// The conditions of one direction of a network link: its bandwidth, its delay, and what it loses.
///
/// The default link carries everything at once.
package struct LinkConditions: Hashable, Sendable {
    /// A bit rate that applies from a time on.
    package struct RateStep: Hashable, Sendable {
        /// Bits of IP packets per second; 0 for a link that holds its packets until the next step.
        package var bitsPerSecond: Int
        /// The time since the link's start.
        package var start: Interval

        package init(bitsPerSecond: Int, start: Interval = .zero) {
            self.bitsPerSecond = bitsPerSecond
            self.start = start
        }
    }

    /// The maximum length of the queue before the bottleneck. A packet that exceeds it is dropped (drop-tail).
    package enum QueueLimit: Hashable, Sendable {
        /// The time that the packets in the queue take to leave at the present rate.
        case time(Interval)
        /// Bytes of IP packets.
        case bytes(Int)
        case packets(Int)
    }

    /// A token bucket that drops what exceeds it and delays nothing.
    package struct Policer: Hashable, Sendable {
        /// Bits of IP packets per second.
        package var bitsPerSecond: Int
        /// The largest burst.
        package var bucketBytes: Int

        package init(bitsPerSecond: Int, bucketBytes: Int) {
            self.bitsPerSecond = bitsPerSecond
            self.bucketBytes = bucketBytes
        }
    }

    /// Loss in bursts: a Gilbert-Elliott model that loses nothing in its good state and everything in its bad state.
    package struct BurstLoss: Hashable, Sendable {
        /// The share of all packets that is lost, 0..<1.
        package var share: Double
        /// The mean number of packets in a burst, at least 1.
        package var meanLength: Double

        package init(share: Double, meanLength: Double) {
            self.share = share
            self.meanLength = meanLength
        }

        /// The probability that a packet in the good state starts a burst.
        var startProbability: Double { min(share / max(1 - share, 1e-9) / meanLength, 1) }
        /// The probability that a packet in the bad state is the last of its burst.
        var endProbability: Double { 1 / meanLength }
    }

    /// The rates in the order of their starts, the first from zero; empty for a link without a bottleneck.
    package var rates: [RateStep] = []
    /// The queue before the bottleneck; unused without ``rates``.
    package var queueLimit = QueueLimit.time(.milliseconds(300))
    /// The propagation delay of each packet.
    package var delay = Interval.zero
    /// A further delay, uniformly from zero. It keeps the order of packets.
    package var jitter = Interval.zero
    /// The share of packets that is lost independently of others, 0...1.
    package var loss = 0.0
    package var burstLoss: BurstLoss?
    package var policer: Policer?
    /// The share of packets that are held back by ``reorderDelay`` while others pass, 0...1.
    package var reordering = 0.0
    package var reorderDelay = Interval.milliseconds(20)
    /// The share of packets that arrive twice, 0...1.
    package var duplication = 0.0
    /// Times since the link's start in which every packet that is sent is lost.
    package var outages: [Range<Interval>] = []

    package init() {}

    /// The rate at a time since the link's start; `nil` without a bottleneck.
    func rate(at time: Interval) -> RateStep? { rates.last { $0.start <= time } ?? rates.first }

    /// The start of the first step after `time`.
    func nextStep(after time: Interval) -> Interval? { rates.first { $0.start > time }?.start }
}
