package import ChannelTypes
package import MediaTypes

// Users: the members of a channel with one client identifier. A user's camera and screen are two connections.

/// Why a user went offline, for other members.
package enum Departure: String, Hashable, Sendable, Codable, CaseIterable {
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
package struct PublishedTracks: Hashable, Sendable {
    package let user: String
    package let connection: ParticipantID
    package let source: VideoSource
    /// Whether packets of its audio come, muted or not.
    package let audio: Bool
    package let video: Bool
    /// Whether it or an operator muted its audio.
    package let isAudioMuted: Bool
    package let isVideoMuted: Bool
    /// Whether the connection has ended, or is audience now.
    package var hasEnded = false
}

/// A user, for other members.
package struct ChannelUser: Hashable, Sendable {
    package let id: String
    package let displayName: String?
    package let role: ChannelRole
    /// JSON text from the client.
    package let notifyMetadataJSON: String?
}

/// A user that asks to speak, or no longer does.
package struct Hand: Hashable, Sendable {
    package let user: String
    package let displayName: String?
    package let isRaised: Bool
}

/// What a member is told of its channel when it has joined, and when it asks.
package struct JoinedChannel: Hashable, Sendable {
    /// Another user that was announced, with its connections in the order of joining.
    package struct User: Hashable, Sendable {
        package let user: ChannelUser
        package let connections: [Connection]
    }
    /// One connection of a user.
    package struct Connection: Hashable, Sendable {
        package let tracks: PublishedTracks
        /// Whether it is lost at present, and its place is kept.
        package let isInterrupted: Bool
        /// JSON text from the client.
        package let notifyMetadataJSON: String?
        package let quality: LinkQuality
    }
    /// The newcomer's own client identifier.
    package let user: String
    package let connection: ParticipantID
    package let profile: ChannelProfile
    package let role: ChannelRole
    /// What the newcomer presents to continue this connection; `nil` when it cannot.
    package let resumeToken: String?
    /// How long its place is kept after a loss of its connection, in seconds.
    package let graceSeconds: Int
    /// From its request to the connection, in milliseconds; `nil` for a connection that took its place again.
    package let elapsedMilliseconds: Int?
    /// Whether the newcomer may moderate the channel while it is a host.
    package let mayModerate: Bool
    /// The others in the order of joining.
    package let users: [User]
    /// The hands of others that are raised.
    package let hands: [Hand]
}
