internal import COpenSSL
import Wire

/// The master key and salt of one direction. Derives the session keys with a key derivation rate of 0 (RFC 3711 §4.3,
/// RFC 7714 §11).
struct MasterKey {
    /// The labels of the session keys (RFC 3711 §4.3.2).
    enum Label: UInt8 {
        case rtpEncryption, rtpAuthentication, rtpSalt
        case rtcpEncryption, rtcpAuthentication, rtcpSalt
    }

    let profile: SRTPProfile
    private let key: ArraySlice<UInt8>
    private let salt: ArraySlice<UInt8>

    /// - Parameter bytes: the key, then the salt, with the profile's lengths.
    init(_ profile: SRTPProfile, _ bytes: [UInt8]) {
        precondition(bytes.count == profile.keyLength + profile.saltLength, "a master key of the profile's length")
        self.profile = profile
        key = bytes.prefix(profile.keyLength)
        salt = bytes.suffix(profile.saltLength)
    }

    /// Derives `count` bytes of a session key, at most 32, and erases them after `body`. Returns `nil` when OpenSSL
    /// fails.
    func withSessionKey<Result>(
        _ label: Label,
        count: Int,
        _ body: (UnsafePointer<UInt8>) -> Result?
    ) -> Result? {
        // With a derivation rate of 0 the index part of the key_id is 0, so only the label, above 48 bits, is XORed in.
        // A 96-bit salt is padded on the right (RFC 7714 §11).
        var counter = Array(salt) + [UInt8](repeating: 0, count: 16 - salt.count)
        counter[7] ^= label.rawValue
        var session = [UInt8](repeating: 0, count: count)
        defer { unsafe OPENSSL_cleanse(&session, session.count) }
        let zeros = session
        guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        let cipher = unsafe key.count == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr()
        let isReady = unsafe key.withUnsafeBufferPointer {
            unsafe EVP_EncryptInit_ex(context, cipher, nil, $0.baseAddress, counter) == 1
        }
        var done: Int32 = 0
        guard isReady, unsafe EVP_EncryptUpdate(context, &session, &done, zeros, Int32(count)) == 1 else { return nil }
        return unsafe session.withUnsafeBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return nil }
            return unsafe body(start)
        }
    }
}
