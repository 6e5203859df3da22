/// Decides when to probe and reads the results.
///
/// Only a cluster that the path carried without stretching it proves a rate: of one that it stretched, cross traffic makes the
/// result too large (measured: three flows). Steps up of the capacity need no probe: the law of control takes them in 3 s.
struct ProbePlanner: Sendable {
    private struct Outstanding {
        var cluster: ProbeCluster
        /// When it was planned, then when it was taken to be sent.
        var startedAt: Int64
        var rate: Double?
        var isSaturated = false
        var stretchMS = 0.0
    }

    private struct Span {
        var cluster: UInt8 = 0
        var firstSentAt: Int64 = 0
        var firstArrivedAt: Int64 = 0
        var lastSentAt: Int64 = 0
        var lastArrivedAt: Int64 = 0
        /// Of all packets after the first one, media between those of the cluster included.
        var bytes = 0
        /// Of packets after the last one of the cluster so far, and when the last of them left.
        var bytesAfter = 0
        var afterSentAt = Int64.min
    }

    /// What a cluster showed.
    struct Outcome: Equatable {
        /// Bits a second.
        var rate: Double
        var isSaturated: Bool
        /// How much longer it took to arrive than to leave, in milliseconds: the queue that it made.
        var stretchMS = 0.0
        /// The rate that the cluster was sent at.
        var clusterRate: Double
    }

    /// A cluster that left slower than this share of its rate says nothing.
    private static let sendShareMin = 0.8
    /// A cluster that arrives within this many times the span in which it left, and 1 ms, has not been stretched.
    private static let stretchMax = 1.08
    private static let stretchSlack = 1_000.0
    /// Media beside a cluster raise its result to this many times its rate at most.
    private static let rateMax = 1.5
    private static let waitMax: Int64 = 1_000_000

    private var estimator = ProbeEstimator()
    private var pending: ProbeCluster?
    private var outstanding: Outstanding?
    private var span = Span()
    private var nextID: UInt8 = 1
    /// A cluster that waits for the next tick: bits a second, and how long it takes in microseconds.
    private var waiting: (rate: Double, durationUS: Double)?
    /// Without it no cluster is planned.
    var isEnabled: Bool

    init(isEnabled: Bool) { self.isEnabled = isEnabled }

    /// Whether a cluster is to be sent now.
    var hasPending: Bool { pending != nil }

    /// Whether no cluster is under way or planned.
    var isIdle: Bool { pending == nil && outstanding == nil && waiting == nil }

    /// Whether reports may tell of a cluster.
    var isUnderWay: Bool { outstanding != nil }

    /// Plans a cluster that begins at the next tick, in place of one under way.
    mutating func planNext(_ rate: Double, durationUS: Double = ProbeCluster.durationUS) {
        if isEnabled { waiting = (rate, durationUS) }
    }

    /// Plans a cluster, unless one is under way.
    mutating func plan(_ rate: Double, durationUS: Double = ProbeCluster.durationUS, at now: Int64) {
        guard isEnabled, pending == nil, outstanding == nil else { return }
        let cluster = ProbeCluster(id: nextID, rate: rate, durationUS: durationUS)
        nextID = nextID == .max ? 1 : nextID + 1
        estimator.begin(cluster)
        pending = cluster
        outstanding = Outstanding(cluster: cluster, startedAt: now)
    }

    mutating func handleTimeout(at now: Int64) {
        if pending != nil, let outstanding, now &- outstanding.startedAt > Self.waitMax { cancel() }
        guard let waiting, pending == nil else { return }
        outstanding = nil
        self.waiting = nil
        plan(waiting.rate, durationUS: waiting.durationUS, at: now)
    }

    /// - Returns: the cluster to send now.
    mutating func take(at now: Int64) -> ProbeCluster? {
        guard let pending else { return nil }
        self.pending = nil
        outstanding?.startedAt = now
        return pending
    }

    mutating func cancel() {
        pending = nil
        outstanding = nil
        waiting = nil
    }

    /// Takes a received packet, of a cluster or between its packets.
    mutating func add(_ packet: PacketResult, jitterMS: Double) {
        guard let cluster = outstanding?.cluster else { return }
        guard packet.cluster == cluster.id else {
            if span.cluster == cluster.id, packet.sentAt >= span.lastSentAt {
                span.bytesAfter += packet.bytes
                span.afterSentAt = max(span.afterSentAt, packet.sentAt)
            }
            return
        }
        if packet.cluster != span.cluster {
            span = Span(
                cluster: packet.cluster,
                firstSentAt: packet.sentAt,
                firstArrivedAt: packet.arrivedAt,
                lastSentAt: packet.sentAt,
                lastArrivedAt: packet.arrivedAt
            )
        } else {
            // Packets that left after this one are not between those of the cluster.
            span.bytes += packet.bytes + (span.afterSentAt <= packet.sentAt ? span.bytesAfter : 0)
            (span.bytesAfter, span.afterSentAt) = (0, .min)
        }
        // Reports may name the packets in any order.
        span.firstSentAt = min(span.firstSentAt, packet.sentAt)
        span.firstArrivedAt = min(span.firstArrivedAt, packet.arrivedAt)
        span.lastSentAt = max(span.lastSentAt, packet.sentAt)
        span.lastArrivedAt = max(span.lastArrivedAt, packet.arrivedAt)
        guard let result = estimator.add(packet), result.sendRate >= Self.sendShareMin * cluster.rate else { return }
        let sent = Double(span.lastSentAt &- span.firstSentAt)
        let received = Double(span.lastArrivedAt &- span.firstArrivedAt)
        outstanding?.isSaturated = received > Self.stretchMax * sent + Self.stretchSlack * (1 + jitterMS)
        outstanding?.stretchMS = (received - sent) / 1e3
        let rate = Double(span.bytes) * 8e6 / max(sent, received, 1_000)
        outstanding?.rate = min(max(result.rate, rate), Self.rateMax * cluster.rate)
    }

    /// - Returns: what the cluster under way showed, once all of it can have been reported.
    mutating func outcome(roundTrip: Int64, at now: Int64) -> Outcome? {
        guard let outstanding, pending == nil else { return nil }
        let age = now &- outstanding.startedAt
        if let rate = outstanding.rate, age > roundTrip {
            self.outstanding = nil
            return Outcome(
                rate: rate,
                isSaturated: outstanding.isSaturated,
                stretchMS: outstanding.stretchMS,
                clusterRate: outstanding.cluster.rate
            )
        }
        if age > Self.waitMax &+ roundTrip { self.outstanding = nil }
        return nil
    }
}
