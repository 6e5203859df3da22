public import Wire

/// What a connection has to tell its owner.
public enum DTLSEvent: Sendable {
    /// The handshake is complete and the peer's certificate is the announced one. Comes once.
    case connected(SRTPKeyingMaterial)
    /// The peer ended the connection after it was established.
    case closed
    /// The handshake failed; no keys were made.
    case failed(DTLSFailure)
}
