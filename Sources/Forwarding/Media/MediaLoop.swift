import Base
import DTLS
package import EventLoop
import Forwarding
package import MediaTypes
import Metrics
package import Wire

/// The media of one event loop: its sockets, and a `Forwarder` that takes every datagram.
///
/// A datagram goes from the kernel through the forwarder into the batch within one call on the loop's thread; at the
/// end of the turn the batch goes to the kernel. No packet meets an `await`. The methods are the control side: adding
/// and removing peers, connecting slots. Their output is sent at the end of the turn that they run in.
@safe
package actor MediaLoop: MediaPlane {
    /// How long `shutdown` waits for the kernel to take the last datagrams.
    private static let drainMax = Interval.milliseconds(200)

    /// The loop, for other actors to be pinned to.
    package nonisolated let eventLoop: EventLoop
    package nonisolated var location: MediaLocation { configuration.location }
    private nonisolated let listening: Replaceable<MediaTransport>
    /// The certificate's fingerprint and the addresses that peers of this loop connect to. It stays once the loop listens.
    package nonisolated var transport: MediaTransport { listening.current }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe eventLoop.executor.asUnownedSerialExecutor()
    }

    let forwarder: Forwarder
    let batch = DatagramBatch()
    /// Datagrams of the batch to TURN clients, framed for them; as long as the batch. `nil` without a TURN server.
    var framed: DatagramBatch?
    /// ICE and TURN over TCP; `nil` without.
    var streams: StreamConnections?
    /// The addresses that the loop listens on for ICE and TURN over TCP.
    var tcpAddresses: [TransportAddress] = []
    /// The addresses that the acceptor listens on for the loop, for TURN over TLS.
    var tlsAddresses: [TransportAddress] = []
    /// Why the loop does not listen on TCP at one of its addresses; empty when it does at all.
    package internal(set) var tcpFailures: [EventLoopError] = []
    let configuration: MediaLoopConfiguration
    /// The peers, and who receives their events.
    private var peers: [PeerID: (any PeerEventReceiver)?] = [:]
    let receiveTime = ReceiveTime()
    private var measurements: LoopMeasurements
    private var deliveryTurns = DeliveryTurns<CheckedContinuation<Void, Never>>()
    private var isClosing = false
    var neighbours = LoopNeighbours()
    var mirrors = MirrorRequests()
    /// The loop's sockets as they were opened, the port of each included.
    package private(set) var sockets: [SocketDescription] = []

    /// Of TURN over TLS; `nil` without.
    var turnTLS: TURNTLSSettings? { configuration.turn == nil ? nil : configuration.turnTLS }

    // MARK: Lifecycle

    /// Starts a loop that listens on `addresses`. When one of them is not available, nothing is left running.
    ///
    /// A loop that was started must be shut down, else it runs for the process's life.
    package static func start(
        _ configuration: MediaLoopConfiguration,
        listeningOn addresses: [TransportAddress]
    ) async throws(EventLoopError) -> MediaLoop {
        let media = MediaLoop(configuration)
        try media.eventLoop.start()
        do throws(EventLoopError) {
            try await media.begin(addresses)
            try await media.joinTLSAcceptor()
        } catch {
            await media.shutdown()
            throw error
        }
        return media
    }

    private init(_ configuration: MediaLoopConfiguration) {
        if let acceptor = configuration.turnTLS?.acceptor, let tcp = configuration.tcp {
            precondition(acceptor.admission === tcp, "the connections of a loop have one admission")
        }
        eventLoop = EventLoop(name: configuration.name, slice: EventLoop.mediaSlice)
        self.configuration = configuration
        listening = Replaceable(MediaTransport(fingerprint: configuration.certificate.fingerprint, candidates: []))
        measurements = LoopMeasurements(at: EventLoop.now())
        var core = ForwarderConfiguration(
            certificate: configuration.certificate,
            unixNanosecondsAtZero: EventLoop.unixNanosecondsAtZero(),
            peersMax: configuration.peersMax,
            random: configuration.random
        )
        core.srtpBackend = configuration.srtpBackend
        core.sendRate = configuration.sendRate
        core.pausesUnusedLayers = configuration.pausesUnusedLayers
        forwarder = Forwarder(core)
    }

    private func begin(_ addresses: [TransportAddress]) throws(EventLoopError) {
        // The loop releases its callbacks when it stops, which breaks these reference cycles.
        eventLoop.onDatagram = { [self] datagram, length, path, readAt in
            received(&datagram, length: length, path: path, readAt: readAt)
        }
        eventLoop.onTimer = { [self] now in
            forwarder.handleTimeout(at: now, into: batch)
            timeoutStreams(at: now)
        }
        eventLoop.onSignal = { [self] now in takeTransferred(at: now) }
        eventLoop.onTurnEnd = { [self] now in endTurn(at: now) }
        eventLoop.onTurnMeasured = { [self] length in measurements.turned(length) }
        eventLoop.shareOf = { [self] packet, path in
            let (share, isAudio, isRelayed) = forwarder.share(of: packet, to: path)
            return SendShare(id: share, isAudio: isAudio, isRelayed: isRelayed)
        }
        eventLoop.onOtherRun = { [self] run, batch in
            run.path.local.kind == .tcp ? queueStream(run, of: batch) : frameRelayed(run, of: batch)
        }
        batch.onFull = { [unowned self] _ in flush() }
        for address in addresses {
            let index = try eventLoop.addSocket(bind: address, options: configuration.socketOptions)
            if let description = eventLoop.description(of: index) { sockets.append(description) }
        }
        if let admission = configuration.tcp ?? turnTLS?.acceptor.admission { startStreams(admission) }
        let bound = sockets.map(\.local)
        listening.current = MediaTransport(
            fingerprint: transport.fingerprint,
            candidates: configuration.candidates(bound),
            tcpCandidates: configuration.candidates(tcpAddresses)
        )
        if let settings = configuration.turn { startTURN(settings) }
        let addresses = (configuration.mediaLinkAddresses ?? configuration.candidates)(bound)
        forwarder.startMediaLinks(at: location, sockets: bound, addresses: addresses, into: batch)
    }

    /// Ends everything: every peer gets close_notify and is reported as `closed(.requested)`, what is still to be sent
    /// is sent, the sockets are closed and the loop's thread ends. It can be called any number of times; every call
    /// returns when the loop has ended.
    package func shutdown() async {
        isClosing = true
        for caller in deliveryTurns.releaseAll() { caller.resume() }
        let now = EventLoop.now()
        for peer in peers.keys { forwarder.removePeer(peer, at: now, into: batch) }
        endTurn(at: now)
        while eventLoop.queuedDatagrams > 0, EventLoop.now() - now < Self.drainMax {
            guard (try? await Task.sleep(for: .milliseconds(2))) != nil else { break }
        }
        await eventLoop.stop()
        streams?.removeAll()
        neighbours.shutdown()
        mirrors.remoteOrigins = nil
    }

    // MARK: The turn

    private func received(_ datagram: inout MutableRawSpan, length: Int, path: NetworkPath, readAt: Instant) {
        receiveTime.note(readAt)
        forwarder.receive(&datagram, length: length, path: path, at: readAt, into: batch)
    }

    private func endTurn(at now: Instant) {
        if let sample = measurements.sample(receiveDrops: eventLoop.statistics.kernelReceiveDrops, at: now) {
            forwarder.noteLoad(sample, at: now)
        }
        forwarder.endTurn(at: now, into: batch) { [self] in flush() }
        // Clocks and requests; packets were published before they were sent on here.
        neighbours.publish()
        flush()
        forwarder.closeTURNSessions(at: now)
        receiveTime.turnEnded()
        deliveryTurns.turnEnded()?.resume()
        // The timer would let a millisecond pass.
        if forwarder.hasWaitingHandshakes { eventLoop.signal() }
        eventLoop.setTimer(at: earliest(forwarder.nextDeadline, streams?.nextDeadline))
        for (peer, event) in forwarder.takeEvents() {
            let receiver = peers[peer] ?? nil
            if case .closed = event { peers.removeValue(forKey: peer) }
            receiver?.receive(event, from: peer)
        }
    }

    /// Hands the batch to the kernel: at the turn's end, and before it when the batch is full.
    private func flush() {
        for marking in forwarder.takeMarkings() {
            eventLoop.setECN(marking.isMarked ? .capable1 : .notCapable, on: marking.path)
        }
        let count = batch.count
        guard count > 0 else { return }
        // Datagrams may still be in the hands of a cipher that works on many at once.
        forwarder.completeBatch()
        eventLoop.send(batch)
        if let framed, !framed.isEmpty { eventLoop.send(framed) }
        flushStreams()
        guard let readAt = receiveTime.readAt else { return }
        measurements.sent(count, after: EventLoop.now() - readAt)
    }

    /// Throws when the loop is shut down.
    func beginCall() throws(EventLoopError) {
        guard !isClosing else { throw .stopped }
    }

    // MARK: Control

    /// Makes a peer known, so that its connectivity checks are answered.
    /// - Throws: `ForwarderError`, or `EventLoopError.stopped` after a shutdown; so do the other methods that throw.
    package func addPeer(_ parameters: PeerParameters) throws {
        try beginCall()
        try forwarder.addPeer(parameters, at: EventLoop.now())
        peers.updateValue(parameters.events, forKey: parameters.id)
    }

    /// Ends a peer: it gets close_notify, all its resources are freed, and `closed(.requested)` is reported at the
    /// turn's end. Does nothing when the peer is not here.
    package func removePeer(_ peer: PeerID) {
        forwarder.removePeer(peer, at: EventLoop.now(), into: batch)
    }

    /// Puts new ICE credentials in force; media goes on over the old pair until a check nominates one with the new.
    package func restartICE(_ peer: PeerID, local: ICECredentials, remote: ICECredentials) throws {
        try beginCall()
        try forwarder.restartICE(peer, local: local, remote: remote, at: EventLoop.now())
    }

    /// Adds slots to a peer and takes others away: either all of it or, when it throws, nothing.
    /// - Parameters:
    ///   - add: each with a MID and SSRCs that no slot of the peer ever had.
    ///   - remove: slots that are not there are ignored.
    package func changeSlots(of peer: PeerID, add: [SendTrackParameters], remove: [MID]) throws {
        try beginCall()
        try forwarder.changeSlots(of: peer, add: add, remove: remove, at: EventLoop.now())
    }

    /// Lets a track of a peer of this loop play into a slot from its next key frame on, or with `nil` nothing. With the
    /// track that plays there already only the preference changes.
    package func connect(slot: TrackID, to track: TrackID?, preference: LayerPreference = LayerPreference()) throws {
        try beginCall()
        try forwarder.connect(slot: slot, to: track, preference: preference, at: EventLoop.now())
    }

    /// Limits the rate at which a peer is sent media. Does nothing when the peer is not here.
    /// - Parameter bitsPerSecond: of all its media together, from the IP header on; `nil` for the settings' maximum.
    package func limitSending(to peer: PeerID, bitsPerSecond: Int?) {
        forwarder.limitSending(to: peer, bitsPerSecond: bitsPerSecond, at: EventLoop.now())
    }

    /// Asks a peer for a key frame of every video stream that it sends now; does nothing when it is not here.
    package func requestKeyFrame(of peer: PeerID) {
        forwarder.requestKeyFrame(of: peer, at: EventLoop.now())
    }

    /// Performs commands about data channels in their order. Those for peers that are not here and closed channels do nothing.
    ///
    /// The messages that one turn queues are bounded. A call that comes when a turn has as many waits for a later one, behind
    /// those that wait already.
    package func perform(_ commands: [DataCommand]) async {
        let count = commands.reduce(0) { $0 + $1.deliveryCount }
        let mustWait = !isClosing && !deliveryTurns.isFree(for: count)
        if mustWait { await withCheckedContinuation { deliveryTurns.wait($0, deliveries: count) } }
        forwarder.perform(commands, at: EventLoop.now(), into: batch)
        deliveryTurns.performed(count, hasWaited: mustWait)?.resume()
    }

    /// One peer's media as it is now; `nil` when the peer is not here.
    package func statistics(of peer: PeerID) -> PeerStatistics? {
        forwarder.statistics(of: peer, at: EventLoop.now())
    }

    /// What the loop has counted and measured since its start.
    package func metrics() -> MediaMetrics {
        MediaMetrics(
            loop: eventLoop.statistics,
            forwarder: forwarder.counters,
            gauges: forwarder.gauges,
            iterationTime: measurements.iterationTime,
            forwardingLatency: measurements.forwardingLatency,
            queuedDatagrams: eventLoop.queuedDatagrams,
            batchOverflows: batch.overflowed,
            turn: forwarder.turnCounters.map {
                TURNMetrics(
                    counters: $0,
                    allocations: forwarder.turnAllocationCount,
                    streamAllocations: forwarder.turnStreamAllocationCount,
                    calls: forwarder.turnCallCount,
                    callAllocations: forwarder.turnCallAllocationCount
                )
            },
            tcp: tcpMetrics,
            relay: neighbours.counters,
            mediaLinks: MediaLinkMetrics(
                counters: forwarder.mediaLinkCounters,
                links: forwarder.mediaLinkStates(at: EventLoop.now())
            )
        )
    }

    /// What the loop carries, measured since the last call, or since the start.
    package func load() -> LoopLoad {
        measurements.load(packets: forwarder.counters.rtpSent, peers: forwarder.peerCount, at: EventLoop.now())
    }
}
