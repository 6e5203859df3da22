public import Wire

/// The identifier of a peer: one ICE and DTLS transport with its tracks. Unique across nodes and their restarts.
public struct PeerID: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
    /// Bits of ``number``.
    public static let numberBits = 40

    /// The node's incarnation in the high 24 bits, ``number`` in the low 40.
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// - Parameters:
    ///   - node: the incarnation of the peer's node.
    ///   - number: used once by that incarnation; 1…2^40 - 1.
    public init(node: NodeIncarnation, number: UInt64) {
        precondition(number >> Self.numberBits == 0, "a node makes fewer than 2^40 peers")
        rawValue = UInt64(node.rawValue) << Self.numberBits | number
    }

    /// The incarnation of the peer's node.
    public var node: NodeIncarnation { NodeIncarnation(truncating: rawValue >> Self.numberBits) }
    /// The peer's number on its node.
    public var number: UInt64 { rawValue & (1 << UInt64(Self.numberBits) - 1) }

    /// `peer-17`, or `peer-8f03a1-17` of a node with an incarnation.
    public var description: String { node == .standalone ? "peer-\(number)" : "peer-\(node)-\(number)" }
}

/// Makes the peer identifiers of one node.
public struct PeerIDSequence: Sendable {
    private let node: NodeIncarnation
    private var numberNext: UInt64 = 1

    /// - Parameter node: the incarnation that every identifier carries; only one sequence may be made with it.
    public init(node: NodeIncarnation) { self.node = node }

    /// A new identifier.
    public mutating func next() -> PeerID {
        defer { numberNext += 1 }
        return PeerID(node: node, number: numberNext)
    }
}

/// One m-section of one peer: a published track, or a slot that plays one.
public struct TrackID: Hashable, Sendable, Codable, CustomStringConvertible {
    public let peer: PeerID
    public let mid: MID
    public init(peer: PeerID, mid: MID) {
        self.peer = peer
        self.mid = mid
    }
    public var description: String { "\(peer)/\(mid)" }
}

/// The negotiated parameters of a peer.
public struct PeerParameters: Sendable {
    public var id: PeerID
    public var localCredentials: ICECredentials
    public var remote: RemoteTransport
    /// The tracks that the peer sends.
    public var receive: [ReceiveTrackParameters]
    /// The slots that the peer receives.
    public var send: [SendTrackParameters]
    /// Bit/s that the peer may publish, all its media together; `nil` for no limit. Beyond it layers of video are
    /// dropped, the highest first.
    public var publishBitsPerSecondMax: Int?
    /// Bit/s that the peer may be sent, all its media together; `nil` for the settings' maximum.
    public var receiveBitsPerSecondMax: Int?
    /// The negotiated data channels; `nil` without.
    public var data: DataTransportParameters?
    /// The fair-queueing group of the peer's media, such as its channel: the capacity of a socket is divided equally
    /// between groups. Any number.
    public var share: UInt64
    /// Receives what happens to the peer, up to ``PeerEvent/closed(_:)``; `nil` for nobody.
    public var events: (any PeerEventReceiver)?

    public init(
        id: PeerID,
        localCredentials: ICECredentials,
        remote: RemoteTransport,
        receive: [ReceiveTrackParameters] = [],
        send: [SendTrackParameters] = [],
        publishBitsPerSecondMax: Int? = nil,
        receiveBitsPerSecondMax: Int? = nil,
        data: DataTransportParameters? = nil,
        share: UInt64 = 0,
        events: (any PeerEventReceiver)? = nil
    ) {
        self.id = id
        self.localCredentials = localCredentials
        self.remote = remote
        self.receive = receive
        self.send = send
        self.publishBitsPerSecondMax = publishBitsPerSecondMax
        self.receiveBitsPerSecondMax = receiveBitsPerSecondMax
        self.data = data
        self.share = share
        self.events = events
    }
}

/// Why a peer's transport ended.
public enum PeerCloseReason: String, Hashable, Sendable, CaseIterable {
    /// Requested by its owner: DELETE, a disconnect by an operator, shutdown.
    case requested
    /// No authenticated connectivity check for 30 s, or no answer to one of the node's (RFC 7675 §5.1).
    case consentExpired = "consent_expired"
    /// ICE or DTLS did not complete in time.
    case setupTimedOut = "setup_timed_out"
    /// The peer sent close_notify.
    case closedByPeer = "closed_by_peer"
    /// The handshake failed: no common profile, a bad message, an alert.
    case handshakeFailed = "handshake_failed"
    /// The certificate does not match the fingerprints of the SDP.
    case fingerprintMismatch = "fingerprint_mismatch"
}

extension SendTrackParameters {
    /// The slot's unique name at its peer: its MID, with simulcast also the layer.
    package var slotName: MID { rid.flatMap { MID("\(mid).\($0)") } ?? mid }
}
