/// Why a connection ended.
struct Failure: Hashable, Sendable {
    var error: NagareError
    /// Whether the client does not connect again by itself.
    var isFinal = false
    var bye: ByeReason?
    /// Whether the token has run out.
    var isExpiry = false

    init(_ reason: String, _ message: String, code: Int = 0, isFinal: Bool = false) {
        error = NagareError(reason: reason, message: message, code: code)
        self.isFinal = isFinal
    }

    static let interrupted = Self("MEDIA-LOST", "The media connection was lost.", code: 0x0105_0202)
    static let silent = Self("SIGNALING-SILENT", "The server has not been heard for a while.", code: 0x0102_020C)
    static let left = Self(NagareError.left.reason, NagareError.left.message, isFinal: true)
    static let unreachableMedia = Self(
        "MEDIA-UNREACHABLE",
        "No network path to the server was found for media. Every firewall on the way must allow the UDP media port (7000 and "
            + "up by default) or its TCP port, and the server must announce an address that this device can reach.",
        code: 0x0105_0201
    )
    static let unreadable = Self("INVALID-MESSAGE", "The server sent something that is no message of its protocol.")
    static let flooded = Self("INVALID-MESSAGE", "The server sent offers faster than this client could answer them.")
    static let unsupported = Self(
        "UNSUPPORTED",
        "The server does not know channels. Use a node of Nagare with the channel extension.",
        isFinal: true
    )
    static func unreachable(_ host: String) -> Self { Self("UNREACHABLE", "The server at \(host) does not answer.") }
    static func mediaRefused(_ why: String) -> Self {
        Self("OFFER-REFUSED", "This client could not apply the server's offer: \(why)")
    }
}

/// What the close of a WebSocket means.
extension Failure {
    private static let refusalCode = 4490
    private static let byes: [String: ByeReason] = [
        "KICKED": .kicked, "DISCONNECTED-API": .kicked, "BANNED": .banned, "CHANNEL-TERMINATED": .channelTerminated,
        "CHANNEL-EXPIRED": .channelTerminated, "USER-REPLACED": .replaced,
    ]
    /// Refusals with these reasons may be over at the next try. Any other refusal is final.
    private static let passing: Set = [
        "AUTHENTICATION-INTERNAL-ERROR", "SERVER-SHUTDOWN", "CONNECTION-CREATED-WAIT-TIMEOUT-ERROR",
        "ICE-CONNECTION-STATE-FAILED", "CONNECTION-STATE-FAILED", "PONG-TIMEOUT-ERROR", "ANSWER-TIMEOUT-ERROR",
        "CONNECT-WAIT-TIMEOUT-ERROR", "PUBLISHERS-FULL", "INTERNAL-ERROR",
    ]
    /// The result codes of the ARTC reference. The refusal of an app's token starts with its own.
    private static let codes = [
        "KICKED": 0x0201_0105, "TOKEN-EXPIRED": 0x0201_0205, "AUTHENTICATION-FAILURE": 0x0201_0205,
        "BANNED": 0x0103_0202, "DUPLICATED-CHANNEL-ID": 0x0101_0301, "CHANNEL-PROFILE-MISMATCH": 0x0201_0903,
        "CHANNEL-OF-OTHER-APP": 0x0201_0203, "CHANNEL-EXPIRED": 0x0201_0203, "ROLE-SET-BY-OPERATOR": 0x0102_0201,
        "PONG-TIMEOUT-ERROR": 0x0102_020C, "INTERNAL-ERROR": 0x0103_0202, "CHANNEL-FULL": 0x3002_0903,
        "PUBLISHERS-FULL": 0x3002_0904, "STREAM-BLOCKED": 0x3002_0904, "ALREADY-PUBLISHING": 0x3002_0904,
    ]
    private static let sentences = [
        "KICKED": "An operator removed you from the channel.",
        "DISCONNECTED-API": "An operator ended your connection.",
        "BANNED": "You are banned from this channel.",
        "CHANNEL-TERMINATED": "An operator closed the channel.",
        "CHANNEL-EXPIRED": "The channel has reached its maximum age. Join again to open a new one.",
        "USER-REPLACED": "The same user joined from another place, which took over.",
        "TOKEN-EXPIRED": "The access token has expired. Join again with a new one.",
        "LIFETIME-EXPIRED": "The time granted to this connection is over. Join again.",
        "AUTHENTICATION-FAILURE":
            "The server did not accept the access token. Check that it is complete, for this channel, and not expired.",
        "AUTHENTICATION-INTERNAL-ERROR":
            "The server could not check the access: the service that decides on it failed.",
        "CHANNEL-FULL": "The channel is full: it has as many members as it may have. Try again later.",
        "PUBLISHERS-FULL": "There are as many publishers as there may be. Watch, or try again later.",
        "STREAM-BLOCKED": "An operator blocked publishing to this channel.",
        "ALREADY-PUBLISHING": "This user publishes to the channel already. Stop there first.",
        "DUPLICATED-CHANNEL-ID": "This user is in the channel already. Leave there first, or join as another user.",
        "CHANNEL-PROFILE-MISMATCH": "The channel has another profile. Join with the profile of its other members.",
        "CHANNEL-OF-OTHER-APP": "The channel belongs to another app. Choose another channel.",
        "ROLE-SET-BY-OPERATOR": "An operator keeps you in the audience.",
        "UNKNOWN-CODEC-TYPE": "The server does not support this codec. Choose another one.",
        "SERVER-SHUTDOWN": "The server is restarting.",
        "TRY-AGAIN-LATER": "Too many clients join at once.",
        "CONNECTION-CREATED-WAIT-TIMEOUT-ERROR": unreachableMedia.error.message,
        "ICE-CONNECTION-STATE-FAILED": "The media connection was lost.",
        "CONNECTION-STATE-FAILED": "The media connection could not be secured.",
        "PONG-TIMEOUT-ERROR": "The server heard nothing from this device for a minute.",
        "ANSWER-TIMEOUT-ERROR": "This device did not answer the server in time.",
        "CONNECT-WAIT-TIMEOUT-ERROR": "This device did not answer the server in time.",
        "INTERNAL-ERROR": "The server is full or busy.",
    ]

    /// - Parameter hasToken: whether the client gave one.
    init(_ end: SignalingSocketEnd, hasToken: Bool) {
        guard case .closed(let code, let text) = end else {
            self.init("SIGNALING-LOST", "The connection to the server was lost.")
            return
        }
        // A close frame has at most 123 bytes; another transport may be generous.
        let told = String(text.prefix(256))
        let numbered = Self.numbered(told)
        let (reason, detail) = Self.split(told)
        var message =
            Self.sentences[reason] ?? detail
            ?? "The server closed the connection: \(reason.isEmpty ? "\(code)" : reason)."
        if let given = numbered?.message, !given.isEmpty { message = given }
        if reason == "AUTHENTICATION-FAILURE", !hasToken { message = "The server asks for an access token." }
        self.init(
            reason.isEmpty ? "CLOSED-\(code)" : reason,
            message,
            code: numbered?.code ?? Self.codes[reason] ?? 0
        )
        bye = Self.byes[reason]
        isExpiry = reason == "TOKEN-EXPIRED"
        isFinal =
            code == Self.refusalCode
            ? !Self.passing.contains(reason) : bye != nil || isExpiry || reason == "LIFETIME-EXPIRED"
    }

    /// Behind the reason of a refused message the server says what is wrong.
    private static func split(_ told: String) -> (reason: String, detail: String?) {
        let isWord = { (character: Character) in character == "-" || ("A"..."Z").contains(character) }
        guard let separator = told.firstRange(of: ": "), !told[..<separator.lowerBound].isEmpty,
            told[..<separator.lowerBound].allSatisfy(isWord)
        else { return (told, nil) }
        return (String(told[..<separator.lowerBound]), String(told[separator.upperBound...]))
    }

    /// A result code and a sentence, as operators' services and app tokens give them.
    private static func numbered(_ reason: String) -> (code: Int, message: String)? {
        let digits: Substring
        let radix: Int
        if reason.hasPrefix("0x") || reason.hasPrefix("0X") {
            digits = reason.dropFirst(2).prefix { $0.isHexDigit }
            radix = 16
            guard digits.utf8.count == 8 else { return nil }
        } else {
            digits = reason.prefix { $0.isASCII && $0.isNumber }
            radix = 10
            guard digits.utf8.count >= 4 else { return nil }
        }
        let rest = reason[digits.endIndex...]
        guard let code = Int(digits, radix: radix), rest.first.map({ !$0.isLetter && !$0.isNumber }) ?? true else {
            return nil
        }
        return (code, String(rest.drop { " -:,\t".contains($0) }))
    }
}
