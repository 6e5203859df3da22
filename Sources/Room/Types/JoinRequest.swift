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
    /// Whether it is told of its own ICE connection, be it told of anything else or not.
    public var hearsOfICE: Bool
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
    /// What it is not to get, or the only things that it is to get.
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
        hearsOfICE: Bool = false,
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
        self.hearsOfICE = hearsOfICE
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
public struct ClientAgent: Hashable, Sendable {
    public enum Signaling: String, Hashable, Sendable, CaseIterable { case whip, whep, sora, other }
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

/// How a viewer wants a big room: those who spoke last are *focused*, and it gets them in one layer and with sound, the
/// others in another layer and without.
public struct Spotlight: Hashable, Sendable {
    /// How many may be focused.
    public static let numbers = 1...8
    /// How many are focused where nothing else is said.
    public static let numberDefault = 1

    /// How many are to be focused in the session: what is said first holds. One outside ``numbers`` becomes the nearest
    /// in it. `nil`: no opinion.
    public var number: Int?
    /// How many are focused while nobody has said; that of the first participant with spotlight holds for the session.
    /// One outside ``numbers`` becomes the nearest in it.
    public var numberUnsaid: Int
    /// The layer of a focused sender's video.
    public var focus: LayerChoice
    /// The layer of another sender's video.
    public var unfocus: LayerChoice

    public init(
        number: Int? = nil,
        numberUnsaid: Int = Self.numberDefault,
        focus: LayerChoice,
        unfocus: LayerChoice
    ) {
        self.number = number
        self.numberUnsaid = numberUnsaid
        self.focus = focus
        self.unfocus = unfocus
    }
}
