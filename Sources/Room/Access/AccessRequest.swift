public import JSON
public import Room

/// A newcomer's request to join a channel, for ``Authorizer/admit(_:)``.
public struct AccessRequest: Sendable {
    /// The newcomer's options for one kind of media.
    public struct Media: Hashable, Sendable {
        /// Whether it sends or receives this kind.
        public var isEnabled: Bool
        /// In the client's spelling: `OPUS`, `VP9`; `nil` when it leaves the choice to the node.
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
    /// The newcomer's identifier if it is admitted.
    public var participant: ParticipantID
    /// The channel's session that the newcomer will be in.
    public var session: ChannelSessionID
    /// The client's choice; `nil` without one.
    public var clientID: String?
    public var bundleID: String?
    /// Its signaling protocol and software.
    public var agent: ClientAgent
    /// Its network, for limits per client address.
    public var network: ClientNetwork
    /// The version of libwebrtc that the client reports.
    public var libwebrtc: String?
    /// The client's authentication metadata, opaque to the node except for `access_token`.
    public var metadata: JSONValue?
    /// The client's metadata in notifications.
    public var notifyMetadata: JSONValue?
    /// The Bearer token of WHIP and WHEP. Sora's clients put one into `metadata.access_token`: see ``presentedToken``.
    public var credential: Credential?
    public var audio: Media
    public var video: Media
    public var isSimulcast: Bool
    public var spotlight: Bool
    /// The connected members of the channel.
    public var counts: ChannelCounts
    /// The number of members, connected or not.
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

    /// The Bearer token, or `access_token` of the metadata.
    public var presentedToken: String? { credential?.token ?? metadata?["access_token"]?.string }
}

extension JSONValue {
    /// The fields of an app's token in a client's metadata: `access_token` as an object, or the metadata itself.
    var presentedAppFields: [String: JSONValue]? {
        if let fields = self["access_token"]?.object { return fields }
        return object.flatMap { $0["appid"] != nil || $0["appId"] != nil ? $0 : nil }
    }
}

/// The decision on an ``AccessRequest``.
public enum AccessDecision: Sendable {
    /// The newcomer is admitted with these permissions and overrides.
    case allowed(Grants)
    /// The newcomer is refused. The reason is for the client.
    case denied(reason: String?)
    /// There is no decision: the webhook did not answer, or its answer is invalid.
    case failed
}
