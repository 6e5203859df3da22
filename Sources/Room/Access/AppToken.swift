package import JSON

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A token of an app: it permits one user to join one channel in any role until its expiry.
///
/// The application server hashes the fields and the app's key with SHA-256, concatenated without separators. Characters
/// can therefore move between neighboring fields: a token for channel `room1` and user `2` is also one for channel `room`
/// and user `12`, and one for user `hanako2` is also one for user `hanako` with the nonce `2`. The fields of a strict token
/// cannot be moved: see ``AppTokenMode/strict``.
package struct AppToken: Hashable, Sendable {
    package let appID: String
    package let channelID: String
    package let userID: String
    /// It begins with the lengths of both IDs in a strict token. The published examples leave it empty.
    package let nonce: String
    /// The end of its validity (`timestamp`), in seconds since 1970.
    package let expiry: Int64
    /// 64 lowercase hexadecimal digits.
    let hash: String

    /// The longest parameter in bytes: ``limits`` in Base64.
    static let parameterBytesMax = 2_732
    /// For the JSON of a parameter, which is read before the hash is verified.
    static let limits = JSONLimits(bytesMax: 2_048, depthMax: 3, containersMax: 4, valuesMax: 32)
    /// The longest app ID, channel ID and user ID, in characters.
    static let identifierBytesMax = 64
    static let nonceBytesMax = 128
    /// The permitted expiries. Milliseconds since 1970 are above them.
    ///
    /// The upper bound is also what keeps a digit from moving from the user ID or nonce to the front of a present-day
    /// timestamp.
    package static let expiries: ClosedRange<Int64> = 1...9_999_999_999
    /// Timestamps below this are durations, or long past (2001).
    private static let plausibleExpiryMin: Int64 = 1_000_000_000

    /// - Throws: ``AppTokenError/badParameter(_:)``.
    init(
        appID: String,
        channelID: String,
        userID: String,
        nonce: String,
        expiry: Int64,
        hash: String
    ) throws(AppTokenError) {
        for (name, value) in [("appid", appID), ("channelid", channelID), ("userid", userID)]
        where !Self.isIdentifier(value) {
            throw .badParameter("\"\(name)\" must have 1 to 64 characters, only A-Z, a-z, 0-9, _ and -.")
        }
        guard nonce.utf8.count <= Self.nonceBytesMax, nonce.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .badParameter("\"nonce\" must have at most 128 printable ASCII characters.")
        }
        guard Self.expiries.contains(expiry) else {
            throw .badParameter(
                expiry > 0
                    ? "\"timestamp\" must be in seconds since 1970, not in milliseconds."
                    : "\"timestamp\" must be in seconds since 1970, above 0."
            )
        }
        guard hash.utf8.count == 64, hash.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { throw .badParameter("\"token\" must be a SHA-256 hash of 64 lowercase hexadecimal digits.") }
        self.appID = appID
        self.channelID = channelID
        self.userID = userID
        self.nonce = nonce
        self.expiry = expiry
        self.hash = hash
    }

    /// Parses the single parameter of a join: the JSON object of the fields in Base64, standard or URL-safe, with or
    /// without padding.
    /// - Throws: ``AppTokenError/badParameter(_:)``.
    package init(parameter: String) throws(AppTokenError) {
        guard parameter.utf8.count <= Self.parameterBytesMax else { throw .badParameter("The token is too long.") }
        let text = parameter.replacing("-", with: "+").replacing("_", with: "/").prefix { $0 != "=" }
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard parameter.dropFirst(text.count).allSatisfy({ $0 == "=" }), let data = Data(base64Encoded: text + padding),
            let members = (try? JSONValue(parsing: Array(data), limits: Self.limits))?.object
        else { throw .badParameter("The token is not a JSON object in Base64.") }
        try self.init(fields: members)
    }

    /// Reads the separate fields of a join: `appid`, `channelid`, `userid`, `nonce`, `timestamp` and `token`. The IDs may
    /// be written `appId`, `channelId` and `userId`. Other members are ignored.
    /// - Throws: ``AppTokenError/badParameter(_:)``.
    package init(fields members: [String: JSONValue]) throws(AppTokenError) {
        func text(_ name: String, _ other: String? = nil) throws(AppTokenError) -> String {
            let value = members[name] ?? other.flatMap { members[$0] } ?? .null
            guard !value.isNull else { return "" }
            guard let text = value.string else { throw .badParameter("\"\(name)\" must be a string.") }
            return text
        }
        guard let expiry = members["timestamp"]?.integer else {
            throw .badParameter("\"timestamp\" must be a whole number: seconds since 1970.")
        }
        try self.init(
            appID: text("appid", "appId"),
            channelID: text("channelid", "channelId"),
            userID: text("userid", "userId"),
            nonce: text("nonce"),
            expiry: Int64(expiry),
            hash: text("token")
        )
    }

    /// Whether a text is a valid app ID, channel ID and user ID: 1 to 64 characters of `[A-Za-z0-9_-]`.
    package static func isIdentifier(_ text: String) -> Bool {
        (1...identifierBytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"): true
                default: false
                }
            }
    }

    /// The separate fields of a join.
    package var fields: [String: JSONValue] {
        [
            "appid": .string(appID), "channelid": .string(channelID), "userid": .string(userID),
            "nonce": .string(nonce), "timestamp": .integer(expiry), "token": .string(hash),
        ]
    }

    /// The single parameter of a join.
    package var parameter: String { Data(JSONValue.object(fields).bytes).base64EncodedString() }
}

// MARK: - Verification

extension AppToken {
    /// Checks in this order that the app exists, that it is enabled, that the hash is right and that the token has not
    /// expired.
    /// - Parameter now: seconds since 1970.
    package func verify(_ keys: AppKeys, at now: Int64) throws(AppTokenError) {
        try checkHash(keys)
        try checkTime(now)
    }

    /// The hash of a lenient app's token may also be made without the nonce, because the SDK guide's code does so.
    func checkHash(_ keys: AppKeys) throws(AppTokenError) {
        guard let key = keys[appID] else { throw .appUnknown(appID) }
        guard key.isEnabled else { throw .appDisabled(appID) }
        switch key.mode {
        case .lenient:
            guard matches(key, nonce: nonce) || (!nonce.isEmpty && matches(key, nonce: "")) else { throw .wrongHash }
        case .strict:
            try checkNonce()
            guard matches(key, nonce: nonce) else { throw .wrongHash }
        }
    }

    /// The start of a strict token's nonce: the lengths of its IDs. It is a complete nonce, too.
    static func strictNonce(channelID: String, userID: String) -> String {
        "\(channelID.utf8.count).\(userID.utf8.count)."
    }

    /// Checks that the nonce is that of a strict token.
    ///
    /// The hashed text then has one reading only. The timestamp is all digits at its end, because the nonce ends in no
    /// digit. IDs have no full stop, so the first full stop follows the length of the channel ID, and the second one the
    /// length of the user ID. Before the first one are both IDs and the digits of the first length. Their number and the
    /// length of the user ID give the length of the channel ID: a longer one has at least as many digits.
    func checkNonce() throws(AppTokenError) {
        let start = Self.strictNonce(channelID: channelID, userID: userID)
        guard nonce.utf8.starts(with: start.utf8), let last = nonce.utf8.last, !(0x30...0x39).contains(last) else {
            throw .badParameter(
                "\"nonce\" must begin with \"\(start)\", the lengths of channel and user ID, and not end in a digit "
                    + "(strict tokens)."
            )
        }
    }

    private func matches(_ key: AppKey, nonce: String) -> Bool {
        guard let expected = key.hash(channelID: channelID, userID: userID, nonce: nonce, expiry: expiry) else {
            return false
        }
        return StaticTokenAuthorizer.isEqual(Array(hash.utf8), Array(expected.utf8))
    }

    /// The token is valid before its expiry, not at it.
    func checkTime(_ now: Int64) throws(AppTokenError) {
        guard now >= expiry else { return }
        throw expiry < Self.plausibleExpiryMin ? .expiryIsDuration(expiry) : .expired(at: expiry)
    }

    /// IDs compare byte by byte.
    func checkChannel(_ name: String) throws(AppTokenError) {
        guard channelID.utf8.elementsEqual(name.utf8) else { throw .otherChannel }
    }

    /// - Parameter clientID: the client's own choice; `nil` without one.
    func checkUser(_ clientID: String?) throws(AppTokenError) {
        guard let clientID else { return }
        guard userID.utf8.elementsEqual(clientID.utf8) else { throw .otherUser }
    }
}

/// Which tokens of apps are accepted.
package enum AppTokenMode: String, Hashable, Sendable {
    /// All tokens of the published format. Their hash does not say where a field ends and the next one begins.
    case lenient
    /// Tokens with a hashed nonce that has the lengths of the fields. It begins with the length of the channel ID, a full
    /// stop, the length of the user ID and a full stop, and does not end in a digit: `4.2.` for channel `room` and user
    /// `12`, or more characters after that. Lenient nodes accept these tokens, too.
    case strict
}

/// Why an app's token is refused.
package enum AppTokenError: Error, Hashable, Sendable {
    /// A field is missing or malformed; the sentence names it.
    case badParameter(String)
    case appUnknown(String)
    case appDisabled(String)
    /// The hash is not that of the fields and the app's key.
    case wrongHash
    /// In seconds since 1970.
    case expired(at: Int64)
    /// It expired, and its timestamp is too small for a present-day time.
    case expiryIsDuration(Int64)
    /// The token is valid, but for another channel.
    case otherChannel
    /// The token is valid, but for another user.
    case otherUser

    /// The result code of the join, as SDKs of apps know it.
    package var resultCode: ResultCode { kind.code }

    /// What is wrong and what to do.
    package var message: String {
        switch self {
        case .badParameter(let message): message
        case .appUnknown(let id): "There is no app \"\(id)\"; check the app ID."
        case .appDisabled(let id): "The app \"\(id)\" is disabled."
        case .wrongHash: "The token's hash is wrong; check the app key and every field."
        case .expired(let expiry): "The token expired at \(expiry); make a new one with a later timestamp."
        case .expiryIsDuration(let expiry):
            "The token expired at \(expiry); its timestamp must be a Unix time, not a duration."
        case .otherChannel: "The token is for another channel; make one for this channel."
        case .otherUser: "The token is for another user; its user ID must be the client ID."
        }
    }

    /// The result code and the sentence, for the client. It fits in the reason of a WebSocket close.
    package var reason: String {
        let digits = String(resultCode.rawValue, radix: 16, uppercase: true)
        return "0x" + String(repeating: "0", count: 8 - digits.count) + digits + " " + message
    }
}
