public import Wire

/// A peer: one ICE + DTLS transport with the tracks it receives and sends. Unique across nodes and their restarts.
public struct PeerID: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
    /// Bits of ``number``.
    public static let numberBits = 40

    /// The node's incarnation in the high 24 bits, ``number`` in the low 40.
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// - Parameters:
    ///   - node: the incarnation of the node that makes the peer.
    ///   - number: used once by that incarnation; 1…2^40 - 1.
    public init(node: NodeIncarnation, number: UInt64) {
        precondition(number >> Self.numberBits == 0, "a node makes fewer than 2^40 peers")
        rawValue = UInt64(node.rawValue) << Self.numberBits | number
    }

    /// The incarnation of the node that made the peer.
    public var node: NodeIncarnation { NodeIncarnation(truncating: rawValue >> Self.numberBits) }
    /// The peer's number among those that the incarnation made.
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

    /// An identifier that was not used before.
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

extension SendTrackParameters {
    /// What names the slot among its peer's: its MID, and with simulcast the layer.
    package var slotName: MID { rid.flatMap { MID("\(mid).\($0)") } ?? mid }
}
