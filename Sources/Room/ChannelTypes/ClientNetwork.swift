package import Wire

/// The network of a client, for limits per client address: an IPv4 address, or the /64 prefix of an IPv6 address, which
/// one subscriber holds as a whole.
package struct ClientNetwork: Hashable, Sendable, Codable {
    /// The IPv4 address, or the IPv6 address with its low 64 bits at zero.
    package let prefix: IPAddress

    package init(_ address: IPAddress) {
        prefix = address.network
    }

    /// The network of all clients with an unknown address.
    package static let unknown = ClientNetwork(.anyV4)

    /// Whether it stands for any number of clients: those with an unknown address, and those behind a proxy on this
    /// machine. Limits of participants do not apply to it.
    package var isShared: Bool { self == .unknown || prefix.isLoopback || self == ClientNetwork(.loopbackV6) }

    /// Whether the clients are on this machine, where a reverse proxy or a test may stand for many.
    package var isLoopback: Bool { prefix.isV4 ? prefix.isLoopback : prefix == .anyV6 }

    /// How many of the node's `total` the network may hold.
    ///
    /// The number of clients on this machine, or with an unknown address, is unknown. They get up to three quarters, so
    /// that others find something left.
    /// - Parameter share: the limit of any other network; 0 for no limit.
    package func share(_ share: Int, of total: Int) -> Int {
        guard share > 0 else { return total }
        return isLoopback || self == .unknown ? max(share, total - total / 4) : min(share, total)
    }
}

extension ClientNetwork: CustomStringConvertible {
    package var description: String { prefix.isV4 ? "\(prefix)" : "\(prefix)/64" }
}
