internal import COpenSSL

/// Why a server's certificate cannot be used, or a connection could not be created. None of these is caused by a peer.
public enum TLSError: Error, Hashable, Sendable {
    /// The chain is no PEM with a certificate.
    case certificate
    /// The key is no PEM with a private key without a password.
    case key
    /// The key does not belong to the chain's first certificate.
    case mismatch
    /// OpenSSL refused a setting or could not allocate memory.
    case setup
}

/// A server's certificate chain with its key, and the OpenSSL context that its connections share: TLS 1.2 and 1.3.
///
/// Immutable, so connections on any thread may share it.
@safe
public final class TLSCertificate: @unchecked Sendable {
    let context: OpaquePointer

    /// AEAD suites with forward secrecy, for TLS 1.2; all suites of TLS 1.3 are such.
    private static let cipherSuites = """
        ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:\
        ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305
        """
    /// The most certificates of a chain.
    private static let chainMax = 16

    /// - Parameters:
    ///   - chain: PEM: the server's certificate, and those of its authorities behind it.
    ///   - key: PEM: the private key of the first certificate.
    /// - Throws: why they cannot be used.
    public init(chain: [UInt8], key: [UInt8]) throws(TLSError) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { throw .setup }
        unsafe self.context = context
        unsafe nagare_SSL_CTX_set_stream_options(context)
        unsafe nagare_SSL_CTX_disable_sessions(context)
        guard unsafe SSL_CTX_set_cipher_list(context, Self.cipherSuites) == 1,
            unsafe SSL_CTX_set_num_tickets(context, 0) == 1
        else { throw .setup }
        let certificates = unsafe Self.certificates(chain)
        let count = unsafe certificates.count
        defer { for index in 0..<count { unsafe X509_free(certificates[index]) } }
        guard count > 0, unsafe SSL_CTX_use_certificate(context, certificates[0]) == 1 else { throw .certificate }
        for index in 1..<max(count, 1) {
            guard unsafe nagare_SSL_CTX_add_chain(context, certificates[index]) == 1 else { throw .certificate }
        }
        guard let key = unsafe Self.key(key) else { throw .key }
        defer { unsafe EVP_PKEY_free(key) }
        guard unsafe SSL_CTX_use_PrivateKey(context, key) == 1, unsafe SSL_CTX_check_private_key(context) == 1 else {
            throw .mismatch
        }
    }

    deinit { unsafe SSL_CTX_free(context) }

    private static func certificates(_ pem: [UInt8]) -> [OpaquePointer] {
        guard let bio = unsafe memory(pem) else { return unsafe [] }
        defer { unsafe BIO_free(bio) }
        var certificates = unsafe [OpaquePointer]()
        while unsafe certificates.count < chainMax,
            let certificate = unsafe PEM_read_bio_X509(bio, nil, noPassword, nil)
        {
            unsafe certificates.append(certificate)
        }
        return unsafe certificates
    }

    private static func key(_ pem: [UInt8]) -> OpaquePointer? {
        guard let bio = unsafe memory(pem) else { return nil }
        defer { unsafe BIO_free(bio) }
        return unsafe PEM_read_bio_PrivateKey(bio, nil, noPassword, nil)
    }

    /// A BIO with a copy of `bytes`.
    private static func memory(_ bytes: [UInt8]) -> OpaquePointer? {
        guard let bio = unsafe BIO_new(BIO_s_mem()) else { return nil }
        guard unsafe BIO_write(bio, bytes, Int32(truncatingIfNeeded: bytes.count)) == bytes.count else {
            unsafe BIO_free(bio)
            return nil
        }
        return unsafe bio
    }
}

/// Refuses encrypted PEM: without a callback OpenSSL asks at the terminal.
private func noPassword(
    _ buffer: UnsafeMutablePointer<CChar>?,
    _ size: Int32,
    _ isWriting: Int32,
    _ context: UnsafeMutableRawPointer?
) -> Int32 { -1 }
