/// How much one node's rooms may hold. Whatever a client can add to is bounded here.
public struct RoomLimits: Equatable, Sendable, Codable {
    /// Channels that somebody is in; those that are only listened to are no more than the listeners.
    public var channelsMax: Int
    /// Participants of all channels together.
    public var participantsMax: Int
    public var participantsPerChannelMax: Int
    /// Participants that publish, of one channel: each of them is in every snapshot of it.
    public var publishersPerChannelMax: Int
    /// Listeners of all channels together.
    public var listenersMax: Int
    public var listenersPerChannelMax: Int
    /// Listeners of one network (an IPv4 address, the /64 of an IPv6 address). 0 lifts the limit. This machine's own
    /// clients may have three quarters of all listeners.
    public var listenersPerNetworkMax: Int
    /// Events that wait for a participant's signaling. One that falls further behind is ended.
    public var eventsWaitingMax: Int
    /// Channels with members of one network: with that many none of its clients opens another.
    public var channelsPerNetworkMax: Int
    /// Participants of one network.
    public var participantsPerNetworkMax: Int
    /// Participants of one network whose transport has not come up yet.
    public var unconnectedPerNetworkMax: Int
    /// How long a newcomer may leave its offer unanswered, and then be without an ICE path, in whole seconds.
    public var unansweredTimeout: Duration
    /// Bit/s that one participant may publish, audio and video together, unless its authorization says otherwise; `nil`
    /// for no limit. Beyond it layers of video are left out, the highest first. The default has room for the highest
    /// `video_bit_rate` of Sora's clients, 30 Mbit/s, with audio and headers.
    public var publishBitsPerSecondMax: Int?

    public init(
        channelsMax: Int = 10_000,
        participantsMax: Int = 20_000,
        participantsPerChannelMax: Int = 5_000,
        publishersPerChannelMax: Int = 200,
        listenersMax: Int = 4_000,
        listenersPerChannelMax: Int = 1_000,
        listenersPerNetworkMax: Int = 200,
        eventsWaitingMax: Int = 4_096,
        channelsPerNetworkMax: Int = 1_000,
        participantsPerNetworkMax: Int = 4_000,
        unconnectedPerNetworkMax: Int = 256,
        unansweredTimeout: Duration = .seconds(15),
        publishBitsPerSecondMax: Int? = 32_000_000
    ) {
        self.channelsMax = channelsMax
        self.participantsMax = participantsMax
        self.participantsPerChannelMax = participantsPerChannelMax
        self.publishersPerChannelMax = publishersPerChannelMax
        self.listenersMax = listenersMax
        self.listenersPerChannelMax = listenersPerChannelMax
        self.listenersPerNetworkMax = listenersPerNetworkMax
        self.eventsWaitingMax = eventsWaitingMax
        self.channelsPerNetworkMax = channelsPerNetworkMax
        self.participantsPerNetworkMax = participantsPerNetworkMax
        self.unconnectedPerNetworkMax = unconnectedPerNetworkMax
        self.unansweredTimeout = unansweredTimeout
        self.publishBitsPerSecondMax = publishBitsPerSecondMax
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
