public import Wire

/// Where a client comes from, as shares of the node are counted: an IPv4 address, or the /64 of an IPv6 address, which
/// one subscriber holds as a whole.
public struct ClientNetwork: Hashable, Sendable, Codable {
    /// The IPv4 address, or the IPv6 address with its low 64 bits at zero.
    public let prefix: IPAddress

    public init(_ address: IPAddress) {
        prefix = address.isV4 ? address : IPAddress(high: address.high, low: 0)
    }

    /// Clients whose address is not known share one network.
    public static let unknown = ClientNetwork(.anyV4)

    /// Whether it stands for clients of any number: those whose address is not known, and those behind a proxy on this
    /// machine. No share is counted for it.
    public var isShared: Bool { self == .unknown || prefix.isLoopback || self == ClientNetwork(.loopbackV6) }
}

extension ClientNetwork: CustomStringConvertible {
    public var description: String { prefix.isV4 ? "\(prefix)" : "\(prefix)/64" }
}
