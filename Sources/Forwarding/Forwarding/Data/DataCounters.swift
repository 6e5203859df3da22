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
    private var ended: [5 of UInt64] = .init(repeating: 0)

    public init() {}

    /// SCTP associations that the node ended.
    public subscript(_ reason: DataAssociationEnd) -> UInt64 { ended[Self.index(reason)] }

    mutating func end(_ reason: DataAssociationEnd) { ended[Self.index(reason)] &+= 1 }

    private static func index(_ reason: DataAssociationEnd) -> Int {
        switch reason {
        case .work: 0
        case .flood: 1
        case .stalled: 2
        case .memory: 3
        case .violation: 4
        }
    }
}
