import Base
import TestSupport
import Wire

/// How one direction of a path treats datagrams.
struct LinkConditions {
    var delay = Interval.milliseconds(20)
    /// Added uniformly from zero; more than the spacing of packets reorders them.
    var jitter = Interval.zero
    /// 0…1.
    var loss = 0.0
    /// The mean number of packets that get lost in a row.
    var lossLength = 1.0
    var duplication = 0.0
    /// Probability that a datagram is held back by `reorderDelay`.
    var reordering = 0.0
    var reorderDelay = Interval.milliseconds(15)
    /// Bit/s of IP packets that a bottleneck carries; `nil` for no bottleneck.
    var rate: Int?
    /// The longest time that a packet waits before the bottleneck; one that would wait longer is lost.
    var queue = Interval.milliseconds(300)
    /// Every datagram in these times is lost.
    var outages: [Range<Instant>] = []

    static let perfect = LinkConditions()
}

/// Datagrams under way between hosts, in virtual time.
struct VirtualNetwork {
    struct Datagram {
        let deliverAt: Instant
        let order: UInt64
        let from: TransportAddress
        let to: TransportAddress
        let bytes: [UInt8]
    }

    private var heap: [Datagram] = []
    private var order: UInt64 = 0
    private var generator: SeededGenerator
    /// By the sending host's address, then the receiving one's; else `standard`.
    var conditions: [TransportAddress: LinkConditions] = [:]
    var standard = LinkConditions.perfect
    /// Of the way from one address to another one; before all others.
    var between: ((_ from: TransportAddress, _ to: TransportAddress) -> LinkConditions?)?
    /// Hosts that are behind the bottleneck of another one.
    var sharedBottlenecks: [TransportAddress: TransportAddress] = [:]
    /// When each bottleneck has sent what waits, by the host behind it and the direction.
    private var freeAt: [Bottleneck: Instant] = [:]
    /// Directions whose last packet got lost in a burst.
    private var bursts: Set<Bottleneck> = []
    private struct Bottleneck: Hashable {
        let host: TransportAddress
        let isInbound: Bool
    }
    /// Sees each datagram before a bottleneck: the host behind it, whether it goes there, its bytes as an IP packet, and how
    /// long it waits; `nil` when the queue is full.
    var onBottleneck: ((_ host: TransportAddress, _ isInbound: Bool, _ bytes: Int, _ wait: Interval?) -> Void)?
    private(set) var sent = 0
    private(set) var lost = 0
    private(set) var duplicated = 0
    private(set) var delivered = 0
    var underWay: Int { heap.count }

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    var nextDelivery: Instant? { heap.first?.deliverAt }

    mutating func send(_ bytes: [UInt8], from: TransportAddress, to: TransportAddress, at now: Instant) {
        sent += 1
        let host = conditions[from] == nil ? to : from
        let link = between?(from, to) ?? conditions[host] ?? standard
        var departure = now
        if let rate = link.rate {
            let bottleneck = Bottleneck(host: sharedBottlenecks[host] ?? host, isInbound: host == to)
            let start = max(now, freeAt[bottleneck] ?? now)
            let length = Self.repeatableLength(bytes) + 28
            guard start - now <= link.queue else {
                lost += 1
                onBottleneck?(host, host == to, length, nil)
                return
            }
            onBottleneck?(host, host == to, length, start - now)
            departure = start + Interval(nanoseconds: Int64(length) * 8_000_000_000 / Int64(rate))
            freeAt[bottleneck] = departure
        }
        let isLost = isLost(link, Bottleneck(host: host, isInbound: host == to))
        if isLost || link.outages.contains(where: { $0.contains(now) }) {
            lost += 1
            return
        }
        enqueue(bytes, from, to, at: departure + delay(link))
        guard chance(link.duplication) else { return }
        duplicated += 1
        enqueue(bytes, from, to, at: departure + delay(link))
    }

    /// The bytes that a bottleneck carries for a datagram. Signatures of ECDSA have a random length (RFC 3279 §2.2.3), which no
    /// seed repeats, so the messages of a DTLS handshake that have one count with their usual length.
    static func repeatableLength(_ bytes: [UInt8]) -> Int {
        // In a channel of TURN too (RFC 8656 §12.4).
        var record = bytes.first.map { 0x40...0x4F ~= $0 } == true ? 4 : 0
        var length = bytes.count
        // Each handshake message in the clear is a record of its own (RFC 6347 §4.1 and §4.2.2).
        while record + 25 <= bytes.count, 20...22 ~= bytes[record] {
            let end = record + 13 + (Int(bytes[record + 11]) << 8 | Int(bytes[record + 12]))
            // Not what an attack made up.
            guard end <= bytes.count else { break }
            let isPlain = bytes[record + 3] == 0 && bytes[record + 4] == 0
            if bytes[record] == 22, isPlain, let usual = usualMessageBytes[bytes[record + 13]] {
                length += usual - (end - record - 25)
            }
            record = end
        }
        return length
    }
    /// The usual bytes of messages with a signature of P-256, by their type: a certificate, the server's key exchange with
    /// X25519, and the proof of the client's key.
    private static let usualMessageBytes: [UInt8: Int] = [11: 287, 12: 111, 15: 75]

    mutating func popDue(at now: Instant) -> Datagram? {
        guard let first = heap.first, first.deliverAt <= now else { return nil }
        heap.removeFirst()
        delivered += 1
        return first
    }

    private mutating func delay(_ link: LinkConditions) -> Interval {
        var delay = link.delay
        if link.jitter > .zero {
            delay = delay + Interval(nanoseconds: .random(in: 0...link.jitter.nanoseconds, using: &generator))
        }
        return chance(link.reordering) ? delay + link.reorderDelay : delay
    }

    /// A Gilbert-Elliott model that loses nothing in its good state and everything in its bad state.
    private mutating func isLost(_ link: LinkConditions, _ direction: Bottleneck) -> Bool {
        guard link.lossLength > 1 else { return chance(link.loss) }
        let isLost =
            bursts.contains(direction)
            ? !chance(1 / link.lossLength) : chance(link.loss / max(1 - link.loss, 1e-9) / link.lossLength)
        if isLost { bursts.insert(direction) } else { bursts.remove(direction) }
        return isLost
    }

    private mutating func chance(_ probability: Double) -> Bool {
        probability > 0 && Double.random(in: 0..<1, using: &generator) < probability
    }

    private mutating func enqueue(
        _ bytes: [UInt8],
        _ from: TransportAddress,
        _ to: TransportAddress,
        at time: Instant
    ) {
        order += 1
        let datagram = Datagram(deliverAt: time, order: order, from: from, to: to, bytes: bytes)
        var low = 0
        var high = heap.count
        while low < high {
            let middle = (low + high) / 2
            let other = heap[middle]
            if (other.deliverAt, other.order) < (datagram.deliverAt, datagram.order) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        heap.insert(datagram, at: low)
    }
}
