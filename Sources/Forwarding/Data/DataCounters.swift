public import MediaTypes

/// What went over the data channels of a loop's peers since it started.
public struct DataCounters: Sendable {
    /// SCTP associations that were established.
    public var associations: UInt64 = 0
    public var packetsReceived: UInt64 = 0
    public var packetsSent: UInt64 = 0
    /// Chunks with data that were sent again.
    public var retransmissions: UInt64 = 0
    public var messagesReceived: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    /// Messages that were queued for receivers, once for each.
    public var messagesSent: UInt64 = 0
    public var bytesSent: UInt64 = 0
    /// Messages that were dropped because the receiver's path is slower: the oldest of channels with limited reliability, the
    /// newest of reliable ones, and those of senders that send more than others.
    public var messagesDropped: UInt64 = 0
    /// Channels of signaling that were closed because their receivers did not keep up.
    public var channelsOverflowed: UInt64 = 0
    /// Channels that were refused: too many, or a second one of a stream.
    public var channelsRefused: UInt64 = 0
    /// Associations that the node ended, by reason.
    public var associationsEnded = DataAssociationEnds()

    public init() {}
}

/// How many SCTP associations a loop ended, by reason. No dictionary, because counters are copied on the hot path.
public struct DataAssociationEnds: Hashable, Sendable {
    private var work: UInt64 = 0
    private var flood: UInt64 = 0
    private var stalled: UInt64 = 0
    private var memory: UInt64 = 0
    private var violation: UInt64 = 0

    public init() {}

    public subscript(reason: DataAssociationEnd) -> UInt64 {
        get { self[keyPath: Self.count(of: reason)] }
        set { self[keyPath: Self.count(of: reason)] = newValue }
    }

    private static func count(of reason: DataAssociationEnd) -> WritableKeyPath<Self, UInt64> {
        switch reason {
        case .work: \.work
        case .flood: \.flood
        case .stalled: \.stalled
        case .memory: \.memory
        case .violation: \.violation
        }
    }
}
