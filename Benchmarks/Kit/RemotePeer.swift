import Base
internal import DTLS
internal import Forwarding
internal import ICE
internal import MediaTypes
internal import SRTP
internal import Wire

/// A client of the forwarder. It sends connectivity checks, completes the DTLS handshake and encrypts media.
final class RemotePeer {
    /// The values that all clients of a call share.
    struct Environment {
        var node: DTLSCertificate
        var client: DTLSCertificate
        var profile: SRTPProfile
        /// The clients' encryption, which is not measured.
        var engine: SRTPEngine
        var generator: SplitMix64
    }

    let id: PeerID
    let route: ClientRoute
    /// Where the forwarder sends the client's datagrams.
    var path: NetworkPath { route.path }
    /// The round trips from the first message until the client has the keys.
    let joinRoundTrips: Int
    private let local: ICECredentials
    private let remote: ICECredentials
    private var transactions: UInt64 = 1
    private let transform: any SRTPTransform

    /// Joins `forwarder` with one nominating check and the DTLS handshake.
    /// - Parameters:
    ///   - number: the client's unique number, not 0.
    ///   - media: the forwarder's media address, for a client that reaches it through an allocation only.
    init(
        _ number: UInt64,
        joining forwarder: Forwarder,
        relayedTo media: TransportAddress? = nil,
        receive: [ReceiveTrackParameters] = [],
        send: [SendTrackParameters] = [],
        in environment: inout Environment,
        through batch: DatagramBatch,
        at now: Instant
    ) throws {
        id = PeerID(rawValue: number)
        let source = NetworkPath(
            socket: SocketIndex(rawValue: 0),
            remote: TransportAddress(ip: IPAddress(v4: 0x0A00_0000 + UInt32(number)), port: 40_000)
        )
        var setup: [[UInt8]] = []
        if let media {
            let client = try TURNClient(id, of: forwarder, from: source, at: now)
            route = try client.allocate(from: forwarder, through: batch, at: now)
            setup = [client.bind(to: media)]
        } else {
            route = ClientRoute(source)
        }
        local = ICECredentials(using: &environment.generator)
        remote = ICECredentials(using: &environment.generator)
        let parameters = PeerParameters(
            id: id,
            localCredentials: remote,
            remote: RemoteTransport(
                credentials: local,
                fingerprints: [environment.client.fingerprint],
                localRole: .server
            ),
            receive: receive,
            send: send
        )
        try forwarder.addPeer(parameters, at: now)
        for message in setup { deliver(message, from: source, to: forwarder, at: now, into: batch) }
        deliver(Self.makeCheck(to: remote, from: local, number: 1), from: route, to: forwarder, at: now, into: batch)
        batch.removeAll()
        let (keys, roundTrips) = try Self.handshake(with: forwarder, over: route, environment, through: batch, at: now)
        joinRoundTrips = (media == nil ? 0 : TURNClient.allocationRoundTrips) + 1 + roundTrips
        transform = try environment.engine.makeTransform(keys)
    }

    private static func handshake(
        with forwarder: Forwarder,
        over route: ClientRoute,
        _ environment: Environment,
        through batch: DatagramBatch,
        at now: Instant
    ) throws -> (SRTPKeyingMaterial, roundTrips: Int) {
        let client = try DTLSConnection(
            certificate: environment.client,
            role: .client,
            remoteFingerprints: [environment.node.fingerprint],
            profiles: [environment.profile]
        )
        client.start(at: now)
        var keys: SRTPKeyingMaterial?
        var roundTrips = 0
        while keys == nil, roundTrips < 8 {
            roundTrips += 1
            var flight: [[UInt8]] = []
            client.drainOutput { flight.append($0.array()) }
            for datagram in flight {
                deliver(datagram, from: route, to: forwarder, at: now, into: batch)
                // A turn makes one step of a handshake.
                forwarder.endTurn(at: now, into: batch)
            }
            for index in 0..<batch.count {
                batch.withDatagram(index) { datagram, _ in
                    if case .connected(let made) = client.receive(datagram, at: now) { keys = made }
                }
            }
            batch.removeAll()
        }
        guard let keys else { throw CallError.broken("the DTLS handshake does not complete") }
        return (keys, roundTrips)
    }

    /// A connectivity check that renews consent (RFC 7675).
    func makeCheck() -> [UInt8] {
        transactions += 1
        return Self.makeCheck(to: remote, from: local, number: transactions)
    }

    /// Answers the forwarder's checks: the client is still there.
    func answerChecks(of forwarder: Forwarder, at now: Instant, into batch: DatagramBatch) {
        for check in forwarder.peer(id)?.transport.outstandingChecks ?? [] {
            var builder = STUNMessageBuilder(.success, transactionID: check)
            builder.appendXORMappedAddress(path.remote)
            builder.appendMessageIntegrity(key: Array(local.password.utf8))
            builder.appendFingerprint()
            deliver(builder.bytes, from: route, to: forwarder, at: now, into: batch)
        }
    }

    static func makeCheck(to node: ICECredentials, from client: ICECredentials, number: UInt64) -> [UInt8] {
        var builder = STUNMessageBuilder(.request, transactionID: STUNTransactionID(high: 1, low: number))
        builder.append(.username, "\(node.usernameFragment):\(client.usernameFragment)")
        builder.append(.priority, 0x6E7F_1EFF as UInt32)
        builder.append(.useCandidate)
        builder.appendMessageIntegrity(key: Array(node.password.utf8))
        builder.appendFingerprint()
        return builder.bytes
    }

    func protectRTP(_ packet: [UInt8]) throws -> [UInt8] {
        try inPlace(packet) { span, length throws(SRTPError) in try transform.protectRTP(&span, length: length) }
    }
    func protectRTCP(_ packet: [UInt8]) throws -> [UInt8] {
        try inPlace(packet) { span, length throws(SRTPError) in try transform.protectRTCP(&span, length: length) }
    }
    func unprotectRTP(_ packet: [UInt8]) throws -> [UInt8] {
        try inPlace(packet) { span, length throws(SRTPError) in try transform.unprotectRTP(&span, length: length) }
    }
}

/// The call does not do the work that is measured.
package enum CallError: Error {
    case broken(String)
}

/// Calls `body` with a copy of `packet` that has 32 bytes of space after it. Returns as many bytes as `body` returns.
func inPlace(
    _ packet: [UInt8],
    _ body: (inout MutableRawSpan, Int) throws(SRTPError) -> Int
) throws -> [UInt8] {
    var buffer = packet + [UInt8](repeating: 0, count: 32)
    let length = try unsafe buffer.withUnsafeMutableBytes { bytes in
        var span = unsafe bytes.mutableBytes
        return try body(&span, packet.count)
    }
    return Array(buffer.prefix(length))
}

/// Delivers a client's datagram to `forwarder`, over its allocation if it has one.
func deliver(
    _ bytes: [UInt8],
    from route: ClientRoute,
    to forwarder: Forwarder,
    at now: Instant,
    into batch: DatagramBatch
) {
    deliver(route.wrapped(bytes), from: route.source, to: forwarder, at: now, into: batch)
}

/// Delivers a datagram to `forwarder` in a buffer with free space after it, as a socket does.
func deliver(
    _ bytes: [UInt8],
    from path: NetworkPath,
    to forwarder: Forwarder,
    at now: Instant,
    into batch: DatagramBatch
) {
    var buffer = bytes + [UInt8](repeating: 0, count: 64)
    unsafe buffer.withUnsafeMutableBytes { buffer in
        var span = unsafe buffer.mutableBytes
        forwarder.receive(&span, length: bytes.count, path: path, at: now, into: batch)
    }
}
