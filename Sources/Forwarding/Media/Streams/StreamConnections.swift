import Base
import MediaTypes
import TLS
import Wire

/// The TCP connections of one media loop on which clients use ICE (RFC 6544, framing of RFC 4571) or TURN (RFC 8656): what
/// they must send first, what waits to be written to them, and when they end. Without I/O: time and bytes come in, and the
/// owner writes and closes.
///
/// The first bytes tell which of both a connection is. With ICE the first packet must be a check of a session, and with TURN
/// one of the first messages must make an allocation, in time. After that a connection lives as long as a session's check has
/// validated it and packets come, or as its allocation; and as long as writes are taken.
@safe
final class StreamConnections {
    /// Longer than the time between two checks of any client (RFC 7675 §5.1: 5 s), several of them lost.
    static let idleMax = Interval.seconds(30)
    /// Between two looks at all connections: the precision of their time limits.
    static let sweepInterval = Interval.seconds(1)

    /// Takes a packet, which it may overwrite, of a connection with such framing.
    typealias Deliver = (inout MutableRawSpan, NetworkPath, StreamFraming) -> StreamStanding

    /// Tells the other loop that a message is for; `nil` for none.
    typealias Owner = (RawSpan) -> LoopIndex?

    /// Takes the first bytes of what is to be written, as many as it can: their count, or `nil` when the connection has failed.
    typealias Write = (LocalEndpoint, RawSpan) -> Int?

    let admission: TCPAdmission
    /// Of new connections over TLS; `nil` when there are none.
    var certificate: TLSCertificate?
    private var handshakeLimiter: HandshakeLimiter
    private let authenticationTimeout: Interval
    private let stallTimeout: Interval
    private(set) var connections: [LocalEndpoint: StreamConnection] = [:]
    /// Those that are not authenticated, the oldest first; some may be gone.
    private var newcomers: [LocalEndpoint] = []
    /// Those with packets that were queued since the last ``flush(at:_:)``.
    private var pending: [LocalEndpoint] = []
    private var closing: [LocalEndpoint] = []
    var departing: [StreamConnection] = []
    private var endedClients: [NetworkPath] = []
    private var keyFrameRequests: [(path: NetworkPath, ssrc: SSRC)] = []
    private var nextSweep: Instant?
    var counted = TCPMetrics()
    /// Where a packet is decrypted.
    private let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: DatagramBatch.slotBytes, alignment: 64)

    /// - Parameters:
    ///   - certificate: of connections over TLS; `nil` when there are none.
    ///   - seed: a random number.
    init(
        _ admission: TCPAdmission,
        certificate: TLSCertificate? = nil,
        seed: UInt64 = .random(in: .min ... .max)
    ) {
        self.admission = admission
        self.certificate = certificate
        var generator = SplitMix64(seed: seed)
        handshakeLimiter = HandshakeLimiter(admission.limits, using: &generator)
        authenticationTimeout = Interval(admission.limits.authenticationTimeout)
        stallTimeout = Interval(admission.limits.stallTimeout)
    }

    deinit { unsafe slot.deallocate() }

    /// What has been counted, and the open connections.
    var metrics: TCPMetrics {
        var metrics = counted
        metrics.connections = connections.count
        for connection in connections.values { metrics.addDrops(of: connection.queue) }
        return metrics
    }

    /// When to call ``handleTimeout(at:)`` next; `nil` without connections.
    var nextDeadline: Instant? { nextSweep }

    /// Packets wait for ``flush(at:_:)``.
    var hasPending: Bool { !pending.isEmpty }

    /// Whether a packet can be sent there.
    func isOpen(_ endpoint: LocalEndpoint) -> Bool { connections[endpoint] != nil }

    // MARK: - Connections

    /// Takes a new connection.
    /// - Parameter isTLS: whether it is one of TURN over TLS.
    /// - Returns: whether it stays open.
    func accept(_ path: NetworkPath, isTLS: Bool = false, at now: Instant) -> Bool {
        if isTLS, let reason = handshakeLimiter.refusal(of: path.remote.ip, at: now) {
            counted.refused[reason, default: 0] &+= 1
            return false
        }
        switch admission.admit(path.remote.ip) {
        case .refused(let reason):
            counted.refused[reason, default: 0] &+= 1
            return false
        case .admitted where !isTLS: break
        case .admittedForAnother where !isTLS:
            guard let oldest = oldestNewcomer() else {
                admission.release(path.remote.ip, wasAuthenticated: false)
                counted.refused[.unauthenticatedLimit, default: 0] &+= 1
                return false
            }
            end(oldest, .displaced)
        case .admitted, .admittedForAnother:
            // Those over TLS have places of their own, so that connections without TLS do not keep them out.
            if connections.count >= handshakeLimiter.waitingMax, let oldest = oldestNewcomer() {
                end(oldest, .displaced)
            }
        }
        guard let connection = makeConnection(path, isTLS: isTLS, at: now) else {
            admission.release(path.remote.ip, wasAuthenticated: false)
            return false
        }
        counted.accepted &+= 1
        insert(connection, at: now)
        return true
    }

    private func makeConnection(_ path: NetworkPath, isTLS: Bool, at now: Instant) -> StreamConnection? {
        guard isTLS else { return StreamConnection(path, at: now) }
        guard let certificate, let tls = try? TLSStream(certificate) else { return nil }
        return StreamConnection(path, tls: tls, at: now)
    }

    func insert(_ connection: StreamConnection, at now: Instant) {
        connections[connection.path.local] = connection
        newcomers.append(connection.path.local)
        if nextSweep == nil { nextSweep = now + Self.sweepInterval }
    }

    func oldestNewcomer() -> LocalEndpoint? {
        forgetOldNewcomers()
        return newcomers.first
    }

    private func forgetOldNewcomers() {
        let isGone = { [connections] (endpoint: LocalEndpoint) in connections[endpoint]?.isAuthenticated != false }
        let count = newcomers.prefix(while: isGone).count
        if count > 0 { newcomers.removeFirst(count) }
    }

    /// The client ended a connection, or it failed; it is closed already.
    func ended(_ endpoint: LocalEndpoint) {
        remove(endpoint, .ended)
    }

    func end(_ endpoint: LocalEndpoint, _ reason: TCPEndReason) {
        guard remove(endpoint, reason) else { return }
        closing.append(endpoint)
    }

    @discardableResult
    private func remove(_ endpoint: LocalEndpoint, _ reason: TCPEndReason) -> Bool {
        guard let connection = connections.removeValue(forKey: endpoint) else { return false }
        counted.ended[reason, default: 0] &+= 1
        counted.addDrops(of: connection.queue)
        admission.release(connection.path.remote.ip, wasAuthenticated: connection.isAuthenticated)
        if connection.framing == .turn, connection.isAuthenticated { endedClients.append(connection.path) }
        return true
    }

    /// The TURN clients whose connections have ended since the last call; their allocations end.
    func takeEndedClients() -> [NetworkPath] {
        guard !endedClients.isEmpty else { return [] }
        defer { endedClients.removeAll() }
        return endedClients
    }

    /// The connections to close, since the last call.
    func takeClosing() -> [LocalEndpoint] {
        guard !closing.isEmpty else { return [] }
        defer { closing.removeAll(keepingCapacity: true) }
        return closing
    }

    /// Forgets all connections, at the owner's end.
    func removeAll() {
        for endpoint in Array(connections.keys) { remove(endpoint, .sessionEnded) }
        newcomers = []
        nextSweep = nil
    }

    // MARK: - From clients

    /// Takes bytes of a connection, and passes each packet that they complete to `deliver`.
    /// - Parameter owner: asked about the packets of a connection that is not authenticated, until one is another loop's: the
    ///   connection then departs (``takeDeparting()``), with that packet and those behind it.
    func receive(
        _ bytes: RawSpan,
        on endpoint: LocalEndpoint,
        at now: Instant,
        owner: Owner = { _ in nil },
        deliver: Deliver
    ) {
        connections[endpoint]?.heardAt = now
        guard let tls = connections[endpoint]?.tls else {
            receivePlain(bytes, on: endpoint, owner, deliver)
            return
        }
        tls.receive(bytes) { receivePlain($0, on: endpoint, owner, deliver) }
        if tls.hasOutput { markPending(endpoint) }
        switch tls.status {
        case .handshaking, .open: break
        case .closed: end(endpoint, .ended)
        case .failed: end(endpoint, .malformed)
        }
        if connections[endpoint]?.departure != nil, let connection = connections.removeValue(forKey: endpoint) {
            departing.append(connection)
        }
    }

    private func receivePlain(_ bytes: RawSpan, on endpoint: LocalEndpoint, _ owner: Owner, _ deliver: Deliver) {
        guard let framing = connections[endpoint]?.framing else {
            // Seven bytes may wait until the next one tells the framing.
            if let opening = connections[endpoint]?.open(bytes) {
                take(unsafe opening.bytes.span.bytes, on: endpoint, framing: opening.framing, owner, deliver)
            }
            return
        }
        take(bytes, on: endpoint, framing: framing, owner, deliver)
    }

    private func take(
        _ bytes: RawSpan,
        on endpoint: LocalEndpoint,
        framing: StreamFraming,
        _ owner: Owner,
        _ deliver: Deliver
    ) {
        guard let path = connections[endpoint]?.path, var deframer = connections[endpoint]?.deframer else { return }
        // The delivery may queue packets for this connection, so the deframer leaves its place, and nothing is copied.
        connections[endpoint]?.deframer = StreamDeframer(framing)
        let packetsMax = connections[endpoint]?.messagesLeft ?? 0
        let mayDepart = connections[endpoint]?.isAuthenticated == false
        var departure = mayDepart ? connections[endpoint]?.departure : nil
        var packets: UInt64 = 0
        var standing = StreamStanding.unauthenticated
        do throws(StreamFramingError) {
            try deframer.append(bytes) { packet in
                guard standing == .authenticated || standing == .unauthenticated && packets < packetsMax else { return }
                if mayDepart, departure == nil, standing == .unauthenticated, let loop = owner(packet) {
                    departure = (loop, [])
                }
                if let kept = departure?.messages.count {
                    // The other loop looks at no more before an allocation.
                    if UInt64(kept) < packetsMax { departure?.messages.append(packet.array()) }
                    return
                }
                packets &+= 1
                standing = pass(packet, path, framing, deliver)
            }
            counted.packetsReceived &+= packets
        } catch {
            counted.packetsReceived &+= packets
            end(endpoint, .malformed)
            return
        }
        connections[endpoint]?.deframer = deframer
        if mayDepart { connections[endpoint]?.departure = departure }
        if packets > 0 { judge(endpoint, standing, packets) }
    }

    func pass(
        _ packet: RawSpan,
        _ path: NetworkPath,
        _ framing: StreamFraming,
        _ deliver: Deliver
    ) -> StreamStanding {
        let place = unsafe UnsafeMutableRawBufferPointer(rebasing: slot[..<packet.byteCount])
        var copy = unsafe place.mutableBytes
        copy.store(packet, at: 0)
        return deliver(&copy, path, framing)
    }

    /// Ends or authenticates a connection by what its packets proved.
    func judge(_ endpoint: LocalEndpoint, _ standing: StreamStanding, _ packets: UInt64) {
        guard let isAuthenticated = connections[endpoint]?.isAuthenticated else { return }
        switch standing {
        case .refused: end(endpoint, isAuthenticated ? .sessionEnded : .notAuthenticated)
        case .authenticated where !isAuthenticated:
            connections[endpoint]?.isAuthenticated = true
            admission.authenticated()
            forgetOldNewcomers()
        case .unauthenticated where !isAuthenticated:
            connections[endpoint]?.countMessages(packets)
            if connections[endpoint]?.messagesLeft == 0 { end(endpoint, .notAuthenticated) }
        case .authenticated, .unauthenticated: break
        }
    }

    // MARK: - To clients

    /// Queues a copy of a packet for a connection.
    func append(_ packet: RawSpan, kind: StreamPacketKind, to endpoint: LocalEndpoint, at now: Instant) {
        guard isOpen(endpoint) else {
            counted.packetsWithoutConnection &+= 1
            return
        }
        counted.packetsQueued &+= 1
        connections[endpoint]?.queue.append(packet, kind: kind, at: now)
        markPending(endpoint)
    }

    func markPending(_ endpoint: LocalEndpoint) {
        guard connections[endpoint]?.isPending == false else { return }
        connections[endpoint]?.isPending = true
        pending.append(endpoint)
    }

    /// Writes what was queued since the last call.
    func flush(at now: Instant, _ write: Write) {
        guard !pending.isEmpty else { return }
        for endpoint in pending {
            connections[endpoint]?.isPending = false
            // A blocked connection waits for ``writable(_:at:_:)``.
            if connections[endpoint]?.isBlocked == false { self.write(to: endpoint, at: now, write) }
        }
        pending.removeAll(keepingCapacity: true)
    }

    /// Writes what waits for a connection that takes bytes again.
    func writable(_ endpoint: LocalEndpoint, at now: Instant, _ write: Write) {
        self.write(to: endpoint, at: now, write)
    }

    private func write(to endpoint: LocalEndpoint, at now: Instant, _ write: Write) {
        while connections[endpoint]?.prepareWrite(at: now) == true {
            guard let taken = writeOnce(to: endpoint, write) else {
                end(endpoint, .ended)
                return
            }
            connections[endpoint]?.finishWrite(taken, at: now)
            if connections[endpoint]?.isBlocked == true { return }
        }
        guard let path = connections[endpoint]?.path else { return }
        guard connections[endpoint]?.tls?.status != .failed else {
            end(endpoint, .malformed)
            return
        }
        while let ssrc = connections[endpoint]?.queue.nextKeyFrameRequest() {
            keyFrameRequests.append((path, ssrc))
        }
    }

    /// A function of its own, so that the bytes are shared with nobody when the connection changes them.
    private func writeOnce(to endpoint: LocalEndpoint, _ write: Write) -> Int? {
        guard let unwritten = connections[endpoint]?.unwritten,
            let count = write(endpoint, unsafe unwritten.span.bytes)
        else { return nil }
        return min(max(count, 0), unwritten.count)
    }

    /// The videos that go on with a key frame only, since the last call.
    func takeKeyFrameRequests() -> [(path: NetworkPath, ssrc: SSRC)] {
        guard !keyFrameRequests.isEmpty else { return [] }
        defer { keyFrameRequests.removeAll(keepingCapacity: true) }
        return keyFrameRequests
    }

    // MARK: - Time

    /// Ends the connections whose time is over.
    /// - Parameter isInUse: whether a check of a session that still exists has validated a path, or a TURN client has an
    ///   allocation on it.
    func handleTimeout(at now: Instant, isInUse: (NetworkPath) -> Bool) {
        guard let due = nextSweep, due <= now else { return }
        for connection in Array(connections.values) {
            let endpoint = connection.path.local
            if let blockedAt = connection.blockedAt, now - blockedAt >= stallTimeout {
                end(endpoint, .stalled)
            } else if connection.isAuthenticated {
                if !isInUse(connection.path) {
                    end(endpoint, .sessionEnded)
                } else if connection.framing != .turn, now - connection.heardAt >= Self.idleMax {
                    // An allocation has a lifetime of its own, and may serve a path that ICE holds in reserve.
                    end(endpoint, .idle)
                }
            } else if now - connection.acceptedAt >= authenticationTimeout {
                end(endpoint, .authenticationTimeout)
            }
        }
        newcomers.removeAll { connections[$0]?.isAuthenticated != false }
        nextSweep = connections.isEmpty ? nil : now + Self.sweepInterval
    }
}
