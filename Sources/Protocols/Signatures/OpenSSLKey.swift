internal import COpenSSL

/// An asymmetric key (EVP_PKEY). It is immutable after `init`: OpenSSL permits concurrent signing and verifying with
/// one key.
@safe
final class OpenSSLKey: @unchecked Sendable {
    enum Digest {
        case sha256
        /// The signature algorithm includes the hash.
        case builtIn
    }

    private let key: OpaquePointer

    /// The first private or public key in the text; `nil` when there is none. Encrypted keys are not supported.
    init?(pem: [UInt8], isPrivate: Bool) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let read = unsafe pem.withUnsafeBytes { bytes -> OpaquePointer? in
            // The BIO reads these bytes where they are, so they must outlive it.
            guard let buffer = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
            defer { unsafe BIO_free(buffer) }
            return unsafe isPrivate
                ? PEM_read_bio_PrivateKey(buffer, nil, Self.noPassword, nil)
                : PEM_read_bio_PUBKEY(buffer, nil, Self.noPassword, nil)
        }
        guard let key = unsafe read else { return nil }
        unsafe self.key = key
    }

    /// A public key as SubjectPublicKeyInfo (RFC 5280 §4.1.2.7) in DER, and nothing behind it; `nil` for anything else.
    init?(publicKeyInfo der: [UInt8]) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let read = unsafe der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var position = buffer.baseAddress
            guard let key = unsafe d2i_PUBKEY(nil, &position, buffer.count) else { return nil }
            guard unsafe position == buffer.baseAddress.map({ unsafe $0 + buffer.count }) else {
                unsafe EVP_PKEY_free(key)
                return nil
            }
            return unsafe key
        }
        guard let key = unsafe read else { return nil }
        unsafe self.key = key
    }

    /// The length of the modulus or of the curve's order, in bits.
    var bits: Int { Int(unsafe EVP_PKEY_get_bits(key)) }

    /// Without a callback OpenSSL asks for the password of an encrypted key on the terminal.
    private static let noPassword:
        @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 =
            { _, _, _, _ in -1 }

    deinit { unsafe EVP_PKEY_free(key) }

    /// Whether the key's type, and for ECDSA its curve, match `algorithm`.
    func isUsable(for algorithm: SignatureKey.Algorithm) -> Bool {
        ERR_clear_error()
        defer { ERR_clear_error() }
        switch algorithm {
        case .hmacSHA256: return false
        case .ed25519: return unsafe EVP_PKEY_is_a(key, "ED25519") == 1
        case .rsaPKCS1SHA256: return unsafe EVP_PKEY_is_a(key, "RSA") == 1
        case .ecdsaP256SHA256:
            guard unsafe EVP_PKEY_is_a(key, "EC") == 1 else { return false }
            var name = [CChar](repeating: 0, count: 64)
            var length = 0
            guard unsafe EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else { return false }
            return String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) == "prime256v1"
        }
    }

    /// Whether the public key is valid (SP 800-56A §5.6.2.3) and the private key, if there is one, belongs to it.
    func isConsistent(isPrivate: Bool) -> Bool {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else { return false }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        return unsafe (isPrivate ? EVP_PKEY_check(context) : EVP_PKEY_public_check(context)) == 1
    }

    /// The signature in OpenSSL's format, which is DER for ECDSA; `nil` for a public key.
    func sign(_ message: [UInt8], digest: Digest) -> [UInt8]? {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let context = unsafe EVP_MD_CTX_new() else { return nil }
        defer { unsafe EVP_MD_CTX_free(context) }
        var count = Int(unsafe EVP_PKEY_get_size(key))
        var signature = [UInt8](repeating: 0, count: max(count, 0))
        guard unsafe EVP_DigestSignInit(context, nil, digest.method, nil, key) == 1,
            unsafe EVP_DigestSign(context, &signature, &count, message, message.count) == 1
        else { return nil }
        return Array(signature.prefix(count))
    }

    func verifies(_ signature: [UInt8], over message: [UInt8], digest: Digest) -> Bool {
        // A wrong signature leaves an error in the thread's queue, which a DTLS connection would report.
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let context = unsafe EVP_MD_CTX_new() else { return false }
        defer { unsafe EVP_MD_CTX_free(context) }
        return unsafe EVP_DigestVerifyInit(context, nil, digest.method, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}

extension OpenSSLKey.Digest {
    fileprivate var method: OpaquePointer? {
        switch self {
        case .sha256: unsafe EVP_sha256()
        case .builtIn: nil
        }
    }
}

/// Converts between the two formats of an ECDSA signature on P-256: r and s with 32 bytes each, big-endian (RFC 7518
/// §3.4), and DER (RFC 3279 §2.2.3).
enum ECDSASignature {
    /// The bytes of r and of s.
    private static let numberBytes = 32

    /// - Parameter raw: 64 bytes.
    static func der(raw: [UInt8]) -> [UInt8]? {
        guard raw.count == 2 * numberBytes, let signature = unsafe ECDSA_SIG_new() else { return nil }
        defer { unsafe ECDSA_SIG_free(signature) }
        let first = unsafe BN_bin2bn(Array(raw.prefix(numberBytes)), Int32(numberBytes), nil)
        let second = unsafe BN_bin2bn(Array(raw.suffix(numberBytes)), Int32(numberBytes), nil)
        // On success the signature owns both numbers, on failure neither.
        guard unsafe ECDSA_SIG_set0(signature, first, second) == 1 else {
            unsafe BN_free(first)
            unsafe BN_free(second)
            return nil
        }
        let count = Int(unsafe i2d_ECDSA_SIG(signature, nil))
        guard count > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        let written = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            var position = buffer.baseAddress
            return unsafe i2d_ECDSA_SIG(signature, &position)
        }
        return Int(written) == count ? bytes : nil
    }

    /// `nil` unless `der` is a signature whose numbers have at most 32 bytes.
    static func raw(der: [UInt8]) -> [UInt8]? {
        let decoded = unsafe der.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return unsafe d2i_ECDSA_SIG(nil, &position, buffer.count)
        }
        guard let signature = unsafe decoded else { return nil }
        defer { unsafe ECDSA_SIG_free(signature) }
        var first = [UInt8](repeating: 0, count: numberBytes)
        var second = first
        guard unsafe BN_bn2binpad(ECDSA_SIG_get0_r(signature), &first, Int32(numberBytes)) == numberBytes,
            unsafe BN_bn2binpad(ECDSA_SIG_get0_s(signature), &second, Int32(numberBytes)) == numberBytes
        else { return nil }
        return first + second
    }
}
