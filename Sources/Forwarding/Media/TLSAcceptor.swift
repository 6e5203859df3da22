import Base
package import EventLoop
import Glibc
import MediaTypes
import Synchronization
package import TLS
import TURN
import Wire

/// Accepts the connections of TURN over TLS for all media loops of a node, on a thread of its own.
///
/// It makes the handshakes and answers requests without a user name. Anybody can cause both, and a handshake takes as long as
/// hundreds of packets. The first request with the user name of a session tells its media loop, which takes over the connection
/// with its TLS state.
@safe
package actor TLSAcceptor {
    /// Connections of another listener that wait for this thread; more are closed.
    private static let handoversMax = 256
    /// A media loop has as many listeners here as it has addresses.
    private static let socketsMax = 4_096

    /// The thread, for other actors to be pinned to.
    package nonisolated let eventLoop = EventLoop(name: "tls", socketsMax: TLSAcceptor.socketsMax)
    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe eventLoop.executor.asUnownedSerialExecutor()
    }
    nonisolated let admission: TCPAdmission
    /// Of the nonces of all TURN servers over TLS, so that a media loop accepts those that were made here.
    nonisolated let nonceKey: [UInt8]
    private nonisolated let handovers = Handovers()

    private let streams: StreamConnections
    /// It has no sessions, so all that it does is to ask for credentials.
    private var server: TURNServer
    /// The answers to one message.
    private let answers = DatagramBatch(capacity: 4)
    /// From ``add(_:listeningOn:)`` to ``shutdown()``.
    private var loops: [LoopIndex: MediaLoop] = [:]
    /// The last connection on its way to each media loop. They go one after the other, so that many at once do not keep a loop
    /// from its packets.
    private var lastMoves: [LoopIndex: Task<Void, Never>] = [:]

    /// Connections on their way here from another listener's threads.
    private final class Handovers: Sendable {
        let waiting = Atomic<Int>(0)
        let refused = Atomic<UInt64>(0)
    }

    // MARK: Lifecycle

    /// Starts the thread, which runs until ``shutdown()``.
    /// - Parameter admission: that of the media loops.
    package static func start(
        _ certificate: TLSCertificate,
        _ admission: TCPAdmission
    ) async throws(EventLoopError) -> TLSAcceptor {
        let acceptor = TLSAcceptor(certificate, admission)
        try acceptor.eventLoop.start()
        await acceptor.begin()
        return acceptor
    }

    private init(_ certificate: TLSCertificate, _ admission: TCPAdmission) {
        self.admission = admission
        streams = StreamConnections(admission, certificate: certificate)
        var generator = SystemRandomNumberGenerator()
        let key = (0..<20).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        nonceKey = key
        var configuration = TURNConfiguration(addresses: [], reservedPorts: [])
        configuration.nonceKey = key
        server = TURNServer(configuration, using: &generator)
    }

    private func begin() {
        let tcp = eventLoop.tcp
        // The loop releases its callbacks when it stops, which breaks these reference cycles.
        tcp.onConnection = { [self] path, _, now in streams.accept(path, isTLS: true, at: now) }
        tcp.onBytes = { [self] bytes, path, now in received(bytes, on: path, at: now) }
        tcp.onWritable = { [self] path, now in streams.writable(path.local, at: now) { tcp.write($1, to: $0) } }
        tcp.onEnd = { [self] path, _ in streams.ended(path.local) }
        eventLoop.onTimer = { [self] now in streams.handleTimeout(at: now) { _ in false } }
        eventLoop.onTurnEnd = { [self] _ in
            closeStreams()
            eventLoop.setTimer(at: streams.nextDeadline)
        }
    }

    /// Takes over connections for a media loop from now on.
    /// - Parameter addresses: where to listen for them, besides connections of the shared port; with port 0 at any free one.
    /// - Returns: the bound addresses.
    func add(
        _ loop: MediaLoop,
        listeningOn addresses: [TransportAddress]
    ) throws(EventLoopError) -> [TransportAddress] {
        loops[loop.location.loop] = loop
        var bound: [TransportAddress] = []
        for address in addresses { bound.append(try eventLoop.tcp.listen(on: address)) }
        return bound
    }

    /// Replaces the certificate for new connections; open ones go on.
    package func renew(_ certificate: TLSCertificate) { streams.certificate = certificate }

    /// Closes the listeners and the connections that are here, and ends the thread. It can be called any number of times.
    package func shutdown() async {
        await eventLoop.stop()
        streams.removeAll()
        // The media loops hold this object.
        loops = [:]
        lastMoves = [:]
    }

    /// What has been counted since the start.
    package func metrics() -> TLSAcceptorMetrics {
        var tcp = streams.metrics
        tcp.add(eventLoop.tcp.counters)
        let refused = handovers.refused.load(ordering: .relaxed)
        if refused > 0 { tcp.refused[.handshakeRate, default: 0] &+= refused }
        return TLSAcceptorMetrics(tcp: tcp, turn: TURNMetrics(counters: server.counters))
    }

    // MARK: The shared port

    /// Takes a connection that another listener of the node accepted, and owns the descriptor. On any thread.
    /// - Parameter received: what was read of it.
    package nonisolated func take(_ descriptor: Int32, received: [UInt8]) {
        guard handovers.waiting.wrappingAdd(1, ordering: .relaxed).newValue <= Self.handoversMax else {
            handovers.waiting.wrappingSubtract(1, ordering: .relaxed)
            handovers.refused.wrappingAdd(1, ordering: .relaxed)
            _ = Glibc.close(descriptor)
            return
        }
        Task.detached { await self.adopt(descriptor, received) }
    }

    private func adopt(_ descriptor: Int32, _ bytes: [UInt8]) {
        handovers.waiting.wrappingSubtract(1, ordering: .relaxed)
        guard let path = eventLoop.tcp.adopt(descriptor) else { return }
        let now = EventLoop.now()
        guard streams.accept(path, isTLS: true, at: now) else {
            eventLoop.tcp.close(path.local)
            return
        }
        received(unsafe bytes.span.bytes, on: path, at: now)
    }

    // MARK: Connections

    private func received(_ bytes: RawSpan, on path: NetworkPath, at now: Instant) {
        streams.receive(
            bytes,
            on: path.local,
            at: now,
            owner: { owner(of: $0) },
            deliver: { packet, path, _ in
                answer(packet.bytes, from: path, at: now)
                return .unauthenticated
            }
        )
        let tcp = eventLoop.tcp
        streams.flush(at: now) { tcp.write($1, to: $0) }
        // At once: what comes next on a connection that departs is its media loop's.
        closeStreams()
    }

    /// The media loop of the session that a request is for; `nil` for none.
    private func owner(of message: RawSpan) -> LoopIndex? {
        guard let loop = TURNServer.loop(of: message).map(LoopIndex.init(rawValue:)), loops[loop] != nil else {
            return nil
        }
        return loop
    }

    /// Answers a message without the user name of a session.
    private func answer(_ message: RawSpan, from client: NetworkPath, at now: Instant) {
        if TURNServer.isTURN(message) {
            // The server counts what it drops.
            _ = try? server.handle(message, from: client, at: now, into: answers)
        } else if let request = try? STUNMessageView(message), request.messageClass == .request,
            request.usernameRange == nil
        {
            server.answerBinding(request, from: client, at: now, into: answers)
        }
        for index in 0..<answers.count {
            answers.withDatagram(index) { bytes, client in
                streams.append(bytes, kind: .control, to: client.local, at: now)
            }
        }
        answers.removeAll()
    }

    /// Closes the connections that have ended, and hands over those of media loops.
    private func closeStreams() {
        for connection in streams.takeDeparting() { handOver(connection) }
        for endpoint in streams.takeClosing() { eventLoop.tcp.close(endpoint) }
    }

    private func handOver(_ connection: StreamConnection) {
        guard let index = connection.departure?.loop, let loop = loops[index],
            let descriptor = eventLoop.tcp.detach(connection.path.local)
        else {
            streams.abandon(connection)
            eventLoop.tcp.close(connection.path.local)
            return
        }
        let moving = MovingStream(connection: connection, descriptor: descriptor)
        let previous = lastMoves[index]
        lastMoves[index] = Task { await self.send(moving, to: loop, after: previous) }
    }

    /// Isolated to the acceptor, so that a move waits for no thread but those of both loops.
    private func send(_ moving: MovingStream, to loop: MediaLoop, after previous: Task<Void, Never>?) async {
        await previous?.value
        await loop.takeOver(moving)
    }
}

/// A connection on its way from the acceptor to its media loop: nobody else has it.
struct MovingStream: @unchecked Sendable {
    let connection: StreamConnection
    let descriptor: Int32
}
