import Base

/// One side's ICE user name fragment and password (RFC 8445 §5.3, RFC 8839 §5.4). The password is never printed.
public struct ICECredentials: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// 4…256 ice-char.
    public let usernameFragment: String
    /// 22…256 ice-char.
    public let password: String

    /// `nil` when a length is outside RFC 8839's or a character is not an ice-char.
    public init?(usernameFragment: String, password: String) {
        let isICECharacter = { (byte: UInt8) in isAlphanumeric(byte) || byte == 0x2B || byte == 0x2F }
        guard (4...256).contains(usernameFragment.utf8.count), usernameFragment.utf8.allSatisfy(isICECharacter),
            (22...256).contains(password.utf8.count), password.utf8.allSatisfy(isICECharacter)
        else { return nil }
        self.usernameFragment = usernameFragment
        self.password = password
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Fresh credentials of 48 and 144 random bits.
    public init(using generator: inout some RandomNumberGenerator) {
        func text(_ count: Int) -> String {
            let bytes = (0..<count).map { _ in Self.alphabet[Int(UInt8.random(in: 0..<64, using: &generator))] }
            return String(decoding: bytes, as: UTF8.self)
        }
        usernameFragment = text(8)
        password = text(24)
    }

    public var description: String { "ICECredentials(\(usernameFragment), password hidden)" }
    public var debugDescription: String { description }
}

/// A certificate digest, `a=fingerprint` (RFC 8122 §5).
public struct Fingerprint: Hashable, Sendable, CustomStringConvertible {
    public enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case sha256 = "sha-256"
        case sha384 = "sha-384"
        case sha512 = "sha-512"
        public var byteCount: Int {
            switch self {
            case .sha256: 32
            case .sha384: 48
            case .sha512: 64
            }
        }
    }
    public let algorithm: Algorithm
    public let digest: [UInt8]

    /// `nil` unless `digest` has the algorithm's length.
    public init?(algorithm: Algorithm, digest: [UInt8]) {
        guard digest.count == algorithm.byteCount else { return nil }
        self.algorithm = algorithm
        self.digest = digest
    }

    /// The attribute's value: algorithm, space, upper-case hexadecimal pairs joined by colons.
    public var description: String {
        let pairs = digest.map { byte in
            let text = String(byte, radix: 16, uppercase: true)
            return byte < 16 ? "0" + text : text
        }
        return "\(algorithm.rawValue) \(pairs.joined(separator: ":"))"
    }
}

/// Who sends the ClientHello. `a=setup` negotiates it (RFC 8842 §5.3): passive is the server.
public enum DTLSRole: Hashable, Sendable { case client, server }
