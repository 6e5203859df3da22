/// What others learn of a participant.
public struct Member: Hashable, Sendable, Codable {
    public let id: ParticipantID
    public internal(set) var clientID: String
    public internal(set) var bundleID: String
    public internal(set) var role: Role
    public internal(set) var sendsAudio: Bool
    public internal(set) var sendsVideo: Bool
    /// JSON text from the client.
    public internal(set) var notifyMetadataJSON: String?
    /// JSON text from its authorization.
    public internal(set) var authorizedMetadataJSON: String?

    public init(
        id: ParticipantID,
        clientID: String,
        bundleID: String,
        role: Role,
        sendsAudio: Bool,
        sendsVideo: Bool,
        notifyMetadataJSON: String? = nil,
        authorizedMetadataJSON: String? = nil
    ) {
        self.id = id
        self.clientID = clientID
        self.bundleID = bundleID
        self.role = role
        self.sendsAudio = sendsAudio
        self.sendsVideo = sendsVideo
        self.notifyMetadataJSON = notifyMetadataJSON
        self.authorizedMetadataJSON = authorizedMetadataJSON
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
    public let agent: ClientAgent
    public let displayName: String?
    /// When it asked to join, in nanoseconds since 1970 UTC.
    public let createdAt: Int64
    /// When its transport came up, in nanoseconds since 1970 UTC; `nil` before.
    public let connectedAt: Int64?
    /// How long that took; `nil` before.
    public let setupTime: Duration?
    public let isSimulcast: Bool
    public let spotlight: Spotlight?
    public let publications: [Publication]
    /// JSON text for event webhooks.
    public let eventMetadataJSON: String?
    /// Whether its transport is up.
    public var isConnected: Bool { connectedAt != nil }
}

/// A channel's life from its first participant to its last.
public struct ChannelSession: Hashable, Sendable, Codable {
    public let id: ChannelSessionID
    public let channel: ChannelName
    /// In nanoseconds since 1970 UTC.
    public let createdAt: Int64
}

/// What happened to a connection, with the state of things right after it.
public struct ConnectionReport: Hashable, Sendable {
    public let connection: Connection
    /// How long it has been connected.
    public let duration: Duration
    /// Of its channel; it is counted itself unless it has ended.
    public let counts: ChannelCounts
    /// When it happened, in nanoseconds since 1970 UTC.
    public let unixNanoseconds: Int64
    /// Whole minutes that it has been connected.
    public var minutes: Int { Int(duration.components.seconds / 60) }
}

/// What webhooks and statistics are made of.
public enum RoomReport: Hashable, Sendable {
    /// A session's first member is connected. The time is in nanoseconds since 1970 UTC.
    case sessionCreated(ChannelSession, unixNanoseconds: Int64)
    /// A session's last participant left.
    case sessionDestroyed(ChannelSession, unixNanoseconds: Int64)
    case connectionCreated(ConnectionReport)
    /// A minute of a connection's life passed, or what others are told of it changed.
    case connectionUpdated(ConnectionReport)
    case connectionDestroyed(ConnectionReport, EndReason)
    /// A participant ended whose transport never was up.
    case connectionFailed(ConnectionReport, EndReason)
}
