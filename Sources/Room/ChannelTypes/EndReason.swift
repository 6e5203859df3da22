package import MediaTypes

/// Why a participant left.
package enum EndReason: Hashable, Sendable {
    /// The client ended it: DELETE, or the end of its signaling.
    case left
    /// The node shuts down, or drained until its deadline.
    case shutdown
    /// Setup failed.
    case setupFailed
    /// It did not answer its offer in time.
    case unanswered
    /// Its transport found no ICE path in time.
    case unreachable
    /// The node was full and gave its place to a newcomer, because it had not connected.
    case evicted
    /// Its transport ended by itself.
    case transport(PeerCloseReason)
    /// An operator ended it.
    case disconnectedByOperator
    /// An operator removed its user from the channel. The user may join again.
    case kicked
    /// An operator removed its user from the channel and keeps it out.
    case banned
    /// An operator closed the channel.
    case channelTerminated
    /// The channel has lived for as long as it may.
    case channelExpired
    /// It only sends, and an operator made its user audience.
    case madeAudience
    /// Its `connection_lifetime` is over.
    case lifetimeExpired
    /// The token or URL that admitted it has expired.
    case tokenExpired
    /// An operator ended the session of its channel.
    case sessionTerminated
    /// Its signaling read events too slowly.
    case tooSlow
    /// The same user joined again and took its place.
    case replaced
    /// Its signaling connection was lost.
    case signalingLost
    /// It did not answer the pings of its signaling.
    case pongTimedOut
    /// Its signaling ended it for this reason.
    case rejected(String)

    /// Whether the media plane ended the peer itself.
    package var isOfTransport: Bool {
        if case .transport = self { true } else { false }
    }
}

extension EndReason {
    /// The reason for operators' programs.
    package var name: String {
        switch self {
        case .left: "LEFT"
        case .shutdown: "SHUTDOWN"
        case .setupFailed: "SETUP-FAILED"
        case .transport(let reason): "TRANSPORT-\(reason.rawValue.uppercased().replacing("_", with: "-"))"
        case .disconnectedByOperator: "DISCONNECTED-API"
        case .kicked: "KICKED"
        case .banned: "BANNED"
        case .channelTerminated: "CHANNEL-TERMINATED"
        case .channelExpired: "CHANNEL-EXPIRED"
        case .madeAudience: "ROLE-SET-BY-OPERATOR"
        case .pongTimedOut: "PONG-TIMEOUT-ERROR"
        case .lifetimeExpired: "LIFETIME-EXPIRED"
        case .tokenExpired: "TOKEN-EXPIRED"
        case .sessionTerminated: "SESSION-TERMINATED"
        case .tooSlow: "TOO-SLOW"
        case .unanswered: "ANSWER-TIMEOUT"
        case .unreachable: "CONNECTION-TIMEOUT"
        case .evicted: "CROWDED-OUT"
        case .replaced: "USER-REPLACED"
        case .signalingLost: "SIGNALING-LOST"
        case .rejected(let code): code
        }
    }
}
