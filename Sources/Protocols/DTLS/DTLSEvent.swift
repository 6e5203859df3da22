public import Wire

/// A change of a connection's state.
public enum DTLSEvent: Sendable {
    /// The handshake is complete and the peer's certificate matches a fingerprint. Reported once.
    case connected(SRTPKeyingMaterial)
    /// The peer ended the connection after it was established.
    case closed
    /// The handshake failed; no keys were exported.
    case failed(DTLSFailure)
}
