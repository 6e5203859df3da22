/// The rate at which packets arrived within the last 400 ms, and within the last 200 ms, in bits a second.
struct DeliveryRate: ~Copyable, Sendable {
    struct Group: BitwiseCopyable {
        var firstAt: Int64
        var lastAt: Int64
        var bytes: Int
        /// The time before it of which no report came.
        var gap: Int64 = 0
    }

    private static let window: Int64 = 400_000
    private static let recentWindow: Int64 = 200_000
    /// Arrivals that are closer share an entry, so that 128 entries cover the window at any rate.
    private static let groupLength: Int64 = 4_000
    /// Less is no rate.
    private static let spanMin: Int64 = 50_000

    private var groups = Ring(capacity: 128, filler: Group(firstAt: 0, lastAt: 0, bytes: 0))
    private var bytes = 0
    /// Of the groups after the first one.
    private var gaps: Int64 = 0

    func prefetch() { groups.prefetch() }

    /// Takes a received packet.
    /// - Parameter followsGap: whether no report tells about the packets before it: the time until it does not count.
    mutating func add(_ packet: PacketResult, followsGap: Bool = false) {
        bytes += packet.bytes
        if followsGap, let last = groups.last, packet.arrivedAt > last.lastAt {
            if groups.count == 128 { removeFirst() }
            let gap = packet.arrivedAt &- last.lastAt
            gaps &+= gap
            groups.append(
                Group(firstAt: packet.arrivedAt, lastAt: packet.arrivedAt, bytes: packet.bytes, gap: gap)
            )
        } else if let last = groups.last, packet.arrivedAt &- last.firstAt < Self.groupLength {
            // Packets that overtook each other are counted where they are met.
            groups[groups.count - 1].bytes += packet.bytes
            groups[groups.count - 1].lastAt = max(last.lastAt, packet.arrivedAt)
        } else {
            if groups.count == 128 { removeFirst() }
            groups.append(Group(firstAt: packet.arrivedAt, lastAt: packet.arrivedAt, bytes: packet.bytes))
        }
    }

    /// Ends a report whose latest arrival is `newest`.
    /// - Returns: bits a second; 0 while too little has arrived.
    mutating func update(newest: Int64) -> Double {
        while !groups.isEmpty, newest &- groups[0].lastAt &- gaps >= Self.window { removeFirst() }
        guard groups.count > 1 else { return 0 }
        let span = max(newest &- groups[0].lastAt &- gaps, Self.spanMin)
        return Double(bytes - groups[0].bytes) * 8e6 / Double(span)
    }

    /// The rate within the last part of the window; 0 while too little has arrived.
    func recent(newest: Int64) -> Double {
        guard groups.count > 1 else { return 0 }
        var bytes = 0
        var gaps: Int64 = 0
        var first = groups.count - 1
        while first > 0, newest &- groups[first].lastAt &- gaps < Self.recentWindow {
            bytes += groups[first].bytes
            gaps &+= groups[first].gap
            first -= 1
        }
        return Double(bytes) * 8e6 / Double(max(newest &- groups[first].lastAt &- gaps, Self.spanMin))
    }

    mutating func reset() { self = DeliveryRate() }

    private mutating func removeFirst() {
        bytes -= groups[0].bytes
        groups.removeFirst()
        if !groups.isEmpty { gaps &-= groups[0].gap }
    }
}
