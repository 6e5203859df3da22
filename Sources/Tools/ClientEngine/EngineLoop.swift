import Base
import Client
import DTLS
import EventLoop
import Forwarding
import MediaTypes
import NagareClient
import Negotiation
import Wire

/// The media of clients on one thread of its own, in one forwarding core.
package actor EngineLoop {
    /// The most connections at a time.
    package static let connectionsMax = 200
    private static let socketOptions = SocketOptions(receiveBufferBytes: 1 << 20, sendBufferBytes: 1 << 18)

    private struct Connection {
        let client: MediaClient
        let socket: SocketIndex
        let isV4: Bool
        /// Received m-lines without a frame so far.
        var silent: Set<MID>
        let report: @Sendable (MediaConnectionEvent) -> Void
    }

    private let eventLoop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe eventLoop.executor.asUnownedSerialExecutor()
    }
    nonisolated let certificate: DTLSCertificate

    private let forwarder: Forwarder
    private let batch = DatagramBatch()
    private var connections: [PeerID: Connection] = [:]
    /// Sockets of connections that ended.
    private var spareSockets: (v4: [SocketIndex], v6: [SocketIndex]) = ([], [])
    private var lastID: UInt64 = 0
    private var nextMediaAt: Instant?

    private init(_ certificate: DTLSCertificate, name: String) {
        self.certificate = certificate
        eventLoop = EventLoop(name: name, socketsMax: Self.connectionsMax, slice: EventLoop.mediaSlice)
        var settings = ForwarderConfiguration(
            certificate: certificate,
            unixNanosecondsAtZero: EventLoop.unixNanosecondsAtZero(),
            peersMax: Self.connectionsMax,
            random: { .random(in: .min ... .max) }
        )
        // A client forwards nothing.
        settings.historyBytesMax = 0
        forwarder = Forwarder(settings)
    }

    /// Starts the thread. ``shutdown()`` must follow.
    package static func start(name: String = "client") async throws -> EngineLoop {
        let loop = EngineLoop(try DTLSCertificate.generate(), name: name)
        try loop.eventLoop.start()
        await loop.begin()
        return loop
    }

    private func begin() {
        eventLoop.onDatagram = { [self] datagram, length, path, readAt in
            forwarder.receive(&datagram, length: length, path: path, at: readAt, into: batch)
        }
        eventLoop.onTimer = { [self] now in timerFired(at: now) }
        eventLoop.onTurnEnd = { [self] now in endTurn(at: now) }
        batch.onFull = { [unowned self] _ in
            forwarder.completeBatch()
            eventLoop.send(batch)
        }
    }

    /// Ends every connection and the thread.
    package func shutdown() async {
        let now = EventLoop.now()
        for id in connections.keys { forwarder.removePeer(id, at: now, into: batch) }
        endTurn(at: now)
        await eventLoop.stop()
    }

    // MARK: Connections

    /// Adds a negotiated connection, which starts to connect.
    func add(
        _ credentials: ICECredentials,
        _ answer: ClientAnswer,
        _ media: SyntheticMedia,
        sending: Set<MediaKind>,
        report: @escaping @Sendable (MediaConnectionEvent) -> Void
    ) throws -> PeerID {
        let now = EventLoop.now()
        let isV4 = answer.remoteCandidates.contains { $0.ip.isV4 }
        let socket = try openSocket(isV4: isV4)
        let paths = answer.remoteCandidates.filter { $0.ip.isV4 == isV4 }.map {
            NetworkPath(socket: socket, remote: $0)
        }
        guard !paths.isEmpty else {
            release(socket, isV4: isV4)
            throw EngineError("The server announces no UDP address.")
        }
        lastID += 1
        let id = PeerID(rawValue: lastID)
        var generator = SystemRandomNumberGenerator()
        let client: MediaClient
        do {
            client = try MediaClient(
                core: forwarder,
                id: id,
                credentials: credentials,
                answer: answer,
                paths: paths,
                settings: media.settings,
                at: now,
                using: &generator
            )
        } catch {
            // It may have added its peer.
            forwarder.removePeer(id, at: now, into: batch)
            release(socket, isV4: isV4)
            throw error
        }
        for kind in MediaKind.allCases { client.setSending(sending.contains(kind), kind: kind) }
        connections[id] = Connection(
            client: client,
            socket: socket,
            isV4: isV4,
            silent: Set(answer.receive.map(\.mid)),
            report: report
        )
        return id
    }

    private func openSocket(isV4: Bool) throws -> SocketIndex {
        if let spare = isV4 ? spareSockets.v4.popLast() : spareSockets.v6.popLast() { return spare }
        return try eventLoop.addSocket(
            bind: TransportAddress(ip: isV4 ? .anyV4 : .anyV6, port: 0),
            options: Self.socketOptions
        )
    }

    private func release(_ socket: SocketIndex, isV4: Bool) {
        if isV4 { spareSockets.v4.append(socket) } else { spareSockets.v6.append(socket) }
    }

    func change(_ id: PeerID, add: [ReceiveTrackParameters], remove: [MID]) throws {
        guard let connection = connections[id] else { return }
        try connection.client.change(add: add, remove: remove, at: EventLoop.now())
        connections[id]?.silent.subtract(remove)
        connections[id]?.silent.formUnion(add.map(\.mid))
    }

    func setSending(_ sending: Bool, _ kind: MediaKind, of id: PeerID) {
        connections[id]?.client.setSending(sending, kind: kind)
        scheduleMedia()
    }

    func remove(_ id: PeerID) { forwarder.removePeer(id, at: EventLoop.now(), into: batch) }

    func statistics(of id: PeerID) -> MediaStatistics {
        var statistics = MediaStatistics()
        guard let client = connections[id]?.client else { return statistics }
        statistics.packetsSent = client.videoPacketsMade + client.audioPacketsMade
        statistics.received = client.receivers.filter { !$0.hasEnded }.map { receiver in
            MediaStatistics.Track(
                mid: receiver.mid.value,
                kind: receiver.kind == .audio ? .audio : .video,
                packets: receiver.verifier.packets,
                bytes: receiver.verifier.bytes,
                frames: receiver.verifier.framesDecoded
            )
        }
        return statistics
    }

    // MARK: The loop

    private func timerFired(at now: Instant) {
        if let due = nextMediaAt, due <= now {
            for connection in connections.values {
                guard let deadline = connection.client.nextDeadline, deadline <= now else { continue }
                connection.client.handleTimeout(at: now, into: batch)
            }
            scheduleMedia()
        }
        if let deadline = forwarder.nextDeadline, deadline <= now { forwarder.handleTimeout(at: now, into: batch) }
    }

    private func scheduleMedia() {
        nextMediaAt = connections.values.compactMap(\.client.nextDeadline).min()
    }

    private func endTurn(at now: Instant) {
        forwarder.endTurn(at: now, into: batch)
        eventLoop.send(batch)
        for (id, event) in forwarder.takeEvents() { handle(event, of: id, at: now) }
        reportFirstFrames()
        // The timer would let a millisecond pass.
        if forwarder.hasWaitingHandshakes { eventLoop.signal() }
        eventLoop.setTimer(at: earliest(forwarder.nextDeadline, nextMediaAt))
    }

    private func handle(_ event: PeerEvent, of id: PeerID, at now: Instant) {
        guard let connection = connections[id] else { return }
        connection.client.handle(event, at: now)
        switch event {
        case .connected:
            connection.report(.stateChanged(.connected))
            scheduleMedia()
        case .silenceChanged(let isSilent):
            connection.report(.stateChanged(isSilent ? .disconnected : .connected))
        case .closed:
            connections[id] = nil
            release(connection.socket, isV4: connection.isV4)
            connection.report(.stateChanged(.failed))
            scheduleMedia()
        default: break
        }
    }

    private func reportFirstFrames() {
        for (id, connection) in connections where !connection.silent.isEmpty {
            for receiver in connection.client.receivers where connection.silent.contains(receiver.mid) {
                let hasFrame = receiver.kind == .video ? receiver.verifier.framesDecoded > 0 : !receiver.isSilent
                guard hasFrame else { continue }
                connections[id]?.silent.remove(receiver.mid)
                connection.report(.firstFrame(mid: receiver.mid.value))
            }
        }
    }
}

/// Why the engine failed, as a sentence.
struct EngineError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
