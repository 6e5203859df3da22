package import ChannelTypes
package import JSON
package import MediaTypes

/// A simulcast layer that a receiver requests by its RID, whatever the sender calls it; `r0` and `q` are the lowest.
package enum RequestedRID: String, Hashable, Sendable, CaseIterable {
    /// No video.
    case none
    /// The names that Sora gives to layers.
    case r0, r1, r2
    /// The names that WHIP publishers often give to the same three layers: quarter, half and full size.
    case q, h, f

    package var layer: LayerChoice {
        switch self {
        case .none: .nothing
        case .r0, .q: .level(0)
        case .r1, .h: .level(1)
        case .r2, .f: .level(2)
        }
    }
}

/// Permissions and overrides from authorization. `nil` keeps the client's request, or the node's default.
package struct Grants: Sendable {
    /// Overrides for one kind of media.
    package struct Media: Hashable, Sendable {
        package var isEnabled: Bool?
        /// `OPUS`, or the name of a video codec in capitals.
        package var codec: String?
        /// In kbit/s.
        package var bitRate: Int?
        /// `opus_params`, `h264_params` and others, by their name in a client's `audio` or `video`.
        package var parameters: [String: JSONValue] = [:]

        package init() {}
    }

    package var permissions = Permissions()
    package var clientID: String?
    /// The app whose token it is; `nil` for others.
    package var app: String?
    /// What happens when the client is in the channel already.
    package var duplicateUsers: DuplicateUserPolicy?
    package var bundleID: String?
    package var audio = Media()
    package var video = Media()
    /// Sent to the client in the offer.
    package var metadata: JSONValue?
    /// Sent to the event webhook with every event of the participant.
    package var eventMetadata: JSONValue?
    /// Whether the participant gets notifications.
    package var notifies: Bool?
    /// `authz_metadata` in notifications.
    package var notifyMetadata: JSONValue?
    /// Whether the participant is notified of changes of its own ICE connection state.
    package var notifiesICEState: Bool?
    package var isSimulcast: Bool?
    /// The layer that the participant receives of others.
    package var requestedRID: RequestedRID?
    /// Objects for the offer's `encodings`, each with a `rid`.
    package var simulcastEncodings: [[String: JSONValue]]?
    package var spotlight: Bool?
    /// 1…8.
    package var spotlightNumber: Int?
    package var spotlightFocusRID: RequestedRID?
    package var spotlightUnfocusRID: RequestedRID?
    package var spotlightEncodings: [[String: JSONValue]]?
    /// Whether the client reports its statistics.
    package var userAgentStatistics: Bool?
    package var forwardingFilters: [ForwardingFilter]?
    package var turnTCPOnly: Bool?
    package var turnTLSOnly: Bool?
    /// Whether the client's signaling moves to data channels.
    package var dataChannelSignaling: Bool?
    /// Whether the connection then goes on without its WebSocket.
    package var ignoresWebSocketLoss: Bool?
    /// Channels for messages between clients, in place of those that the client requests.
    package var dataChannels: [RequestedDataChannel]?
    /// The methods that the client may call over the data channel `rpc`, such as `2025.2.0/RequestSimulcastRid`.
    package var rpcMethods: [String]?
    /// What the member is in the channel.
    package var options: StatedOptions?
    /// The members of the claims or of the answer that have no effect.
    package var ignored: [String] = []

    package init() {}
}
