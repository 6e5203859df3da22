internal import Signatures

/// The signature of an ingest or playback URL (type A), its query parameter `auth_key`: `timestamp-rand-uid-md5hash`.
///
/// The hash is the MD5 of `path-timestamp-rand-uid-key`. It covers the path as it is written in the URL, neither the
/// host nor the query.
package struct URLSignature: Hashable, Sendable {
    /// The name of the query parameter.
    package static let parameter = "auth_key"
    /// The longest signature in bytes.
    static let bytesMax = 256

    /// In seconds since 1970. The URL expires ``URLKeys/validity`` seconds later.
    package let timestamp: Int64
    /// `timestamp-rand-uid`, as written.
    private let fields: String
    /// 32 lowercase hexadecimal digits.
    private let hash: String

    /// The value of the query parameter.
    package var text: String { "\(fields)-\(hash)" }

    /// - Throws: ``URLSignatureError/malformed`` and ``URLSignatureError/timestampOutOfRange``.
    package init(parsing text: String) throws(URLSignatureError) {
        guard text.utf8.count <= Self.bytesMax else { throw .malformed }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 4, !parts[0].isEmpty, parts[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            parts[1...2].allSatisfy(Self.isWord), parts[3].utf8.count == 32,
            parts[3].utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { throw .malformed }
        guard let timestamp = Int64(parts[0]), AppToken.expiries.contains(timestamp) else { throw .timestampOutOfRange }
        self.timestamp = timestamp
        fields = parts[..<3].joined(separator: "-")
        hash = String(parts[3])
    }

    /// Letters, digits and `_`.
    private static func isWord(_ text: Substring) -> Bool {
        !text.isEmpty && AppToken.isIdentifier(String(text))
    }

    /// Checks that the signature is one of the path by one of the keys, and that it has not expired.
    /// - Parameters:
    ///   - path: as written in the URL, percent-encoded.
    ///   - now: seconds since 1970.
    package func verify(path: String, _ keys: URLKeys, at now: Int64) throws(URLSignatureError) {
        try checkHash(path: path, keys)
        // The URL is valid before its expiry, not at it.
        let expiry = expiry(keys)
        guard now < expiry else { throw .expired(at: expiry) }
    }

    func checkHash(path: String, _ keys: URLKeys) throws(URLSignatureError) {
        var isRight = false
        for key in keys.all {
            guard let expected = Self.hash(path: path, fields: fields, key: key) else { throw .unsupported }
            isRight = StaticTokenAuthorizer.isEqual(Array(hash.utf8), Array(expected.utf8)) || isRight
        }
        guard isRight else { throw .wrongHash }
    }

    /// In seconds since 1970.
    func expiry(_ keys: URLKeys) -> Int64 { timestamp + Int64(keys.validity) }

    fileprivate static func hash(path: String, fields: String, key: String) -> String? {
        MessageDigest.md5.hexadecimal(of: Array("\(path)-\(fields)-\(key)".utf8))
    }
}

/// The keys of signed URLs, and how long a URL is valid. The keys are never printed.
///
/// URLs are accepted by either key, so a key can be replaced while URLs of the other one are in use.
package struct URLKeys: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The permitted periods of validity in seconds, up to ten years.
    package static let validities = 0...315_360_000
    package static let validityDefault = 1_800
    /// The maximum length of a key in bytes.
    package static let keyBytesMax = 255
    /// The minimum length of a node's key in bytes. The signature is an MD5, so whoever has one signed URL can try billions of keys a
    /// second.
    package static let nodeKeyBytesMin = 16

    /// The period in seconds from a URL's timestamp to its expiry. With 0 the timestamp is the expiry.
    package let validity: Int
    /// Whose sessions the expiry ends.
    package let expiryEnds: URLExpiryScope
    fileprivate let all: [String]

    /// - Parameters:
    ///   - keys: the primary key and the secondary key, or one of them; each follows ``isKey(_:)``.
    ///   - validity: one of ``validities``.
    package init(
        _ keys: [String],
        validity: Int = Self.validityDefault,
        expiryEnds: URLExpiryScope = .publishers
    ) {
        precondition(!keys.isEmpty && keys.allSatisfy(Self.isKey), "without a key no URL is valid")
        precondition(Self.validities.contains(validity), "the period is one of `validities`")
        all = keys
        self.validity = validity
        self.expiryEnds = expiryEnds
    }

    /// Whether a key has 1 to ``keyBytesMax`` characters of printable ASCII.
    package static func isKey(_ text: String) -> Bool {
        (1...keyBytesMax).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// Signs a URL's path with the first key.
    /// - Parameters:
    ///   - path: as written in the URL, percent-encoded.
    ///   - timestamp: in seconds since 1970.
    ///   - rand: letters and digits.
    /// - Throws: ``URLSignatureError``, without ``URLSignatureError/wrongHash`` and ``URLSignatureError/expired(at:)``.
    package func signature(
        path: String,
        timestamp: Int64,
        rand: String = "0",
        uid: String = "0"
    ) throws(URLSignatureError) -> URLSignature {
        let fields = "\(timestamp)-\(rand)-\(uid)"
        guard let hash = URLSignature.hash(path: path, fields: fields, key: all[0]) else { throw .unsupported }
        return try URLSignature(parsing: "\(fields)-\(hash)")
    }

    package var description: String { "keys of signed URLs (hidden)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Whose sessions end when the signed URL that admitted them expires.
package enum URLExpiryScope: String, Sendable, CaseIterable {
    /// Those of publishers. A viewer's URL is checked when it joins: stock players cannot renew it.
    case publishers
    /// Those of viewers too.
    case all

    /// Whether the expiry ends sessions that the signature admits.
    func includes(_ role: AccessRole?) -> Bool { self == .all || role == .publisher }
}

/// Why a signed URL is refused.
package enum URLSignatureError: Error, Hashable, Sendable {
    /// It is not `timestamp-rand-uid-md5hash`.
    case malformed
    /// The timestamp is 0, or in milliseconds.
    case timestampOutOfRange
    /// The hash is not that of the path and a key.
    case wrongHash
    /// In seconds since 1970.
    case expired(at: Int64)
    /// OpenSSL provides no MD5, as in FIPS mode.
    case unsupported

    /// What is wrong and what to do.
    package var message: String {
        switch self {
        case .malformed: "auth_key must be timestamp-rand-uid-md5hash, with 32 lowercase hexadecimal digits at its end."
        case .timestampOutOfRange: "The timestamp of auth_key must be in seconds since 1970, not in milliseconds."
        case .wrongHash:
            "The signature of the URL is wrong; check the key, and sign the path as it is in the URL, without the query."
        case .expired(let expiry): "The signed URL expired at \(expiry); ask for a new one."
        case .unsupported: "This server's OpenSSL provides no MD5, which signed URLs need."
        }
    }
}

/// The path of a URL, for its signature.
package struct SignableURL: Sendable {
    /// The URL without a fragment.
    private let text: String
    /// What stands between the text and another parameter.
    private let separator: String
    /// As written, percent-encoded.
    package let path: String

    /// `nil` for a text that is no URL with a scheme, a host and a path, and for one that has an `auth_key`.
    package init?(_ text: String) {
        let kept = text.prefix { $0 != "#" }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), let scheme = kept.firstRange(of: "://"),
            scheme.lowerBound > kept.startIndex
        else { return nil }
        let authority = kept[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }
        let rest = kept[authority.endIndex...]
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard !authority.isEmpty, let path = parts.first, path.utf8.count > 1 else { return nil }
        let query = parts.count == 2 ? parts[1] : ""
        guard !query.split(separator: "&").contains(where: { $0.hasPrefix("\(URLSignature.parameter)=") }) else {
            return nil
        }
        self.text = String(kept)
        self.path = String(path)
        // A question mark in a query is a character of it.
        separator = parts.count < 2 ? "?" : query.isEmpty || query.hasSuffix("&") ? "" : "&"
    }

    /// The URL with a signature.
    package func signed(_ signature: URLSignature) -> String {
        "\(text)\(separator)\(URLSignature.parameter)=\(signature.text)"
    }
}
