public import Forwarding
public import Wire

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

    public init(
        channelsMax: Int = 10_000,
        participantsMax: Int = 20_000,
        participantsPerChannelMax: Int = 5_000,
        publishersPerChannelMax: Int = 200,
        listenersMax: Int = 4_000,
        listenersPerChannelMax: Int = 1_000
    ) {
        self.channelsMax = channelsMax
        self.participantsMax = participantsMax
        self.participantsPerChannelMax = participantsPerChannelMax
        self.publishersPerChannelMax = publishersPerChannelMax
        self.listenersMax = listenersMax
        self.listenersPerChannelMax = listenersPerChannelMax
    }
}

/// Why rooms refuse a request.
public enum RoomError: Error, Hashable, Sendable {
    /// The node holds as many channels as it may.
    case channelsFull
    /// The node holds as many participants as it may.
    case nodeFull
    case channelFull
    case publishersFull
    case listenersFull
    /// The participant to be watched is not in the channel.
    case participantUnknown
    /// The session ended, or never was.
    case sessionUnknown
    /// The transport ended while it was being set up.
    case endedDuringSetup
    /// Another ICE restart of the same session is under way.
    case restartUnderWay
    /// The ICE version that the caller expects is not the current one.
    case versionMismatch
    /// The node is shutting down.
    case draining
    /// The media plane refused; the sentence says why.
    case media(String)
}

/// What a participant may do. A role that does both is possible; WHIP and WHEP make pure ones.
public enum Role: String, Hashable, Sendable, CaseIterable {
    case sendonly, recvonly, sendrecv
    public var publishes: Bool { self != .recvonly }
    public var watches: Bool { self != .sendonly }
}

/// Whose tracks a watching participant's slots play.
public enum Following: Hashable, Sendable {
    /// Whichever publisher of the channel went live last and still is.
    case currentPublisher
    /// One participant and no other; nothing once it ended, because identifiers are not used again.
    case participant(ParticipantID)
}

/// A track that a participant publishes.
public struct Publication: Hashable, Sendable {
    public let mid: MID
    public let kind: MediaKind
    /// Whether several simulcast layers were negotiated.
    public let isSimulcast: Bool
    /// The codec that arrives; `nil` until media did.
    public internal(set) var codec: CodecName?
    /// Whether media arrives at present.
    public internal(set) var isActive = false

    public init(mid: MID, kind: MediaKind, isSimulcast: Bool = false) {
        self.mid = mid
        self.kind = kind
        self.isSimulcast = isSimulcast
    }
}

/// A place in a viewer's session that plays one source at a time.
public struct Slot: Hashable, Sendable {
    public let mid: MID
    public let kind: MediaKind
    /// The track that it plays; `nil` while it waits for one.
    public internal(set) var source: TrackID?

    public init(mid: MID, kind: MediaKind) {
        self.mid = mid
        self.kind = kind
    }
}

/// What a newcomer asks for, before its media is negotiated.
public struct JoinRequest: Sendable {
    public var channel: ChannelName
    public var role: Role
    /// Ignored for a role that does not watch.
    public var following: Following
    /// What others see beside the identifier. The caller bounds its length.
    public var displayName: String?

    public init(
        channel: ChannelName,
        role: Role,
        following: Following = .currentPublisher,
        displayName: String? = nil
    ) {
        self.channel = channel
        self.role = role
        self.following = following
        self.displayName = displayName
    }
}

/// Why a participant left.
public enum EndReason: Hashable, Sendable {
    /// Its owner asked: DELETE, or the end of its signaling.
    case left
    /// The node closes.
    case shutdown
    /// Setting it up failed, so it never took part.
    case setupFailed
    /// Its transport ended by itself.
    case transport(PeerCloseReason)
}

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
    public var publishers = 0
    public var viewers = 0
    public var listeners = 0
    public init() {}
}
