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
    /// Associations that were ended because all data on the loop takes too much memory.
    public var associationsAborted: UInt64 = 0
    /// Associations that were ended because their peers caused more work than their budget allows.
    public var associationsEndedForWork: UInt64 = 0
    /// Associations that were ended because data was held for them and nothing moved on for 60 s.
    public var associationsStalled: UInt64 = 0

    public init() {}
}
