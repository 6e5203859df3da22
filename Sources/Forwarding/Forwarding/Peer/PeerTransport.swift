package import Base
import DTLS
package import ICE
package import MediaTypes
package import SRTP
package import Wire

/// One peer's secured path: ICE, DTLS and SRTP composed. Both sides of a call use it, in the lite role or the
/// controlling one.
@safe
package final class PeerTransport {
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

    private var agent: ICEAgent {
        didSet {
            agentDeadline = agent.nextDeadline
            pathNow = agent.selectedPath
            egress.setPath(pathNow)
        }
    }
    /// Kept beside the agent because every turn of the peer reads it.
    private var agentDeadline: Instant?
    /// Everything that is sent leaves through it.
    package let egress: Egress
    private let engine: SRTPEngine
    private var handshake: DTLSHandshake
    /// The handshake's connection.
    let connection: DTLSConnection
    /// The data channels; `nil` when none were negotiated.
    let data: PeerDataBox?
    private var srtp: (any SRTPTransform)? { didSet { receiver = srtp?.receiver } }
    /// The way in of every packet, without reference counts; `nil` where the backend has no such.
    private var receiver: SRTPReceiver?
    /// Some slot sends packets again under their first SRTP index, as RTX was not negotiated.
    let retransmitsWithoutRTX: Bool
    private let setupDeadline: Instant
    private var countersBefore = ICECounters()
    package var state: State { stateNow }
    // What every turn reads is stored privately: the compiler then proves that no access overlaps, and does not check.
    private var stateNow = State.connecting {
        didSet { isConnectedNow = stateNow == .connected }
    }

    /// ICE and DTLS together must be done by then; a browser gives up after about as long.
    package static let setupTimeout = Interval.seconds(30)

    /// - Throws: `DTLSError` when OpenSSL refuses to make a connection.
    init(
        agent: ICEAgent,
        certificate: DTLSCertificate,
        profiles: [SRTPProfile],
        remote: RemoteTransport,
        engine: SRTPEngine,
        egress: Egress,
        data: PeerDataBox?,
        retransmitsWithoutRTX: Bool,
        at now: Instant
    ) throws(DTLSError) {
        self.retransmitsWithoutRTX = retransmitsWithoutRTX
        self.engine = engine
        self.egress = egress
        self.agent = agent
        self.data = data
        handshake = try DTLSHandshake(
            certificate: certificate,
            remote: remote,
            profiles: profiles,
            acceptsData: data != nil
        )
        connection = handshake.connection
        setupDeadline = now + Self.setupTimeout
        agentDeadline = agent.nextDeadline
        if data != nil { requireConsent(at: now) }
    }

    package var isConnected: Bool { isConnectedNow }
    private var isConnectedNow = false
    /// The peer has the client's role, so this side is the server.
    var isServer: Bool { if case .lite = agent { true } else { false } }

    /// The pair that ICE selected: where media and RTCP are sent. Kept beside the agent because every packet reads it.
    package var selectedPath: NetworkPath? { pathNow }
    private var pathNow: NetworkPath?

    /// When the last authenticated connectivity check arrived on the selected pair; `nil` without such a pair, and in the
    /// client's role.
    var lastCheckedAt: Instant? { agent.lastHeardAt }

    /// When the peer last sent or answered an authenticated check; `nil` before, and in the client's role.
    var lastSignOfLife: Instant? { unsafe signOfLife }
    /// Every tick of a publisher that sends nothing reads it, in one step, so accesses are not checked.
    @exclusivity(unchecked) private var signOfLife: Instant?

    /// Asks the peer whether it is still there.
    func ask(at now: Instant, into batch: DatagramBatch) { agent.ask(at: now, into: batch) }

    private var dtlsPath: NetworkPath? {
        agent.dtlsPath(handshakePath: handshake.path, isConnected: isConnected)
    }

    /// Whether an authenticated check came over this pair.
    package func isValidated(_ path: NetworkPath) -> Bool { agent.isKnown(path) }

    /// DTLS records that were malformed, since the last call.
    package func takeMalformedRecords() -> Int { handshake.takeMalformedRecords() }

    /// Adds nominations of pairs that had not proved themselves, our checks, and the answers to them, since the last call.
    func countChecks(_ counters: inout ForwarderCounters) {
        guard case .lite(let agent) = agent, agent.counters != countersBefore else { return }
        let (now, before) = (agent.counters, countersBefore)
        countersBefore = now
        counters.unprovedNominations &+= UInt64(now.unverifiedNominations - before.unverifiedNominations)
        counters.pathChecksSent &+= UInt64(now.checksSent - before.checksSent)
        counters.pathChecksAnswered &+= UInt64(now.checksAnswered - before.checksAnswered)
        counters.consentChecksSent &+= UInt64(now.consentChecksSent - before.consentChecksSent)
        counters.consentChecksAnswered &+= UInt64(now.consentChecksAnswered - before.consentChecksAnswered)
    }

    /// The identifiers of our checks that the peer can answer.
    package var outstandingChecks: [STUNTransactionID] {
        guard case .lite(let agent) = agent else { return [] }
        return agent.outstandingChecks
    }

    /// Datagrams of the handshake that were not sent because too little came from the peer, since the last call.
    package func takeHeldDatagrams() -> Int { handshake.takeHeldDatagrams() }

    /// Gives the place of a source that went silent to another one.
    package func forgetSource(_ ssrc: SSRC) { srtp?.removeStream(ssrc) }

    package var nextDeadline: Instant? {
        guard !isClosed else { return nil }
        var deadline = earliest(agentDeadline, connection.nextDeadline)
        if let data { deadline = earliest(deadline, data.value.nextDeadline) }
        return earliest(deadline, isConnected ? nil : setupDeadline)
    }

    private var isClosed: Bool {
        if case .closed = state { return true }
        return false
    }

    /// Requires that the peer answers our checks from now on (RFC 7675), because it is sent media or messages. A client that only
    /// publishes is sent no more than reports on its packets and requests for key frames.
    func requireConsent(at now: Instant) { agent.requireConsent(at: now) }

    /// Puts new credentials in force (RFC 8445 §9) without disturbing the media.
    package func restartICE(local: ICECredentials, remote: ICECredentials, at now: Instant) {
        agent.restart(local: local, remote: remote, at: now)
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
        let event = try agent.handle(message, path: path, at: now, into: batch)
        // An indication is not authenticated.
        if message.messageClass == .request { handshake.received(message.bytes.byteCount) }
        if message.messageClass != .indication, agent.isLite { unsafe signOfLife = now }
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
            if handshake.start(at: now) { flushDTLS(into: batch) }
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
        _ counters: inout ForwarderCounters,
        at now: Instant,
        into batch: DatagramBatch
    ) -> Change? {
        guard !isClosed else { return nil }
        if !isConnected { handshake.received(datagram.byteCount, over: path) }
        let event = connection.receive(datagram, at: now) { packet in
            data?.value.receive(packet, &counters, at: now)
        }
        // A client that repeats its last flight over a new pair needs the answer there.
        flushDTLS(over: isConnected ? path : dtlsPath, into: batch)
        let change = dtlsEvent(event, at: now)
        if change == .connected {
            handshake.completed()
            agent.handshakeCompleted(over: path, isProof: handshake.proves(path), at: now, into: batch)
        }
        return change
    }

    private func dtlsEvent(_ event: DTLSEvent?, at now: Instant) -> Change? {
        switch event {
        case .connected(let keys):
            guard
                let transform = try? engine.makeTransform(
                    keys,
                    sourcesMax: agent.sourcesMax,
                    allowsRepeatTransmission: retransmitsWithoutRTX
                )
            else {
                return close(.handshakeFailed)
            }
            srtp = transform
            stateNow = .connected
            egress.open(transform, path: selectedPath)
            data?.value.start(at: now)
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
        stateNow = .closed(reason)
        egress.close()
        srtp = nil
        return .closed(reason)
    }

    /// Ends the connection from this side with a close_notify.
    package func close(into batch: DatagramBatch) {
        guard !isClosed else { return }
        connection.close()
        flushDTLS(into: batch)
        _ = close(.requested)
    }

    package func handleTimeout(at now: Instant, into batch: DatagramBatch) -> Change? {
        guard !isClosed else { return nil }
        if !isConnected, now >= setupDeadline { return close(.setupTimedOut) }
        let before = selectedPath
        let event = agent.handleTimeout(at: now, into: batch)
        if let change = iceEvent(event, before: before, at: now, into: batch) { return change }
        data?.value.handleTimeout(at: now)
        guard let deadline = connection.nextDeadline, deadline <= now else { return nil }
        let handshakeEvent = connection.handleTimeout(at: now)
        flushDTLS(into: batch)
        return dtlsEvent(handshakeEvent, at: now)
    }

    private func flushDTLS(into batch: DatagramBatch) { flushDTLS(over: dtlsPath, into: batch) }

    private func flushDTLS(over path: NetworkPath?, into batch: DatagramBatch) {
        guard let path, connection.hasOutput else { return }
        handshake.flush(
            over: path,
            isConnected: isConnected,
            isLimited: agent.isLite && !isConnected,
            through: egress,
            into: batch
        )
    }

    /// Sends what the data channels have to send.
    /// - Parameter rate: bit/s; `nil` for no limit.
    func flushData(rate: Int?, _ counters: inout ForwarderCounters, at now: Instant, into batch: DatagramBatch) {
        guard let data, isConnected, let path = selectedPath else { return }
        data.value.flush(rate: rate, &counters, at: now) { packet in
            guard connection.send(packet, at: now) else { return }
            connection.drainOutput { egress.sendDTLS($0, over: path, into: batch) }
        }
    }

    // MARK: - SRTP

    package func unprotectRTP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        if let receiver { return try receiver.unprotectRTP(&packet, length: length) }
        guard let srtp else { throw .failed }
        return try srtp.unprotectRTP(&packet, length: length)
    }

    package func unprotectRTCP(_ packet: inout MutableRawSpan, length: Int) throws(SRTPError) -> Int {
        if let receiver { return try receiver.unprotectRTCP(&packet, length: length) }
        guard let srtp else { throw .failed }
        return try srtp.unprotectRTCP(&packet, length: length)
    }
}
