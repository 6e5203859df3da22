public import DTLS
public import EventLoop
public import MediaTypes
public import SRTP
public import Wire

/// The settings of a media loop.
public struct MediaLoopConfiguration: Sendable {
    /// The name of the loop and its thread.
    public var name: String
    /// Shown to every peer; its fingerprint stands in the SDP.
    public var certificate: DTLSCertificate
    /// Which loop it is. Loops that are linked have different locations.
    public var location: MediaLocation
    /// Peers on this loop; more are refused.
    public var peersMax: Int
    /// The sockets' buffers.
    public var socketOptions: SocketOptions
    /// What encrypts and decrypts media; one of `SRTPBackend.available`.
    public var srtpBackend: SRTPBackend
    /// How much peers may be sent.
    public var sendRate: SendRateSettings
    /// Report simulcast layers that nobody wants, for their publishers to pause.
    public var pausesUnusedLayers: Bool
    /// The host candidates of the loop, most preferred first, for the addresses that its sockets are bound to.
    public var candidates: @Sendable (_ bound: [TransportAddress]) -> [TransportAddress]
    /// The UDP addresses that loops of other nodes reach the loop at, most preferred first, for the addresses that its sockets
    /// are bound to; its datagrams to them must come from these too. `nil` for ``candidates``.
    public var mediaLinkAddresses: (@Sendable (_ bound: [TransportAddress]) -> [TransportAddress])?
    /// The loop's TURN server; `nil` for none.
    public var turn: TURNSettings?
    /// TURN over TLS, with ``turn`` only; `nil` for none.
    public var turnTLS: TURNTLSSettings?
    /// Admits TCP connections of the media ports for ICE and TURN, those of all loops that share it; `nil` for none of either.
    /// With ``turnTLS`` it is that of the acceptor.
    public var tcp: TCPAdmission?
    /// Random 64-bit numbers; the system's generator unless a test wants a repeatable one.
    public var random: @Sendable () -> UInt64

    public init(
        name: String,
        certificate: DTLSCertificate,
        location: MediaLocation = MediaLocation(loop: LoopIndex(rawValue: 0)),
        peersMax: Int = 10_000,
        socketOptions: SocketOptions = SocketOptions(),
        srtpBackend: SRTPBackend = .preferred,
        sendRate: SendRateSettings = SendRateSettings(),
        pausesUnusedLayers: Bool = true,
        candidates: @escaping @Sendable (_ bound: [TransportAddress]) -> [TransportAddress] = { $0 },
        mediaLinkAddresses: (@Sendable (_ bound: [TransportAddress]) -> [TransportAddress])? = nil,
        turn: TURNSettings? = nil,
        turnTLS: TURNTLSSettings? = nil,
        tcp: TCPAdmission? = nil,
        random: @escaping @Sendable () -> UInt64 = { .random(in: .min ... .max) }
    ) {
        self.name = name
        self.certificate = certificate
        self.location = location
        self.peersMax = peersMax
        self.socketOptions = socketOptions
        self.srtpBackend = srtpBackend
        self.sendRate = sendRate
        self.pausesUnusedLayers = pausesUnusedLayers
        self.candidates = candidates
        self.mediaLinkAddresses = mediaLinkAddresses
        self.turn = turn
        self.turnTLS = turnTLS
        self.tcp = tcp
        self.random = random
    }
}

/// The settings of a loop's TURN server.
public struct TURNSettings: Hashable, Sendable {
    /// Ports of the node that no relayed address may have, besides those of the loop's sockets.
    public var reservedPorts: Set<UInt16>

    public init(reservedPorts: Set<UInt16> = []) { self.reservedPorts = reservedPorts }
}

/// The settings of a loop's TURN server over TLS.
public struct TURNTLSSettings: Sendable {
    /// Accepts the connections, for all loops of a node.
    public var acceptor: TLSAcceptor
    /// The port at each address of the loop's sockets; 0 for any free one. Or the port that is shared.
    public var port: UInt16
    /// Whether the port is another listener's, which all loops share: it hands over the connections
    /// (``TLSAcceptor/take(_:received:)``).
    public var isShared: Bool
    /// The host name in the URL, which the certificate is for: clients verify it.
    public var name: String

    public init(acceptor: TLSAcceptor, port: UInt16, isShared: Bool = false, name: String) {
        self.acceptor = acceptor
        self.port = port
        self.isShared = isShared
        self.name = name
    }
}
