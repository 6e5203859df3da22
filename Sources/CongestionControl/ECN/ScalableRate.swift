import Base
import Wire

/// The law of control by CE marks, for a bottleneck with an L4S queue (RFC 9330, RFC 9332).
///
/// Scalable congestion control: each round trip with marks lowers the rate by half of their smoothed share, each one without
/// raises it by one packet a round trip (DCTCP, RFC 8257 §3). It leads while marks come: a path without them is left to the law
/// by delay. Rates are bits a second.
struct ScalableRate: Sendable {
    /// The weight of a round trip's share in the smoothed one.
    private static let gain = 1.0 / 16
    /// What the smoothed share begins with.
    private static let firstShare = 0.25
    private static let packetBits = 9_600.0
    /// Nothing is done more often than this (RFC 9331 §4.3: a shorter round trip counts as this long).
    private static let roundMin: Int64 = 25_000
    /// The most that a second adds.
    private static let growthMax = 2.0
    /// The weight of marks while the queue is shorter than the time of a packet: a slow link marks a packet that waits for one
    /// other.
    private static let weightMin = 0.25
    /// After this long without a mark, the queue is one that does not mark.
    private static let memory: Int64 = 3_000_000
    /// A path that marks nearly everything for this long, though its queue is short, marks whatever is sent.
    private static let senselessShare = 0.95
    private static let senselessTime: Int64 = 3_000_000

    /// The smoothed share of marked packets.
    private(set) var share = 0.0
    private var arrived = 0
    private var marked = 0
    private var roundAt = Int64.min / 2
    private var markedAt: Int64?
    private var allMarkedSince: Int64?

    /// Whether marks come.
    func isLeading(at now: Int64) -> Bool { markedAt.map { now &- $0 < Self.memory } ?? false }

    /// Takes a received packet. Those of a probe cluster are to fill the queue.
    mutating func add(_ packet: PacketResult) {
        guard packet.cluster == 0, let ecn = packet.ecn else { return }
        arrived += 1
        if ecn == .congestionExperienced { marked += 1 }
    }

    /// Takes marks on copies of packets that were reported before.
    mutating func addLateMarks(_ count: Int) { marked = min(marked &+ count, arrived) }

    /// - Parameters:
    ///   - law: what the law by delay makes of the target.
    ///   - isBounded: the queue is longer than the law by delay aims at.
    /// - Returns: the next target rate.
    mutating func next(
        _ target: Double,
        law: Double,
        isBounded: Bool,
        queueMS: Double,
        roundTrip: Int64,
        at now: Int64
    ) -> Double {
        let round = max(roundTrip, Self.roundMin)
        guard now &- roundAt >= round, arrived > 0 else {
            return isLeading(at: now) ? min(law, target) : law
        }
        defer {
            roundAt = now
            (arrived, marked) = (0, 0)
        }
        let wasLeading = isLeading(at: now)
        let marks = Double(marked) / Double(arrived)
        if marks > 0 {
            share = wasLeading ? share : max(share, Self.firstShare)
            markedAt = now
        }
        share += Self.gain * (marks - share)
        allMarkedSince = marks > Self.senselessShare ? allMarkedSince ?? now : nil
        guard isLeading(at: now) else { return law }
        let seconds = Double(round) / 1e6
        let increase = (1 - marks) * min(Self.packetBits / seconds, Self.growthMax * seconds * target)
        let packetMS = Self.packetBits / max(target, 1) * 1e3
        let weight = min(max(queueMS / packetMS, Self.weightMin), 1)
        let next = target * (marks > 0 ? 1 - weight * share / 2 : 1) + increase
        return isBounded ? min(law, next) : next
    }

    /// Whether the path marks all packets, though its queue is short.
    func marksAll(at now: Int64) -> Bool { allMarkedSince.map { now &- $0 > Self.senselessTime } ?? false }
}
