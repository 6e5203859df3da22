import Wire

extension ClientNetwork {
    /// Whether the clients are on this machine, where a reverse proxy or a test may speak for many.
    public var isLoopback: Bool { prefix.isV4 ? prefix.isLoopback : prefix == .anyV6 }

    /// How many of something that the node has `total` of the network may hold.
    ///
    /// Of this machine's own clients, and those of unknown address, nobody knows how many they are: they get three
    /// quarters, so that others still find something.
    /// - Parameter share: what any other network may hold; 0 lifts the limit.
    public func share(_ share: Int, of total: Int) -> Int {
        guard share > 0 else { return total }
        return isLoopback || self == .unknown ? max(share, total - total / 4) : min(share, total)
    }
}
