/// A channel's membership at one moment, as members and the built-in page see it.
public struct ChannelSnapshot: Hashable, Sendable {
    /// One publishing participant.
    public struct Participant: Hashable, Sendable {
        public let id: ParticipantID
        public let displayName: String?
        /// Whether its transport is up.
        public let isLive: Bool
        public let publications: [Publication]
    }
    public let channel: ChannelName
    /// Grows with every change of the channel; meaningful within the channel's life only.
    public let revision: UInt64
    /// Those who publish, in the order of joining. Viewers are a number, so that the list stays short.
    public let participants: [Participant]
    /// Whom viewers of the channel see now.
    public let current: ParticipantID?
    /// Participants that watch.
    public let viewerCount: Int
}

/// How much is in use, for metrics.
public struct RoomCounts: Hashable, Sendable {
    public var channels = 0
    /// Channels that have a participant.
    public var sessions = 0
    public var publishers = 0
    public var viewers = 0
    public var listeners = 0
    /// Participants whose transport is up.
    public var connections = ChannelCounts()
    public init() {}
}
