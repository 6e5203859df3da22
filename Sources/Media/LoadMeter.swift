import Wire

/// What a media loop carried between two measurements.
public struct MediaLoad: Hashable, Sendable {
    /// Packets that it sent on to viewers, a second.
    public var packetsPerSecond: Double
    /// The share of the time that its turns took, 0…1.
    public var busyShare: Double
    /// Peers that it has at the moment.
    public var peers: Int

    public init(packetsPerSecond: Double = 0, busyShare: Double = 0, peers: Int = 0) {
        self.packetsPerSecond = packetsPerSecond
        self.busyShare = busyShare
        self.peers = peers
    }
}

/// Makes loads of totals that only grow.
struct LoadMeter {
    private var measuredAt: Instant
    private var busyNanoseconds: Int64 = 0
    private var packets: UInt64 = 0

    init(at now: Instant) { measuredAt = now }

    /// The load since the last call, which these are the totals of. Two calls at one instant find no load.
    mutating func measure(busyNanoseconds: Int64, packets: UInt64, peers: Int, at now: Instant) -> MediaLoad {
        let elapsed = (now - measuredAt).nanoseconds
        let busy = busyNanoseconds &- self.busyNanoseconds
        let sent = packets &- self.packets
        guard elapsed > 0 else { return MediaLoad(peers: peers) }
        measuredAt = now
        self.busyNanoseconds = busyNanoseconds
        self.packets = packets
        return MediaLoad(
            packetsPerSecond: Double(sent) * 1e9 / Double(elapsed),
            busyShare: min(max(Double(busy) / Double(elapsed), 0), 1),
            peers: peers
        )
    }
}
