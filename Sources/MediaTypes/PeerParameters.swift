public import Wire

/// A peer on the node: one ICE + DTLS transport with the tracks it receives and sends. Unique for the process's life.
public struct PeerID: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    public var description: String { "peer-\(rawValue)" }
}

/// One m-section of one peer: a published track, or a slot that plays one.
public struct TrackID: Hashable, Sendable, CustomStringConvertible {
    public let peer: PeerID
    public let mid: MID
    public init(peer: PeerID, mid: MID) {
        self.peer = peer
        self.mid = mid
    }
    public var description: String { "\(peer)/\(mid)" }
}

/// Everything a peer's media needs, as negotiation decided it.
public struct PeerParameters: Sendable {
    public var id: PeerID
    public var localCredentials: ICECredentials
    public var remote: RemoteTransport
    /// What the peer sends us.
    public var receive: [ReceiveTrackParameters]
    /// What we send the peer.
    public var send: [SendTrackParameters]
    /// Bit/s that the peer may publish, all its media together; `nil` for no limit. Beyond it layers of video are left
    /// out, the highest first.
    public var publishBitsPerSecondMax: Int?
    /// Whose media the peer's is, such as a channel's: what a socket can send is shared equally between these. Any number.
    public var share: UInt64

    public init(
        id: PeerID,
        localCredentials: ICECredentials,
        remote: RemoteTransport,
        receive: [ReceiveTrackParameters] = [],
        send: [SendTrackParameters] = [],
        publishBitsPerSecondMax: Int? = nil,
        share: UInt64 = 0
    ) {
        self.id = id
        self.localCredentials = localCredentials
        self.remote = remote
        self.receive = receive
        self.send = send
        self.publishBitsPerSecondMax = publishBitsPerSecondMax
        self.share = share
    }
}

/// Why a peer's transport ended.
public enum PeerCloseReason: String, Hashable, Sendable, CaseIterable {
    /// Asked for by its owner: DELETE, a kick, shutdown.
    case requested
    /// No authenticated connectivity check for 30 s (RFC 7675 §5.1).
    case consentExpired = "consent_expired"
    /// ICE or DTLS did not complete in time.
    case setupTimedOut = "setup_timed_out"
    /// The peer sent close_notify.
    case closedByPeer = "closed_by_peer"
    /// The handshake failed: no common profile, a bad message, an alert.
    case handshakeFailed = "handshake_failed"
    /// The certificate is not the one that the SDP announced.
    case fingerprintMismatch = "fingerprint_mismatch"
}

/// What the forwarding core tells whoever owns a peer.
public enum PeerEvent: Sendable, Equatable {
    /// ICE and DTLS are up: media flows.
    case connected
    /// The peer is gone and its resources are freed; the last event of a peer.
    case closed(PeerCloseReason)
    /// A published track's first packet arrived, or its codec changed.
    case trackStarted(mid: MID, codec: CodecName)
    /// Nothing of the track arrived for a while.
    case trackPaused(mid: MID)
    /// A slot's source sends a format that the peer did not negotiate, so it sees nothing.
    case formatUnsupported(slot: MID, codec: CodecName)
    /// Somebody began or ceased to speak into a published track, by the audio levels that its packets tell (RFC 6464);
    /// only where that extension was negotiated.
    case speech(mid: MID, isSpeaking: Bool)
    /// A slot plays another simulcast layer of its source from now on. `current` is `nil` when nothing is to be sent,
    /// `previous` when nothing of the source was sent before. `isWished` is false when the layer that the slot's
    /// ``LayerChoice`` names does not flow and the nearest one plays instead.
    case layerSwitched(slot: MID, current: RID?, previous: RID?, isWished: Bool)
    /// The network between the peer and us became more or less stable, by what both sides report of it: 0 stable,
    /// 1 slightly unstable, 2 unstable, 3 very unstable. It begins as 0, and changes every two seconds at most.
    case networkChanged(level: Int)
}

extension SendTrackParameters {
    /// What names the slot among its peer's: its MID, and with simulcast the layer.
    package var slotName: MID { rid.flatMap { MID("\(mid).\($0)") } ?? mid }
}
