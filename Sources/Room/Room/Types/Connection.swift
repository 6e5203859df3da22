import Base
package import ChannelTypes
package import MediaTypes
package import Wire

/// The public properties of a participant.
package struct Member: Hashable, Sendable, Codable {
    package let id: ParticipantID
    package internal(set) var clientID: String
    package internal(set) var bundleID: String
    package internal(set) var role: Role
    package internal(set) var sendsAudio: Bool
    package internal(set) var sendsVideo: Bool
    /// JSON text from the client.
    package internal(set) var notifyMetadataJSON: String?
    /// JSON text that the client set after it joined; `nil` before.
    package internal(set) var updatedMetadataJSON: String?
    /// JSON text from its authorization.
    package internal(set) var authorizedMetadataJSON: String?
    /// What its media comes and goes over; meaningful once it is connected.
    package internal(set) var transport: TransportProtocol

    /// What the client says of itself at present, as JSON text.
    package var metadataJSON: String? { updatedMetadataJSON ?? notifyMetadataJSON }

    package init(
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

/// A participant whose media was negotiated, for lists and webhooks.
package struct Connection: Hashable, Sendable {
    package let member: Member
    package let channel: ChannelName
    package let session: ChannelSessionID
    /// The run of the node that the client is connected to.
    package let node: NodeIncarnation
    package let agent: ClientAgent
    package let displayName: String?
    /// When it asked to join, in nanoseconds since 1970 UTC.
    package let createdAt: Int64
    /// When its transport came up, in nanoseconds since 1970 UTC; `nil` before.
    package let connectedAt: Int64?
    /// The time between the two; `nil` before.
    package let setupTime: Duration?
    package let isSimulcast: Bool
    package let spotlight: Spotlight?
    package let publications: [Publication]
    package let channelRole: ChannelRole
    /// What its video shows.
    package let source: VideoSource
    /// The kinds of its media that it or an operator muted.
    package let muted: Set<MediaKind>
    /// JSON text for event webhooks.
    package let eventMetadataJSON: String?
    /// Bit/s that it may be sent, by its grant or an operator; `nil` for the node's maximum.
    package let receiveBitsPerSecondMax: Int?
    /// The user; `nil` for a client without a name.
    package let user: UserIdentity?
    /// When its permission expires; `nil` without an end.
    package let expiry: AccessExpiry?
    /// The app whose token admitted it; `nil` for a client without such a token.
    package internal(set) var app: String?
    /// The quality of its network.
    package internal(set) var quality = LinkQuality.unknown
    /// What its transport negotiated. A member of the audience does less at present.
    package internal(set) var negotiatedRole = Role.sendrecv
    /// Whether media has come since it is connected and publishes (``RoomReport/publishingBegan(_:)``).
    package internal(set) var hasPublished = false
    /// Whether nothing comes from the publisher any more, although its connection has not ended.
    package internal(set) var isSilent = false
    /// The phases of its set-up.
    package internal(set) var setup = ConnectionSetup()
    /// When the place of a lost connection ends unless the member is back, in seconds since 1970 UTC; `nil` for a connection
    /// that is not lost.
    package internal(set) var placeEndsAt: Int64?

    /// What a connection is doing.
    package enum State: String, Hashable, Sendable, CaseIterable {
        /// Its media is negotiated, and its transport is not up yet.
        case connecting
        case connected
        /// It is lost, and its place is kept for a while.
        case interrupted
    }

    package var state: State {
        if placeEndsAt != nil || isSilent { return .interrupted }
        return connectedAt == nil ? .connecting : .connected
    }
    /// The kinds of media that come from it.
    package var flowing: Set<MediaKind> { publications.flowingKinds }
    /// Whether its transport has come up, also when it was lost afterwards.
    package var isConnected: Bool { connectedAt != nil }
}

/// A connection and its channel's counts right after an event.
package struct ConnectionReport: Hashable, Sendable {
    package let connection: Connection
    /// How long it has been connected.
    package let duration: Duration
    /// The channel's connected members, including this one unless it has ended.
    package let counts: ChannelCounts
    /// The time of the event in nanoseconds since 1970 UTC.
    package let unixNanoseconds: Int64
    /// From the client's request to the event, in milliseconds.
    package var elapsedMilliseconds: Int {
        let (passed, overflows) = unixNanoseconds.subtractingReportingOverflow(connection.createdAt)
        return overflows ? 0 : Int((max(passed, 0) &+ connection.setup.waitedNanoseconds) / 1_000_000)
    }
    /// How long it has been connected, in whole minutes.
    package var minutes: Int { Int(duration.components.seconds / 60) }
}

/// An event for webhooks and statistics.
package enum RoomReport: Hashable, Sendable {
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
    /// The first packet of a connected publisher came, or of a member that became host.
    case publishingBegan(ConnectionReport)
    /// A kind of media that came from a connected publisher comes no more, or comes again.
    case flowChanged(ConnectionReport)
    /// The first key frame of a connected publisher's video came.
    case firstFrameReceived(ConnectionReport)
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
