import Base
package import DTLS
package import EventLoop
package import MediaTypes
package import SRTP
package import TURN
package import Wire

/// The settings of a media loop.
package struct MediaLoopConfiguration: Sendable {
    /// The name of the loop and its thread.
    package var name: String
    /// Shown to every peer; its fingerprint stands in the SDP.
    package var certificate: DTLSCertificate
    /// Which loop it is. Loops that are linked have different locations.
    package var location: MediaLocation
    /// Peers on this loop; more are refused.
    package var peersMax: Int
    /// The sockets' buffers.
    package var socketOptions: SocketOptions
    /// What encrypts and decrypts media; one of `SRTPBackend.available`.
    package var srtpBackend: SRTPBackend
    /// How much peers may be sent.
    package var sendRate: SendRateSettings
    /// Report simulcast layers that nobody wants, for their publishers to pause.
    package var pausesUnusedLayers: Bool
    /// The host candidates of the loop, most preferred first, for the addresses that its sockets are bound to.
    package var candidates: @Sendable (_ bound: [TransportAddress]) -> [TransportAddress]
    /// The UDP addresses that loops of other nodes reach the loop at, most preferred first, for the addresses that its sockets
    /// are bound to; its datagrams to them must come from these too. `nil` for ``candidates``.
    package var mediaLinkAddresses: (@Sendable (_ bound: [TransportAddress]) -> [TransportAddress])?
    /// The loop's TURN server; `nil` for none.
    package var turn: TURNSettings?
    /// TURN over TLS, with ``turn`` only; `nil` for none.
    package var turnTLS: TURNTLSSettings?
    /// Admits TCP connections of the media ports for ICE and TURN, those of all loops that share it; `nil` for none of either.
    /// With ``turnTLS`` it is that of the acceptor.
    package var tcp: TCPAdmission?
    /// Random 64-bit numbers; the system's generator unless a test wants a repeatable one.
    package var random: @Sendable () -> UInt64

    package init(
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
package struct TURNSettings: Hashable, Sendable {
    /// Ports of the node that no relayed address may have, besides those of the loop's sockets.
    package var reservedPorts: Set<UInt16>
    /// Of calls between two clients.
    package var calls: TURNCallLimits

    package init(reservedPorts: Set<UInt16> = [], calls: TURNCallLimits = TURNCallLimits()) {
        self.reservedPorts = reservedPorts
        self.calls = calls
    }
}

/// The settings of a loop's TURN server over TLS.
package struct TURNTLSSettings: Sendable {
    /// Accepts the connections, for all loops of a node.
    package var acceptor: TLSAcceptor
    /// The port at each address of the loop's sockets; 0 for any free one. Or the port that is shared.
    package var port: UInt16
    /// Whether the port is another listener's, which all loops share: it hands over the connections
    /// (``TLSAcceptor/take(_:received:)``).
    package var isShared: Bool
    /// The host name in the URL, which the certificate is for: clients verify it.
    package var name: String

    package init(acceptor: TLSAcceptor, port: UInt16, isShared: Bool = false, name: String) {
        self.acceptor = acceptor
        self.port = port
        self.isShared = isShared
        self.name = name
    }
}
