/// Why a certificate or a connection could not be created. None of these is caused by a peer.
public enum DTLSError: Error, Hashable, Sendable {
    /// The key or the self-signed certificate could not be generated.
    case certificate
    /// OpenSSL refused a setting or could not allocate memory.
    case setup
    /// There is no fingerprint to verify the peer's certificate.
    case noFingerprint
}

/// Why a handshake ended without keys.
public enum DTLSFailure: Error, Hashable, Sendable {
    /// The peer's certificate does not match a signaled fingerprint (RFC 8122 §6.2).
    case fingerprintMismatch
    /// The peer sent a fatal alert or an unacceptable DTLS 1.2 handshake.
    case handshake
    /// The two sides have no SRTP protection profile in common (RFC 5764 §4.1).
    case noCommonProfile
    /// The handshake did not complete within ``DTLSConnection/handshakeTimeout``.
    case timedOut
}
