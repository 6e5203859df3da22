import MediaTypes

extension EndReason {
    /// The reason for operators' programs.
    public var name: String {
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
