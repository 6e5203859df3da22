/// What one media loop carries, measured over the time since the measurement before.
public struct LoopLoad: Hashable, Sendable {
    /// Packets that it sent on to viewers, a second.
    public var packetsPerSecond: Double
    /// The share of the time that it was at work, 0…1.
    public var busyShare: Double
    /// Peers that it has at the moment.
    public var peers: Int

    public init(packetsPerSecond: Double = 0, busyShare: Double = 0, peers: Int = 0) {
        self.packetsPerSecond = packetsPerSecond
        self.busyShare = busyShare
        self.peers = peers
    }
}
