public import JSON
public import MediaTypes
public import Room

/// A simulcast layer that a receiver requests by its RID, whatever the sender calls it; `r0` and `q` are the lowest.
public enum RequestedRID: String, Hashable, Sendable, CaseIterable {
    /// No video.
    case none
    /// The names that Sora gives to layers.
    case r0, r1, r2
    /// The names that WHIP publishers often give to the same three layers: quarter, half and full size.
    case q, h, f

    public var layer: LayerChoice {
        switch self {
        case .none: .nothing
        case .r0, .q: .level(0)
        case .r1, .h: .level(1)
        case .r2, .f: .level(2)
        }
    }
}

/// Permissions and overrides from authorization. `nil` keeps the client's request, or the node's default.
public struct Grants: Sendable {
    /// Overrides for one kind of media.
    public struct Media: Hashable, Sendable {
        public var isEnabled: Bool?
        /// `OPUS`, or the name of a video codec in capitals.
        public var codec: String?
        /// In kbit/s.
        public var bitRate: Int?
        /// `opus_params`, `h264_params` and others, by their name in a client's `audio` or `video`.
        public var parameters: [String: JSONValue] = [:]

        public init() {}
    }

    public var permissions = Permissions()
    public var clientID: String?
    /// The app whose token it is; `nil` for others.
    public var app: String?
    /// What happens when the client is in the channel already.
    public var duplicateUsers: DuplicateUserPolicy?
    public var bundleID: String?
    public var audio = Media()
    public var video = Media()
    /// Sent to the client in the offer.
    public var metadata: JSONValue?
    /// Sent to the event webhook with every event of the participant.
    public var eventMetadata: JSONValue?
    /// Whether the participant gets notifications.
    public var notifies: Bool?
    /// `authz_metadata` in notifications.
    public var notifyMetadata: JSONValue?
    /// Whether the participant is notified of changes of its own ICE connection state.
    public var notifiesICEState: Bool?
    public var isSimulcast: Bool?
    /// The layer that the participant receives of others.
    public var requestedRID: RequestedRID?
    /// Objects for the offer's `encodings`, each with a `rid`.
    public var simulcastEncodings: [[String: JSONValue]]?
    public var spotlight: Bool?
    /// 1…8.
    public var spotlightNumber: Int?
    public var spotlightFocusRID: RequestedRID?
    public var spotlightUnfocusRID: RequestedRID?
    public var spotlightEncodings: [[String: JSONValue]]?
    /// Whether the client reports its statistics.
    public var userAgentStatistics: Bool?
    public var forwardingFilters: [ForwardingFilter]?
    public var turnTCPOnly: Bool?
    public var turnTLSOnly: Bool?
    /// Whether the client's signaling moves to data channels.
    public var dataChannelSignaling: Bool?
    /// Whether the connection then goes on without its WebSocket.
    public var ignoresWebSocketLoss: Bool?
    /// Channels for messages between clients, in place of those that the client requests.
    public var dataChannels: [RequestedDataChannel]?
    /// The methods that the client may call over the data channel `rpc`, such as `2025.2.0/RequestSimulcastRid`.
    public var rpcMethods: [String]?

    public init() {}
}
