/// The quality of the network between a peer and the node, in each direction.
public struct LinkQuality: Hashable, Sendable, Codable {
    /// From ``excellent`` to ``disconnected`` each level is worse than the one before.
    public enum Level: Int, Hashable, Sendable, Codable, CaseIterable {
        /// No media flows in the direction, or it was measured for too short a time.
        case unknown = 0
        case excellent, good, poor, bad, veryBad
        /// Nothing arrives, or hardly anything.
        case disconnected
    }

    /// From the peer to the node.
    public var uplink: Level
    /// From the node to the peer.
    public var downlink: Level

    public init(uplink: Level = .unknown, downlink: Level = .unknown) {
        self.uplink = uplink
        self.downlink = downlink
    }

    public static let unknown = Self()
    public static let disconnected = Self(uplink: .disconnected, downlink: .disconnected)
}
