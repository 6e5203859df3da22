internal import NIOCore
internal import Wire

/// The connections to the link listener whose other sides have not said hello, the oldest first.
///
/// Beyond a limit the oldest one goes, because a node says hello at once: connections that stay silent bar no node from linking.
struct LinkStrangers {
    /// The most connections.
    static let connectionsMax = 64
    /// The most connections of one network (an IPv4 address, or the /64 of an IPv6 address): as many nodes of one machine or
    /// behind one address may connect at once.
    static let networkMax = 8

    private var entries: [(channel: any Channel, network: IPAddress?)] = []

    var channels: [any Channel] { entries.map(\.channel) }

    /// Takes a new connection.
    /// - Parameter address: its other side; connections without one count as one network.
    /// - Returns: the connection to close, which is no longer among them: where there are too many, the oldest of that network, or
    ///   of the one with the most.
    mutating func admit(_ channel: any Channel, from address: IPAddress?) -> (any Channel)? {
        let network = address?.network
        entries.append((channel, network))
        if count(of: network) > Self.networkMax { return removeOldest(of: network) }
        guard entries.count > Self.connectionsMax else { return nil }
        var largest = entries[0].network
        for entry in entries where count(of: entry.network) > count(of: largest) { largest = entry.network }
        return removeOldest(of: largest)
    }

    private func count(of network: IPAddress?) -> Int { entries.count { $0.network == network } }

    private mutating func removeOldest(of network: IPAddress?) -> (any Channel)? {
        entries.firstIndex { $0.network == network }.map { entries.remove(at: $0).channel }
    }

    /// A connection has said hello, or has ended.
    mutating func remove(_ channel: ObjectIdentifier) {
        entries.removeAll { ObjectIdentifier($0.channel) == channel }
    }
}
