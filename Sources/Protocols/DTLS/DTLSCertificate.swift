internal import COpenSSL
public import Wire

/// An ECDSA P-256 key with its self-signed certificate, and the OpenSSL context that its connections share.
///
/// One per process is enough (RFC 8827 §6.5 allows reuse). Immutable, so connections on any thread may share it.
@safe
public final class DTLSCertificate: @unchecked Sendable {
    /// The SHA-256 digest to announce in SDP.
    public let fingerprint: Fingerprint
    let context: OpaquePointer

    /// The validity of the certificate in days; longer than any process runs. Peers check the fingerprint only.
    private static let validityDays = 365
    /// The validity starts this long before now, so that a peer with a slow clock accepts the certificate.
    private static let backdateSeconds = 86_400

    private init(context: OpaquePointer, fingerprint: Fingerprint) {
        unsafe self.context = context
        self.fingerprint = fingerprint
    }

    deinit { unsafe SSL_CTX_free(context) }

    /// Generates a key and a certificate.
    /// - Parameter commonName: the certificate's subject, cut to 64 bytes; peers ignore it.
    /// - Throws: ``DTLSError/certificate`` or ``DTLSError/setup``.
    public static func generate(commonName: String = "WebRTC") throws(DTLSError) -> DTLSCertificate {
        try generate(commonName: commonName, curve: .p256)
    }

    /// The curves of the certificates that peers use.
    package enum Curve: String, Sendable, CaseIterable {
        case p224 = "P-224"
        case p256 = "P-256"
        case p384 = "P-384"
        case p521 = "P-521"
    }

    /// Like the public method, on any curve.
    package static func generate(commonName: String = "WebRTC", curve: Curve) throws(DTLSError) -> DTLSCertificate {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let key = unsafe nagare_EVP_generate_EC(curve.rawValue) else { throw .certificate }
        defer { unsafe EVP_PKEY_free(key) }
        guard let certificate = unsafe makeCertificate(key, commonName: commonName) else { throw .certificate }
        defer { unsafe X509_free(certificate) }
        guard let digest = unsafe Fingerprint(of: certificate, algorithm: .sha256) else { throw .certificate }
        guard let context = unsafe makeContext(certificate, key) else { throw .setup }
        return unsafe DTLSCertificate(context: context, fingerprint: digest)
    }

    private static func makeCertificate(_ key: OpaquePointer, commonName: String) -> OpaquePointer? {
        guard let certificate = unsafe X509_new() else { return nil }
        var serial: UInt64 = 0
        let isRandom = unsafe withUnsafeMutableBytes(of: &serial) { bytes in
            unsafe RAND_bytes(bytes.baseAddress, Int32(bytes.count)) == 1
        }
        let name = Array(commonName.utf8.prefix(64))
        let subject = unsafe X509_get_subject_name(certificate)
        let isComplete =
            unsafe isRandom
            && X509_set_version(certificate, 2) == 1
            && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1
            && X509_gmtime_adj(X509_getm_notBefore(certificate), -backdateSeconds) != nil
            && X509_gmtime_adj(X509_getm_notAfter(certificate), validityDays * 86_400) != nil
            && X509_NAME_add_entry_by_txt(subject, "CN", utf8Encoding, name, Int32(name.count), -1, 0) == 1
            && X509_set_issuer_name(certificate, subject) == 1
            && X509_set_pubkey(certificate, key) == 1
            && X509_sign(certificate, key, EVP_sha256()) > 0
        guard isComplete else {
            unsafe X509_free(certificate)
            return nil
        }
        return unsafe certificate
    }

    /// `MBSTRING_UTF8`, a macro that Swift does not import.
    private static let utf8Encoding: Int32 = 0x1000

    /// AEAD suites with forward secrecy; RFC 8827 §6.5 requires the first. The RSA ones are for peers with an RSA
    /// certificate.
    private static let cipherSuites = """
        ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:\
        ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305
        """
    /// The longest certificate chain that is accepted, in bytes. WebRTC peers send one certificate of under 2 kB. This
    /// also bounds OpenSSL's reassembly buffers.
    static let chainBytesMax = 16_384

    /// The groups for the key exchange, best first. They are also the curves that a peer's certificate may use (RFC
    /// 8422 §5.1). P-224 is the weakest that OpenSSL's security level 2 allows; FFmpeg with GnuTLS uses it.
    private static let groups = "X25519:P-256:P-384:P-521:X448:P-224"

    private static func makeContext(_ certificate: OpaquePointer, _ key: OpaquePointer) -> OpaquePointer? {
        guard let context = unsafe SSL_CTX_new(DTLS_method()) else { return nil }
        unsafe nagare_SSL_CTX_require_dtls12(context)
        unsafe nagare_SSL_CTX_set_options(context)
        unsafe nagare_SSL_CTX_disable_sessions(context)
        unsafe nagare_SSL_CTX_set_max_cert_list(context, chainBytesMax)
        let isComplete =
            unsafe SSL_CTX_use_certificate(context, certificate) == 1
            && SSL_CTX_use_PrivateKey(context, key) == 1
            && SSL_CTX_set_cipher_list(context, cipherSuites) == 1
            && nagare_SSL_CTX_set_groups(context, groups) == 1
        guard isComplete else {
            unsafe SSL_CTX_free(context)
            return nil
        }
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        unsafe SSL_CTX_set_cert_verify_callback(context, verifyPeerCertificate, nil)
        unsafe nagare_SSL_CTX_set_hello_cb(context, requireSRTPProfile)
        return unsafe context
    }
}

extension Fingerprint {
    /// The digest of a certificate's DER form.
    init?(of certificate: OpaquePointer, algorithm: Algorithm) {
        let kind =
            switch algorithm {
            case .sha256: unsafe EVP_sha256()
            case .sha384: unsafe EVP_sha384()
            case .sha512: unsafe EVP_sha512()
            }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        guard unsafe X509_digest(certificate, kind, &digest, &length) == 1 else { return nil }
        self.init(algorithm: algorithm, digest: Array(digest.prefix(Int(length))))
    }
}
