import Access
package import ChannelTypes
import MediaTypes
package import Web

/// Why a connection ends: the WebSocket close for the client, and a sentence for the operator's log.
package struct SoraClose: Error, Hashable, Sendable {
    package let close: WebSocketClose
    /// The reason for programs, statistics and reports: the close's own without what is wrong in a message.
    package let word: String
    /// What happened and what to do, without secrets.
    package let message: String
    /// The limit that the client exceeded, to be counted; `nil` for none, or when it is counted already.
    let limit: SignalingStatistics.Refusal?

    init(_ close: WebSocketClose, _ message: String, limit: SignalingStatistics.Refusal? = nil) {
        self.close = close
        word = close.reason
        self.message = message
        self.limit = limit
    }

    /// A refusal: code 4490.
    ///
    /// The developer of a client sees only the reason of a close. So the reason of a refused message goes on with what is wrong,
    /// as far as the frame has room. SDKs hand reasons to applications as they are.
    /// - Parameter mistake: what is wrong, without what the log says besides; `nil` for the whole message.
    init(
        _ reason: Reason,
        _ message: String,
        mistake: String? = nil,
        limit: SignalingStatistics.Refusal? = nil
    ) {
        let mistake = reason.concernsMessage ? ": \((mistake ?? message).printable)" : ""
        close = WebSocketClose(Self.refusalCode, reason.rawValue + mistake)
        word = reason.rawValue
        self.message = message
        self.limit = limit
    }

    /// The code of every abnormal close.
    static let refusalCode: UInt16 = 4490

    /// The reasons that client SDKs report to applications.
    package enum Reason: String, Hashable, Sendable {
        case authenticationFailure = "AUTHENTICATION-FAILURE"
        case authenticationInternalError = "AUTHENTICATION-INTERNAL-ERROR"
        case invalidJSON = "INVALID-JSON"
        case missingType = "MISSING-TYPE"
        case invalidMessage = "INVALID-MESSAGE"
        case unknownCodecType = "UNKNOWN-CODEC-TYPE"
        case invalidVideoFormat = "INVALID-VIDEO-FORMAT"
        case invalidAudioFormat = "INVALID-AUDIO-FORMAT"
        case badFingerprint = "BAD-FINGERPRINT"
        case channelProfileMismatch = "CHANNEL-PROFILE-MISMATCH"
        case duplicatedChannelID = "DUPLICATED-CHANNEL-ID"
        case connectWaitTimeout = "CONNECT-WAIT-TIMEOUT-ERROR"
        case answerTimeout = "ANSWER-TIMEOUT-ERROR"
        case connectionCreatedWaitTimeout = "CONNECTION-CREATED-WAIT-TIMEOUT-ERROR"
        case pongTimeout = "PONG-TIMEOUT-ERROR"
        case connectionStateFailed = "CONNECTION-STATE-FAILED"
        case iceConnectionStateFailed = "ICE-CONNECTION-STATE-FAILED"
        case internalError = "INTERNAL-ERROR"
        case banned = "BANNED"
        case streamBlocked = "STREAM-BLOCKED"
        case roleSetByOperator = "ROLE-SET-BY-OPERATOR"
        case channelOfOtherApp = "CHANNEL-OF-OTHER-APP"
        case publishersFull = "PUBLISHERS-FULL"
        case channelFull = "CHANNEL-FULL"
        case alreadyPublishing = "ALREADY-PUBLISHING"

        /// Whether the client sent a message that its developer has to correct.
        fileprivate var concernsMessage: Bool {
            switch self {
            case .invalidJSON, .missingType, .invalidMessage, .unknownCodecType, .invalidVideoFormat,
                .invalidAudioFormat:
                true
            default: false
            }
        }
    }

    // MARK: Normal closes

    package static let disconnected = Self(WebSocketClose(1000, "TYPE-DISCONNECT"), "The client disconnected.")
    static let disconnectedByOperator = Self(
        WebSocketClose(1000, "DISCONNECTED-API"),
        "An operator disconnected the client."
    )
    static let kicked = Self(WebSocketClose(1000, "KICKED"), "An operator removed the user from the channel.")
    static let banned = Self(WebSocketClose(1000, "BANNED"), "An operator banned the user from the channel.")
    static let channelTerminated = Self(WebSocketClose(1000, "CHANNEL-TERMINATED"), "An operator closed the channel.")
    static let channelExpired = Self(
        WebSocketClose(1000, "CHANNEL-EXPIRED"),
        "The channel has lived for as long as it may; its name can be used again."
    )
    static let madeAudience = Self(
        .roleSetByOperator,
        "An operator made the user audience, and this connection only sends."
    )
    static let userReplaced = Self(
        WebSocketClose(1000, "USER-REPLACED"),
        "The same user joined again, and the newer connection took its place."
    )
    static let lifetimeExpired = Self(
        WebSocketClose(1000, "LIFETIME-EXPIRED"),
        "The granted lifetime of the connection is over."
    )
    static let tokenExpired = Self(
        WebSocketClose(1000, "TOKEN-EXPIRED"),
        "The client's token expired; it can join again with a new one."
    )
    static let redirected = Self(WebSocketClose(1000, "REDIRECTED"), "Another node serves the client.")
    /// 1013 is registered for servers that are temporarily overloaded.
    static let overloaded = Self(
        WebSocketClose(1013, "TRY-AGAIN-LATER"),
        "More clients join at once than the node can serve; it can connect again in a moment."
    )
    static let stopping = Self(WebSocketClose(1001, "SERVER-SHUTDOWN"), "The node is shutting down.")

    // MARK: Limits

    static let messageRate = Self(
        .invalidMessage,
        "The client exceeded the rate limit of messages.",
        limit: .clientMessageRate
    )

    static let tooManyFromNetwork = Self(
        .invalidMessage,
        "Too many messages from this address; connect again later."
    )

    // MARK: Timeouts

    static let connectWaitTimeout = Self(
        .connectWaitTimeout,
        "No \"connect\" message arrived in time; clients that try several URLs at once leave such WebSockets behind."
    )
    static let admissionTimeout = Self(
        .internalError,
        "The admission of the client took too long; is the node overloaded?"
    )
    static let answerTimeout = Self(
        .answerTimeout,
        "The client did not answer an offer in time; it may have lost its network or failed to apply the offer."
    )
    static let connectionCreatedWaitTimeout = Self(
        .connectionCreatedWaitTimeout,
        "The media transport did not connect in time; can the client reach the UDP port and the addresses that the "
            + "node announces?"
    )
    static let pongTimeout = Self(.pongTimeout, "The client did not answer pings; it may have lost its network.")
}

// MARK: - Mapping of errors

extension SoraClose {
    /// The close for a participant that the rooms removed; `nil` when the client itself left.
    package init?(_ reason: EndReason) {
        switch reason {
        case .left, .signalingLost: return nil
        case .shutdown: self = .stopping
        case .disconnectedByOperator, .sessionTerminated: self = .disconnectedByOperator
        case .kicked: self = .kicked
        case .banned: self = .banned
        case .channelTerminated: self = .channelTerminated
        case .channelExpired: self = .channelExpired
        case .madeAudience: self = .madeAudience
        case .pongTimedOut: self = .pongTimeout
        case .lifetimeExpired: self = .lifetimeExpired
        case .tokenExpired: self = .tokenExpired
        case .rejected(let reason):
            self.init(WebSocketClose(Self.refusalCode, reason), "The participant was rejected: \(reason)")
        case .setupFailed: self.init(.internalError, "The media could not be set up.")
        case .tooSlow:
            self.init(.internalError, "The client read too slowly, and too many messages were queued.")
        case .unanswered: self = .answerTimeout
        case .unreachable: self = .connectionCreatedWaitTimeout
        case .evicted:
            self.init(
                .internalError,
                "The node is full, and another client replaced this one before it connected; connect again."
            )
        case .replaced: self = .userReplaced
        case .transport(let reason): self.init(reason)
        }
    }

    private init(_ reason: PeerCloseReason) {
        switch reason {
        // A client closes its media transport when it sends "disconnect", which may arrive later.
        case .requested, .closedByPeer: self = .disconnected
        case .setupTimedOut: self = .connectionCreatedWaitTimeout
        case .consentExpired:
            self.init(
                .iceConnectionStateFailed,
                "The client's media transport stopped sending; it may have lost its network."
            )
        case .handshakeFailed:
            self.init(
                .connectionStateFailed,
                "The DTLS handshake failed; the client may support no SRTP profile of the node."
            )
        case .fingerprintMismatch:
            self.init(.badFingerprint, "The client's certificate does not match the fingerprint in its SDP.")
        }
    }

    /// The close for a client whose message on a data channel of signaling is refused.
    init(_ violation: DataViolation, on label: String) {
        let message =
            switch violation {
            case .notPermitted:
                "The client sent a message on the data channel \(label), on which it only receives."
            case .rate:
                "The client exceeded the rate limit of messages on the data channel \(label); send fewer, or shorter ones."
            case .malformed: "A message of the data channel \(label) is not a zlib stream."
            case .tooLong:
                "A message of the data channel \(label) decompresses to more than 256 KiB, or to more than 16 KiB and a "
                    + "hundred times its length."
            }
        self.init(.invalidMessage, message, limit: violation == .rate ? .clientMessageRate : .dataMessage)
    }
}
