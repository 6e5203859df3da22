package import Base

/// Counts of what one direction of a link did.
package struct LinkStatistics: Hashable, Sendable {
    package var packetsSent = 0
    package var packetsDelivered = 0
    /// Bytes of IP packets that passed the bottleneck.
    package var bytesDelivered = 0
    package var duplicates = 0
    /// Packets that a full queue dropped.
    package var queueDrops = 0
    package var policerDrops = 0
    /// Packets lost at random, in bursts or independently.
    package var lost = 0
    package var outageDrops = 0
    /// The longest time in the queue of a packet that passed the bottleneck.
    package var queueDelayMax = Interval.zero

    package init() {}

    package var packetsDropped: Int { queueDrops + policerDrops + lost + outageDrops }

    /// Adds the counts of another link; of the longest times, the longer one.
    package mutating func add(_ other: LinkStatistics) {
        packetsSent += other.packetsSent
        packetsDelivered += other.packetsDelivered
        bytesDelivered += other.bytesDelivered
        duplicates += other.duplicates
        queueDrops += other.queueDrops
        policerDrops += other.policerDrops
        lost += other.lost
        outageDrops += other.outageDrops
        queueDelayMax = max(queueDelayMax, other.queueDelayMax)
    }
}

/// One direction of a link with ``LinkConditions``: packets go in and come out later, fewer or in another order.
///
/// A packet passes, in this order: outages, random loss, the policer, a FIFO queue, the bottleneck, and the delay. The same
/// seed and the same input give the same output, at whatever times it is polled.
package struct ImpairedLink<Payload> {
    /// IPv4 and UDP headers (RFC 791, RFC 768).
    package static var overheadV4: Int { 28 }
    /// IPv6 and UDP headers (RFC 8200, RFC 768).
    package static var overheadV6: Int { 48 }
    /// The most packets of the queue, whatever its limit.
    package static var packetsMax: Int { 20_000 }

    private struct Packet {
        let payload: Payload
        let bytes: Int
        let sentAt: Instant
        /// Added to the propagation delay.
        let jitter: Interval
        let isHeldBack: Bool
        /// The jitter of the second copy.
        let copyJitter: Interval?
    }

    private var conditions: LinkConditions
    private let start: Instant
    private var random: SplitMix64
    private var isInBurst = false
    private var policerTokens: Double
    private var policerTime: Instant

    private var queue: [Packet] = []
    private var queueHead = 0
    /// Bytes of the packets in the queue, the one in transmission included.
    package private(set) var queueBytes = 0
    /// When the first packet of the queue has left; `nil` while the queue is empty or the rate stays zero.
    private var departure: Instant?
    /// When the packet before the first one left.
    private var lastDeparture: Instant

    private var inFlight = DeliveryHeap<Payload>()
    private var lastInOrder: Instant
    package private(set) var statistics = LinkStatistics()

    /// - Parameters:
    ///   - seed: the seed of all random decisions.
    ///   - start: the time zero of rate steps and outages.
    package init(_ conditions: LinkConditions, seed: UInt64, start: Instant) {
        self.conditions = conditions
        self.start = start
        random = SplitMix64(seed: seed)
        policerTokens = Double(conditions.policer?.bucketBytes ?? 0)
        policerTime = start
        lastDeparture = start
        lastInOrder = start
    }

    // MARK: Input

    /// Sends a packet into the link.
    /// - Parameters:
    ///   - bytes: the length of the IP packet: the datagram and its ``overheadV4`` or ``overheadV6``.
    ///   - now: not before any earlier call.
    package mutating func send(_ payload: Payload, bytes: Int, at now: Instant) {
        advance(to: now)
        statistics.packetsSent += 1
        let time = now - start
        guard !conditions.outages.contains(where: { $0.contains(time) }) else {
            statistics.outageDrops += 1
            return
        }
        guard !isLost() else {
            statistics.lost += 1
            return
        }
        guard conformsToPolicer(bytes, at: now) else {
            statistics.policerDrops += 1
            return
        }
        let packet = Packet(
            payload: payload,
            bytes: bytes,
            sentAt: now,
            jitter: drawJitter(),
            isHeldBack: random.chance(conditions.reordering),
            copyJitter: random.chance(conditions.duplication) ? drawJitter() : nil
        )
        guard let rate = conditions.rate(at: time) else {
            depart(packet, at: now)
            return
        }
        guard fits(bytes, rate: rate.bitsPerSecond) else {
            statistics.queueDrops += 1
            return
        }
        queue.append(packet)
        queueBytes += bytes
        if queueCount == 1 { scheduleDeparture() }
    }

    /// Changes the conditions. Packets that have passed the bottleneck keep their delivery times.
    package mutating func change(to conditions: LinkConditions, at now: Instant) {
        advance(to: now)
        if conditions.policer != self.conditions.policer {
            policerTokens = Double(conditions.policer?.bucketBytes ?? 0)
            policerTime = now
        }
        self.conditions = conditions
        isInBurst = isInBurst && conditions.burstLoss != nil
        guard queueCount > 0 else { return }
        guard !conditions.rates.isEmpty else {
            while queueCount > 0 { depart(takeFirst(), at: now) }
            return
        }
        // The packet in transmission starts again at the new rate.
        lastDeparture = now
        scheduleDeparture()
    }

    // MARK: Output

    /// When a packet leaves the bottleneck or arrives next.
    package var nextDeadline: Instant? { earliest(departure, inFlight.first?.deliverAt) }

    /// The next packet that has arrived by `now`, in the order of arrival.
    package mutating func receive(at now: Instant) -> (payload: Payload, arrivedAt: Instant)? {
        advance(to: now)
        guard let first = inFlight.first, first.deliverAt <= now else { return nil }
        inFlight.removeFirst()
        statistics.packetsDelivered += 1
        return (first.payload, first.deliverAt)
    }

    /// Packets in the queue, the one in transmission included.
    package var queueCount: Int { queue.count - queueHead }

    /// The time that the packets in the queue take to leave at the present rate; zero without a bottleneck or a rate.
    package func queueDelay(at now: Instant) -> Interval {
        guard let rate = conditions.rate(at: now - start)?.bitsPerSecond, rate > 0 else { return .zero }
        return Self.transmissionTime(queueBytes, rate)
    }

    // MARK: Random decisions

    private mutating func isLost() -> Bool {
        var isLost = random.chance(conditions.loss)
        if let burst = conditions.burstLoss {
            isInBurst = isInBurst ? !random.chance(burst.endProbability) : random.chance(burst.startProbability)
            isLost = isLost || isInBurst
        }
        return isLost
    }

    private mutating func drawJitter() -> Interval {
        guard conditions.jitter > .zero else { return .zero }
        return Interval(nanoseconds: Int64(random.fraction() * Double(conditions.jitter.nanoseconds)))
    }

    private mutating func conformsToPolicer(_ bytes: Int, at now: Instant) -> Bool {
        guard let policer = conditions.policer else { return true }
        let earned = (now - policerTime).seconds * Double(policer.bitsPerSecond) / 8
        policerTokens = min(policerTokens + earned, Double(policer.bucketBytes))
        policerTime = now
        guard policerTokens >= Double(bytes) else { return false }
        policerTokens -= Double(bytes)
        return true
    }

    // MARK: The bottleneck

    private func fits(_ bytes: Int, rate: Int) -> Bool {
        guard queueCount < Self.packetsMax else { return false }
        // A packet that finds the queue empty is transmitted at once.
        guard queueCount > 0 else { return true }
        switch conditions.queueLimit {
        case .time(let limit):
            // Without a rate the queue grows up to its packet limit.
            return rate == 0 || Self.transmissionTime(queueBytes + bytes, rate) <= limit
        case .bytes(let limit): return queueBytes + bytes <= limit
        case .packets(let limit): return queueCount < limit
        }
    }

    private static func transmissionTime(_ bytes: Int, _ rate: Int) -> Interval {
        .seconds(Double(bytes) * 8 / Double(rate))
    }

    /// Moves packets that have passed the bottleneck by `now` on their way.
    private mutating func advance(to now: Instant) {
        while let departure, departure <= now {
            lastDeparture = departure
            depart(takeFirst(), at: departure)
            scheduleDeparture()
        }
    }

    private mutating func takeFirst() -> Packet {
        let packet = queue[queueHead]
        queueHead += 1
        queueBytes -= packet.bytes
        if queueHead == queue.count || queueHead >= 1_024 {
            queue.removeFirst(queueHead)
            queueHead = 0
        }
        departure = nil
        return packet
    }

    /// Computes when the first packet of the queue has left, over all steps of the rate.
    private mutating func scheduleDeparture() {
        departure = nil
        guard queueCount > 0 else { return }
        let packet = queue[queueHead]
        var time = max(lastDeparture, packet.sentAt) - start
        var bits = Double(packet.bytes) * 8
        while true {
            let rate = Double(conditions.rate(at: time)?.bitsPerSecond ?? 0)
            let step = conditions.nextStep(after: time)
            let needed = rate > 0 ? Interval.seconds(bits / rate) : nil
            if let needed, step.map({ time + needed <= $0 }) ?? true {
                departure = start + (time + needed)
                return
            }
            // A rate that stays zero: the packet waits until the conditions change.
            guard let step else { return }
            bits -= rate * (step - time).seconds
            time = step
        }
    }

    /// Sends a packet on its way after the bottleneck.
    private mutating func depart(_ packet: Packet, at time: Instant) {
        statistics.bytesDelivered += packet.bytes
        statistics.queueDelayMax = max(statistics.queueDelayMax, time - packet.sentAt)
        let arrival = time + conditions.delay
        if packet.isHeldBack {
            inFlight.insert(packet.payload, at: arrival + packet.jitter + conditions.reorderDelay)
        } else {
            lastInOrder = max(lastInOrder, arrival + packet.jitter)
            inFlight.insert(packet.payload, at: lastInOrder)
        }
        guard let copyJitter = packet.copyJitter else { return }
        statistics.duplicates += 1
        inFlight.insert(packet.payload, at: max(lastInOrder, arrival + copyJitter))
    }
}

extension SplitMix64 {
    /// 0..<1.
    mutating func fraction() -> Double { Double(next() >> 11) / Double(1 << 53) }

    mutating func chance(_ probability: Double) -> Bool { probability > 0 && fraction() < probability }
}

/// Packets by their delivery time; packets of one time in the order of their insertion.
struct DeliveryHeap<Payload> {
    struct Entry {
        let deliverAt: Instant
        let number: UInt64
        let payload: Payload

        static func < (left: Self, right: Self) -> Bool {
            (left.deliverAt, left.number) < (right.deliverAt, right.number)
        }
    }
    private var entries: [Entry] = []
    private var number: UInt64 = 0

    var first: Entry? { entries.first }

    mutating func insert(_ payload: Payload, at time: Instant) {
        number &+= 1
        entries.append(Entry(deliverAt: time, number: number, payload: payload))
        var child = entries.count - 1
        while child > 0, entries[child] < entries[(child - 1) / 2] {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() {
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in (2 * parent + 1)...(2 * parent + 2)
            where child < entries.count && entries[child] < entries[least] {
                least = child
            }
            guard least != parent else { return }
            entries.swapAt(parent, least)
            parent = least
        }
    }
}
