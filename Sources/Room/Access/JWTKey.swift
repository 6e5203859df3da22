package import JSON
internal import Signatures

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A key that signs or verifies tokens (RFC 7515). The algorithm is part of the key: it verifies no token that names
/// another algorithm (RFC 8725 §3.1). It is never printed.
package struct JWTKey: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The accepted algorithms.
    package enum Algorithm: String, Hashable, Sendable, CaseIterable {
        /// A shared secret.
        case hs256 = "HS256"
        /// A key pair on the curve P-256.
        case es256 = "ES256"
        /// A key pair on the curve Ed25519.
        case edDSA = "EdDSA"
        /// An RSA key pair.
        case rs256 = "RS256"

        /// Whether the keys that verify are public, so that a ``JSONWebKeySet`` can have them.
        package var isAsymmetric: Bool { self != .hs256 }
    }

    /// Why a key cannot be used.
    package enum Problem: Error, Hashable, Sendable {
        /// The secret is shorter than the hash (RFC 7518 §3.2).
        case secretTooShort(bytes: Int)
        /// The text is not the PEM of a key of the algorithm.
        case notPEM
        /// The modulus of an RSA key has this many bits, which is not one of ``rsaBits``.
        case rsaKeySize(bits: Int)
    }

    /// The permitted lengths of an RSA modulus in bits (RFC 7518 §3.3).
    package static let rsaBits = SignatureKey.modulusBits

    /// The minimum length of a secret in bytes.
    package static let secretBytesMin = 32

    /// The most keys that one token is verified with. Without this bound a client could cause many verifications with each token,
    /// at about 0.1 ms each.
    package static let candidatesMax = 4

    package let algorithm: Algorithm
    /// The key id, `kid` in tokens. A key without one is tried for every token of its algorithm.
    package let id: String?
    private let signatureKey: SignatureKey

    /// - Parameter text: the secret itself, or a private or public key as PEM.
    package init(_ algorithm: Algorithm, id: String? = nil, text: String) throws(Problem) {
        self.algorithm = algorithm
        self.id = id
        do {
            switch algorithm {
            case .hs256:
                let secret = Array(text.utf8)
                guard secret.count >= Self.secretBytesMin else { throw Problem.secretTooShort(bytes: secret.count) }
                signatureKey = SignatureKey(hmacSecret: secret)
            case .es256: signatureKey = try SignatureKey(pem: text, algorithm: .ecdsaP256SHA256)
            case .edDSA: signatureKey = try SignatureKey(pem: text, algorithm: .ed25519)
            case .rs256: signatureKey = try SignatureKey(pem: text, algorithm: .rsaPKCS1SHA256)
            }
        } catch let problem as Problem {
            throw problem
        } catch SignatureKey.PEMError.modulusBits(let bits) {
            throw .rsaKeySize(bits: bits)
        } catch {
            throw .notPEM
        }
    }

    /// A public key of a ``JSONWebKeySet``.
    init(_ algorithm: Algorithm, id: String?, publicKey: SignatureKey) {
        self.algorithm = algorithm
        self.id = id
        signatureKey = publicKey
    }

    /// The algorithm with so many keys without an ID that a token which names its key could be of more than ``candidatesMax``
    /// nevertheless; `nil` when there is none.
    package static func algorithmWithTooManyUnnamed(_ keys: [JWTKey]) -> Algorithm? {
        Algorithm.allCases.first { algorithm in
            let keys = keys.filter { $0.algorithm == algorithm }
            let unnamed = keys.count { $0.id == nil }
            return unnamed + (unnamed < keys.count ? 1 : 0) > candidatesMax
        }
    }

    /// Whether the key signs tokens: a secret or a private key.
    package var canSign: Bool { signatureKey.canSign }

    /// Whether `signature` is this key's signature of `input`.
    func verifies(_ signature: [UInt8], over input: [UInt8]) -> Bool { signatureKey.verifies(signature, over: input) }

    /// Signs a token with these claims. `nil` for a public key.
    package func token(claims: [String: JSONValue]) -> String? {
        var header: [String: JSONValue] = ["alg": .string(algorithm.rawValue), "typ": "JWT"]
        header["kid"] = id.map { .string($0) }
        let input =
            Base64URL.encoded(JSONValue.object(header).bytes) + "." + Base64URL.encoded(JSONValue.object(claims).bytes)
        guard let signature = signatureKey.signature(over: Array(input.utf8)) else { return nil }
        return input + "." + Base64URL.encoded(signature)
    }

    package var description: String { "\(algorithm.rawValue) key (hidden)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Base64url without padding (RFC 7515 §2).
enum Base64URL {
    static func encoded(_ bytes: [UInt8]) -> String {
        let text = Data(bytes).base64EncodedString()
        return String(text.prefix { $0 != "=" }).replacing("+", with: "-").replacing("/", with: "_")
    }

    /// `nil` for text that is not canonical, so that a token has one spelling.
    static func decoded(_ text: some StringProtocol) -> [UInt8]? {
        guard text.utf8.allSatisfy({ isSymbol($0) }), text.utf8.count % 4 != 1 else { return nil }
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        let standard = String(text).replacing("-", with: "+").replacing("_", with: "/") + padding
        guard let data = Data(base64Encoded: standard) else { return nil }
        let bytes = Array(data)
        return encoded(bytes) == String(text) ? bytes : nil
    }

    private static func isSymbol(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }
}
