import Base

/// One direction of a TCP connection in virtual time, with Reno's congestion control (RFC 5681) and selective
/// acknowledgements (RFC 2018).
///
/// Every transmission of a segment is lost with the same probability, or before a bottleneck whose queue is full.
/// Acknowledgements are not lost. A loss is detected after three acknowledgements of later transmissions (RFC 6675), or by a
/// repetition of the last segment after two round trips (RFC 8985 §7), or by a timeout of 200 ms and a round trip, as in
/// Linux. What arrives is delivered in order, so a lost segment holds back everything behind it.
struct ModelledTCP {
    struct Link {
        /// One way.
        var delay = Interval.milliseconds(25)
        /// 0...1.
        var loss = 0.0
        /// Bit/s; `nil` without a bottleneck.
        var rate: Int?
        /// The longest wait before the bottleneck.
        var queue = Interval.milliseconds(100)
    }

    /// As the product sets them: SO_SNDBUF, and TCP_NOTSENT_LOWAT.
    static let bufferBytes = 65_536
    private static let unsentBytesMax = 16_384
    private static let segmentBytes = 1_448
    private static let headerBytes = 52
    private static let timeoutMin = Interval.milliseconds(200)

    private struct Segment {
        let number: Int
        let bytes: [UInt8]
        /// The number of its last transmission, and acknowledgements of later ones.
        var transmission = 0
        var laterAcks = 0
        var isLost = false
    }
    private struct Arrival {
        let at: Instant
        let number: Int
        let transmission: Int
    }

    private let link: Link
    private var generator: SplitMix64
    /// Not sent for the first time yet.
    private var unsent: [UInt8] = []
    /// Not acknowledged, in order.
    private var outstanding: [Segment] = []
    private var nextNumber = 0
    private var transmissions = 0
    private var atReceiver: [Arrival] = []
    private var acks: [Arrival] = []
    /// Segments that wait for an earlier one at the receiver, and the number that it needs next.
    private var received: [Int: [UInt8]] = [:]
    private var expected = 0
    private var freeAt = Instant(nanoseconds: 0)
    private var window = 10.0
    private var slowStartMax = Double.infinity
    /// Losses of earlier transmissions reduce the window no further.
    private var recoveryEnd = 0
    private var heardAt = Instant(nanoseconds: 0)
    private var hasProbed = false
    private var backoff = 0

    init(_ link: Link, seed: UInt64) {
        self.link = link
        generator = SplitMix64(seed: seed)
    }

    private var roundTrip: Interval { link.delay + link.delay }
    /// Bytes in the sender's socket.
    var bufferedBytes: Int { unsent.count + outstanding.reduce(0) { $0 + $1.bytes.count } }
    /// Whether the socket polls as writable.
    var isWritable: Bool { unsent.count * 2 < Self.unsentBytesMax && room > 0 }
    private var room: Int { min(Self.unsentBytesMax - unsent.count, Self.bufferBytes - bufferedBytes) }

    /// Takes as many of the bytes as the socket has room for.
    mutating func write(_ bytes: ArraySlice<UInt8>) -> Int {
        let count = max(0, min(bytes.count, room))
        unsent += bytes.prefix(count)
        return count
    }

    /// Handles everything that is due.
    /// - Returns: the bytes that the receiver reads now.
    mutating func advance(to now: Instant) -> [UInt8] {
        var read: [UInt8] = []
        while let first = atReceiver.first, first.at <= now {
            atReceiver.removeFirst()
            acks.append(Arrival(at: first.at + link.delay, number: first.number, transmission: first.transmission))
            if first.number >= expected, let segment = outstanding.first(where: { $0.number == first.number }) {
                received[first.number] = segment.bytes
            }
            while let bytes = received.removeValue(forKey: expected) {
                read += bytes
                expected += 1
            }
        }
        while let first = acks.first, first.at <= now {
            acks.removeFirst()
            acknowledge(first, at: now)
        }
        handleTimers(at: now)
        transmit(at: now)
        return read
    }

    private mutating func acknowledge(_ ack: Arrival, at now: Instant) {
        heardAt = now
        hasProbed = false
        backoff = 0
        if let index = outstanding.firstIndex(where: { $0.number == ack.number }) {
            outstanding.remove(at: index)
            window += window < slowStartMax ? 1 : 1 / window
        }
        for index in outstanding.indices where outstanding[index].transmission < ack.transmission {
            outstanding[index].laterAcks += 1
            guard outstanding[index].laterAcks == 3, !outstanding[index].isLost else { continue }
            outstanding[index].isLost = true
            reduceWindow(for: outstanding[index].transmission)
        }
    }

    private mutating func reduceWindow(for transmission: Int) {
        guard transmission >= recoveryEnd else { return }
        recoveryEnd = transmissions
        window = max(window / 2, 2)
        slowStartMax = window
    }

    private mutating func handleTimers(at now: Instant) {
        guard let last = outstanding.indices.last else { return }
        if !hasProbed {
            guard now >= heardAt + roundTrip + roundTrip else { return }
            hasProbed = true
            send(last, at: now)
            return
        }
        guard now >= heardAt + (Self.timeoutMin + roundTrip) * (1 << min(backoff, 5)) else { return }
        backoff += 1
        slowStartMax = max(window / 2, 2)
        window = 1
        for index in outstanding.indices { outstanding[index].isLost = true }
        heardAt = now
    }

    private mutating func transmit(at now: Instant) {
        var inFlight = outstanding.count { !$0.isLost }
        for index in outstanding.indices where outstanding[index].isLost && Double(inFlight) < window {
            send(index, at: now)
            inFlight += 1
        }
        while Double(inFlight) < window, !unsent.isEmpty {
            if outstanding.isEmpty { heardAt = now }
            outstanding.append(Segment(number: nextNumber, bytes: Array(unsent.prefix(Self.segmentBytes))))
            unsent.removeFirst(min(Self.segmentBytes, unsent.count))
            nextNumber += 1
            inFlight += 1
            send(outstanding.count - 1, at: now)
        }
    }

    private mutating func send(_ index: Int, at now: Instant) {
        transmissions += 1
        outstanding[index].transmission = transmissions
        outstanding[index].laterAcks = 0
        outstanding[index].isLost = false
        var departure = now
        if let rate = link.rate {
            let start = max(now, freeAt)
            guard start - now <= link.queue else { return }
            let bits = Int64(outstanding[index].bytes.count + Self.headerBytes) * 8
            departure = start + Interval(nanoseconds: bits * 1_000_000_000 / Int64(rate))
            freeAt = departure
        }
        guard Double.random(in: 0..<1, using: &generator) >= link.loss else { return }
        let number = outstanding[index].number
        atReceiver.append(Arrival(at: departure + link.delay, number: number, transmission: transmissions))
    }
}
