internal import DTLS
internal import Forwarding
internal import ICE
internal import MediaTypes
internal import SRTP
internal import Wire

/// The far end of one peer of the forwarder: checks, handshakes and encrypts as an honest client does.
final class RemotePeer {
    /// What all far ends of a call have in common.
    struct Environment {
        var node: DTLSCertificate
        var client: DTLSCertificate
        var profile: SRTPProfile
        /// The clients' encryption, which is not measured.
        var engine: SRTPEngine
        var generator: SeededGenerator
    }

    let id: PeerID
    let path: NetworkPath
    private let local: ICECredentials
    private let remote: ICECredentials
    private var transactions: UInt64 = 1
    private let transform: any SRTPTransform

    /// Joins `core`: one nominating check, then the handshake.
    /// - Parameter number: tells it from the others; not 0.
    init(
        _ number: UInt64,
        joining core: Forwarder,
        receive: [ReceiveTrackParameters] = [],
        send: [SendTrackParameters] = [],
        in environment: inout Environment,
        through batch: DatagramBatch,
        at now: Instant
    ) throws {
        id = PeerID(rawValue: number)
        path = NetworkPath(
            socket: SocketIndex(rawValue: 0),
            remote: TransportAddress(ip: IPAddress(v4: 0x0A00_0000 + UInt32(number)), port: 40_000)
        )
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
        try core.addPeer(parameters, at: now)
        deliver(Self.makeCheck(to: remote, from: local, number: 1), from: path, to: core, at: now, into: batch)
        batch.removeAll()
        let keys = try Self.handshake(with: core, over: path, environment, through: batch, at: now)
        transform = try environment.engine.makeTransform(keys)
    }

    private static func handshake(
        with core: Forwarder,
        over path: NetworkPath,
        _ environment: Environment,
        through batch: DatagramBatch,
        at now: Instant
    ) throws -> SRTPKeyingMaterial {
        let client = try DTLSConnection(
            certificate: environment.client,
            role: .client,
            remoteFingerprints: [environment.node.fingerprint],
            profiles: [environment.profile]
        )
        client.start(at: now)
        var keys: SRTPKeyingMaterial?
        for _ in 0..<8 where keys == nil {
            var flight: [[UInt8]] = []
            client.drainOutput { flight.append($0.array()) }
            for datagram in flight { deliver(datagram, from: path, to: core, at: now, into: batch) }
            for index in 0..<batch.count {
                batch.withDatagram(index) { datagram, _ in
                    if case .connected(let made) = client.receive(datagram, at: now) { keys = made }
                }
            }
            batch.removeAll()
        }
        guard let keys else { throw CallError.broken("the handshake does not end") }
        return keys
    }

    /// The check that renews consent (RFC 7675), ready to be delivered.
    func makeCheck() -> [UInt8] {
        transactions += 1
        return Self.makeCheck(to: remote, from: local, number: transactions)
    }

    private static func makeCheck(to node: ICECredentials, from client: ICECredentials, number: UInt64) -> [UInt8] {
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

/// What keeps a call from doing what it is measured at.
package enum CallError: Error {
    case broken(String)
}

/// Runs `body` on a copy of `packet` with room behind it, and returns as many bytes of it as `body` says.
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

/// Hands the forwarder a datagram in a buffer with room behind it, as a socket does.
func deliver(_ bytes: [UInt8], from path: NetworkPath, to core: Forwarder, at now: Instant, into batch: DatagramBatch) {
    var buffer = bytes + [UInt8](repeating: 0, count: 64)
    unsafe buffer.withUnsafeMutableBytes { buffer in
        var span = unsafe buffer.mutableBytes
        core.receive(&span, length: bytes.count, path: path, at: now, into: batch)
    }
}
