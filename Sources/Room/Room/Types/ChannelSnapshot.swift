public import Wire

/// A channel's membership at one moment, for channel event streams.
public struct ChannelSnapshot: Hashable, Sendable {
    /// One publishing participant.
    public struct Participant: Hashable, Sendable {
        public let id: ParticipantID
        public let displayName: String?
        /// Whether its transport is up.
        public let isLive: Bool
        public let publications: [Publication]
        /// The kinds of its media that it or an operator muted.
        public let muted: Set<MediaKind>
    }
    public let channel: ChannelName
    /// Grows with every change while the channel exists.
    public let revision: UInt64
    /// The publishers in the order of joining. Viewers are counted only, to keep the list short.
    public let participants: [Participant]
    /// The current publisher.
    public let current: ParticipantID?
    /// Active viewers.
    public let viewerCount: Int
}

/// What the node holds, for metrics.
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
