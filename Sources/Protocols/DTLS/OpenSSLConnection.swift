import Base
internal import COpenSSL
internal import OpenSSLBuffers
internal import Wire

/// One `SSL` object of OpenSSL. Times are the caller's.
@safe
final class OpenSSLConnection {
    enum Step: Equatable {
        /// The handshake needs more from the peer, or a record was processed.
        case waiting
        /// The handshake is complete.
        case established
        /// The peer sent close_notify.
        case closed
        /// OpenSSL failed; its alert, if any, is in the output.
        case failed
    }

    let buffer: DatagramBuffer
    private let ssl: OpaquePointer
    /// Takes the plaintext of a record; as long as OpenSSL's record buffers are allocated.
    ///
    /// Only ``read(_:data:)`` uses it, which does not run twice at a time, so accesses are not checked.
    @exclusivity(unchecked) private var plaintext: [UInt8] = []

    /// The longest record that is sent, in bytes: one datagram. OpenSSL's buffer for writing is as long.
    private static let fragmentBytesMax = 2_048
    /// Messages that are read for one record after the handshake; the others wait for the next record.
    private static let readsMax = 8

    init(
        certificate: DTLSCertificate,
        role: DTLSRole,
        remoteFingerprints: [Fingerprint],
        mtuBytes: Int,
        profiles: [SRTPProfile]
    ) throws(DTLSError) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        buffer = DatagramBuffer(remoteFingerprints: remoteFingerprints)
        guard let ssl = unsafe SSL_new(certificate.context) else { throw .setup }
        unsafe self.ssl = ssl
        guard let bio = unsafe BufferBIO.make(buffer) else { throw .setup }
        // One BIO in both directions; the connection owns it from here.
        unsafe SSL_set_bio(ssl, bio, bio)
        let names = profiles.map(\.opensslName).joined(separator: ":")
        guard unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(buffer).toOpaque()) == 1,
            // Unlike most functions of OpenSSL, this one returns 0 on success.
            unsafe SSL_set_tlsext_use_srtp(ssl, names) == 0,
            unsafe nagare_SSL_set_mtu(ssl, mtuBytes) == mtuBytes,
            unsafe nagare_SSL_set_max_fragment(ssl, Self.fragmentBytesMax) == 1
        else { throw .setup }
        unsafe DTLS_set_timer_cb(ssl, setLibraryTimer)
        switch role {
        case .client: unsafe SSL_set_connect_state(ssl)
        case .server: unsafe SSL_set_accept_state(ssl)
        }
    }

    deinit { unsafe SSL_free(ssl) }

    /// Continues the handshake, with `record` if there is one.
    func handshake(_ record: RawSpan? = nil) -> Step {
        if let record { buffer.setInput(record) }
        ERR_clear_error()
        defer {
            ERR_clear_error()
            buffer.clearInput()
        }
        let result = unsafe SSL_do_handshake(ssl)
        if result == 1 {
            releaseBuffers()
            return .established
        }
        return unsafe SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ ? .waiting : .failed
    }

    /// Processes one record after the handshake: application data, an alert, or the peer's retransmitted last flight, which is
    /// answered. The record buffers stay allocated until ``releaseBuffers()``.
    /// - Parameter body: takes the application data of the record.
    func read(_ record: RawSpan, data body: (RawSpan) -> Void) -> Step {
        guard allocateBuffers() else { return .waiting }
        buffer.setInput(record)
        // SSL_get_error reads the queue of this thread, where other users of OpenSSL may have left errors.
        if ERR_peek_error() != 0 { ERR_clear_error() }
        defer { buffer.clearInput() }
        for _ in 0..<Self.readsMax {
            let result = unsafe SSL_read(ssl, &plaintext, Int32(plaintext.count))
            if result > 0 {
                body(unsafe plaintext.span.bytes.extracting(0..<Int(result)))
                // Records that OpenSSL has kept come before the one of the input, so nothing is left after it.
                if !buffer.hasInput, unsafe SSL_has_pending(ssl) == 0 { return .waiting }
                continue
            }
            let error = unsafe SSL_get_error(ssl, result)
            ERR_clear_error()
            switch error {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .waiting
            case SSL_ERROR_ZERO_RETURN: return .closed
            default: return .failed
            }
        }
        return .waiting
    }

    /// Encrypts application data as one record, which is one datagram of the output. The record buffers stay allocated until
    /// ``releaseBuffers()``.
    /// - Returns: whether it was encrypted.
    func write(_ data: RawSpan) -> Bool {
        guard allocateBuffers() else { return false }
        let result = unsafe data.withUnsafeBytes { bytes in
            unsafe SSL_write(ssl, bytes.baseAddress, Int32(bytes.count))
        }
        guard Int(result) == data.byteCount else {
            ERR_clear_error()
            return false
        }
        return true
    }

    /// Queues close_notify.
    func shutdown() {
        guard allocateBuffers() else { return }
        ERR_clear_error()
        _ = unsafe SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// Frees the record buffers, which are more than half of a connection's memory. OpenSSL writes to them without a check, so
    /// they must be allocated before every use.
    func releaseBuffers() {
        unsafe plaintext = []
        _ = unsafe SSL_free_buffers(ssl)
    }

    /// Allocates the record buffers. When this returns `false`, the caller drops the record, as if the network had lost
    /// it.
    private func allocateBuffers() -> Bool {
        guard unsafe plaintext.isEmpty else { return true }
        guard unsafe SSL_alloc_buffers(ssl) == 1 else { return false }
        unsafe plaintext = [UInt8](repeating: 0, count: RecordFilter.dataBytesMax)
        return true
    }

    /// Whether a flight waits for its answer, and so its retransmission timer runs.
    var hasOutstandingFlight: Bool { unsafe nagare_DTLS_timer_is_running(ssl) == 1 }

    /// Whether protected records can be decrypted; until then OpenSSL buffers them.
    var readsProtected: Bool {
        let state = unsafe SSL_get_state(ssl)
        return state == TLS_ST_SR_CHANGE || state == TLS_ST_CR_CHANGE
    }

    /// Bytes that the negotiated cipher suite adds to a record; `nil` before the negotiation.
    ///
    /// AES-GCM adds an explicit nonce and a tag (RFC 5288 §3), ChaCha20-Poly1305 the tag alone (RFC 7905 §2).
    var recordOverheadBytes: Int? {
        guard let cipher = unsafe SSL_get_current_cipher(ssl) ?? SSL_get_pending_cipher(ssl) else { return nil }
        return unsafe SSL_CIPHER_get_cipher_nid(cipher) == NID_chacha20_poly1305 ? 16 : 24
    }

    /// Retransmits the current flight with new record sequence numbers: a peer that has received the old records would
    /// drop the same ones as replays.
    /// - Parameter next: the delay of the retransmission after this one, for an OpenSSL that uses its own clock.
    /// - Returns: `nil` when OpenSSL failed, else whether it sent anything.
    func retransmit(next: Interval) -> Bool? {
        guard allocateBuffers() else { return false }
        buffer.nextTimerMicroseconds = UInt32(clamping: next.nanoseconds / 1_000)
        ERR_clear_error()
        defer { ERR_clear_error() }
        buffer.expireTimer()
        let result = unsafe nagare_DTLS_handle_timeout(ssl)
        return result < 0 ? nil : result > 0
    }

    /// The exported keying material (RFC 5764 §4.2); `nil` without a selected profile or when OpenSSL fails.
    func exportKeys(role: DTLSRole) -> SRTPKeyingMaterial? {
        guard let selected = unsafe SSL_get_selected_srtp_profile(ssl),
            let identifier = unsafe UInt16(exactly: selected.pointee.id),
            let profile = SRTPProfile(rawValue: identifier)
        else { return nil }
        let key = profile.keyLength
        let salt = profile.saltLength
        let label = "EXTRACTOR-dtls_srtp"
        var material = [UInt8](repeating: 0, count: 2 * (key + salt))
        defer { unsafe material.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) } }
        ERR_clear_error()
        let result = unsafe SSL_export_keying_material(
            ssl,
            &material,
            material.count,
            label,
            label.utf8.count,
            nil,
            0,
            0
        )
        ERR_clear_error()
        guard result == 1 else { return nil }
        let client = Array(material[0..<key] + material[2 * key..<2 * key + salt])
        let server = Array(material[key..<2 * key] + material[2 * key + salt..<2 * (key + salt)])
        return switch role {
        case .client: SRTPKeyingMaterial(profile: profile, local: client, remote: server)
        case .server: SRTPKeyingMaterial(profile: profile, local: server, remote: client)
        }
    }
}

extension SRTPProfile {
    /// OpenSSL's name of the profile.
    fileprivate var opensslName: String {
        switch self {
        case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
        case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
        case .aes128CMHMACSHA1: "SRTP_AES128_CM_SHA1_80"
        }
    }
}
