public import Base
public import Wire

/// The constants of one loop's TURN server.
public struct TURNConfiguration: Sendable {
    /// The most bytes of ``realm``. A short realm keeps the response to an unauthenticated request small.
    public static let realmBytesMax = 8

    /// REALM, 1...``realmBytesMax`` bytes. It is an input of every client's key, so it must not change while sessions
    /// exist.
    public var realm = "nagare"
    /// The node's advertised addresses. The first of each family is the host part of relayed addresses.
    public var addresses: [IPAddress]
    /// Ports of the node that no relayed address may have: media, TURN and HTTP.
    public var reservedPorts: Set<UInt16>
    /// Allocations that a session has at a time: UDP, TCP and TLS, and one more during an ICE restart.
    public var sessionAllocationsMax = 4
    /// Allocations that a session may make in ``creationWindow``, so that no client uses up the relayed addresses,
    /// which rest after use.
    public var sessionCreationsMax = 32
    public var creationWindow = Interval.seconds(300)
    /// Relayed ports of each address family that the clients of one network (an IPv4 address, or the /64 of an IPv6 address)
    /// hold, in use or resting: a quarter of all. 4,000 participants of one address can have four allocations each: over UDP,
    /// TCP and TLS, and one more.
    public var portsPerNetworkMax = 16_384
    /// Responses to unauthenticated requests a second for each source address (an IPv6 /64).
    public var challengesPerSecond = 10
    /// How many of these may be sent at once: the clients behind one NAT join together.
    public var challengeBurst = 40
    /// Of calls, whose two clients reach each other's relayed addresses.
    public var calls = TURNCallLimits()
    /// The loop, which the user names of its sessions tell.
    public var loop: UInt16 = 0
    /// The key of the nonces, one for all servers that a client on a stream meets; `nil` for a random one.
    public var nonceKey: [UInt8]?

    public init(addresses: [IPAddress], reservedPorts: Set<UInt16>) {
        self.addresses = addresses
        self.reservedPorts = reservedPorts
    }
}

/// The limits of one loop's relayed calls. What is beyond the rates is dropped, and never waits.
public struct TURNCallLimits: Hashable, Sendable {
    /// Calls that have credentials at a time, whether they use them or not.
    public var callsMax = 4_096
    /// Bytes a second that one member of a call may send to the other one, half of them at once.
    public var memberBytesPerSecond = 500_000
    /// Those of all calls together, so that they leave the loop's time and the sockets' queues to its peers.
    public var bytesPerSecond = 25_000_000

    public init() {}

    var memberRate: TokenRate { TokenRate(memberBytesPerSecond, burst: max(memberBytesPerSecond / 2, Self.burstMin)) }
    var rate: TokenRate { TokenRate(bytesPerSecond, burst: max(bytesPerSecond / 2, Self.burstMin)) }

    /// One datagram.
    private static let burstMin = 1_500
}

/// The times of RFC 8656.
enum TURNTimes {
    /// The lifetime of an allocation in seconds without LIFETIME, and the least (RFC 8656 §7.2).
    static let lifetimeDefault: UInt32 = 600
    static let lifetimeMax: UInt32 = 3_600
    /// RFC 8656 §9.
    static let permission = Interval.seconds(300)
    /// Added to ``permission``: libwebrtc renews after four of the five minutes, and a lost renewal is repeated for up
    /// to a minute.
    static let permissionGrace = Interval.seconds(60)
    /// RFC 8656 §12.
    static let channel = Interval.seconds(600)
    /// After its binding has expired, a channel number and its peer are not bound to others (RFC 8656 §12).
    static let channelRest = Interval.seconds(300)
    /// The least time between two allocations with one relayed address, so that late datagrams reach nobody else.
    static let addressRest = Interval.seconds(300)
    /// The lifetime of a nonce in seconds.
    static let nonceSeconds: UInt32 = 600
    /// How long the credentials of a session are accepted for its first allocation.
    static let firstAllocation = Interval.seconds(300)
    /// How long the allocations of a call are refreshed after its end.
    static let released = Interval.seconds(12 * 3_600)
}
