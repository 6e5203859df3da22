import Base
import DTLS
import EventLoop
import Forwarding
import Media
import MediaTypes
import Wire

/// A peer in the client's role on a loop of its own: what a browser is to the node.
actor TestClient {
    private nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.executor.asUnownedSerialExecutor() }
    nonisolated let id: PeerID
    nonisolated let certificate: DTLSCertificate
    nonisolated let credentials: ICECredentials
    nonisolated let events: AsyncStream<PeerEvent>
    private let eventContinuation: AsyncStream<PeerEvent>.Continuation
    private let forwarder: Forwarder
    private let batch = DatagramBatch()
    private var source: LocalSource?

    init(_ number: UInt64) throws {
        loop = EventLoop(name: "client")
        id = PeerID(rawValue: number)
        certificate = try DTLSCertificate.generate()
        var generator = SystemRandomNumberGenerator()
        credentials = ICECredentials(using: &generator)
        (events, eventContinuation) = AsyncStream.makeStream()
        forwarder = Forwarder(
            ForwarderConfiguration(
                certificate: certificate,
                unixNanosecondsAtZero: EventLoop.unixNanosecondsAtZero(),
                random: { .random(in: .min ... .max) }
            )
        )
        try loop.start()
    }

    /// Connects to the node's `address`, which knows the node's side of this peer already.
    func connect(
        to address: TransportAddress,
        node: RemoteTransport,
        receive: [ReceiveTrackParameters] = [],
        send: [SendTrackParameters] = []
    ) throws {
        let own = TransportAddress(ip: address.ip.isV4 ? .loopbackV4 : .loopbackV6, port: 0)
        let socket = try loop.addSocket(bind: own)
        loop.onDatagram = { [self] datagram, length, path, now in
            forwarder.receive(&datagram, length: length, path: path, at: now, into: batch)
        }
        loop.onTimer = { [self] now in forwarder.handleTimeout(at: now, into: batch) }
        loop.onTurnEnd = { [self] now in
            forwarder.endTurn(at: now, into: batch)
            loop.send(batch)
            loop.setTimer(at: forwarder.nextDeadline)
            for (_, event) in forwarder.takeEvents() {
                // How far the set-up has come is of no interest here.
                if case .setupAdvanced = event { continue }
                eventContinuation.yield(event)
            }
        }
        let parameters = PeerParameters(
            id: id,
            localCredentials: credentials,
            remote: node,
            receive: receive,
            send: send
        )
        try forwarder.addClientPeer(
            parameters,
            candidates: [NetworkPath(socket: socket, remote: address)],
            at: EventLoop.now()
        )
    }

    /// What arrives on the track `mid`: the payloads, in order of arrival.
    func payloads(on mid: MID) -> AsyncStream<[UInt8]> {
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        forwarder.peer(id)?.track(mid)?.tap = { packet, _, _ in
            guard let view = try? RTPPacketView(packet) else { return }
            continuation.yield(packet.extracting(view.payloadRange).array())
        }
        return stream
    }

    /// Sends `payloads` as packets of the track `mid`, numbered from `first`.
    func send(_ payloads: [[UInt8]], on mid: MID, parameters: ReceiveTrackParameters, first: UInt16) throws {
        let now = EventLoop.now()
        if source == nil {
            let made = LocalSource(
                id: TrackID(peer: id, mid: mid),
                parameters: parameters,
                streamID: StreamID(rawValue: 1),
                at: now
            )
            try forwarder.connect(slot: TrackID(peer: id, mid: mid), to: made, at: now)
            source = made
        }
        for (offset, payload) in payloads.enumerated() {
            let sequence = first &+ UInt16(offset)
            var packet: [UInt8] = [0x80, parameters.codecs[0].payloadType.rawValue]
            packet.append(bigEndian: sequence)
            packet.append(bigEndian: UInt32(sequence) &* 960)
            packet.append(bigEndian: 1 as UInt32)
            packet += payload
            source?.send(unsafe packet.span.bytes, at: now, into: batch)
        }
    }

    /// Whether the node asked for a key frame of what is sent since the last such question.
    func takeKeyFrameRequest() -> Bool { source?.takeKeyFrameRequest(at: EventLoop.now()) ?? false }

    /// Sends bytes to the node as they are.
    func sendRaw(_ datagrams: [[UInt8]], to address: TransportAddress) {
        for datagram in datagrams {
            let path = NetworkPath(socket: SocketIndex(rawValue: 0), remote: address)
            batch.append(to: path, copying: unsafe datagram.span.bytes)
        }
    }

    func stop() async { await loop.stop() }
}

/// The node's side of one peer.
struct NodePeer {
    let credentials: ICECredentials
    let parameters: PeerParameters

    init(
        of client: TestClient,
        receive: [ReceiveTrackParameters] = [],
        send: [SendTrackParameters] = [],
        events: EventLog? = nil
    ) {
        var generator = SystemRandomNumberGenerator()
        credentials = ICECredentials(using: &generator)
        parameters = PeerParameters(
            id: client.id,
            localCredentials: credentials,
            remote: RemoteTransport(
                credentials: client.credentials,
                fingerprints: [client.certificate.fingerprint],
                localRole: .server
            ),
            receive: receive,
            send: send,
            events: events
        )
    }

    /// What the client is told of the node.
    func remote(of media: MediaLoop) -> RemoteTransport {
        RemoteTransport(credentials: credentials, fingerprints: [media.transport.fingerprint], localRole: .client)
    }
}
