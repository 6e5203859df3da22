public import Forwarding
public import Wire

/// What every description of one media loop says of its transport.
public struct MediaTransport: Hashable, Sendable {
    public var fingerprint: Fingerprint
    /// Host candidates, most preferred first.
    public var candidates: [TransportAddress]

    public init(fingerprint: Fingerprint, candidates: [TransportAddress]) {
        self.fingerprint = fingerprint
        self.candidates = candidates
    }
}

/// One loop's media, as rooms need it.
///
/// Events of a peer go to ``Rooms/eventHandler``. Whoever made a peer by `addPeer` calls `removePeer` for it in the
/// end, unless `PeerEvent.closed` was reported for it before; doing it after that is harmless.
public protocol MediaPlane: Sendable {
    /// The certificate and the addresses that peers of this loop connect to.
    func transport() async -> MediaTransport

    /// Makes the peer known, so that its connectivity checks are answered.
    func addPeer(_ parameters: PeerParameters) async throws

    /// Ends the peer with close_notify and frees it; does nothing when it is not known.
    func removePeer(_ peer: PeerID) async

    /// Puts new credentials in force; the selected path goes on until a check with them succeeds (RFC 8445 §9).
    func restartICE(_ peer: PeerID, local: ICECredentials, remote: ICECredentials) async throws

    /// Lets `slot` play `source` from its next key frame on, or nothing. Fails when a peer or a track is gone.
    func connect(slot: TrackID, to source: TrackID?) async throws
}
