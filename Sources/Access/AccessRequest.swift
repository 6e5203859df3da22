public import JSON
public import Room

/// A newcomer's wish to take part in a channel, as it is put to whoever decides.
public struct AccessRequest: Sendable {
    /// What the newcomer says of one kind of its own media.
    public struct Media: Hashable, Sendable {
        /// Whether it sends or takes this kind at all.
        public var isEnabled: Bool
        /// As the client spells it: `OPUS`, `VP9`; `nil` when it left the choice to the node.
        public var codec: String?
        /// In kbit/s.
        public var bitRate: Int?

        public init(isEnabled: Bool = true, codec: String? = nil, bitRate: Int? = nil) {
            self.isEnabled = isEnabled
            self.codec = codec
            self.bitRate = bitRate
        }
    }

    public var channel: ChannelName
    public var role: Role
    /// Who the newcomer will be if it is let in.
    public var participant: ParticipantID
    /// The life of the channel that the newcomer will take part in.
    public var session: ChannelSessionID
    /// As the client said; `nil` when it did not.
    public var clientID: String?
    public var bundleID: String?
    /// How it speaks, and what it says of its software.
    public var agent: ClientAgent
    /// Where it comes from.
    public var network: ClientNetwork
    /// The version of libwebrtc that the client says it has.
    public var libwebrtc: String?
    /// What the client gave for authentication, opaque to the node.
    public var metadata: JSONValue?
    /// What the client wants other members to be told of it.
    public var notifyMetadata: JSONValue?
    /// The Bearer token of WHIP and WHEP. Sora's clients put one into `metadata.access_token`: see ``presentedToken``.
    public var credential: Credential?
    public var audio: Media
    public var video: Media
    public var isSimulcast: Bool
    public var spotlight: Bool
    /// The members of the channel that are connected.
    public var counts: ChannelCounts
    /// Those, and the ones that are still to connect.
    public var members: Int

    public init(
        channel: ChannelName,
        role: Role,
        participant: ParticipantID,
        session: ChannelSessionID,
        agent: ClientAgent,
        network: ClientNetwork = .unknown,
        clientID: String? = nil,
        bundleID: String? = nil,
        libwebrtc: String? = nil,
        metadata: JSONValue? = nil,
        notifyMetadata: JSONValue? = nil,
        credential: Credential? = nil,
        audio: Media = Media(),
        video: Media = Media(),
        isSimulcast: Bool = false,
        spotlight: Bool = false,
        counts: ChannelCounts,
        members: Int? = nil
    ) {
        self.channel = channel
        self.role = role
        self.participant = participant
        self.session = session
        self.agent = agent
        self.network = network
        self.clientID = clientID
        self.bundleID = bundleID
        self.libwebrtc = libwebrtc
        self.metadata = metadata
        self.notifyMetadata = notifyMetadata
        self.credential = credential
        self.audio = audio
        self.video = video
        self.isSimulcast = isSimulcast
        self.spotlight = spotlight
        self.counts = counts
        self.members = members ?? counts.connections
    }

    /// The token that the newcomer presents in one way or the other.
    public var presentedToken: String? { credential?.token ?? metadata?["access_token"]?.string }
}

/// What is decided about an ``AccessRequest``.
public enum AccessDecision: Sendable {
    /// The newcomer may take part with these permissions and overrides.
    case allowed(Grants)
    /// It may not. The reason, if there is one, is meant for the client.
    case denied(reason: String?)
    /// Nobody could decide, because the one who should did not answer or answered nonsense.
    case failed
}
