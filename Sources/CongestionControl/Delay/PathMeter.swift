/// What reports say of a path: its standing queue, what it delivers and what its bottleneck carries. Rates are in bits a second.
struct PathMeter: ~Copyable, Sendable {
    /// The link where no pair of packets tells.
    private static let linkUnknown = 2_500_000.0
    /// Pictures of one packet make no pairs, so such a link is often a thin one: it likely carries this many times the
    /// delivered rate at most (measured: a start on 300 kbit/s has a queue of 119 ms with 3, of 289 without).
    private static let linkUnknownMax = 3.0
    /// A hint counts for this many times the delivered rate: in an empty path it says nothing (measured: five senders that
    /// share need 8).
    private static let linkMax = 8.0
    /// Alone, a sender gets what pairs of packets measure.
    private static let aloneRatio = 1.25
    /// A sender is a newcomer for this long and while the bottleneck carries this many times what it gets (measured: with 3 s
    /// the third of three flows waits 9 s for its share, with a ratio of 4 15 s).
    private static let newcomerUS: Int64 = 4_000_000
    private static let newcomerRatio = 2.0
    /// Reports may claim no more than what was sent, and the queue that the path delivers on top of it.
    private static let deliveredMax = 1.25
    private static let provenSeconds = 30.0
    /// Arrivals that moved by this against the reports are of another clock (libwebrtc: 3 s).
    private static let clockJump: Int64 = 3_000_000
    private static let roundTripLimits: ClosedRange<Int64> = 1_000...10_000_000

    /// Microseconds; 200 ms until it is known.
    private(set) var roundTrip: Int64 = 200_000
    /// The rate at which packets arrive.
    private(set) var delivered = 0.0
    /// The same within the last 200 ms. It is made when it is asked for.
    var deliveredRecently: Double { min(delivery.recent(newest: newestBefore ?? 0), Self.deliveredMax * sent.peak) }
    private(set) var queue = QueueDelayEstimator()
    private(set) var sent = SentRate()
    private var delivery = DeliveryRate()
    private var capacity = CapacityHint()
    private var newestBefore: Int64?
    /// The highest number of a packet in a report.
    private var highest: Int64 = 0
    private var proven = 0.0

    /// What pairs of packets tell of the bottleneck.
    var hint: Double? { capacity.rate }

    /// Whether nearly all pairs agree on that.
    var isHintAgreed: Bool { capacity.isAgreed }

    /// What the bottleneck carries in all, as far as it is known; at least what is delivered.
    var link: Double {
        guard let hint = capacity.rate else { return max(Self.linkUnknown, delivered) }
        return max(min(hint, max(Self.linkMax * delivered, Self.linkUnknown)), delivered)
    }

    /// `link`, but no more than three times the delivered rate while no pair of packets tells: for the law by delay. A sender that
    /// others starve of a link needs the whole one.
    var likelyLink: Double { hint == nil ? max(min(link, Self.linkUnknownMax * delivered), delivered) : link }

    /// `link`, or more if more was delivered within the last seconds.
    var wholeLink: Double { max(link, proven) }

    /// Whether the bottleneck carries nothing but this sender's packets.
    var isAlone: Bool { capacity.rate.map { $0 < Self.aloneRatio * delivered } ?? false }

    /// Whether the sender began, or goes on after a pause, and others have more of the bottleneck than it.
    func isNewcomer(at now: Int64) -> Bool {
        guard let hint = capacity.rate, let startedAt = sent.startedAt else { return false }
        return now &- startedAt < Self.newcomerUS && hint > Self.newcomerRatio * delivered
    }

    /// The queue in milliseconds that the law of control aims at.
    var goalMS: Double { DelayController.goalMS(delivered: delivered, link: likelyLink) }

    mutating func packetsSent(bytes: Int, last: Int, at now: Int64) { sent.add(bytes, last: last, at: now) }

    func prefetch() {
        queue.prefetch()
        sent.prefetch()
        delivery.prefetch()
        capacity.prefetch()
    }

    /// Takes the standing delay as the path's own.
    mutating func acceptDelay() { queue.acceptAsBase(leaving: 1) }

    /// Takes a report of which a packet arrived.
    /// - Parameter sinceReport: microseconds since the report before.
    mutating func take(_ report: borrowing FeedbackReport, sinceReport: Int64) {
        let now = report.arrivedAt
        var newest = Int64.min
        var least = Int64.max
        for packet in report.packets where packet.isReceived {
            newest = max(newest, packet.arrivedAt)
            least = min(least, packet.arrivedAt &- packet.sentAt)
        }
        checkClock(newest: newest, sinceReport: sinceReport)
        var followsGap = noteGap(report)
        var shortest = Int64.max
        for packet in report.packets where packet.isReceived {
            shortest = min(shortest, now &- packet.sentAt &- (newest &- packet.arrivedAt))
            queue.add(packet)
            delivery.add(packet, followsGap: followsGap)
            followsGap = false
            capacity.add(packet)
        }
        roundTrip = min(max(shortest, Self.roundTripLimits.lowerBound), Self.roundTripLimits.upperBound)
        capacity.update()
        queue.update(least: least, newest: newest, at: now)
        delivered = min(delivery.update(newest: newest), Self.deliveredMax * sent.peak)
    }

    /// - Returns: whether packets before those of the report are in no report: theirs was lost.
    private mutating func noteGap(_ report: borrowing FeedbackReport) -> Bool {
        guard let last = report.packets.last?.sequence, last > highest else { return false }
        defer { highest = last }
        guard let first = report.packets.first(where: { $0.sequence > highest }), highest > 0 else { return false }
        return first.sequence > highest &+ 1
    }

    /// Lets the proven rate fade.
    mutating func prove(elapsed: Double) { proven = max(delivered, proven * (1 - elapsed / Self.provenSeconds)) }

    private mutating func checkClock(newest: Int64, sinceReport: Int64) {
        if let newestBefore {
            let jump = newest &- newestBefore &- sinceReport
            if jump > Self.clockJump || jump < -Self.clockJump {
                queue.reset()
                delivery.reset()
                capacity.reset()
            }
        }
        newestBefore = newest
    }
}
