/// Estimates for how long packets wait in the queue of the bottleneck.
///
/// The first packet of each burst waits only for what was in the queue before it, not for the sender's own burst. The second
/// smallest delay of such packets within 250 ms, less the smallest delay that the path ever showed, is the standing queue: it
/// follows a queue to within a packet's time, where the slope of a regression lags by half a second (measured: steps of the
/// capacity).
struct QueueDelayEstimator: ~Copyable, Sendable {
    struct Burst: BitwiseCopyable {
        var arrivedAt: Int64
        var delay: Int64
    }
    struct Epoch: BitwiseCopyable {
        var startedAt: Int64
        var delay: Int64
    }

    /// Packets further apart than this begin a burst.
    private static let burstGap: Int64 = 4_000
    private static let burstLengthMax: Int64 = 50_000
    private static let window: Int64 = 250_000
    /// The base delay is the least of eight spans of 10 s: a clock that drifts by 50 ppm shifts it by 4 ms at most.
    private static let epochLength: Int64 = 10_000_000
    private static let epochs = 8
    /// A longer delay is a clock that jumped.
    private static let delayMaxMS = 60_000.0
    private static let jitterMaxMS = 30.0

    /// The standing queue in milliseconds.
    private(set) var delayMS = 0.0
    /// The standing queue of the report before, in milliseconds.
    private(set) var previousMS = 0.0
    /// The mean change between two reports while the queue is short, in milliseconds: what the path does by itself.
    private(set) var jitterMS = 2.0
    private var bursts = Ring(capacity: 32, filler: Burst(arrivedAt: 0, delay: 0))
    private var bases = Ring(capacity: 8, filler: Epoch(startedAt: 0, delay: 0))
    private var burstSentAt = Int64.min / 2
    private var lastSentAt = Int64.min / 2

    func prefetch() {
        bursts.prefetch()
        bases.prefetch()
    }

    /// Takes a received packet; packets come in the order of their numbers.
    mutating func add(_ packet: PacketResult) {
        let begins =
            packet.sentAt &- lastSentAt > Self.burstGap || packet.sentAt &- burstSentAt > Self.burstLengthMax
        lastSentAt = packet.sentAt
        guard begins else { return }
        burstSentAt = packet.sentAt
        bursts.append(Burst(arrivedAt: packet.arrivedAt, delay: packet.arrivedAt &- packet.sentAt))
    }

    /// Ends a report.
    /// - Parameters:
    ///   - least: the least delay of the report's packets.
    ///   - newest: the latest arrival in the report.
    mutating func update(least: Int64, newest: Int64, at now: Int64) {
        if let last = bases.last, now &- last.startedAt < Self.epochLength {
            bases[bases.count - 1].delay = min(last.delay, least)
        } else {
            if bases.count == Self.epochs { bases.removeFirst() }
            bases.append(Epoch(startedAt: now, delay: least))
        }
        while bursts.count > 1, newest &- bursts[0].arrivedAt > Self.window { bursts.removeFirst() }
        var first = Int64.max
        var second = Int64.max
        for index in 0..<bursts.count {
            let delay = bursts[index].delay
            if delay < first {
                (first, second) = (delay, first)
            } else if delay < second {
                second = delay
            }
        }
        let delay = bursts.count > 4 ? second : bursts.isEmpty ? least : first
        previousMS = delayMS
        delayMS = min(max(Double(delay &- base) / 1e3, 0), Self.delayMaxMS)
        if delayMS < Self.jitterMaxMS {
            jitterMS += 0.1 * (min(abs(delayMS - previousMS), Self.jitterMaxMS) - jitterMS)
        }
    }

    /// Takes all of the standing queue but `ms` as part of the base delay.
    mutating func acceptAsBase(leaving ms: Double) {
        let base = base &+ Int64(max(delayMS - ms, 0) * 1e3)
        let startedAt = bases.last?.startedAt ?? 0
        bases.removeAll()
        bases.append(Epoch(startedAt: startedAt, delay: base))
        delayMS = min(delayMS, ms)
        previousMS = delayMS
    }

    /// Forgets the path: its clock or its route is another one.
    mutating func reset() { self = QueueDelayEstimator() }

    private var base: Int64 {
        var least = Int64.max
        for index in 0..<bases.count { least = min(least, bases[index].delay) }
        return bases.isEmpty ? 0 : least
    }
}
