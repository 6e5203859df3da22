import Base
internal import DTLS
internal import Forwarding
internal import ICE
internal import MediaTypes
internal import SCTP
internal import Wire

/// A client of the forwarder with data channels and no media: ICE, DTLS and SCTP of a real one.
final class DataClient {
    let id: PeerID
    let path: NetworkPath
    private let connection: DTLSConnection
    private var channels: DataChannels
    private var packet = [UInt8](repeating: 0, count: 1_200)
    private(set) var messages = 0
    private(set) var bytes = 0
    private(set) var isOpen = false

    /// Joins `forwarder` with one nominating check and the DTLS handshake.
    ///
    /// - Parameters:
    ///   - number: the client's unique number, not 0.
    ///   - hasData: whether the node offers data channels to it.
    init(
        _ number: UInt64,
        joining forwarder: Forwarder,
        hasData: Bool,
        in environment: inout RemotePeer.Environment,
        through batch: DatagramBatch,
        at now: Instant
    ) throws {
        id = PeerID(rawValue: number)
        path = NetworkPath(
            socket: SocketIndex(rawValue: 0),
            remote: TransportAddress(ip: IPAddress(v4: 0x0A00_0000 + UInt32(number)), port: 40_000)
        )
        let local = ICECredentials(using: &environment.generator)
        let remote = ICECredentials(using: &environment.generator)
        var parameters = PeerParameters(
            id: id,
            localCredentials: remote,
            remote: RemoteTransport(
                credentials: local,
                fingerprints: [environment.client.fingerprint],
                localRole: .server
            ),
            receive: [],
            send: []
        )
        parameters.data = hasData ? DataTransportParameters() : nil
        try forwarder.addPeer(parameters, at: now)
        let check = RemotePeer.makeCheck(to: remote, from: local, number: 1)
        deliver(check, from: path, to: forwarder, at: now, into: batch)
        batch.removeAll()
        connection = try DTLSConnection(
            certificate: environment.client,
            role: .client,
            remoteFingerprints: [environment.node.fingerprint],
            profiles: [environment.profile],
            acceptsData: true
        )
        channels = DataChannels(isClient: true, AssociationSettings(), using: &environment.generator)
        connection.start(at: now)
        for _ in 0..<8 where !connection.isEstablished {
            for datagram in takeOutput() {
                deliver(datagram, from: path, to: forwarder, at: now, into: batch)
                // A turn makes one step of a handshake.
                forwarder.endTurn(at: now, into: batch)
            }
            for index in 0..<batch.count { batch.withDatagram(index) { datagram, _ in receive(datagram, at: now) } }
            batch.removeAll()
        }
        guard connection.isEstablished else { throw CallError.broken("the DTLS handshake does not complete") }
    }

    /// Takes a datagram of the node.
    func receive(_ datagram: RawSpan, at now: Instant) {
        guard datagram.byteCount > 0, (20...63).contains(datagram.byte(at: 0)) else { return }
        _ = connection.receive(datagram, at: now) { data in try? channels.receive(data, at: now) }
        while let event = channels.nextEvent(at: now) {
            switch event {
            case .incoming: isOpen = true
            case .message(_, _, let message):
                messages += 1
                bytes += message.count
            default: break
            }
        }
    }

    /// The datagrams that are due.
    func takeDatagrams(at now: Instant) -> [[UInt8]] {
        if let deadline = channels.nextDeadline, deadline <= now { channels.handleTimeout(at: now) }
        while let length = nextPacket(at: now) {
            _ = connection.send(unsafe packet.span.bytes.extracting(0..<length), at: now)
        }
        return takeOutput()
    }

    private func nextPacket(at now: Instant) -> Int? {
        var elements = packet.mutableSpan
        var span = unsafe elements.mutableBytes
        return channels.nextPacket(into: &span, at: now)?.byteCount
    }

    private func takeOutput() -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        connection.drainOutput { datagrams.append($0.array()) }
        return datagrams
    }
}
