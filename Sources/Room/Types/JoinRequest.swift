public import MediaTypes

/// What a newcomer asks for, before its media is negotiated. The caller bounds the length of every text.
public struct JoinRequest: Sendable {
    public var channel: ChannelName
    public var role: Role
    /// Ignored for a role that does not watch.
    public var following: Following
    /// What others see beside the identifier.
    public var displayName: String?
    /// The participant's identifier when ``Rooms/prospect(_:)`` gave one before; `nil` for a fresh one.
    public var id: ParticipantID?
    /// What the application calls the participant; several may share it. `nil` for its identifier.
    public var clientID: String?
    /// Members of one bundle get neither each other's media nor news of each other. `nil` for its identifier; see
    /// ``bundleScope``.
    public var bundleID: String?
    /// Which other members' ``bundleID`` means the same bundle; `nil` for those from its own network.
    public var bundleScope: BundleScope?
    /// What the client wants others to be told of it: JSON text.
    public var notifyMetadataJSON: String?
    /// What its authorization wants others to be told of it: JSON text.
    public var authorizedMetadataJSON: String?
    /// What event webhooks are to be told of it: JSON text.
    public var eventMetadataJSON: String?
    /// Whether it gets notifications at all.
    public var receivesNotifications: Bool
    /// Whether it is notified of the state of its own ICE connection, with or without other notifications.
    public var notifiesICEState: Bool
    /// Whether others are told of its coming and going.
    public var announces: Bool
    /// What others are told of its audio; `nil` for whether it publishes any.
    public var sendsAudio: Bool?
    /// What others are told of its video; `nil` for whether it publishes any.
    public var sendsVideo: Bool?
    /// The layer that it wants of every sender's video, until it asks for another. Not used with spotlight.
    public var layer: LayerChoice
    /// `nil`: it gets everybody in full.
    public var spotlight: Spotlight?
    /// Filters on the tracks that it gets.
    public var filters: [ForwardingFilter]
    /// Whether it sends video in several layers.
    public var isSimulcast: Bool
    public var agent: ClientAgent
    /// Where it comes from; the node's shares are counted by it.
    public var network: ClientNetwork
    /// How long it may stay connected; `nil` without a limit.
    public var lifetime: Duration?
    /// Refuse it when its channel has that many participants already; `nil` for the node's limit alone.
    public var channelConnectionsMax: Int?
    /// Bit/s that it may publish, audio and video together; `nil` for the node's limit.
    public var publishBitsPerSecondMax: Int?

    public init(
        channel: ChannelName,
        role: Role,
        following: Following = .currentPublisher,
        displayName: String? = nil,
        id: ParticipantID? = nil,
        clientID: String? = nil,
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
        channelConnectionsMax: Int? = nil,
        publishBitsPerSecondMax: Int? = nil
    ) {
        self.channel = channel
        self.role = role
        self.following = following
        self.displayName = displayName
        self.id = id
        self.clientID = clientID
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
        self.channelConnectionsMax = channelConnectionsMax
        self.publishBitsPerSecondMax = publishBitsPerSecondMax
    }
}

/// What a participant connects with, for lists and statistics.
public struct ClientAgent: Hashable, Sendable, Codable {
    public enum Signaling: String, Hashable, Sendable, Codable, CaseIterable { case whip, whep, sora, other }
    public var signaling: Signaling
    /// What the client calls itself; empty when it does not say.
    public var name: String
    /// What the client says of the machine that it runs on.
    public var environment: String?

    public init(signaling: Signaling = .other, name: String = "", environment: String? = nil) {
        self.signaling = signaling
        self.name = name
        self.environment = environment
    }
}

/// A viewer's spotlight: it gets the *focused* members, those who spoke last, in one layer and with sound, and the others
/// in another layer without sound.
public struct Spotlight: Hashable, Sendable, Codable {
    /// How many may be focused.
    public static let numbers = 1...8
    /// How many members are focused by default.
    public static let numberDefault = 1

    /// How many members are focused in the session: the first request holds. A number outside ``numbers`` becomes the
    /// nearest in it. `nil`: no request.
    public var number: Int?
    /// How many members are focused without a request; that of the first participant with spotlight holds for the session.
    /// A number outside ``numbers`` becomes the nearest in it.
    public var defaultNumber: Int
    /// The layer of a focused sender's video.
    public var focus: LayerChoice
    /// The layer of another sender's video.
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
