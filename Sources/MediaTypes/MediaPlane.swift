public import Wire

/// The transport of one media loop, as every description of it names it.
public struct MediaTransport: Hashable, Sendable {
    public var fingerprint: Fingerprint
    /// Host candidates, most preferred first.
    public var candidates: [TransportAddress]

    public init(fingerprint: Fingerprint, candidates: [TransportAddress]) {
        self.fingerprint = fingerprint
        self.candidates = candidates
    }
}

/// A published track and the loop of its publisher.
public struct PlacedTrack: Hashable, Sendable {
    public let track: TrackID
    /// The loop that the publisher lives on.
    public let location: MediaLocation

    public init(track: TrackID, location: MediaLocation) {
        self.track = track
        self.location = location
    }
}

/// One loop's media, as rooms need it.
///
/// Events of a peer go to the handler that the plane was made with. Whoever made a peer by `addPeer` calls `removePeer` for it in the
/// end, unless `PeerEvent.closed` was reported for it before; doing it after that is harmless.
public protocol MediaPlane: Sendable {
    /// Which loop it is. Planes of different loops have different locations.
    var location: MediaLocation { get }

    /// The certificate and the addresses that peers of this loop connect to.
    func transport() async -> MediaTransport

    /// Makes the peer known, so that its connectivity checks are answered.
    func addPeer(_ parameters: PeerParameters) async throws

    /// Ends the peer with close_notify and frees it; does nothing when it is not known.
    func removePeer(_ peer: PeerID) async

    /// Puts new credentials in force; the selected path goes on until a check with them succeeds (RFC 8445 §9).
    func restartICE(_ peer: PeerID, local: ICECredentials, remote: ICECredentials) async throws

    /// Adds slots to a peer and takes others away: either all of it or, when it fails, nothing. Neither the MID nor an SSRC
    /// of a slot that was removed is used by that peer again; a slot to remove that is not there is ignored.
    func changeSlots(of peer: PeerID, add: [SendTrackParameters], remove: [MID]) async throws

    /// Lets `slot`, whose peer lives here, play `source` from its next key frame on, or nothing. The source may live at
    /// any location. With the source that the slot has already only the layer changes, at a key frame of the other one.
    /// Fails when a peer or a track is gone.
    func connect(slot: TrackID, to source: PlacedTrack?, layer: LayerChoice) async throws

    /// Asks the peer for a key frame of every video stream that it sends now; does nothing when it is not known.
    func requestKeyFrame(of peer: PeerID) async

    /// The peer's media as it is now; `nil` when it is not known.
    func statistics(of peer: PeerID) async -> PeerStatistics?

    /// What the plane carries, measured since the last call. There is one caller, who calls about once a second.
    func load() async -> LoopLoad
}
