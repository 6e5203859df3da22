public import Base
import CongestionControl
import ICE
public import MediaTypes
import SRTP
public import Wire

/// The forwarding core of one loop: every peer on it, and the one place where datagrams come in.
///
/// Sans-IO: bytes and an instant go in, datagrams come out into the batch that the caller passes, and events wait in
/// `takeEvents`. The caller ends every turn in which it called anything with `endTurn`, which does the deferred work.
@safe
public final class Forwarder {
    let configuration: ForwarderConfiguration
    let directory: PeerDirectory
    let schedule = WorkSchedule()
    /// Received streams of all peers and mirrors.
    var streams = StreamRegistry()
    let relays = TransferTable()
    let mediaLinks: MediaLinkTable
    let handshakes = HandshakeQueue()
    /// The memory of all peers' data channels.
    let dataBudget = DataBudget()
    /// What packets to all peers are made with.
    let sending: SendResources
    /// Tracks with packets of this turn that wait to be forwarded; peers and mirrors keep them alive.
    var pending: ContiguousArray<Unretained<ReceivedTrack>> = []
    /// What peers behind one address share.
    var pathMemory = PathMemory<UInt64, PeerID>()
    /// Feedback is written here and copied into the batch; one for all, so that it is allocated once.
    var writer = RTCPWriter()
    /// Transport-wide feedback is read into it; one for all, so that it is allocated once.
    var feedbackReport = FeedbackReport()
    public internal(set) var counters = ForwarderCounters()
    var overload = OverloadState()
    /// `nil` unless clients may use the core as a TURN server.
    var turn: TURNGateway?
    private var events: [(PeerID, PeerEvent)] = []
    private var markings: [PathMarking] = []

    public init(_ configuration: ForwarderConfiguration) {
        self.configuration = configuration
        directory = PeerDirectory(seed: configuration.random())
        guard let engine = try? SRTPEngine(configuration.srtpBackend) else {
            preconditionFailure("the backend \(configuration.srtpBackend.rawValue) is available")
        }
        sending = SendResources(engine: engine)
        mediaLinks = MediaLinkTable(
            engine: engine,
            wallAtZero: configuration.unixNanosecondsAtZero,
            random: configuration.random
        )
    }

    var historyBytesMax: Int { configuration.historyBytesMax }

    // MARK: - Peers

    public var peerCount: Int { directory.count }

    package func peer(_ id: PeerID) -> Peer? { directory.peer(id) }

    /// Adds a peer in the server's role (ICE lite).
    public func addPeer(_ parameters: PeerParameters, at now: Instant) throws(ForwarderError) {
        let agent = ICELiteAgent(
            local: parameters.localCredentials,
            remote: parameters.remote.credentials,
            at: now,
            tieBreaker: configuration.random(),
            pathSecret: configuration.random()
        )
        _ = try addPeer(parameters, agent: .lite(agent), at: now)
    }

    func addPeer(
        _ parameters: PeerParameters,
        agent: ICEAgent,
        at now: Instant
    ) throws(ForwarderError) -> Peer {
        guard directory.peer(parameters.id) == nil else { throw .duplicatePeer(parameters.id) }
        guard peerCount < configuration.peersMax else { throw .tooManyPeers(limit: configuration.peersMax) }
        let transport: PeerTransport
        var generator = configuration.generator
        let isClient = parameters.remote.localRole == .client
        let data = parameters.data.map {
            PeerDataBox(PeerData($0, isClient: isClient, budget: dataBudget, using: &generator))
        }
        do {
            transport = try PeerTransport(
                agent: agent,
                certificate: configuration.certificate,
                profiles: configuration.srtpProfiles,
                remote: parameters.remote,
                engine: sending.engine,
                egress: Egress(
                    slab: sending.egressStates,
                    firstTransportSequence: UInt16(truncatingIfNeeded: configuration.random())
                ),
                data: data,
                retransmitsWithoutRTX: parameters.send.contains { $0.kind == .video && $0.rtxSSRC == nil },
                at: now
            )
        } catch {
            throw .transportSetupFailed
        }
        let peer = Peer(parameters, transport: transport, core: self, at: now, random: configuration.random)
        directory.add(peer, usernameFragment: parameters.localCredentials.usernameFragment)
        counters.peersAdded &+= 1
        schedule.markDirty(peer)
        return peer
    }

    /// Ends a peer: close_notify goes out, all its resources are freed, and `closed(.requested)` follows.
    public func removePeer(_ id: PeerID, at now: Instant, into batch: DatagramBatch) {
        guard let peer = peer(id) else {
            // It may have TURN credentials.
            turn?.ended.append(id)
            return
        }
        fanOutAll(at: now, into: batch)
        peer.transport.close(into: batch)
        tearDown(peer, .requested, at: now)
    }

    /// Puts new ICE credentials in force; media goes on over the old pair until a check nominates one with the new.
    public func restartICE(
        _ id: PeerID,
        local: ICECredentials,
        remote: ICECredentials,
        at now: Instant
    ) throws(ForwarderError) {
        guard let peer = peer(id) else { throw .unknownPeer(id) }
        peer.transport.restartICE(local: local, remote: remote, at: now)
        directory.addUsernameFragment(local.usernameFragment, of: peer)
        schedule.markDirty(peer)
    }

    /// Removes a peer whose transport has closed.
    func tearDown(_ peer: Peer, _ reason: PeerCloseReason, at now: Instant) {
        guard directory.peer(peer.id) === peer else { return }
        // The caller may hold no reference of its own, so the schedule keeps the peer alive before the directory lets go.
        schedule.remove(peer)
        directory.remove(peer)
        for slot in peer.slots {
            // No peer owns a source made on this side, so its streams go with the slot.
            if let source = slot.source, source.id.peer == peer.id {
                for stream in source.streams { streams.remove(stream) }
            }
        }
        peer.detach(at: now)
        for track in peer.tracks { dropPending(track) }
        for stream in peer.streams { streams.remove(stream) }
        turn?.ended.append(peer.id)
        counters.close(reason)
        if peer.setup.times.dtlsConnected == nil { peer.emitSetup() }
        emit(.closed(reason), of: peer.id)
    }

    // MARK: - Time

    /// When `handleTimeout` is due.
    public var nextDeadline: Instant? {
        var next = earliest(earliest(schedule.nextDeadline, dataBudget.nextTurnAt), mediaLinks.nextDeadline)
        next = earliest(next, handshakes.firstReceivedAt)
        guard let turn else { return next }
        return earliest(next, turn.nextDeadline)
    }

    /// Whether datagrams of handshakes wait for the next turn, which is due at once then.
    public var hasWaitingHandshakes: Bool { !handshakes.isEmpty }

    /// Does everything that is due.
    public func handleTimeout(at now: Instant, into batch: DatagramBatch) {
        fanOutAll(at: now, into: batch)
        turn?.handleTimeout(at: now)
        mediaLinks.handleTimeout(at: now)
        while let id = schedule.firstSendDue(at: now) {
            guard let peer = peer(id) else {
                schedule.setSendTime(of: id, to: nil)
                continue
            }
            peer.sendWaiting(at: now, into: batch)
        }
        serveWaitingData { service($0, at: now, into: batch) }
        while let id = schedule.firstDue(at: now) {
            guard let peer = peer(id) else {
                schedule.dropDeadline(of: id)
                continue
            }
            service(peer, at: now, into: batch)
        }
        serveTurn(at: now, into: batch)
    }

    /// Ends a turn: forwards what was received, flushes deferred sends, feedback and timers, and makes one step of a
    /// handshake. To be called once after the turn's datagrams and calls; the batch may be read after it.
    /// - Parameter flush: sends the batch before the step of a handshake, so that no media waits for it. Not called in a turn
    ///   without such a step.
    public func endTurn(at now: Instant, into batch: DatagramBatch, flush: () -> Void = {}) {
        serveTurn(at: now, into: batch)
        if !handshakes.isEmpty, continueHandshake(at: now, into: batch, prepare: flush) {
            serveTurn(at: now, into: batch)
        }
        dataBudget.turnEnded(at: now)
    }

    private func serveTurn(at now: Instant, into batch: DatagramBatch) {
        fanOutAll(at: now, into: batch)
        serveWaitingData { service($0, at: now, into: batch) }
        schedule.serveDirty { service($0, at: now, into: batch) }
        mediaLinks.endTurn(at: now)
        completeBatch()
    }

    /// Completes the datagrams in the batch: a backend that encrypts many at a time may have put some off. To be called
    /// before a batch is read at another time than after a turn's end.
    public func completeBatch() { sending.engine.flush() }

    private func service(_ peer: Peer, at now: Instant, into batch: DatagramBatch) {
        if let due = peer.transport.nextDeadline, due <= now {
            let change = peer.transport.handleTimeout(at: now, into: batch)
            peer.transport.countChecks(&counters)
            counters.handshakeDatagramsHeld &+= UInt64(peer.transport.takeHeldDatagrams())
            handle(change, of: peer, at: now, into: batch)
            guard directory.peer(peer.id) != nil else { return }
        }
        peer.handleTimeout(at: now, into: batch)
        guard serveData(of: peer, at: now, into: batch) else { return }
        schedule.noteServed(peer, at: now)
    }

    /// The peer has work at the end of this turn, if it is here.
    func markDirty(_ id: PeerID) {
        if let peer = peer(id) { schedule.markDirty(peer) }
    }

    package func ntp(at now: Instant) -> NTPTimestamp {
        NTPTimestamp(unixNanoseconds: configuration.unixNanosecondsAtZero &+ now.nanoseconds)
    }

    // MARK: - Events

    func emit(_ event: PeerEvent, of peer: PeerID) { events.append((peer, event)) }

    /// What happened since the last call.
    public func takeEvents() -> [(PeerID, PeerEvent)] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    func setMarking(_ isMarked: Bool, of path: NetworkPath) {
        markings.append(PathMarking(path: path, isMarked: isMarked))
    }

    /// Changes of what datagrams are marked with since the last call, in their order.
    public func takeMarkings() -> [PathMarking] {
        guard !markings.isEmpty else { return [] }
        defer { markings.removeAll(keepingCapacity: true) }
        return markings
    }
}

/// Whether all datagrams on a path are marked as ECN-capable for L4S: ECT(1) (RFC 9331 §4.1).
public struct PathMarking: Hashable, Sendable {
    public let path: NetworkPath
    public let isMarked: Bool
}
