import DTLS
package import ICE
package import MediaTypes
package import SRTP
package import Wire

/// One peer's secured path: ICE, DTLS and SRTP composed. Both sides of a call use it, in the lite role or the
/// controlling one.
@safe
package final class PeerTransport {
    package enum Agent {
        case lite(ICELiteAgent)
        case controlling(ICEControllingAgent)
    }
    package enum State: Equatable {
        case connecting, connected
        case closed(PeerCloseReason)
    }
    package enum Change: Equatable {
        /// Media may be sent and is accepted from now on.
        case connected
        /// An ICE restart or a better pair moved the peer.
        case pathChanged
        case closed(PeerCloseReason)
    }

    private var agent: Agent {
        didSet {
            switch agent {
            case .lite(let agent): selectedPath = agent.selectedPath
            case .controlling(let agent): selectedPath = agent.selectedPath
            }
            egress.setPath(selectedPath)
        }
    }
    /// Everything that is sent leaves through it.
    package let egress: Egress
    private let engine: SRTPEngine
    private let dtls: DTLSConnection
    private let dtlsRole: DTLSRole
    private var srtp: (any SRTPTransform)? { didSet { receiver = srtp?.receiver } }
    /// The way in of every packet, without reference counts; `nil` where the backend has no such.
    private var receiver: SRTPReceiver?
    private var dtlsStarted = false
    /// Some slot repeats packets under their first SRTP index, for want of RTX.
    let allowsRepeats: Bool
    private let setupDeadline: Instant
    private var recordsDroppedBefore = 0
    private var countersBefore = ICECounters()
    /// The pair that the last DTLS datagram came over, until the handshake is complete.
    private var handshakePath: NetworkPath?
    private var allowance = HandshakeAllowance()
    /// Where the first flight of the handshake was sent, and whether any went elsewhere.
    private var flightPath: NetworkPath?
    private var flightsWentElsewhere = false
    /// Datagrams of handshakes that were not sent for want of allowance, since `takeHeldDatagrams`.
    private var heldDatagrams = 0
    package private(set) var state = State.connecting {
        didSet { isConnected = state == .connected }
    }

    /// ICE and DTLS together must be done by then; a browser gives up after about as long.
    package static let setupTimeout = Interval.seconds(30)

    /// Senders that the other side may use at one time. A client has few; a server sends a client everybody else's.
    private var sourcesMax: Int {
        switch agent {
        case .lite: 64
        case .controlling: 4_096
        }
    }

    /// - Throws: `DTLSError` when OpenSSL refuses to make a connection.
    init(
        agent: Agent,
        certificate: DTLSCertificate,
        profiles: [SRTPProfile],
        remote: RemoteTransport,
        engine: SRTPEngine,
        egress: Egress,
        allowsRepeats: Bool,
        at now: Instant
    ) throws(DTLSError) {
        self.allowsRepeats = allowsRepeats
        self.engine = engine
        self.egress = egress
        self.agent = agent
        dtlsRole = remote.localRole
        dtls = try DTLSConnection(
            certificate: certificate,
            role: remote.localRole,
            remoteFingerprints: remote.fingerprints,
            profiles: profiles
        )
        setupDeadline = now + Self.setupTimeout
    }

    package private(set) var isConnected = false

    /// The pair that ICE selected: where media and RTCP are sent. Kept beside the agent because every packet reads it.
    package private(set) var selectedPath: NetworkPath?

    /// Where DTLS is sent. A lite agent answers a handshake over the pair that it runs over: browsers may nominate a
    /// while after media could flow (RFC 8445 §12.1), and a nomination alone does not prove an address.
    private var dtlsPath: NetworkPath? {
        switch agent {
        case .lite: isConnected ? selectedPath : handshakePath ?? selectedPath
        case .controlling: selectedPath ?? handshakePath
        }
    }

    /// Whether an authenticated check came over this pair.
    package func isValidated(_ path: NetworkPath) -> Bool {
        switch agent {
        case .lite(let agent): agent.isKnown(path)
        case .controlling(let agent): agent.isKnown(path)
        }
    }

    /// DTLS records that were no such, since the last call.
    package func takeMalformedRecords() -> Int {
        defer { recordsDroppedBefore = dtls.recordsDropped }
        return dtls.recordsDropped - recordsDroppedBefore
    }

    /// Nominations of pairs that had not proved themselves, our checks of them, and the answers, since the last call.
    package func takePathProofs() -> (nominations: Int, checks: Int, answers: Int) {
        guard case .lite(let agent) = agent else { return (0, 0, 0) }
        let (now, before) = (agent.counters, countersBefore)
        countersBefore = now
        return (
            now.unprovedNominations - before.unprovedNominations, now.checksSent - before.checksSent,
            now.checksAnswered - before.checksAnswered
        )
    }

    /// Datagrams of the handshake that were not sent because too little came from the peer, since the last call.
    package func takeHeldDatagrams() -> Int {
        defer { heldDatagrams = 0 }
        return heldDatagrams
    }

    /// Gives the place of a source that went silent to another one.
    package func forgetSource(_ ssrc: SSRC) { srtp?.removeStream(ssrc) }

    package var nextDeadline: Instant? {
        guard !isClosed else { return nil }
        let ice: Instant?
        switch agent {
        case .lite(let agent): ice = agent.nextDeadline
        case .controlling(let agent): ice = agent.nextDeadline
        }
        return earliest(earliest(ice, dtls.nextDeadline), isConnected ? nil : setupDeadline)
    }

    private var isClosed: Bool {
        if case .closed = state { return true }
        return false
    }

    /// Puts new credentials in force (RFC 8445 §9) without disturbing the media.
    package func restartICE(local: ICECredentials, remote: ICECredentials, at now: Instant) {
        switch agent {
        case .lite(var lite):
            lite.restart(local: local, remote: remote, at: now)
            agent = .lite(lite)
        case .controlling(var controlling):
            controlling.restart(local: local, remote: remote, at: now)
            agent = .controlling(controlling)
        }
    }

    /// A STUN message that named this peer.
    package func receivedSTUN(
        _ message: borrowing STUNMessageView,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) throws(ICEDropReason) -> Change? {
        guard !isClosed else { return nil }
        let before = selectedPath
        let event: ICEEvent?
        switch agent {
        case .lite(var lite):
            defer { agent = .lite(lite) }
            event = try lite.handle(message, path: path, at: now, into: batch)
        case .controlling(var controlling):
            defer { agent = .controlling(controlling) }
            event = try controlling.handle(message, path: path, at: now, into: batch)
        }
        // An indication is not authenticated.
        if message.messageClass == .request { allowance.received(message.bytes.byteCount) }
        return iceEvent(event, before: before, at: now, into: batch)
    }

    private func iceEvent(
        _ event: ICEEvent?,
        before: NetworkPath?,
        at now: Instant,
        into batch: DatagramBatch
    ) -> Change? {
        switch event {
        case .pathSelected(let path):
            if dtlsRole == .client, !dtlsStarted {
                dtlsStarted = true
                dtls.start(at: now)
                flushDTLS(into: batch)
            }
            return isConnected && before != path ? .pathChanged : nil
        case .consentExpired: return close(.consentExpired)
        case .failed: return close(isConnected ? .consentExpired : .setupTimedOut)
        case nil: return nil
        }
    }

    /// A DTLS datagram from a pair that ICE has validated.
    package func receivedDTLS(
        _ datagram: RawSpan,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) -> Change? {
        guard !isClosed else { return nil }
        if !isConnected {
            handshakePath = path
            allowance.received(datagram.byteCount)
        }
        let event = dtls.receive(datagram, at: now)
        // A client that repeats its last flight over a new pair needs the answer there.
        flushDTLS(over: isConnected ? path : dtlsPath, into: batch)
        let change = dtlsEvent(event)
        if change == .connected {
            handshakePath = nil
            prove(path, at: now, into: batch)
        }
        return change
    }

    /// The handshake was completed over `path`.
    ///
    /// Nobody completes it without our flights, so that proves the pair if they went nowhere else.
    private func prove(_ path: NetworkPath, at now: Instant, into batch: DatagramBatch) {
        guard case .lite(var lite) = agent else { return }
        if flightPath == path, !flightsWentElsewhere {
            _ = lite.proved(path, at: now)
        } else {
            lite.connectedWithoutProof(into: batch)
        }
        agent = .lite(lite)
    }

    private func dtlsEvent(_ event: DTLSEvent?) -> Change? {
        switch event {
        case .connected(let keys):
            guard
                let transform = try? engine.makeTransform(
                    keys,
                    sourcesMax: sourcesMax,
                    allowsRepeats: allowsRepeats
                )
            else {
                return close(.handshakeFailed)
            }
            srtp = transform
            state = .connected
            egress.open(transform, path: selectedPath)
            return .connected
        case .closed: return close(.closedByPeer)
        case .failed(.fingerprintMismatch): return close(.fingerprintMismatch)
        case .failed(.timedOut): return close(.setupTimedOut)
        case .failed: return close(.handshakeFailed)
        case nil: return nil
        }
    }

    private func close(_ reason: PeerCloseReason) -> Change? {
        guard !isClosed else { return nil }
        state = .closed(reason)
        egress.close()
        srtp = nil
        return .closed(reason)
    }

    /// Ends the connection from this side with a close_notify.
    package func close(into batch: DatagramBatch) {
        guard !isClosed else { return }
        dtls.close()
        flushDTLS(into: batch)
        _ = close(.requested)
    }

    package func handleTimeout(at now: Instant, into batch: DatagramBatch) -> Change? {
        guard !isClosed else { return nil }
        if !isConnected, now >= setupDeadline { return close(.setupTimedOut) }
        let before = selectedPath
        let event: ICEEvent?
        switch agent {
        case .lite(var lite):
            event = lite.handleTimeout(at: now)
            agent = .lite(lite)
        case .controlling(var controlling):
            event = controlling.handleTimeout(at: now, into: batch)
            agent = .controlling(controlling)
        }
        if let change = iceEvent(event, before: before, at: now, into: batch) { return change }
        guard let deadline = dtls.nextDeadline, deadline <= now else { return nil }
        let handshake = dtls.handleTimeout(at: now)
        flushDTLS(into: batch)
        return dtlsEvent(handshake)
    }

    private func flushDTLS(into batch: DatagramBatch) { flushDTLS(over: dtlsPath, into: batch) }

    private func flushDTLS(over path: NetworkPath?, into batch: DatagramBatch) {
        guard let path else { return }
        var isLimited = false
        if case .lite = agent { isLimited = !isConnected }
        dtls.drainOutput { datagram in
            guard !isLimited || allowance.take(datagram.byteCount) else {
                heldDatagrams += 1
                return
            }
            noteFlight(over: path)
            egress.sendDTLS(datagram, over: path, into: batch)
        }
    }

    private func noteFlight(over path: NetworkPath) {
        guard !isConnected else { return }
        if flightPath == nil { flightPath = path }
        if flightPath != path { flightsWentElsewhere = true }
    }

    // MARK: - SRTP

    package func unprotectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        if let receiver { return try receiver.unprotectRTP(&packet, length: length) }
        guard let srtp else { throw .failed }
        return try srtp.unprotectRTP(&packet, length: length)
    }

    package func unprotectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        guard let srtp else { throw .failed }
        return try srtp.unprotectRTCP(&packet, length: length)
    }
}

/// Bytes that a handshake may send to addresses that have not proved to be the peer's.
///
/// A check and a ClientHello can come from a false address, and our flight with its certificate is longer than both. So
/// what is sent is bounded by what came, as in QUIC (RFC 9000 §8.1). A flight that is held counts as lost, and is sent
/// when the peer repeats its own.
struct HandshakeAllowance {
    /// About five flights of a handshake, so that a lossy path needs nothing from the peer.
    static let initialBytes = 4_096
    /// Bytes that may be sent for each one received.
    static let factor = 3
    private static let bytesMax = 65_536

    private var bytes = initialBytes

    mutating func received(_ count: Int) {
        bytes = min(bytes + Self.factor * min(count, Self.bytesMax), Self.bytesMax)
    }

    /// Takes `count` bytes off the allowance.
    /// - Returns: whether there was as much.
    mutating func take(_ count: Int) -> Bool {
        guard count <= bytes else { return false }
        bytes -= count
        return true
    }
}
