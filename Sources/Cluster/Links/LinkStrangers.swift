internal import NIOCore
internal import Wire

/// The connections to the link listener whose other sides have not said hello, the oldest first.
struct LinkStrangers {
    /// The most connections. Beyond it the oldest one is closed, because a node says hello at once.
    static let connectionsMax = 64
    /// The most connections of one network (an IPv4 address, or the /64 of an IPv6 address): as many nodes of one machine or
    /// behind one address may connect at once. Further ones are refused.
    static let networkMax = 8

    private var entries: [(channel: any Channel, network: IPAddress?)] = []

    var channels: [any Channel] { entries.map(\.channel) }

    /// Takes a new connection, unless its network has as many as it may.
    /// - Parameter address: its other side; connections without one count as one network.
    /// - Returns: whether it was taken.
    mutating func admit(_ channel: any Channel, from address: IPAddress?) -> Bool {
        let network = address?.network
        guard entries.count(where: { $0.network == network }) < Self.networkMax else { return false }
        entries.append((channel, network))
        return true
    }

    /// The connection to close when there are more than may be. It is no longer among them.
    mutating func takeExcess() -> (any Channel)? {
        entries.count > Self.connectionsMax ? entries.removeFirst().channel : nil
    }

    /// A connection has said hello, or has ended.
    mutating func remove(_ channel: ObjectIdentifier) {
        entries.removeAll { ObjectIdentifier($0.channel) == channel }
    }
}
