/// A result code of a request or of a join, as the client SDKs of apps know it. Not every failure has one.
package enum ResultCode: UInt32, Hashable, Sendable, CaseIterable {
    case appUnknown = 0x0201_0201
    case appDisabled = 0x0201_0202
    /// The node removed the user's session.
    case sessionRemoved = 0x0201_0105
    /// The channel cannot be used with this token: it is another app's, or has lived for as long as it may.
    case channelInvalid = 0x0201_0203
    /// The channel does not exist, or nobody is in it.
    case channelUnknown = 0x0201_0204
    /// The token is forged, has expired, or is for another channel or user.
    case badToken = 0x0201_0205
    /// The members of a channel have different profiles.
    case profileMismatch = 0x0201_0903
    case roleChangeFailed = 0x0102_0201
    /// Nothing was heard of the client for too long.
    case heartbeatTimeout = 0x0102_020C
    /// A field is missing or malformed.
    case badParameter = 0x0103_0101
    /// An operator banned the user, or made it audience.
    case joinFailed = 0x0103_0202
    /// The user is in the channel already.
    case alreadyInChannel = 0x0101_0301
    /// The signature of a URL is wrong.
    case badSignature = 0x0504_0002

    // Push SDKs tell applications with these codes that a push cannot start. Of the others of the same list, 0x3002_0901 (the
    // pusher is in a state in which it cannot push), 0x3002_0902 (it cannot take the URL apart), 0x3001_0900 (an unknown failure
    // of the device) and 0x3001_0901 (the device has no memory left) are of the device alone, so no server gives them.

    /// The connection to the server failed: a limit of the channel, the node or the client's network is reached.
    case pushConnectFailed = 0x3002_0903
    /// The server is there and refuses the stream: the URL has expired, the stream is blocked, there are too many publishers, or the
    /// user publishes already.
    case pushStreamRefused = 0x3002_0904
    /// The URL of the push is malformed.
    case pushURLInvalid = 0x3002_0905
}

/// Why a client may not join or publish, for programs. The raw value ends the `type` of a problem document.
package enum RefusalKind: String, Hashable, Sendable, CaseIterable {
    case tokenMalformed = "token-malformed"
    case tokenInvalid = "token-invalid"
    case tokenExpired = "token-expired"
    case appUnknown = "app-unknown"
    case appDisabled = "app-disabled"
    case urlMalformed = "url-malformed"
    case urlSignatureWrong = "url-signature-wrong"
    case urlExpired = "url-expired"
    case banned
    case streamBlocked = "stream-blocked"
    /// The channel is another app's.
    case channelOfOtherApp = "channel-of-other-app"
    /// An operator made the user audience.
    case audienceOnly = "audience-only"
    /// The channel, the app or the node has as many publishers as it may have.
    case publishersFull = "publishers-full"
    /// The channel, the node or the client's network has reached another limit.
    case overLimit = "over-limit"
    /// The user publishes to the channel already, and the policy keeps the older publisher.
    case alreadyPublishing = "already-publishing"
    /// The user is in the channel already, and the policy keeps the older connection.
    case userPresent = "user-present"

    package var code: ResultCode {
        switch self {
        case .tokenMalformed: .badParameter
        case .tokenInvalid, .tokenExpired: .badToken
        case .appUnknown: .appUnknown
        case .appDisabled: .appDisabled
        case .urlSignatureWrong: .badSignature
        case .urlMalformed: .pushURLInvalid
        case .urlExpired, .streamBlocked, .publishersFull, .alreadyPublishing: .pushStreamRefused
        case .overLimit: .pushConnectFailed
        case .channelOfOtherApp: .channelInvalid
        case .banned, .audienceOnly: .joinFailed
        case .userPresent: .alreadyInChannel
        }
    }
}

extension AppTokenError {
    package var kind: RefusalKind {
        switch self {
        case .badParameter: .tokenMalformed
        case .appUnknown: .appUnknown
        case .appDisabled: .appDisabled
        case .wrongHash, .otherChannel, .otherUser: .tokenInvalid
        case .expired, .expiryIsDuration: .tokenExpired
        }
    }
}

extension URLSignatureError {
    /// `nil` when the node cannot verify any signature.
    package var kind: RefusalKind? {
        switch self {
        case .malformed, .timestampOutOfRange: .urlMalformed
        case .wrongHash: .urlSignatureWrong
        case .expired: .urlExpired
        case .unsupported: nil
        }
    }
}
