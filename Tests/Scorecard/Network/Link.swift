import Base
import TestSupport
import Wire

/// A packet on its way through the testbed.
struct Packet: Sendable {
    /// What sent it.
    enum Source: Hashable, Sendable {
        case flow(Int)
        case cubic(Int)
        case constant(Int)
        /// Of the flow.
        case report(Int)
    }

    var source: Source
    var sequence: Int
    var bytes: Int
    /// The position on its route.
    var hop = 0
    var enqueuedAt: Int64 = 0
    var ecn = ECNCodepoint.notCapable
}

/// A bottleneck: a first-in-first-out queue with tail drop, and what its medium does to packets behind it. Times are
/// microseconds.
struct Link: Sendable {
    let settings: LinkSettings
    private var generator: SeededGenerator
    private var queue: [Packet] = []
    private var head = 0
    private(set) var queuedBytes = 0
    /// The packet that is being sent.
    var serving: Packet?
    /// It waits for the end of an outage.
    var isWaiting = false
    private var lastArrivals: [Packet.Source: Int64] = [:]
    private var isBad = false
    private var tokens: Double
    private var tokensAt: Int64 = 0
    private var marker: QueueMarker?

    init(_ settings: LinkSettings, seed: UInt64) {
        self.settings = settings
        generator = SeededGenerator(seed: seed)
        tokens = settings.policer?.bytes ?? 0
        marker = settings.aqm.map { QueueMarker($0) }
    }

    private var count: Int { queue.count - head }

    /// - Returns: whether the packet found room.
    mutating func enqueue(_ packet: Packet, at now: Int64) -> Bool {
        guard passesPolicer(packet, at: now), hasRoom(for: packet, at: now) else { return false }
        let wait = wait(at: now)
        if marker?.drops(packet, wait: wait, at: now, using: &generator) == true { return false }
        var packet = packet
        packet.enqueuedAt = now
        queue.append(packet)
        queuedBytes += packet.bytes
        return true
    }

    /// How long the next packet has waited.
    private func wait(at now: Int64) -> Int64 { count > 0 ? now - queue[head].enqueuedAt : 0 }

    private mutating func passesPolicer(_ packet: Packet, at now: Int64) -> Bool {
        guard let policer = settings.policer else { return true }
        tokens = min(policer.bytes, tokens + policer.rate / 8 * Double(now - tokensAt) / 1e6)
        tokensAt = now
        guard tokens >= Double(packet.bytes) else { return false }
        tokens -= Double(packet.bytes)
        return true
    }

    private func hasRoom(for packet: Packet, at now: Int64) -> Bool {
        if let packets = settings.queuePackets { return count < packets }
        if count < 3 { return true }
        if let bytes = settings.queueBytes { return queuedBytes + packet.bytes <= bytes }
        let rate = max(settings.rate(at: now), settings.capacity[0].rate * 0.001)
        return Double(queuedBytes + packet.bytes) <= settings.queueMS / 1e3 * rate / 8
    }

    /// Whether the next packet can be sent.
    var isReady: Bool { serving == nil && count > 0 && !isWaiting }

    /// Begins to send the next packet.
    /// - Returns: how long that takes; `nil` in an outage.
    mutating func serve(at now: Int64) -> Int64? {
        let rate = settings.rate(at: now)
        guard rate > 0 else { return nil }
        var packet = queue[head]
        let (wait, backlog) = (wait(at: now), count)
        if marker?.marks(packet, wait: wait, backlog: backlog, at: now, using: &generator) == true {
            packet.ecn = .congestionExperienced
        }
        if let from = settings.bleachesFrom, Double(now) / 1e6 >= from { packet.ecn = .notCapable }
        head += 1
        if head > 1_024 {
            queue.removeFirst(head)
            head = 0
        }
        queuedBytes -= packet.bytes
        serving = packet
        return max(1, Int64(Double(packet.bytes) * 8e6 / rate))
    }

    /// Whether the medium loses the next packet.
    mutating func losesPacket() -> Bool {
        if let gilbert = settings.gilbert {
            if generator.uniform() < 1 / (isBad ? gilbert.bad : gilbert.good) { isBad.toggle() }
            if isBad { return true }
        }
        return settings.loss > 0 && generator.uniform() < settings.loss
    }

    /// When a packet that leaves the queue now arrives.
    mutating func arrival(of packet: Packet, baseDelay: Int64, at now: Int64) -> Int64 {
        var arrival = now + baseDelay + settings.delay(at: now)
        if settings.jitterMS > 0 { arrival += Int64(min(abs(generator.normal() * settings.jitterMS), 30) * 1_000) }
        if settings.lateMS > 0, generator.uniform() < 0.01 {
            arrival += Int64(generator.uniform() * settings.lateMS * 1_000)
        }
        for spike in settings.spikes where spike.contains(Double(arrival) / 1e6) {
            arrival = Int64(spike.upperBound * 1e6) + 1
        }
        if let batch = settings.batchMS {
            let step = Int64(batch * 1_000)
            arrival = (arrival + step - 1) / step * step
        }
        if settings.keepsOrder {
            arrival = max(arrival, lastArrivals[packet.source] ?? 0)
            lastArrivals[packet.source] = arrival
        }
        return arrival
    }
}
