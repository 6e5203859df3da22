public import JSON
public import MediaTypes
public import Room

/// The layer that a receiver asks for by its name in simulcast: `r0` is the lowest.
public enum RequestedRID: String, Hashable, Sendable, CaseIterable {
    /// No video.
    case none
    case r0, r1, r2

    /// The same for rooms and forwarding.
    public var layer: LayerChoice {
        switch self {
        case .none: .nothing
        case .r0: .level(0)
        case .r1: .level(1)
        case .r2: .level(2)
        }
    }
}

/// Overrides from authorization. `nil` keeps what the client asked for, or else the node's default.
public struct Grants: Sendable {
    /// Overrides for one kind of media.
    public struct Media: Hashable, Sendable {
        public var isEnabled: Bool?
        /// `OPUS`, or the name of a video codec in capitals.
        public var codec: String?
        /// In kbit/s.
        public var bitRate: Int?
        /// Objects like `opus_params` and `h264_params`, by the name that they have within a client's `audio` or `video`.
        public var parameters: [String: JSONValue] = [:]

        public init() {}
    }

    /// What the participant may do and for how long.
    public var permissions = Permissions()
    public var clientID: String?
    public var bundleID: String?
    public var audio = Media()
    public var video = Media()
    /// Passed to the client in the offer.
    public var metadata: JSONValue?
    /// Passed to the event webhook with every event of the participant.
    public var eventMetadata: JSONValue?
    /// Whether the participant is told of others.
    public var notifies: Bool?
    /// Shown to other members as `authz_metadata`.
    public var notifyMetadata: JSONValue?
    /// Whether the participant is told of changes of its own ICE state.
    public var notifiesICEState: Bool?
    public var isSimulcast: Bool?
    /// The layer of others that the participant gets.
    public var requestedRID: RequestedRID?
    /// Objects for the offer's `encodings`, each with a `rid`.
    public var simulcastEncodings: [[String: JSONValue]]?
    public var spotlight: Bool?
    /// 1…8.
    public var spotlightNumber: Int?
    public var spotlightFocusRID: RequestedRID?
    public var spotlightUnfocusRID: RequestedRID?
    public var spotlightEncodings: [[String: JSONValue]]?
    /// Whether the client is asked for its statistics.
    public var userAgentStatistics: Bool?
    public var forwardingFilters: [ForwardingFilter]?
    public var turnTCPOnly: Bool?
    public var turnTLSOnly: Bool?

    public init() {}
}
