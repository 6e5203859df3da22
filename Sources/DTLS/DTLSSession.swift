internal import COpenSSL
internal import Wire

/// One OpenSSL connection: the calls, their results as values, and nothing of time.
@safe
final class DTLSSession {
    enum Step: Equatable {
        /// More is needed from the peer.
        case waiting
        /// The handshake is complete.
        case established
        /// The peer sent close_notify.
        case closed
        /// The library gave up; an alert is queued when there was one to send.
        case failed
    }

    let channel: DatagramChannel
    private let ssl: OpaquePointer

    /// Post-handshake messages read for one record; more are left to the next.
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
        channel = DatagramChannel(remoteFingerprints: remoteFingerprints)
        guard let ssl = unsafe SSL_new(certificate.context) else { throw .setup }
        unsafe self.ssl = ssl
        guard let bio = unsafe DatagramBIO.make(channel) else { throw .setup }
        // One BIO in both directions; the connection owns it from here.
        unsafe SSL_set_bio(ssl, bio, bio)
        let names = profiles.map(\.opensslName).joined(separator: ":")
        guard unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(channel).toOpaque()) == 1,
            // Unlike most, this one answers 0 when all is well.
            unsafe SSL_set_tlsext_use_srtp(ssl, names) == 0,
            unsafe nagare_SSL_set_mtu(ssl, mtuBytes) == mtuBytes
        else { throw .setup }
        unsafe DTLS_set_timer_cb(ssl, setLibraryTimer)
        switch role {
        case .client: unsafe SSL_set_connect_state(ssl)
        case .server: unsafe SSL_set_accept_state(ssl)
        }
    }

    deinit { unsafe SSL_free(ssl) }

    /// Goes on with the handshake, with `record` when there is one.
    func handshake(_ record: RawSpan? = nil) -> Step {
        if let record { channel.setInput(record) }
        ERR_clear_error()
        defer {
            ERR_clear_error()
            channel.clearInput()
        }
        let result = unsafe SSL_do_handshake(ssl)
        if result == 1 {
            releaseBuffers()
            return .established
        }
        return unsafe SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ ? .waiting : .failed
    }

    /// Processes one record after the handshake: an alert, or the peer's last flight again, which is answered.
    func read(_ record: RawSpan) -> Step {
        guard allocateBuffers() else { return .waiting }
        channel.setInput(record)
        ERR_clear_error()
        defer {
            ERR_clear_error()
            channel.clearInput()
            releaseBuffers()
        }
        var scratch = [UInt8](repeating: 0, count: 512)
        for _ in 0..<Self.readsMax {
            let result = unsafe SSL_read(ssl, &scratch, Int32(scratch.count))
            if result > 0 { continue }
            switch unsafe SSL_get_error(ssl, result) {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .waiting
            case SSL_ERROR_ZERO_RETURN: return .closed
            default: return .failed
            }
        }
        return .waiting
    }

    /// Queues close_notify.
    func shutdown() {
        guard allocateBuffers() else { return }
        ERR_clear_error()
        _ = unsafe SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// The library's record buffers are two thirds of a connection's memory, and after the handshake there is hardly a
    /// record: they go, and come back for the next one. It writes into them without a look whether they are there.
    private func releaseBuffers() { _ = unsafe SSL_free_buffers(ssl) }

    /// Returns whether the buffers are there; without memory for them the record is lost, as on a network.
    private func allocateBuffers() -> Bool { unsafe SSL_alloc_buffers(ssl) == 1 }

    /// Whether a flight is out that is to be sent again until it is answered.
    var awaitsAnswer: Bool { unsafe nagare_DTLS_timer_is_running(ssl) == 1 }

    /// Whether what the peer protects can be read by now; until then the library keeps protected records aside.
    var readsProtected: Bool {
        let state = unsafe SSL_get_state(ssl)
        return state == TLS_ST_SR_CHANGE || state == TLS_ST_CR_CHANGE
    }

    /// Bytes that the agreed cipher suite adds to the content of a record; `nil` until it is agreed on.
    ///
    /// AES-GCM adds an explicit nonce and a tag (RFC 5288 §3), ChaCha20-Poly1305 the tag alone (RFC 7905 §2).
    var recordOverheadBytes: Int? {
        guard let cipher = unsafe SSL_get_current_cipher(ssl) ?? SSL_get_pending_cipher(ssl) else { return nil }
        return unsafe SSL_CIPHER_get_cipher_nid(cipher) == NID_chacha20_poly1305 ? 16 : 24
    }

    /// Sends the current flight again, in records of new numbers: to resend the same bytes would not do, as a peer
    /// that has them and whose answer was lost would drop them as replays.
    /// - Parameter next: how long after this the flight will be sent again, for a library that keeps its own time.
    /// - Returns: `nil` when the library gave up, else whether it sent anything.
    func retransmit(next: Interval) -> Bool? {
        guard allocateBuffers() else { return false }
        channel.nextTimerMicroseconds = UInt32(clamping: next.nanoseconds / 1_000)
        ERR_clear_error()
        defer { ERR_clear_error() }
        channel.expireTimer()
        let result = unsafe nagare_DTLS_handle_timeout(ssl)
        return result < 0 ? nil : result > 0
    }

    /// The exported keys (RFC 5764 §4.2); `nil` when no profile is selected or the library refuses.
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
    /// The name by which OpenSSL knows the profile.
    fileprivate var opensslName: String {
        switch self {
        case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
        case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
        case .aes128CMHMACSHA1: "SRTP_AES128_CM_SHA1_80"
        }
    }
}
