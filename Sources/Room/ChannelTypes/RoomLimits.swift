/// Limits of one node's rooms. Everything that a client can add to has a limit here.
package struct RoomLimits: Equatable, Sendable, Codable {
    /// Channels with participants. Channels with listeners only are bounded by the listeners.
    package var channelsMax: Int
    /// Participants of all channels together.
    package var participantsMax: Int
    package var participantsPerChannelMax: Int
    /// Publishers of one channel; each of them is in every snapshot of it.
    package var publishersPerChannelMax: Int
    /// Publishers of all channels together; 0 for no limit of their own.
    package var publishersMax: Int
    /// Publishers that the tokens of one app admitted, in all channels together; 0 for no limit.
    package var publishersPerAppMax: Int
    /// Listeners of all channels together.
    package var listenersMax: Int
    package var listenersPerChannelMax: Int
    /// Listeners of one network (an IPv4 address, the /64 of an IPv6 address); 0 for no limit. Clients on this machine
    /// may have three quarters of all listeners.
    package var listenersPerNetworkMax: Int
    /// Events that wait for a participant's signaling. A participant with more ends.
    package var eventsWaitingMax: Int
    /// Channels with members of one network. Beyond it, its clients open no more channels.
    package var channelsPerNetworkMax: Int
    /// Participants of one network.
    package var participantsPerNetworkMax: Int
    /// Participants of one network that are not connected yet.
    package var unconnectedPerNetworkMax: Int
    /// How long a newcomer may take to answer its offer, and then to find an ICE path, in whole seconds.
    package var unansweredTimeout: Duration
    /// Bit/s that one participant may publish, audio and video together, unless its authorization sets another limit;
    /// `nil` for no limit. Beyond it layers of video are dropped, the highest first. The default permits the highest
    /// `video_bit_rate` of Sora's clients, 30 Mbit/s, with audio and headers.
    package var publishBitsPerSecondMax: Int?
    /// Messages a second that one participant may send to others over data channels, and as many at once.
    package var dataMessagesPerSecond: Int
    /// Bytes of content a second of these messages; at most 192 KiB of them are taken at once.
    package var dataBytesPerSecond: Int
    /// Changes a second that one participant may make of itself, with ``changeBurst`` at once: its mutes, its role and its
    /// metadata, of which all others are told. Beyond it, others are told later of the latest, and a role or a push is refused.
    package var changesPerSecond: Int
    /// The most of these changes at once.
    package var changeBurst: Int
    /// Deliveries a second that the messages of one participant may cause, and as many at once. A delivery is what one packet
    /// carries of a message, to one receiver.
    package var dataDeliveriesPerSecond: Int
    /// Deliveries a second of one channel, and as many at once.
    package var channelDeliveriesPerSecond: Int
    /// Deliveries a second of all channels together. Beyond it each channel has an equal part.
    package var nodeDeliveriesPerSecond: Int
    /// The most texts of a channel's chat that are kept for those who join later.
    package var chatHistoryMax: Int
    /// What happens when a user joins again, unless its authorization decides.
    package var duplicateUsers: DuplicateUserPolicy
    /// How long a member that can resume keeps its place when its connection is lost, in whole seconds; 0 for not at
    /// all.
    package var resumeGrace: Duration
    /// How long a channel lives from its first participant on, in whole seconds; 0 for without an end.
    package var channelLifetime: Duration

    package init(
        channelsMax: Int = 10_000,
        participantsMax: Int = 20_000,
        participantsPerChannelMax: Int = 5_000,
        publishersPerChannelMax: Int = 200,
        publishersMax: Int = 0,
        publishersPerAppMax: Int = 0,
        listenersMax: Int = 4_000,
        listenersPerChannelMax: Int = 1_000,
        listenersPerNetworkMax: Int = 200,
        eventsWaitingMax: Int = 4_096,
        channelsPerNetworkMax: Int = 1_000,
        participantsPerNetworkMax: Int = 4_000,
        unconnectedPerNetworkMax: Int = 256,
        unansweredTimeout: Duration = .seconds(15),
        publishBitsPerSecondMax: Int? = 32_000_000,
        dataMessagesPerSecond: Int = 1_000,
        dataBytesPerSecond: Int = 1_000_000,
        changesPerSecond: Int = 2,
        changeBurst: Int = 10,
        dataDeliveriesPerSecond: Int = 20_000,
        channelDeliveriesPerSecond: Int = 100_000,
        nodeDeliveriesPerSecond: Int = 200_000,
        chatHistoryMax: Int = 50,
        duplicateUsers: DuplicateUserPolicy = .allow,
        resumeGrace: Duration = .seconds(15),
        channelLifetime: Duration = .zero
    ) {
        self.channelsMax = channelsMax
        self.participantsMax = participantsMax
        self.participantsPerChannelMax = participantsPerChannelMax
        self.publishersPerChannelMax = publishersPerChannelMax
        self.publishersMax = publishersMax
        self.publishersPerAppMax = publishersPerAppMax
        self.listenersMax = listenersMax
        self.listenersPerChannelMax = listenersPerChannelMax
        self.listenersPerNetworkMax = listenersPerNetworkMax
        self.eventsWaitingMax = eventsWaitingMax
        self.channelsPerNetworkMax = channelsPerNetworkMax
        self.participantsPerNetworkMax = participantsPerNetworkMax
        self.unconnectedPerNetworkMax = unconnectedPerNetworkMax
        self.unansweredTimeout = unansweredTimeout
        self.publishBitsPerSecondMax = publishBitsPerSecondMax
        self.dataMessagesPerSecond = dataMessagesPerSecond
        self.dataBytesPerSecond = dataBytesPerSecond
        self.changesPerSecond = changesPerSecond
        self.changeBurst = changeBurst
        self.dataDeliveriesPerSecond = dataDeliveriesPerSecond
        self.channelDeliveriesPerSecond = channelDeliveriesPerSecond
        self.nodeDeliveriesPerSecond = nodeDeliveriesPerSecond
        self.chatHistoryMax = chatHistoryMax
        self.duplicateUsers = duplicateUsers
        self.resumeGrace = resumeGrace
        self.channelLifetime = channelLifetime
    }
}

/// Which newcomers the node admits, for a graceful shutdown.
package enum NodeMode: Hashable, Comparable, Sendable {
    case normal
    /// Newcomers are admitted to channels with a session only.
    case blockNewSessions
    /// Nobody is admitted. Connected participants stay.
    case blockNewConnections
}

/// Whom a node that drains refuses, besides those that its ``NodeMode`` refuses.
package enum DrainStage: Hashable, Sendable {
    /// Nobody: the node does not drain.
    case none
    /// Newcomers of channels that no participant of this node is in.
    case newChannels
    /// All newcomers and listeners.
    case newcomers
}
