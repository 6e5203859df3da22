internal import COpenSSL

/// A hash function without a key, for token formats that hash a shared secret with their fields.
package enum MessageDigest: Hashable, Sendable, CaseIterable {
    /// MD5 (RFC 1321), 16 bytes. It does not resist collisions: for formats that prescribe it only.
    case md5
    /// SHA-256 (FIPS 180-4), 32 bytes.
    case sha256

    /// The hash of `message` in lowercase hexadecimal digits; `nil` when OpenSSL does not provide the function, such as
    /// MD5 in FIPS mode.
    package func hexadecimal(of message: [UInt8]) -> String? {
        ERR_clear_error()
        defer { ERR_clear_error() }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard unsafe EVP_Digest(message, message.count, &digest, &count, method, nil) == 1 else { return nil }
        let digits = Array("0123456789abcdef".utf8)
        let text = digest.prefix(Int(count)).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }

    private var method: OpaquePointer? {
        switch self {
        case .md5: unsafe EVP_md5()
        case .sha256: unsafe EVP_sha256()
        }
    }
}
