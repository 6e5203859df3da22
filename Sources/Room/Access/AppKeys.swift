package import ChannelTypes
internal import Signatures

/// The id of an app and the key that it shares with its application server, which makes the app's tokens. The key is
/// never printed.
package struct AppKey: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Why an id and a key cannot be used.
    package enum Problem: Error, Hashable, Sendable {
        /// The id does not follow ``AppToken/isIdentifier(_:)``.
        case invalidID
        /// The key is empty, longer than ``AppKey/keyBytesMax`` or not printable ASCII.
        case invalidKey
    }

    /// The maximum length of a key in bytes.
    package static let keyBytesMax = 255
    /// Shorter keys can be guessed from one token.
    package static let keyBytesRecommended = 16

    package let appID: String
    /// Whether tokens of the app are accepted.
    package let isEnabled: Bool
    /// Which tokens of the app are accepted.
    package let mode: AppTokenMode
    /// What all channels of the app are; `nil` for what their members say.
    package let profile: ChannelProfile?
    private let key: String

    package init(
        appID: String,
        key: String,
        isEnabled: Bool = true,
        mode: AppTokenMode = .lenient,
        profile: ChannelProfile? = nil
    ) throws(Problem) {
        guard AppToken.isIdentifier(appID) else { throw .invalidID }
        guard (1...Self.keyBytesMax).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw .invalidKey }
        self.appID = appID
        self.key = key
        self.isEnabled = isEnabled
        self.mode = mode
        self.profile = profile
    }

    /// Whether the key is shorter than ``keyBytesRecommended``.
    package var isShort: Bool { key.utf8.count < Self.keyBytesRecommended }

    /// Makes a token for one user of one channel.
    /// - Parameters:
    ///   - nonce: `nil` for the nonce of a strict token, which every node accepts.
    ///   - expiry: the end of its validity, in seconds since 1970.
    /// - Throws: ``AppTokenError/badParameter(_:)`` for a field that would be refused.
    package func token(
        channelID: String,
        userID: String,
        nonce: String? = nil,
        expiry: Int64
    ) throws(AppTokenError) -> AppToken {
        let nonce = nonce ?? AppToken.strictNonce(channelID: channelID, userID: userID)
        let hash = hash(channelID: channelID, userID: userID, nonce: nonce, expiry: expiry) ?? ""
        let token = try AppToken(
            appID: appID,
            channelID: channelID,
            userID: userID,
            nonce: nonce,
            expiry: expiry,
            hash: hash
        )
        if mode == .strict { try token.checkNonce() }
        return token
    }

    /// The hash of a token's fields; `nil` only when OpenSSL fails.
    func hash(channelID: String, userID: String, nonce: String, expiry: Int64) -> String? {
        MessageDigest.sha256.hexadecimal(of: Array("\(appID)\(key)\(channelID)\(userID)\(nonce)\(expiry)".utf8))
    }

    package var description: String { "key of app \(appID) (hidden)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The apps of a node.
package struct AppKeys: Sendable {
    private var keys: [String: AppKey] = [:]

    /// - Parameter keys: one for each app.
    package init(_ keys: [AppKey] = []) {
        for key in keys { self.keys[key.appID] = key }
    }

    package var isEmpty: Bool { keys.isEmpty }

    /// The IDs of all apps, sorted.
    package var ids: [String] { keys.keys.sorted() }

    /// `nil` for an unknown app.
    package subscript(appID: String) -> AppKey? { keys[appID] }
}
