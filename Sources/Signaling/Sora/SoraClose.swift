import MediaTypes
import Room

/// The end of a connection as its client is told: a WebSocket close, and a sentence for the operator's log.
struct SoraClose: Error, Hashable, Sendable {
    let close: WebSocketClose
    /// What happened and what to do about it, without secrets.
    let sentence: String

    init(_ close: WebSocketClose, _ sentence: String) {
        self.close = close
        self.sentence = sentence
    }

    /// A refusal: code 4490.
    init(_ reason: Reason, _ sentence: String) {
        self.init(WebSocketClose(Self.refusalCode, reason.rawValue), sentence)
    }

    /// The code of every end that is not an ordinary one.
    static let refusalCode: UInt16 = 4490

    /// The reasons that client SDKs show to their applications.
    enum Reason: String, Hashable, Sendable {
        case authenticationFailure = "AUTHENTICATION-FAILURE"
        case authenticationInternalError = "AUTHENTICATION-INTERNAL-ERROR"
        case invalidJSON = "INVALID-JSON"
        case missingType = "MISSING-TYPE"
        case invalidMessage = "INVALID-MESSAGE"
        case unknownCodecType = "UNKNOWN-CODEC-TYPE"
        case invalidVideoFormat = "INVALID-VIDEO-FORMAT"
        case invalidAudioFormat = "INVALID-AUDIO-FORMAT"
        case badFingerprint = "BAD-FINGERPRINT"
        case duplicatedChannelID = "DUPLICATED-CHANNEL-ID"
        case connectWaitTimeout = "CONNECT-WAIT-TIMEOUT-ERROR"
        case answerTimeout = "ANSWER-TIMEOUT-ERROR"
        case connectionCreatedWaitTimeout = "CONNECTION-CREATED-WAIT-TIMEOUT-ERROR"
        case pongTimeout = "PONG-TIMEOUT-ERROR"
        case connectionStateFailed = "CONNECTION-STATE-FAILED"
        case iceConnectionStateFailed = "ICE-CONNECTION-STATE-FAILED"
        case internalError = "INTERNAL-ERROR"
    }

    // MARK: Ordinary ends

    static let disconnected = Self(WebSocketClose(1000, "TYPE-DISCONNECT"), "The client disconnected.")
    static let disconnectedByOperator = Self(
        WebSocketClose(1000, "DISCONNECTED-API"),
        "An operator disconnected the client."
    )
    static let lifetimeExpired = Self(
        WebSocketClose(1000, "LIFETIME-EXPIRED"),
        "The lifetime that the connection was granted is over."
    )
    static let stopping = Self(WebSocketClose(1001, "SERVER-SHUTDOWN"), "The node shuts down.")

    // MARK: Time

    static let connectWaitTimeout = Self(
        .connectWaitTimeout,
        "No \"connect\" came in time; clients that try several URLs at once leave such sockets behind."
    )
    static let admissionTimeout = Self(
        .internalError,
        "It took too long to let the client in and to give it a place; is the node overloaded?"
    )
    static let answerTimeout = Self(
        .answerTimeout,
        "The client did not answer an offer in time; it may have lost its network or failed at the offer."
    )
    static let connectionCreatedWaitTimeout = Self(
        .connectionCreatedWaitTimeout,
        "The media transport did not come up; is the node's UDP port reachable for the client, and does it announce "
            + "an address that the client can reach?"
    )
    static let pongTimeout = Self(.pongTimeout, "The client did not answer pings; it may have lost its network.")
}

// MARK: - The table

extension SoraClose {
    /// What a client is told when the rooms end its participation; `nil` when the client itself asked for it.
    init?(_ reason: EndReason) {
        switch reason {
        case .left, .signalingLost: return nil
        case .shutdown: self = .stopping
        case .disconnectedByOperator, .sessionTerminated: self = .disconnectedByOperator
        case .lifetimeExpired: self = .lifetimeExpired
        case .rejected(let reason):
            self.init(WebSocketClose(Self.refusalCode, reason), "The participant was rejected: \(reason)")
        case .setupFailed: self.init(.internalError, "The media could not be set up.")
        case .tooSlow:
            self.init(.internalError, "The client took its messages too slowly, so that too many waited for it.")
        case .unanswered: self = .answerTimeout
        case .unreachable: self = .connectionCreatedWaitTimeout
        case .crowdedOut:
            self.init(
                .internalError,
                "The node is full, and the client had not connected when its place was given to another; connect again."
            )
        case .replaced: self.init(.duplicatedChannelID, "The same client joined again.")
        case .transport(let reason): self.init(reason)
        }
    }

    private init(_ reason: PeerCloseReason) {
        switch reason {
        // Clients close their media beside sending "disconnect", which may be the slower of the two.
        case .requested, .closedByPeer: self = .disconnected
        case .setupTimedOut: self = .connectionCreatedWaitTimeout
        case .consentExpired:
            self.init(
                .iceConnectionStateFailed,
                "The client's media transport went silent; it may have lost its network."
            )
        case .handshakeFailed:
            self.init(
                .connectionStateFailed,
                "The DTLS handshake failed; the client may support no SRTP profile of the node."
            )
        case .fingerprintMismatch:
            self.init(.badFingerprint, "The client's certificate is not the one that its SDP announced.")
        }
    }

    /// What a client is told that gets no place.
    init(_ error: RoomError) {
        self = error == .draining ? .stopping : Self(.internalError, HTTPFailure(error).sentence)
    }
}
