internal import COpenSSL

/// A key that signs or verifies: a shared secret, a private key or a public key.
///
/// The algorithm belongs to the key. A private key also verifies. It is immutable and can be used on any thread.
package struct SignatureKey: Sendable {
    /// A signature algorithm with its parameters.
    package enum Algorithm: Hashable, Sendable, CaseIterable {
        /// HMAC with SHA-256 (RFC 2104). Signatures are 32 bytes.
        case hmacSHA256
        /// ECDSA on the curve P-256 with SHA-256 (RFC 7518 §3.4). Signatures are r and s, 32 bytes each, big-endian.
        case ecdsaP256SHA256
        /// EdDSA on the curve Ed25519 (RFC 8032). Signatures are 64 bytes.
        case ed25519
        /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 §8.2). Signatures are as long as the modulus.
        case rsaPKCS1SHA256
    }

    /// Why no key could be read from a PEM text.
    package enum PEMError: Error, Hashable, Sendable {
        /// The text is longer than ``SignatureKey/pemBytesMax``.
        case tooLong
        /// The text contains no unencrypted private or public key.
        case unreadable
        /// The key has another type or curve than the algorithm requires.
        case wrongKeyType
        /// The public key is not valid, such as a point that is not on the curve, or the private key does not match it.
        case inconsistent
        /// The modulus of the RSA key is outside of ``SignatureKey/modulusBits``.
        case modulusBits(Int)
    }

    /// The longest PEM text in bytes. The longest key of these algorithms, a private RSA key, has under 7,000 bytes; the rest
    /// is for comments around it.
    package static let pemBytesMax = 65_536
    /// The permitted lengths of an RSA modulus. RFC 7518 §3.3 requires the least; above the most, a verification takes
    /// milliseconds.
    package static let modulusBits = 2_048...8_192

    package let algorithm: Algorithm
    /// The length of every signature in bytes.
    package let signatureBytes: Int
    /// Whether the key can sign: a secret or a private key.
    package let canSign: Bool
    private let material: Material

    private enum Material: Sendable {
        case secret([UInt8])
        case asymmetric(OpenSSLKey)
    }

    /// A secret for HMAC with SHA-256. RFC 7518 §3.2 requires at least 32 bytes, which the caller checks.
    package init(hmacSecret: [UInt8]) {
        algorithm = .hmacSHA256
        signatureBytes = HMACSHA256.codeBytes
        canSign = true
        material = .secret(hmacSecret)
    }

    /// Reads a private key (PKCS #8, PKCS #1 or SEC 1) or a public key (SubjectPublicKeyInfo).
    /// - Parameter algorithm: any but HMAC, whose secrets have no PEM form.
    /// - Throws: ``PEMError``.
    package init(pem: String, algorithm: Algorithm) throws(PEMError) {
        precondition(algorithm != .hmacSHA256, "a secret is not PEM")
        let bytes = Array(pem.utf8)
        guard bytes.count <= Self.pemBytesMax else { throw .tooLong }
        let isPrivate = pem.contains("PRIVATE KEY-----")
        guard let key = OpenSSLKey(pem: bytes, isPrivate: isPrivate) else { throw .unreadable }
        try self.init(key, algorithm: algorithm, isPrivate: isPrivate)
        guard key.isConsistent(isPrivate: isPrivate) else { throw .inconsistent }
    }

    /// A key of the right type. Its consistency is not checked.
    init(_ key: OpenSSLKey, algorithm: Algorithm, isPrivate: Bool) throws(PEMError) {
        guard key.isUsable(for: algorithm) else { throw .wrongKeyType }
        if algorithm == .rsaPKCS1SHA256 {
            guard Self.modulusBits.contains(key.bits) else { throw .modulusBits(key.bits) }
            signatureBytes = (key.bits + 7) / 8
        } else {
            signatureBytes = 64
        }
        self.algorithm = algorithm
        canSign = isPrivate
        material = .asymmetric(key)
    }

    /// The signature over `message`; `nil` when the key only verifies.
    package func signature(over message: [UInt8]) -> [UInt8]? {
        guard canSign else { return nil }
        switch material {
        case .secret(let secret): return HMACSHA256.code(message, secret: secret)
        case .asymmetric(let key):
            guard let signature = key.sign(message, digest: digest) else { return nil }
            return algorithm == .ecdsaP256SHA256 ? ECDSASignature.raw(der: signature) : signature
        }
    }

    /// Whether `signature` is a signature over `message` by this key or its private key. HMACs are compared in constant
    /// time.
    package func verifies(_ signature: [UInt8], over message: [UInt8]) -> Bool {
        guard signature.count == signatureBytes else { return false }
        switch material {
        case .secret(let secret):
            guard let code = HMACSHA256.code(message, secret: secret) else { return false }
            return unsafe CRYPTO_memcmp(code, signature, code.count) == 0
        case .asymmetric(let key):
            guard algorithm == .ecdsaP256SHA256 else { return key.verifies(signature, over: message, digest: digest) }
            guard let der = ECDSASignature.der(raw: signature) else { return false }
            return key.verifies(der, over: message, digest: digest)
        }
    }

    /// Ed25519 includes its own hash.
    private var digest: OpenSSLKey.Digest { algorithm == .ed25519 ? .builtIn : .sha256 }
}

enum HMACSHA256 {
    static let codeBytes = 32

    /// `nil` only when OpenSSL is out of memory.
    static func code(_ message: [UInt8], secret: [UInt8]) -> [UInt8]? {
        var code = [UInt8](repeating: 0, count: codeBytes)
        var length: UInt32 = 0
        let result = unsafe HMAC(
            EVP_sha256(),
            secret,
            Int32(secret.count),
            message,
            message.count,
            &code,
            &length
        )
        return unsafe result != nil && Int(length) == code.count ? code : nil
    }
}
