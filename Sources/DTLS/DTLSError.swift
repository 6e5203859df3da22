/// Why a certificate or a connection could not be made. All of them are faults of the process, not of a peer.
public enum DTLSError: Error, Hashable, Sendable {
    /// The key or the self-signed certificate could not be made.
    case certificate
    /// The library refused a setting or could not allocate.
    case setup
    /// Nothing to verify the peer by was given.
    case noFingerprint
}

/// Why a handshake ended without keys.
public enum DTLSFailure: Error, Hashable, Sendable {
    /// The peer's certificate is not the one that signaling announced (RFC 8122 §6.2).
    case fingerprintMismatch
    /// The peer refused, or what it sent is not an acceptable DTLS 1.2 handshake.
    case handshake
    /// The peer and we have no SRTP protection profile in common (RFC 5764 §4.1).
    case noCommonProfile
    /// The handshake did not complete within ``DTLSConnection/handshakeTimeout``.
    case timedOut
}
