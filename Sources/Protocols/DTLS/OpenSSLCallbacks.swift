internal import COpenSSL
internal import Wire

/// Accepts the peer's certificate when it matches a signaled fingerprint; nothing else in the certificate counts (RFC
/// 8122 §6.2).
///
/// Runs during the handshake, so a mismatch ends it with an alert before keys exist.
func verifyPeerCertificate(_ store: OpaquePointer?, _ context: UnsafeMutableRawPointer?) -> Int32 {
    guard let store = unsafe store,
        let ssl = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
        let buffer = unsafe datagramBuffer(of: OpaquePointer(ssl)),
        let certificate = unsafe X509_STORE_CTX_get0_cert(store)
    else { return 0 }
    for expected in buffer.remoteFingerprints {
        if unsafe Fingerprint(of: certificate, algorithm: expected.algorithm) == expected {
            unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
            return 1
        }
    }
    buffer.refusal = .fingerprintMismatch
    unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
    return 0
}

/// Refuses a hello without a common SRTP protection profile.
///
/// Registered as the server name callback: OpenSSL calls it on both sides after it has read all extensions of the
/// peer's hello, and it can choose the alert.
func requireSRTPProfile(
    _ ssl: OpaquePointer?,
    _ alert: UnsafeMutablePointer<Int32>?,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let ssl = unsafe ssl, unsafe SSL_get_selected_srtp_profile(ssl) == nil else { return SSL_TLSEXT_ERR_NOACK }
    unsafe datagramBuffer(of: ssl)?.refusal = .noCommonProfile
    unsafe alert?.pointee = SSL_AD_HANDSHAKE_FAILURE
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// The timer callback of OpenSSL, which returns the next timeout in microseconds. `previous` is 0 for a new flight.
func setLibraryTimer(_ ssl: OpaquePointer?, _ previous: UInt32) -> UInt32 {
    guard let ssl = unsafe ssl, let buffer = unsafe datagramBuffer(of: ssl) else { return previous }
    return buffer.timerMicroseconds(isFirst: previous == 0)
}

/// The buffer that a connection's application data refers to, unretained.
private func datagramBuffer(of ssl: OpaquePointer) -> DatagramBuffer? {
    guard let data = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
    return unsafe Unmanaged<DatagramBuffer>.fromOpaque(data).takeUnretainedValue()
}
