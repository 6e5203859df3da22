public import Base
public import MediaTypes

/// What one loop's links to loops of other nodes have done since it started; plain numbers that only grow.
public struct MediaLinkCounters: Hashable, Sendable {
    /// One direction.
    public struct Traffic: Hashable, Sendable {
        public var datagrams: UInt64 = 0
        /// UDP payloads.
        public var bytes: UInt64 = 0
        /// Packets of tracks for the first time.
        public var packets: UInt64 = 0
        /// Packets of tracks for another time, because a datagram was lost.
        public var repairs: UInt64 = 0
        /// Other messages about tracks.
        public var messages: UInt64 = 0
        /// Datagrams about the link itself.
        public var reports: UInt64 = 0
        public init() {}
    }

    public var sent = Traffic()
    public var received = Traffic()
    /// Packets and messages that were not sent: the link was not ready, or the batch was full.
    public var notSent: UInt64 = 0
    /// Datagrams that did not arrive in their order, and those of them that came after all.
    public var missing: UInt64 = 0
    public var late: UInt64 = 0
    /// Ranges of missing datagrams that were given up because there were too many.
    public var gapsGivenUp: UInt64 = 0
    /// Packets that the other end asked for again, and those of them that came too late for a repair, or were repaired
    /// twice, or are not kept any more.
    public var repairsAsked: UInt64 = 0
    public var repairsLate: UInt64 = 0
    public var repairsMissed: UInt64 = 0
    /// How long packets took from their arrival at the publisher's loop; of those packets whose way was timed.
    public var hops = HopTimes()
    public init() {}
}

/// A link to a loop of another node as it is now.
public struct MediaLinkState: Hashable, Sendable {
    /// The loop at the other end.
    public var location: MediaLocation
    /// Whether tracks cross.
    public var isUsed: Bool
    /// Nothing came for 3 s although reports were due.
    public var isDown: Bool
    /// `nil` before the first measurement.
    public var roundTrip: Interval?
    /// The other end's wall clock minus ours, in nanoseconds; `nil` before the first measurement.
    public var clockOffset: Int64?
}
