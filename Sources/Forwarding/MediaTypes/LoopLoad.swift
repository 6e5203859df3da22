/// The load of one media loop since its previous measurement.
public struct LoopLoad: Hashable, Sendable {
    /// Packets forwarded to viewers per second.
    public var packetsPerSecond: Double
    /// The share of time that it was busy, 0…1.
    public var busyShare: Double
    /// Present peers.
    public var peers: Int

    public init(packetsPerSecond: Double = 0, busyShare: Double = 0, peers: Int = 0) {
        self.packetsPerSecond = packetsPerSecond
        self.busyShare = busyShare
        self.peers = peers
    }
}
