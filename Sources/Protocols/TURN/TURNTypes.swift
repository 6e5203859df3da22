public import Wire

/// Identifies a session: the peer whose loop an allocation leads to. The caller chooses it.
public struct TURNSessionID: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A channel number, 0x4000…0x4FFF (RFC 8656 §12).
public struct ChannelNumber: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16
    /// `nil` outside the range.
    public init?(rawValue: UInt16) {
        guard (0x4000...0x4FFF).contains(rawValue) else { return nil }
        self.rawValue = rawValue
    }
}

/// What a message led to, where it is more than a response.
public enum TURNEvent: Hashable, Sendable {
    /// The client sent a datagram to one of the session's media addresses.
    /// - `payload`: the position of the datagram in the message.
    /// - `path`: where the datagram comes from, for the session's ICE agent; see ``TURNServer``.
    case relayed(TURNSessionID, path: NetworkPath, payload: Range<Int>)
    /// The client has an allocation with this relayed address.
    case allocated(TURNSessionID, relayed: TransportAddress, client: NetworkPath)
    /// The allocation has ended: paths to its relayed address lead nowhere.
    case ended(TURNSessionID, relayed: TransportAddress, client: NetworkPath)
}

/// Why a message had no effect and got no response, or why a datagram to a client was dropped.
public enum TURNDropReason: UInt8, Error, Hashable, Sendable, CaseIterable {
    /// The message is neither STUN nor ChannelData, or a length is wrong.
    case malformed
    /// FINGERPRINT is wrong.
    case fingerprint
    /// A response, or an indication other than Send.
    case unexpectedClass
    /// The response to this unauthenticated request would be larger than the request.
    case responseTooLarge
    /// The source address had too many responses to unauthenticated requests.
    case rateLimited
    /// The 5-tuple or the relayed address has no allocation.
    case noAllocation
    /// The channel is not bound, or its binding has expired.
    case noChannel
    /// The peer's address has no permission, or it has expired.
    case noPermission
    /// The peer is not one of the session's media addresses, nor a relayed address of the call's other member.
    case forbiddenPeer
    /// A Send indication without XOR-PEER-ADDRESS or DATA, or with an unknown comprehension-required attribute.
    case badIndication
    /// ChannelData or a Send indication without data.
    case empty
    /// The datagram and its header do not fit one datagram to the client.
    case tooLong
    /// The member of a call, or all calls together, sent more than they may (``TURNCallLimits``).
    case overRate
}

/// The counters of one loop's TURN server.
public struct TURNCounters: Hashable, Sendable {
    public internal(set) var allocationsCreated = 0
    public internal(set) var allocationsEnded = 0
    /// Allocations that ended because they were not refreshed.
    public internal(set) var allocationsExpired = 0
    /// 401 responses to requests without credentials, the first step of every client.
    public internal(set) var challenges = 0
    /// Requests of which the authentication failed, answered with 401.
    public internal(set) var unauthorized = 0
    /// Requests answered with 438.
    public internal(set) var staleNonces = 0
    /// Authenticated requests answered with an error.
    public internal(set) var refused = 0
    /// Authenticated requests answered with a success.
    public internal(set) var succeeded = 0
    /// Datagrams that clients sent to media addresses, or to the other member of a call.
    public internal(set) var packetsIn = 0
    /// Datagrams that were sent to clients.
    public internal(set) var packetsOut = 0
    /// Datagrams that went from one member of a call to the other one, and their bytes. They are also among ``packetsIn`` and
    /// ``packetsOut``.
    public internal(set) var callPackets = 0
    public internal(set) var callBytes = 0
    /// Binding requests answered to clients that use the server as a STUN server.
    public internal(set) var bindings = 0
    /// By the reasons' raw values.
    private var dropped: [Int] = Array(repeating: 0, count: TURNDropReason.allCases.count)

    public init() {}

    /// The messages and datagrams that were dropped for `reason`.
    public func drops(_ reason: TURNDropReason) -> Int { dropped[Int(reason.rawValue)] }
    mutating func drop(_ reason: TURNDropReason) { dropped[Int(reason.rawValue)] &+= 1 }
}
