import MediaTypes

// Users: the members of a channel with one client identifier. A user's camera and screen are two connections.

/// Why a user went offline, for other members.
public enum Departure: String, Hashable, Sendable, Codable, CaseIterable {
    case left
    case timedOut = "timed-out"
    case becameAudience = "became-audience"
    case kicked, banned, replaced, terminated
    case tokenExpired = "token-expired"
    case channelExpired = "channel-expired"
    /// Another reason.
    case ended

    init(_ reason: EndReason) {
        self =
            switch reason {
            case .left, .transport(.requested), .transport(.closedByPeer): .left
            case .signalingLost, .pongTimedOut, .transport(.consentExpired): .timedOut
            case .madeAudience: .becameAudience
            case .kicked: .kicked
            case .banned: .banned
            case .replaced: .replaced
            case .channelTerminated, .sessionTerminated: .terminated
            case .tokenExpired: .tokenExpired
            case .channelExpired: .channelExpired
            case .shutdown, .setupFailed, .unanswered, .unreachable, .evicted, .transport, .disconnectedByOperator,
                .lifetimeExpired, .tooSlow, .rejected:
                .ended
            }
    }
}

/// What one connection publishes, for other members.
public struct PublishedTracks: Hashable, Sendable {
    public let user: String
    public let connection: ParticipantID
    public let source: VideoSource
    /// Whether it publishes audio, muted or not.
    public let audio: Bool
    public let video: Bool
    /// Whether it or an operator muted its audio.
    public let isAudioMuted: Bool
    public let isVideoMuted: Bool
}

/// A user, for other members.
public struct ChannelUser: Hashable, Sendable {
    public let id: String
    public let displayName: String?
    public let role: ChannelRole
    /// JSON text from the client.
    public let notifyMetadataJSON: String?
}

/// What a newcomer is told of its channel.
public struct JoinedChannel: Hashable, Sendable {
    /// Another user that was announced, with its connections in the order of joining.
    public struct User: Hashable, Sendable {
        public let user: ChannelUser
        public let connections: [Connection]
    }
    /// One connection of a user.
    public struct Connection: Hashable, Sendable {
        public let tracks: PublishedTracks
        /// Whether it is lost at present, and its place is kept.
        public let isInterrupted: Bool
        /// JSON text from the client.
        public let notifyMetadataJSON: String?
    }
    /// The newcomer's own client identifier.
    public let user: String
    public let connection: ParticipantID
    public let profile: ChannelProfile
    public let role: ChannelRole
    /// What the newcomer presents to continue this connection; `nil` when it cannot.
    public let resumeToken: String?
    /// How long its place is kept after a loss of its connection, in seconds.
    public let graceSeconds: Int
    /// The others in the order of joining.
    public let users: [User]
}
