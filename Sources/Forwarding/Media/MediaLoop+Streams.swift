import Base
import EventLoop
import Forwarding
import Wire

/// ICE over TCP, and TURN over TCP, on the loop's own media port. TURN over TLS comes from the ``TLSAcceptor``.
extension MediaLoop {
    /// Listens on TCP where the UDP sockets are bound. An address that is not available is noted in ``tcpFailures``, because
    /// the loop is of use without it.
    func startStreams(_ admission: TCPAdmission) {
        let streams = StreamConnections(admission)
        self.streams = streams
        let tcp = eventLoop.tcp
        tcp.onConnection = { path, _, now in streams.accept(path, at: now) }
        tcp.onBytes = { [self] bytes, path, now in receivedStream(bytes, path, at: now) }
        tcp.onWritable = { [self] path, now in
            streams.writable(path.local, at: now) { tcp.write($1, to: $0) }
            finishStreams(at: now)
        }
        tcp.onEnd = { [self] path, now in
            streams.ended(path.local)
            closeStreams(at: now)
        }
        for socket in sockets where configuration.tcp != nil {
            do throws(EventLoopError) {
                tcpAddresses.append(try tcp.listen(on: socket.local))
            } catch {
                tcpFailures.append(error)
            }
        }
    }

    /// Lets the acceptor of TURN over TLS listen where the UDP sockets are bound, or take connections of the shared port, for
    /// this loop.
    /// - Throws: when one of the addresses is not available.
    func joinTLSAcceptor() async throws(EventLoopError) {
        guard let turnTLS else { return }
        let addresses = turnTLS.isShared ? [] : sockets.map { TransportAddress(ip: $0.local.ip, port: turnTLS.port) }
        tlsAddresses = try await turnTLS.acceptor.add(self, listeningOn: addresses)
    }

    private func receivedStream(_ bytes: RawSpan, _ path: NetworkPath, at now: Instant) {
        receiveTime.note(now)
        streams?.receive(bytes, on: path.local, at: now) { received(&$0, $1, $2, at: now) }
        closeStreams(at: now)
        // TLS may have something to write without a packet in the batch.
        flushStreams()
    }

    /// Takes over a connection from the acceptor of TURN over TLS.
    func takeOver(_ moving: MovingStream) {
        guard let streams, let path = eventLoop.tcp.adopt(moving.descriptor) else {
            streams?.abandon(moving.connection)
            return
        }
        let now = EventLoop.now()
        receiveTime.note(now)
        streams.arrive(moving.connection, on: path, at: now) { packet, path, framing in
            received(&packet, path, framing, at: now)
        }
        closeStreams(at: now)
        flushStreams()
    }

    /// Takes a packet of a connection.
    private func received(
        _ packet: inout MutableRawSpan,
        _ path: NetworkPath,
        _ framing: StreamFraming,
        at now: Instant
    ) -> StreamStanding {
        switch framing {
        case .rfc4571:
            forwarder.receiveStream(&packet, path: path, at: now, into: batch) ? .authenticated : .refused
        case .turn where !forwarder.isTURNServer: .refused
        case .turn:
            forwarder.receiveTURNStream(&packet, path: path, at: now, into: batch) ? .authenticated : .unauthenticated
        }
    }

    /// Queues the packets of a run for the connection that it goes to.
    func queueStream(_ run: DatagramBatch.Run, of batch: DatagramBatch) -> Bool {
        guard let streams else { return false }
        let now = EventLoop.now()
        let path = run.path
        batch.forEachDatagram(of: run) { packet in
            streams.append(packet, kind: forwarder.streamKind(of: packet, to: path), to: path.local, at: now)
        }
        return true
    }

    /// Writes what was queued for connections since the last call.
    func flushStreams() {
        guard let streams, streams.hasPending else { return }
        let now = EventLoop.now()
        let tcp = eventLoop.tcp
        streams.flush(at: now) { tcp.write($1, to: $0) }
        finishStreams(at: now)
    }

    /// Ends the connections whose time is over.
    func timeoutStreams(at now: Instant) {
        streams?.handleTimeout(at: now) { forwarder.isValidated($0) || forwarder.hasAllocation($0) }
        closeStreams(at: now)
    }

    private func finishStreams(at now: Instant) {
        guard let streams else { return }
        for (path, ssrc) in streams.takeKeyFrameRequests() { forwarder.requestKeyFrame(of: ssrc, over: path, at: now) }
        closeStreams(at: now)
    }

    /// Closes the connections that have ended, and their clients' allocations.
    private func closeStreams(at now: Instant) {
        guard let streams else { return }
        for endpoint in streams.takeClosing() { eventLoop.tcp.close(endpoint) }
        for client in streams.takeEndedClients() { forwarder.closeTURNStream(client, at: now) }
    }

    /// The connections' counters, those of TURN clients included; `nil` without TCP.
    var tcpMetrics: TCPMetrics? {
        guard var metrics = streams?.metrics else { return nil }
        metrics.add(eventLoop.tcp.counters)
        return metrics
    }
}

extension TCPMetrics {
    /// Adds what a loop's sockets have counted.
    mutating func add(_ counters: TCPSockets.Counters) {
        acceptErrors &+= counters.acceptErrors
        bytesReceived &+= counters.bytesReceived
        bytesSent &+= counters.bytesSent
    }
}
