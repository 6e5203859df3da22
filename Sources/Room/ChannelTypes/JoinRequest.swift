package import Base
package import MediaTypes

/// A newcomer's request to join, before its media is negotiated. The caller limits the length of every text.
package struct JoinRequest: Sendable {
    package var channel: ChannelName
    package var role: Role
    /// Ignored for a role that does not receive.
    package var following: Following
    /// Whether it gets access to the TURN server of its media loop.
    package var usesTURN = false
    /// A name for people, shown with the identifier.
    package var displayName: String?
    /// The participant's identifier when ``ChannelDirectory/joinContext(of:)`` gave one before; `nil` for a new one.
    package var id: ParticipantID?
    /// The application's identifier of the client, not unique. `nil` for the participant's identifier.
    package var clientID: String?
    /// The user, by which connections of one user belong together; `nil` for a client without a name.
    package var user: UserIdentity?
    /// The app whose token admitted it; `nil` for a client without such a token.
    package var app: String?
    /// What happens when the user is in the channel already; `nil` for ``RoomLimits/duplicateUsers``.
    package var duplicateUsers: DuplicateUserPolicy?
    /// Whether its place is kept for ``RoomLimits/resumeGrace`` when its connection is lost.
    package var keepsPlace = false
    /// The token of an earlier connection whose place it takes. A token that fits no place is ignored.
    package var resumeToken: String?
    /// Members of one bundle receive neither each other's media nor notifications of each other. `nil` for the
    /// participant's identifier.
    package var bundleID: String?
    /// The scope of ``bundleID``; `nil` for its own network.
    package var bundleScope: BundleScope?
    /// The client's metadata in notifications: JSON text.
    package var notifyMetadataJSON: String?
    /// The authorization's metadata in notifications: JSON text.
    package var authorizedMetadataJSON: String?
    /// The metadata in event webhooks: JSON text.
    package var eventMetadataJSON: String?
    /// Whether it gets notifications.
    package var receivesNotifications: Bool
    /// Whether it is notified of the state of its own ICE connection, with or without other notifications.
    package var notifiesICEState: Bool
    /// Whether others are notified of it.
    package var announces: Bool
    /// Whether notifications say that it sends audio; `nil` for whether it publishes any.
    package var sendsAudio: Bool?
    /// Whether notifications say that it sends video; `nil` for whether it publishes any.
    package var sendsVideo: Bool?
    /// The layer of every sender's video until it requests another. Not used with spotlight.
    package var layer: LayerChoice
    /// `nil` without spotlight.
    package var spotlight: Spotlight?
    /// Filters on the tracks that it receives.
    package var filters: [ForwardingFilter]
    /// Whether it sends video in several layers.
    package var isSimulcast: Bool
    package var agent: ClientAgent
    /// Its network, for limits per client address.
    package var network: ClientNetwork
    /// How long it may stay connected (`connection_lifetime`); `nil` without a limit.
    package var lifetime: Duration?
    /// When its permission expires; `nil` without an end.
    package var expiry: AccessExpiry?
    /// The most participants of its channel, itself included; `nil` for the node's limit.
    package var channelConnectionsMax: Int?
    /// Bit/s that it may publish, audio and video together; `nil` for the node's limit.
    package var publishBitsPerSecondMax: Int?
    /// Bit/s that it may be sent, all media together; `nil` for the node's maximum.
    package var receiveBitsPerSecondMax: Int?
    /// The height in pixels at which it shows video, one of ``videoHeights``; `nil` for as high as there is.
    package var videoHeight: Int?
    /// `nil` from a client that does not know them. Such a client fits any profile.
    package var options: MemberOptions?
    /// Whether its authorization lets it publish, now or later.
    package var mayPublish: Bool
    /// Whether its authorization lets it moderate the channel while it is a host.
    package var mayModerate = false
    /// The data channels that the node opens; `nil` for a participant that opens channels itself.
    package var data: DataPlan?
    /// When the request arrived, on the clock of the rooms; `nil` where that is not told.
    package var receivedAt: Instant?
    /// When it was authorized.
    package var authorizedAt: Instant?

    /// The permitted heights of video.
    package static let videoHeights = 1...4_320

    package init(
        channel: ChannelName,
        role: Role,
        following: Following = .currentPublisher,
        displayName: String? = nil,
        id: ParticipantID? = nil,
        clientID: String? = nil,
        user: UserIdentity? = nil,
        bundleID: String? = nil,
        bundleScope: BundleScope? = nil,
        notifyMetadataJSON: String? = nil,
        authorizedMetadataJSON: String? = nil,
        eventMetadataJSON: String? = nil,
        receivesNotifications: Bool = true,
        notifiesICEState: Bool = false,
        announces: Bool = true,
        sendsAudio: Bool? = nil,
        sendsVideo: Bool? = nil,
        layer: LayerChoice = .richest,
        spotlight: Spotlight? = nil,
        filters: [ForwardingFilter] = [],
        isSimulcast: Bool = false,
        agent: ClientAgent = ClientAgent(),
        network: ClientNetwork = .unknown,
        lifetime: Duration? = nil,
        expiry: AccessExpiry? = nil,
        channelConnectionsMax: Int? = nil,
        publishBitsPerSecondMax: Int? = nil,
        receiveBitsPerSecondMax: Int? = nil,
        videoHeight: Int? = nil,
        options: MemberOptions? = nil,
        mayPublish: Bool = true
    ) {
        self.channel = channel
        self.role = role
        self.following = following
        self.displayName = displayName
        self.id = id
        self.clientID = clientID
        self.user = user
        self.bundleID = bundleID
        self.bundleScope = bundleScope
        self.notifyMetadataJSON = notifyMetadataJSON
        self.authorizedMetadataJSON = authorizedMetadataJSON
        self.eventMetadataJSON = eventMetadataJSON
        self.receivesNotifications = receivesNotifications
        self.notifiesICEState = notifiesICEState
        self.announces = announces
        self.sendsAudio = sendsAudio
        self.sendsVideo = sendsVideo
        self.layer = layer
        self.spotlight = spotlight
        self.filters = filters
        self.isSimulcast = isSimulcast
        self.agent = agent
        self.network = network
        self.lifetime = lifetime
        self.expiry = expiry
        self.channelConnectionsMax = channelConnectionsMax
        self.publishBitsPerSecondMax = publishBitsPerSecondMax
        self.receiveBitsPerSecondMax = receiveBitsPerSecondMax
        self.videoHeight = videoHeight
        self.options = options
        self.mayPublish = mayPublish
    }
}

/// A participant's signaling protocol and software, for lists and statistics.
package struct ClientAgent: Hashable, Sendable, Codable {
    package enum Signaling: String, Hashable, Sendable, Codable, CaseIterable { case whip, whep, sora, other }
    package var signaling: Signaling
    /// The client's name for itself; empty if unknown.
    package var name: String
    /// The client's description of its platform.
    package var environment: String?

    package init(signaling: Signaling = .other, name: String = "", environment: String? = nil) {
        self.signaling = signaling
        self.name = name
        self.environment = environment
    }
}

/// The layers of video that a viewer with spotlight receives.
package struct SpotlightLayers: Hashable, Sendable, Codable {
    /// Of senders in focus.
    package let focus: LayerChoice
    /// Of other senders.
    package let unfocus: LayerChoice

    package init(focus: LayerChoice, unfocus: LayerChoice) {
        self.focus = focus
        self.unfocus = unfocus
    }
}

/// A viewer's spotlight: it receives members *in focus*, those who spoke last, in one layer with audio, and the others
/// in another layer without audio.
package struct Spotlight: Hashable, Sendable, Codable {
    /// The permitted numbers of members in focus.
    package static let numbers = 1...8
    /// The default number of members in focus.
    package static let numberDefault = 1

    /// The requested number of members in focus; `nil` without a request. The first request of a session holds. A
    /// number outside ``numbers`` becomes the nearest in it.
    package var number: Int?
    /// The number of members in focus without a request. The first participant with spotlight sets it for the session.
    /// A number outside ``numbers`` becomes the nearest in it.
    package var defaultNumber: Int
    /// The layer of video of senders in focus.
    package var focus: LayerChoice
    /// The layer of video of other senders.
    package var unfocus: LayerChoice

    package init(
        number: Int? = nil,
        defaultNumber: Int = Self.numberDefault,
        focus: LayerChoice,
        unfocus: LayerChoice
    ) {
        self.number = number
        self.defaultNumber = defaultNumber
        self.focus = focus
        self.unfocus = unfocus
    }
}
