import Base
import DTLS
import MediaTypes
import Wire

/// The DTLS connection of one peer: the pair that the handshake runs over, and how much it may send there.
struct DTLSHandshake {
    let connection: DTLSConnection
    private let role: DTLSRole
    private var isStarted = false
    /// The pair that the last DTLS datagram came over, until the handshake is complete.
    private(set) var path: NetworkPath?
    private var allowance = HandshakeAllowance()
    /// Where the first flight of the handshake was sent, and whether any went elsewhere.
    private var flightPath: NetworkPath?
    private var flightsWentElsewhere = false
    /// Datagrams that were not sent for want of allowance, since `takeHeldDatagrams`.
    private var heldDatagrams = 0
    private var recordsDroppedBefore = 0

    /// - Throws: `DTLSError` when OpenSSL refuses to make a connection.
    init(
        certificate: DTLSCertificate,
        remote: RemoteTransport,
        profiles: [SRTPProfile],
        acceptsData: Bool
    ) throws(DTLSError) {
        role = remote.localRole
        connection = try DTLSConnection(
            certificate: certificate,
            role: remote.localRole,
            remoteFingerprints: remote.fingerprints,
            profiles: profiles,
            acceptsData: acceptsData
        )
    }

    /// Starts the handshake once a pair is selected, in the DTLS client's role.
    /// - Returns: whether there is something to send.
    mutating func start(at now: Instant) -> Bool {
        guard role == .client, !isStarted else { return false }
        isStarted = true
        connection.start(at: now)
        return true
    }

    /// Bytes of the peer came in: so much more may be sent.
    mutating func received(_ bytes: Int) { allowance.received(bytes) }

    /// A datagram of the handshake came over a pair.
    mutating func received(_ bytes: Int, over path: NetworkPath) {
        self.path = path
        allowance.received(bytes)
    }

    /// Whether our flights went over this pair alone.
    func proves(_ path: NetworkPath) -> Bool { flightPath == path && !flightsWentElsewhere }

    /// The handshake is complete.
    mutating func completed() { path = nil }

    /// Sends what the connection has to send.
    /// - Parameters:
    ///   - isConnected: the handshake is complete, so that its addresses are proven.
    ///   - isLimited: what is sent is bounded by what came.
    mutating func flush(
        over path: NetworkPath,
        isConnected: Bool,
        isLimited: Bool,
        through egress: Egress,
        into batch: DatagramBatch
    ) {
        connection.drainOutput { datagram in
            guard !isLimited || allowance.take(datagram.byteCount) else {
                heldDatagrams += 1
                return
            }
            if !isConnected {
                if flightPath == nil { flightPath = path }
                if flightPath != path { flightsWentElsewhere = true }
            }
            egress.sendDTLS(datagram, over: path, into: batch)
        }
    }

    /// Records that were malformed, since the last call.
    mutating func takeMalformedRecords() -> Int {
        defer { recordsDroppedBefore = connection.recordsDropped }
        return connection.recordsDropped - recordsDroppedBefore
    }

    /// Datagrams that were not sent because too little came from the peer, since the last call.
    mutating func takeHeldDatagrams() -> Int {
        defer { heldDatagrams = 0 }
        return heldDatagrams
    }
}

/// Bytes that a handshake may send to addresses that have not proved to be the peer's.
///
/// A check and a ClientHello can come from a false address, and our flight with its certificate is longer than both. So
/// what is sent is bounded by what came, as in QUIC (RFC 9000 §8.1). A flight that is held counts as lost, and is sent
/// when the peer repeats its own.
struct HandshakeAllowance {
    /// About five flights of a handshake, so that a lossy path needs nothing from the peer.
    static let initialBytes = 4_096
    /// Bytes that may be sent for each one received.
    static let factor = 3
    private static let bytesMax = 65_536

    private var bytes = initialBytes

    mutating func received(_ count: Int) {
        bytes = min(bytes + Self.factor * min(count, Self.bytesMax), Self.bytesMax)
    }

    /// Takes `count` bytes off the allowance.
    /// - Returns: whether there was as much.
    mutating func take(_ count: Int) -> Bool {
        guard count <= bytes else { return false }
        bytes -= count
        return true
    }
}
