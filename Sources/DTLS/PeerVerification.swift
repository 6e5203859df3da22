internal import COpenSSL
internal import Wire

/// Accepts the peer's certificate when its digest was announced, whatever else the certificate says (RFC 8122 §6.2).
///
/// Runs in the middle of the handshake, so a mismatch ends it with an alert before any key exists.
func verifyPeerCertificate(_ store: OpaquePointer?, _ context: UnsafeMutableRawPointer?) -> Int32 {
    guard let store = unsafe store,
        let ssl = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
        let channel = unsafe channel(of: OpaquePointer(ssl)),
        let certificate = unsafe X509_STORE_CTX_get0_cert(store)
    else { return 0 }
    for expected in channel.remoteFingerprints {
        if unsafe Fingerprint(of: certificate, algorithm: expected.algorithm) == expected {
            unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
            return 1
        }
    }
    channel.refusal = .fingerprintMismatch
    unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
    return 0
}

/// Refuses a hello that leaves no SRTP protection profile selected.
///
/// Registered as the server-name callback, which the library runs on both sides once all extensions of the peer's
/// hello are read, and which is the one that may name the alert to send.
func requireProfile(
    _ ssl: OpaquePointer?,
    _ alert: UnsafeMutablePointer<Int32>?,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let ssl = unsafe ssl, unsafe SSL_get_selected_srtp_profile(ssl) == nil else { return SSL_TLSEXT_ERR_NOACK }
    unsafe channel(of: ssl)?.refusal = .noCommonProfile
    unsafe alert?.pointee = SSL_AD_HANDSHAKE_FAILURE
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// The library asks what to set its timer to: `previous` is 0 for a new flight.
func setLibraryTimer(_ ssl: OpaquePointer?, _ previous: UInt32) -> UInt32 {
    guard let ssl = unsafe ssl, let channel = unsafe channel(of: ssl) else { return previous }
    return channel.timerMicroseconds(isFirst: previous == 0)
}

/// The channel that a connection's application data points at, unretained.
private func channel(of ssl: OpaquePointer) -> DatagramChannel? {
    guard let data = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
    return unsafe Unmanaged<DatagramChannel>.fromOpaque(data).takeUnretainedValue()
}
