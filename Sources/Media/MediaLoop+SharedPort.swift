import EventLoop
import MediaTypes
import TURN
import Wire

/// A connection on its way from one loop to another: nobody else has it.
struct MovingStream: @unchecked Sendable {
    let connection: StreamConnection
    let descriptor: Int32
}

/// TURN over TLS on a port that all loops share. Another listener accepts the connections. Any loop makes the TLS handshake and
/// asks for credentials, and the first request with a user name tells the loop of the session, which takes over the connection.
extension MediaLoop {
    /// Takes a connection of the shared port, and owns the descriptor.
    /// - Parameter received: what was read of it.
    func takeTURNConnection(_ descriptor: Int32, received: [UInt8]) {
        guard let path = eventLoop.tcp.adopt(descriptor) else { return }
        let now = EventLoop.now()
        guard let streams, turnTLS?.isShared == true, streams.accept(path, isTLS: true, mayMove: true, at: now) else {
            eventLoop.tcp.close(path.local)
            return
        }
        receivedStream(unsafe received.span.bytes, path, at: now)
    }

    /// The loop of the session that a TURN request is for; `nil` for this loop, and for none.
    func otherLoop(of message: RawSpan) -> LoopIndex? {
        guard let loop = TURNServer.loop(of: message).map(LoopIndex.init(rawValue:)), loop != location.loop,
            loops[MediaLocation(node: location.node, loop: loop)] != nil
        else { return nil }
        return loop
    }

    /// Hands a connection over to the loop of its session.
    func sendOff(_ connection: StreamConnection) {
        guard let loop = connection.departure?.loop,
            let other = loops[MediaLocation(node: location.node, loop: loop)],
            let descriptor = eventLoop.tcp.detach(connection.path.local)
        else {
            streams?.abandon(connection)
            eventLoop.tcp.close(connection.path.local)
            return
        }
        let moving = MovingStream(connection: connection, descriptor: descriptor)
        Task.detached { await other.takeOver(moving) }
    }

    private func takeOver(_ moving: MovingStream) {
        guard let streams, let path = eventLoop.tcp.adopt(moving.descriptor) else {
            streams?.abandon(moving.connection)
            return
        }
        let now = EventLoop.now()
        turnCause.note(now)
        streams.arrive(moving.connection, on: path, at: now) { packet, path, framing in
            received(&packet, path, framing, at: now)
        }
        closeStreams(at: now)
        flushStreams()
    }
}

extension MediaLoops {
    /// Takes a connection of TURN over TLS that another listener accepted, and owns the descriptor.
    /// - Parameter received: what was read of it.
    public func takeTURNConnection(_ descriptor: Int32, received: [UInt8]) async {
        // Any loop can begin; at random none gets all of them.
        await loops[Int.random(in: loops.indices)].takeTURNConnection(descriptor, received: received)
    }
}
