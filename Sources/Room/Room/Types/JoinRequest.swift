public import MediaTypes
public import Wire

/// A newcomer's request to join, before its media is negotiated. The caller limits the length of every text.
public struct JoinRequest: Sendable {
    public var channel: ChannelName
    public var role: Role
    /// Ignored for a role that does not receive.
    public var following: Following
    /// Whether it gets access to the TURN server of its media loop.
    public var usesTURN = false
    /// A name for people, shown with the identifier.
    public var displayName: String?
    /// The participant's identifier when ``ChannelDirectory/joinContext(of:)`` gave one before; `nil` for a new one.
    public var id: ParticipantID?
    /// The application's identifier of the client, not unique. `nil` for the participant's identifier.
    public var clientID: String?
    /// The user, by which connections of one user belong together; `nil` for a client without a name.
    public var user: UserIdentity?
    /// The app whose token admitted it; `nil` for a client without such a token.
    public var app: String?
    /// What happens when the user is in the channel already; `nil` for ``RoomLimits/duplicateUsers``.
    public var duplicateUsers: DuplicateUserPolicy?
    /// Whether its place is kept for ``RoomLimits/resumeGrace`` when its connection is lost.
    public var keepsPlace = false
    /// The token of an earlier connection whose place it takes. A token that fits no place is ignored.
    public var resumeToken: String?
    /// Members of one bundle receive neither each other's media nor notifications of each other. `nil` for the
    /// participant's identifier.
    public var bundleID: String?
    /// The scope of ``bundleID``; `nil` for its own network.
    public var bundleScope: BundleScope?
    /// The client's metadata in notifications: JSON text.
    public var notifyMetadataJSON: String?
    /// The authorization's metadata in notifications: JSON text.
    public var authorizedMetadataJSON: String?
    /// The metadata in event webhooks: JSON text.
    public var eventMetadataJSON: String?
    /// Whether it gets notifications.
    public var receivesNotifications: Bool
    /// Whether it is notified of the state of its own ICE connection, with or without other notifications.
    public var notifiesICEState: Bool
    /// Whether others are notified of it.
    public var announces: Bool
    /// Whether notifications say that it sends audio; `nil` for whether it publishes any.
    public var sendsAudio: Bool?
    /// Whether notifications say that it sends video; `nil` for whether it publishes any.
    public var sendsVideo: Bool?
    /// The layer of every sender's video until it requests another. Not used with spotlight.
    public var layer: LayerChoice
    /// `nil` without spotlight.
    public var spotlight: Spotlight?
    /// Filters on the tracks that it receives.
    public var filters: [ForwardingFilter]
    /// Whether it sends video in several layers.
    public var isSimulcast: Bool
    public var agent: ClientAgent
    /// Its network, for limits per client address.
    public var network: ClientNetwork
    /// How long it may stay connected (`connection_lifetime`); `nil` without a limit.
    public var lifetime: Duration?
    /// When its permission expires; `nil` without an end.
    public var expiry: AccessExpiry?
    /// The most participants of its channel, itself included; `nil` for the node's limit.
    public var channelConnectionsMax: Int?
    /// Bit/s that it may publish, audio and video together; `nil` for the node's limit.
    public var publishBitsPerSecondMax: Int?
    /// Bit/s that it may be sent, all media together; `nil` for the node's maximum.
    public var receiveBitsPerSecondMax: Int?
    /// The height in pixels at which it shows video, one of ``videoHeights``; `nil` for as high as there is.
    public var videoHeight: Int?
    /// `nil` from a client that does not know them. Such a client fits any profile.
    public var options: MemberOptions?
    /// Whether its authorization lets it publish, now or later.
    public var mayPublish: Bool
    /// The data channels that the node opens; `nil` for a participant that opens channels itself.
    public var data: DataPlan?
    /// When the request arrived, on the clock of the rooms; `nil` where that is not told.
    public var receivedAt: Instant?
    /// When it was authorized.
    public var authorizedAt: Instant?

    /// The permitted heights of video.
    public static let videoHeights = 1...4_320

    public init(
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
public struct ClientAgent: Hashable, Sendable, Codable {
    public enum Signaling: String, Hashable, Sendable, Codable, CaseIterable { case whip, whep, sora, other }
    public var signaling: Signaling
    /// The client's name for itself; empty if unknown.
    public var name: String
    /// The client's description of its platform.
    public var environment: String?

    public init(signaling: Signaling = .other, name: String = "", environment: String? = nil) {
        self.signaling = signaling
        self.name = name
        self.environment = environment
    }
}

/// The layers of video that a viewer with spotlight receives.
public struct SpotlightLayers: Hashable, Sendable, Codable {
    /// Of senders in focus.
    let focus: LayerChoice
    /// Of other senders.
    let unfocus: LayerChoice

    public init(focus: LayerChoice, unfocus: LayerChoice) {
        self.focus = focus
        self.unfocus = unfocus
    }
}

/// A viewer's spotlight: it receives members *in focus*, those who spoke last, in one layer with audio, and the others
/// in another layer without audio.
public struct Spotlight: Hashable, Sendable, Codable {
    /// The permitted numbers of members in focus.
    public static let numbers = 1...8
    /// The default number of members in focus.
    public static let numberDefault = 1

    /// The requested number of members in focus; `nil` without a request. The first request of a session holds. A
    /// number outside ``numbers`` becomes the nearest in it.
    public var number: Int?
    /// The number of members in focus without a request. The first participant with spotlight sets it for the session.
    /// A number outside ``numbers`` becomes the nearest in it.
    public var defaultNumber: Int
    /// The layer of video of senders in focus.
    public var focus: LayerChoice
    /// The layer of video of other senders.
    public var unfocus: LayerChoice

    public init(
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
