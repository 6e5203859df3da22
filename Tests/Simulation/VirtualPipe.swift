import Base

/// One direction of a connection: bytes arrive in order, after a delay and at most at a rate. The sender takes only a few
/// bytes that it cannot send yet, and the receiver only a few that are not read.
struct VirtualPipe {
    /// As the node sets TCP_NOTSENT_LOWAT.
    static let unsentMax = 16_384
    /// As the node sets SO_SNDBUF.
    static let capacity = 65_536
    private static let segmentBytes = 1_448

    private struct Segment {
        let departure: Instant
        let arrival: Instant
        let bytes: [UInt8]
    }

    var delay = Interval.milliseconds(20)
    /// Bit/s; `nil` for no limit.
    var rate: Int?
    /// Nothing is read.
    var isStalled = false
    private var segments: [Segment] = []
    private var freeAt = Instant(nanoseconds: 0)
    /// Bytes that were written and not read.
    private(set) var byteCount = 0

    /// Takes as many of the bytes as there is room for: their count.
    mutating func write(_ bytes: RawSpan, at now: Instant) -> Int {
        let unsent = segments.reduce(0) { $0 + ($1.departure > now ? $1.bytes.count : 0) }
        let count = max(0, min(bytes.byteCount, Self.unsentMax - unsent, Self.capacity - byteCount))
        for start in stride(from: 0, to: count, by: Self.segmentBytes) {
            let part = bytes.extracting(start..<min(start + Self.segmentBytes, count)).array()
            var departure = max(now, freeAt)
            if let rate {
                departure = departure + Interval(nanoseconds: Int64(part.count) * 8_000_000_000 / Int64(rate))
            }
            freeAt = departure
            segments.append(Segment(departure: departure, arrival: departure + delay, bytes: part))
        }
        byteCount += count
        return count
    }

    /// What the reader reads.
    mutating func read(at now: Instant) -> [UInt8] {
        guard !isStalled else { return [] }
        let due = segments.prefix { $0.arrival <= now }
        segments.removeFirst(due.count)
        let bytes = due.flatMap(\.bytes)
        byteCount -= bytes.count
        return bytes
    }

    /// When bytes arrive, or leave and make room for others.
    func nextInstant(after now: Instant) -> Instant? {
        let departure = segments.first { $0.departure > now }?.departure
        guard !isStalled, let arrival = segments.first?.arrival else { return departure }
        return departure.map { min($0, arrival) } ?? arrival
    }
}
