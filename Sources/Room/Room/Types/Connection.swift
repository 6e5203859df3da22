public import MediaTypes
public import Wire

/// The public properties of a participant.
public struct Member: Hashable, Sendable, Codable {
    public let id: ParticipantID
    public internal(set) var clientID: String
    public internal(set) var bundleID: String
    public internal(set) var role: Role
    public internal(set) var sendsAudio: Bool
    public internal(set) var sendsVideo: Bool
    /// JSON text from the client.
    public internal(set) var notifyMetadataJSON: String?
    /// JSON text that the client set after it joined; `nil` before.
    public internal(set) var updatedMetadataJSON: String?
    /// JSON text from its authorization.
    public internal(set) var authorizedMetadataJSON: String?
    /// What its media comes and goes over; meaningful once it is connected.
    public internal(set) var transport: TransportProtocol

    /// What the client says of itself at present, as JSON text.
    public var metadataJSON: String? { updatedMetadataJSON ?? notifyMetadataJSON }

    public init(
        id: ParticipantID,
        clientID: String,
        bundleID: String,
        role: Role,
        sendsAudio: Bool,
        sendsVideo: Bool,
        notifyMetadataJSON: String? = nil,
        authorizedMetadataJSON: String? = nil,
        transport: TransportProtocol = .udp
    ) {
        self.id = id
        self.clientID = clientID
        self.bundleID = bundleID
        self.role = role
        self.sendsAudio = sendsAudio
        self.sendsVideo = sendsVideo
        self.notifyMetadataJSON = notifyMetadataJSON
        self.authorizedMetadataJSON = authorizedMetadataJSON
        self.transport = transport
    }
}

/// The connected members of a channel.
public struct ChannelCounts: Hashable, Sendable, Codable {
    public var sendrecv: Int
    public var sendonly: Int
    public var recvonly: Int
    public var connections: Int { sendrecv + sendonly + recvonly }

    public init(sendrecv: Int = 0, sendonly: Int = 0, recvonly: Int = 0) {
        self.sendrecv = sendrecv
        self.sendonly = sendonly
        self.recvonly = recvonly
    }

    func subtracting(_ other: Self) -> Self {
        Self(
            sendrecv: sendrecv - other.sendrecv,
            sendonly: sendonly - other.sendonly,
            recvonly: recvonly - other.recvonly
        )
    }

    mutating func add(_ change: Int, _ role: Role) {
        switch role {
        case .sendrecv: sendrecv += change
        case .sendonly: sendonly += change
        case .recvonly: recvonly += change
        }
    }
}

/// A participant whose media was negotiated, for lists and webhooks.
public struct Connection: Hashable, Sendable {
    public let member: Member
    public let channel: ChannelName
    public let session: ChannelSessionID
    /// The run of the node that the client is connected to.
    public let node: NodeIncarnation
    public let agent: ClientAgent
    public let displayName: String?
    /// When it asked to join, in nanoseconds since 1970 UTC.
    public let createdAt: Int64
    /// When its transport came up, in nanoseconds since 1970 UTC; `nil` before.
    public let connectedAt: Int64?
    /// The time between the two; `nil` before.
    public let setupTime: Duration?
    public let isSimulcast: Bool
    public let spotlight: Spotlight?
    public let publications: [Publication]
    public let channelRole: ChannelRole
    /// What its video shows.
    public let source: VideoSource
    /// The kinds of its media that it or an operator muted.
    public let muted: Set<MediaKind>
    /// JSON text for event webhooks.
    public let eventMetadataJSON: String?
    /// Bit/s that it may be sent, by its grant or an operator; `nil` for the node's maximum.
    public let receiveBitsPerSecondMax: Int?
    /// The user; `nil` for a client without a name.
    public let user: UserIdentity?
    /// When its permission expires; `nil` without an end.
    public let expiry: AccessExpiry?
    /// The app whose token admitted it; `nil` for a client without such a token.
    public internal(set) var app: String?
    /// The quality of its network.
    public internal(set) var quality = LinkQuality.unknown
    /// The phases of its set-up.
    public internal(set) var setup = ConnectionSetup()
    /// When the place of a lost connection ends unless the member is back, in seconds since 1970 UTC; `nil` for a connection
    /// that is not lost.
    public internal(set) var placeEndsAt: Int64?

    /// What a connection is doing.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// Its media is negotiated, and its transport is not up yet.
        case connecting
        case connected
        /// It is lost, and its place is kept for a while.
        case interrupted
    }

    public var state: State {
        if placeEndsAt != nil { return .interrupted }
        return connectedAt == nil ? .connecting : .connected
    }
    /// Whether its transport has come up, also when it was lost afterwards.
    public var isConnected: Bool { connectedAt != nil }
}

/// The lifetime of a channel from its first participant to its last: a session in Sora's sense.
public struct ChannelSession: Hashable, Sendable, Codable {
    public let id: ChannelSessionID
    public let channel: ChannelName
    /// In nanoseconds since 1970 UTC.
    public let createdAt: Int64

    public init(id: ChannelSessionID, channel: ChannelName, createdAt: Int64) {
        self.id = id
        self.channel = channel
        self.createdAt = createdAt
    }

    /// Whether this one stays when nodes have two sessions of a channel: the older one, and of equally old ones the one with
    /// the lower identifier.
    package func precedes(_ other: Self) -> Bool {
        (createdAt, id.value) < (other.createdAt, other.id.value)
    }
}

/// A connection and its channel's counts right after an event.
public struct ConnectionReport: Hashable, Sendable {
    public let connection: Connection
    /// How long it has been connected.
    public let duration: Duration
    /// The channel's connected members, including this one unless it has ended.
    public let counts: ChannelCounts
    /// The time of the event in nanoseconds since 1970 UTC.
    public let unixNanoseconds: Int64
    /// How long it has been connected, in whole minutes.
    public var minutes: Int { Int(duration.components.seconds / 60) }
}

/// An event for webhooks and statistics.
public enum RoomReport: Hashable, Sendable {
    /// The first member of a session is connected. The time is in nanoseconds since 1970 UTC.
    case sessionCreated(ChannelSession, unixNanoseconds: Int64)
    /// The last participant of a session left.
    case sessionDestroyed(ChannelSession, unixNanoseconds: Int64)
    case connectionCreated(ConnectionReport)
    /// The connection has lasted another minute.
    case connectionUpdated(ConnectionReport)
    /// The quality of a connected member's network has another level.
    case qualityChanged(ConnectionReport)
    /// The set-up of a connected member's media has come further.
    case setupAdvanced(ConnectionReport)
    /// A connected member became host or audience.
    case roleChanged(ConnectionReport, by: Initiator.Kind)
    /// A connected member lost its connection and keeps its place.
    case connectionInterrupted(ConnectionReport)
    /// A member that lost its connection is back.
    case connectionResumed(ConnectionReport)
    case connectionDestroyed(ConnectionReport, EndReason)
    /// A participant ended before it was connected.
    case connectionFailed(ConnectionReport, EndReason)
}
