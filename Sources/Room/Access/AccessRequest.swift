package import ChannelTypes
package import JSON

/// A newcomer's request to join a channel, for ``Authorizer/admit(_:)``.
package struct AccessRequest: Sendable {
    /// The newcomer's options for one kind of media.
    package struct Media: Hashable, Sendable {
        /// Whether it sends or receives this kind.
        package var isEnabled: Bool
        /// In the client's spelling: `OPUS`, `VP9`; `nil` when it leaves the choice to the node.
        package var codec: String?
        /// In kbit/s.
        package var bitRate: Int?

        package init(isEnabled: Bool = true, codec: String? = nil, bitRate: Int? = nil) {
            self.isEnabled = isEnabled
            self.codec = codec
            self.bitRate = bitRate
        }
    }

    package var channel: ChannelName
    package var role: Role
    /// The newcomer's identifier if it is admitted.
    package var participant: ParticipantID
    /// The channel's session that the newcomer will be in.
    package var session: ChannelSessionID
    /// The client's choice; `nil` without one.
    package var clientID: String?
    package var bundleID: String?
    /// Its signaling protocol and software.
    package var agent: ClientAgent
    /// Its network, for limits per client address.
    package var network: ClientNetwork
    /// The version of libwebrtc that the client reports.
    package var libwebrtc: String?
    /// The client's authentication metadata, opaque to the node except for `access_token`.
    package var metadata: JSONValue?
    /// The client's metadata in notifications.
    package var notifyMetadata: JSONValue?
    /// The Bearer token of WHIP and WHEP. Sora's clients put one into `metadata.access_token`: see ``presentedToken``.
    package var credential: Credential?
    package var audio: Media
    package var video: Media
    package var isSimulcast: Bool
    package var spotlight: Bool
    /// The other options of the client's `connect` message that an authentication webhook can decide on, by their names in it.
    package var options: [String: JSONValue] = [:]
    /// The connected members of the channel.
    package var counts: ChannelCounts
    /// The number of members, connected or not.
    package var members: Int

    package init(
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
    package var presentedToken: String? { credential?.token ?? metadata?["access_token"]?.string }
}

extension JSONValue {
    /// The fields of an app's token in a client's metadata: `access_token` as an object, or the metadata itself.
    var presentedAppFields: [String: JSONValue]? {
        if let fields = self["access_token"]?.object { return fields }
        return object.flatMap { $0["appid"] != nil || $0["appId"] != nil ? $0 : nil }
    }
}

/// The decision on an ``AccessRequest``.
package enum AccessDecision: Sendable {
    /// The newcomer is admitted with these permissions and overrides.
    case allowed(Grants)
    /// The newcomer is refused. The reason is for the client.
    case denied(reason: String?)
    /// There is no decision: the webhook did not answer, or its answer is invalid.
    case failed
}
