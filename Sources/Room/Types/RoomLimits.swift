/// How much one node's rooms may hold. Whatever a client can add to is bounded here.
public struct RoomLimits: Sendable {
    public var channelsMax: Int
    /// Participants of all channels together.
    public var participantsMax: Int
    public var participantsPerChannelMax: Int
    /// Participants that publish, of one channel: each of them is in every snapshot of it.
    public var publishersPerChannelMax: Int
    /// Listeners of all channels together.
    public var listenersMax: Int
    public var listenersPerChannelMax: Int
    /// Events that wait for a participant's signaling. One that falls further behind is ended.
    public var eventsWaitingMax: Int

    public init(
        channelsMax: Int = 10_000,
        participantsMax: Int = 20_000,
        participantsPerChannelMax: Int = 5_000,
        publishersPerChannelMax: Int = 200,
        listenersMax: Int = 4_000,
        listenersPerChannelMax: Int = 1_000,
        eventsWaitingMax: Int = 4_096
    ) {
        self.channelsMax = channelsMax
        self.participantsMax = participantsMax
        self.participantsPerChannelMax = participantsPerChannelMax
        self.publishersPerChannelMax = publishersPerChannelMax
        self.listenersMax = listenersMax
        self.listenersPerChannelMax = listenersPerChannelMax
        self.eventsWaitingMax = eventsWaitingMax
    }
}

/// Whom the node takes in, for a graceful end of its work.
public enum NodeMode: Hashable, Sendable {
    case normal
    /// Channels that have a session go on as ever; no session begins.
    case blockNewSessions
    /// Those who are here stay; nobody joins.
    case blockNewConnections
}
