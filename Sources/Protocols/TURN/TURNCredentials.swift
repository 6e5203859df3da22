import Base

/// The user name and password of one session, for the embedded server (RFC 8489 §9.2). The password is never printed.
public struct TURNCredentials: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    public let username: String
    public let password: String

    public init(username: String, password: String) {
        self.username = username
        self.password = password
    }

    /// A fresh user name of 80 random bits behind the number of the session's loop, and a password.
    public init(loop: UInt16 = 0, using generator: inout some RandomNumberGenerator) {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: loop)
        for _ in 0..<10 { bytes.append(UInt8.random(in: .min ... .max, using: &generator)) }
        self.init(username: Base64.encode(bytes), using: &generator)
    }

    /// The loop in a user name of ``init(loop:using:)``; `nil` for a text of another form.
    static func loop(ofUsername username: String) -> UInt16? {
        guard username.utf8.count == 16, let bytes = Base64.decode(username) else { return nil }
        return UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    }

    /// A fresh password of 144 random bits.
    public init(username: String, using generator: inout some RandomNumberGenerator) {
        let bytes = (0..<18).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        self.init(username: username, password: Base64.encode(bytes))
    }

    /// Time-limited credentials for an external TURN server that shares `secret`, as coturn's `use-auth-secret` expects
    /// them: the user name is `expiry:id`, the password the Base64 of its HMAC-SHA1.
    ///
    /// - Parameter expiry: seconds since 1970; the server refuses the user name afterwards.
    public init(external id: String, expiry: Int, secret: [UInt8]) {
        let username = "\(expiry):\(id)"
        var code = HMACSHA1(key: unsafe secret.span.bytes)
        let text = Array(username.utf8)
        code.update(unsafe text.span.bytes)
        let digest = code.finalize()
        self.init(username: username, password: Base64.encode((0..<SHA1.digestBytes).map { digest[$0] }))
    }

    /// The key of MESSAGE-INTEGRITY (RFC 8489 §9.2.2). All parts are ASCII here, which SASLprep leaves as it is.
    public func key(realm: String) -> [UInt8] { MD5.digest(of: Array("\(username):\(realm):\(password)".utf8)) }

    public var description: String { "TURNCredentials(\(username), password hidden)" }
    public var debugDescription: String { description }
}

/// Base64 (RFC 4648 §4).
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits: UInt32 = 0
            for byte in group { bits = bits << 8 | UInt32(byte) }
            bits <<= UInt32(8 * (3 - group.count))
            for index in 0..<4 {
                let symbol = alphabet[Int(bits >> UInt32(18 - 6 * index)) & 63]
                text.append(index <= group.count ? symbol : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text without padding; `nil` when its length is not a multiple of four or a symbol is unknown.
    static func decode(_ text: String) -> [UInt8]? {
        guard text.utf8.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        for (index, byte) in text.utf8.enumerated() {
            guard let value = alphabet.firstIndex(of: byte) else { return nil }
            bits = bits << 6 | UInt32(value)
            guard index % 4 == 3 else { continue }
            for shift: UInt32 in [16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
            bits = 0
        }
        return bytes
    }
}
