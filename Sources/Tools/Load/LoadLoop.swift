import Base
import Client
import DTLS
import EventLoop
import Forwarding
import Impairment
import MediaTypes
import Negotiation
import SRTP
import Wire

/// The packets that a source has sent so far.
struct MadeMedia: Sendable {
    /// `nil` for simulcast: until when the server sends a subscriber which layer is its decision.
    var videoPackets: Int?
    var audioPackets = 0
}

/// The clients on one event loop's thread, each with its own UDP socket, all in one forwarding core.
actor LoadLoop {
    /// The most clients of one loop, each with a socket.
    static let clientsMax = 1_000
    /// The kernel's buffers for one client, which take memory as they fill: half a second of 8 Mbit/s in, a key frame
    /// out.
    private static let socketOptions = SocketOptions(receiveBufferBytes: 1 << 20, sendBufferBytes: 1 << 18)

    /// A client's socket, opened before its offer is made.
    struct Endpoint: Sendable {
        let socket: SocketIndex
        /// The port to offer.
        let port: UInt16
        /// Whether the socket is IPv4 only.
        let isV4: Bool
    }

    /// What a publisher sends.
    struct Media: Sendable {
        /// The source number in its stamps.
        var source: UInt32
        var video: SyntheticVideo.Settings?
        var hasAudio: Bool
    }

    nonisolated let eventLoop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe eventLoop.executor.asUnownedSerialExecutor() }

    private let forwarder: Forwarder
    private let batch = DatagramBatch()
    private var clients: [PeerID: MediaClient] = [:]
    /// The subscribers' links, by socket; empty when no subscriber has one.
    private var links: [SocketIndex: ViewerLink] = [:]
    /// What the batch holds for clients without a link, when others have one.
    private let unshaped = DatagramBatch()
    private let configuration: LoadConfiguration
    private var publishers: [(source: UInt32, client: MediaClient)] = []
    private var waiting: [PeerID: CheckedContinuation<PeerCloseReason?, Never>] = [:]
    private var nextMediaAt: Instant?
    private var isSending = true
    /// Clients that the server or the network ended after they were connected.
    private var ends: [PeerID: PeerCloseReason] = [:]
    private var expectedEnds: Set<PeerID> = []
    private var expectsEnds = false

    private let videoDelays = DelayRecorder()
    private let audioDelays = DelayRecorder()
    private var turns = DelayHistogram()
    private var lateness = DelayHistogram()
    private var busy = Interval.zero

    // MARK: Lifecycle

    private init(_ configuration: LoadConfiguration, certificate: DTLSCertificate, number: Int) {
        self.configuration = configuration
        // A generator that waits for a processor measures its own wait.
        eventLoop = EventLoop(name: "load-\(number)", socketsMax: Self.clientsMax, slice: EventLoop.mediaSlice)
        var settings = ForwarderConfiguration(
            certificate: certificate,
            unixNanosecondsAtZero: EventLoop.unixNanosecondsAtZero(),
            peersMax: Self.clientsMax,
            random: { .random(in: .min ... .max) }
        )
        settings.srtpProfiles = configuration.srtpProfiles
        if let name = configuration.srtpBackend, let backend = SRTPBackend(rawValue: name) {
            settings.srtpBackend = backend
        }
        // A subscriber forwards nothing, so it needs no packet history beyond duplicate detection.
        settings.historyBytesMax = 0
        forwarder = Forwarder(settings)
    }

    /// Starts a loop's thread. ``shutdown()`` must follow.
    static func start(
        _ configuration: LoadConfiguration,
        certificate: DTLSCertificate,
        number: Int
    ) async throws(LoadError) -> LoadLoop {
        let loop = LoadLoop(configuration, certificate: certificate, number: number)
        do throws(EventLoopError) {
            try loop.eventLoop.start()
        } catch {
            throw .failed(error.message)
        }
        await loop.begin()
        return loop
    }

    private func begin() {
        eventLoop.onDatagram = { [self] datagram, length, path, readAt in
            if !links.isEmpty, let socket = path.local.socket, let link = links[socket] {
                link.receive(datagram.bytes.extracting(0..<length), from: path, at: readAt)
                return
            }
            forwarder.receive(&datagram, length: length, path: path, at: readAt, into: batch)
        }
        eventLoop.onTimer = { [self] now in timerFired(at: now) }
        eventLoop.onTurnEnd = { [self] now in endTurn(at: now) }
        eventLoop.onTurnMeasured = { [self] length in
            turns.observe(length)
            busy = busy + length
        }
        batch.onFull = { [unowned self] _ in
            forwarder.completeBatch()
            sendBatch(at: EventLoop.now())
        }
    }

    /// Ends every client and the thread.
    func shutdown() async {
        expectsEnds = true
        let now = EventLoop.now()
        for id in clients.keys { forwarder.removePeer(id, at: now, into: batch) }
        endTurn(at: now)
        await eventLoop.stop()
    }

    // MARK: Clients

    /// Opens a socket for one client.
    /// - Parameter viewer: the number of a subscriber that has a link of its own, from 0.
    func open(wantsV6: Bool, viewer: Int?) throws(LoadError) -> Endpoint {
        let endpoint = try open(wantsV6: wantsV6)
        guard let viewer else { return endpoint }
        links[endpoint.socket] = ViewerLink(
            viewer: viewer,
            down: configuration.viewerLink ?? LinkConditions(),
            up: configuration.viewerUplink ?? LinkConditions(),
            seed: configuration.linkSeed &+ UInt64(viewer) &* 2,
            at: EventLoop.now()
        )
        return endpoint
    }

    private func open(wantsV6: Bool) throws(LoadError) -> Endpoint {
        do throws(EventLoopError) {
            if wantsV6 {
                do throws(EventLoopError) {
                    return try open(.anyV6)
                } catch .ipv6NotAvailable, .addressNotAvailable {
                    // A machine without IPv6 still reaches a server's IPv4 addresses.
                }
            }
            return try open(.anyV4)
        } catch {
            throw .failed(error.message)
        }
    }

    private func open(_ ip: IPAddress) throws(EventLoopError) -> Endpoint {
        let socket = try eventLoop.addSocket(bind: TransportAddress(ip: ip, port: 0), options: Self.socketOptions)
        return Endpoint(socket: socket, port: eventLoop.description(of: socket)?.local.port ?? 0, isV4: ip.isV4)
    }

    /// Adds a negotiated client, which starts to connect.
    func add(
        _ id: PeerID,
        endpoint: Endpoint,
        credentials: ICECredentials,
        answer: ClientAnswer,
        media: Media
    ) throws(LoadError) {
        let paths = answer.remoteCandidates.filter { $0.ip.isV4 || !endpoint.isV4 }.map {
            NetworkPath(socket: endpoint.socket, remote: $0)
        }
        guard !paths.isEmpty else {
            throw .failed("The server's answer has no UDP candidate that this machine can reach.")
        }
        var settings = MediaClient.Settings()
        settings.video = media.video
        settings.sendsAudio = media.hasAudio
        settings.sourceNumber = media.source
        settings.videoDelays = videoDelays
        settings.audioDelays = audioDelays
        var generator = SystemRandomNumberGenerator()
        do throws(ForwarderError) {
            let client = try MediaClient(
                core: forwarder,
                id: id,
                credentials: credentials,
                answer: answer,
                paths: paths,
                settings: settings,
                at: EventLoop.now(),
                using: &generator
            )
            clients[id] = client
            links[endpoint.socket]?.client = client
            if !answer.send.isEmpty { publishers.append((media.source, client)) }
        } catch {
            throw .failed(error.description)
        }
    }

    /// Waits until a client is connected.
    /// - Throws: why it did not connect; ICE and DTLS time out after 30 s.
    func waitForConnection(of id: PeerID) async throws(LoadError) {
        guard let client = clients[id] else { throw .failed("The run was interrupted.") }
        if let reason = client.closeReason { throw .failed(Self.message(for: reason)) }
        if !client.isConnected {
            let refusal = await withCheckedContinuation { waiting[id] = $0 }
            if let refusal { throw .failed(Self.message(for: refusal)) }
        }
        scheduleMedia()
    }

    /// Changes the received tracks of a client.
    func change(_ id: PeerID, add: [ReceiveTrackParameters], remove: [MID]) throws(LoadError) {
        guard let client = clients[id], client.closeReason == nil else { return }
        do throws(ForwarderError) {
            try client.change(add: add, remove: remove, at: EventLoop.now())
        } catch {
            throw .failed(error.description)
        }
    }

    /// ``waitForConnection(of:)`` for callers with a cancellation handler, which takes no typed errors.
    func connectionResult(of id: PeerID) async -> Result<Void, LoadError> {
        do throws(LoadError) {
            return .success(try await waitForConnection(of: id))
        } catch {
            return .failure(error)
        }
    }

    /// Ends a client.
    func abandon(_ id: PeerID) { forwarder.removePeer(id, at: EventLoop.now(), into: batch) }

    private static func message(for reason: PeerCloseReason) -> String {
        switch reason {
        case .setupTimedOut: "No connection within 30 s: the server's UDP candidates do not answer."
        case .consentExpired: "The server stopped answering connectivity checks."
        case .closedByPeer: "The server closed the connection while it was made."
        case .handshakeFailed: "The DTLS handshake failed."
        case .fingerprintMismatch: "The server's certificate is not the one that its answer announced."
        case .requested: "The run was interrupted."
        }
    }

    // MARK: Measuring

    /// Restarts the counts of losses and gaps.
    func beginWindow() {
        for client in clients.values { client.beginWindow() }
    }

    /// Stops the publishers, so that packets on their way can arrive.
    func stopSending() {
        isSending = false
        nextMediaAt = nil
        for publisher in publishers { publisher.client.setSending(false) }
    }

    /// Whether a client received a packet; `nil` when it has ended.
    func receives(_ id: PeerID) -> Bool? {
        guard let client = clients[id], client.closeReason == nil else { return nil }
        return client.receivers.contains { !$0.isSilent }
    }

    /// How many clients the server or the network ended after they were connected, by reason.
    var ended: [PeerCloseReason: Int] { ends.values.reduce(into: [:]) { $0[$1, default: 0] += 1 } }

    /// The client's signaling ended, which is counted: the end of its media, before or after, is not counted besides.
    func expectEnd(of id: PeerID) {
        expectedEnds.insert(id)
        ends.removeValue(forKey: id)
    }

    /// Ends of clients are not counted from now on.
    func expectEnds() { expectsEnds = true }

    /// What each source on this loop has sent so far.
    var made: [UInt32: MadeMedia] {
        var made: [UInt32: MadeMedia] = [:]
        for (source, client) in publishers {
            made[source] = MadeMedia(
                videoPackets: client.sendsLayers ? nil : client.videoPacketsMade,
                audioPackets: client.audioPacketsMade
            )
        }
        return made
    }

    /// Negotiated tracks.
    var tracks: Int { clients.values.reduce(0) { $0 + $1.receivers.count { !$0.hasEnded } } }

    /// Negotiated tracks without a packet so far.
    var silentTracks: Int { clients.values.reduce(0) { $0 + $1.receivers.count { !$0.hasEnded && $0.isSilent } } }

    /// - Parameter made: what the sources have sent in all. With it, packets after the newest that a subscriber
    ///   received count as lost, where all of them were to be sent.
    func tally(made: [UInt32: MadeMedia]? = nil) -> LoadTally {
        var tally = LoadTally()
        tally.takenAt = EventLoop.now()
        for client in clients.values {
            for receiver in client.receivers {
                // Nothing is missed after the end of a session.
                let isOver = client.closeReason != nil
                let source = isOver ? nil : receiver.verifier.sourceNumber.flatMap { made?[$0] }
                switch receiver.kind {
                case .video: tally.video.add(receiver.verifier, madeBySource: source?.videoPackets)
                case .audio: tally.audio.add(receiver.verifier, madeBySource: source?.audioPackets)
                }
            }
        }
        for (_, client) in publishers {
            tally.video.packetsMade += client.videoPacketsMade
            tally.video.framesMade += client.videoFramesMade
            tally.audio.packetsMade += client.audioPacketsMade
        }
        tally.video.delays = videoDelays.histogram
        tally.audio.delays = audioDelays.histogram
        tally.sockets = eventLoop.statistics
        let counters = forwarder.counters
        tally.nackedPackets = Int(counters.nackedPacketsRequested)
        tally.copiesDropped = Int(clamping: counters[.srtpReplay] &+ counters[.duplicate] &+ counters[.tooOld])
        tally.keyFrameRequests = Int(counters.keyFrameRequestsReceived)
        tally.turns = turns
        tally.lateness = lateness
        tally.busy = busy
        tally.batchDrops = batch.overflowed
        for link in links.values {
            var viewer = ViewerTally()
            viewer.link = link.statistics
            for receiver in link.client?.receivers ?? [] {
                viewer.bytes += receiver.verifier.bytes
                guard receiver.kind == .video else { continue }
                viewer.framesDecoded += receiver.verifier.framesDecoded
                viewer.freezes += receiver.verifier.freezes
                viewer.freezeTime = viewer.freezeTime + receiver.verifier.freezeTime
                viewer.switches += receiver.verifier.switches
            }
            tally.viewers[link.viewer] = viewer
        }
        return tally
    }

    // MARK: The turn

    private func timerFired(at now: Instant) {
        deliverLinks(at: now)
        if let due = nextMediaAt, due <= now {
            for (_, client) in publishers {
                guard let deadline = client.nextDeadline, deadline <= now else { continue }
                lateness.observe(now - deadline)
                client.handleTimeout(at: now, into: batch)
            }
            scheduleMedia()
        }
        if let deadline = forwarder.nextDeadline, deadline <= now { forwarder.handleTimeout(at: now, into: batch) }
    }

    /// Finds when the next frame or audio packet is due.
    private func scheduleMedia() {
        nextMediaAt = nil
        guard isSending else { return }
        for (_, client) in publishers { nextMediaAt = earliest(nextMediaAt, client.nextDeadline) }
    }

    private func endTurn(at now: Instant) {
        deliverLinks(at: now)
        forwarder.endTurn(at: now, into: batch)
        sendBatch(at: now)
        for (id, event) in forwarder.takeEvents() { handle(event, of: id, at: now) }
        // The timer would let a millisecond pass.
        if forwarder.hasWaitingHandshakes { eventLoop.signal() }
        var deadline = earliest(forwarder.nextDeadline, nextMediaAt)
        for link in links.values { deadline = earliest(deadline, link.nextDeadline) }
        eventLoop.setTimer(at: deadline)
    }

    /// Gives the core what has come through the subscribers' links.
    private func deliverLinks(at now: Instant) {
        for link in links.values {
            link.deliver(at: now) { bytes, path in
                let length = bytes.count
                var span = bytes.mutableSpan
                var raw = unsafe span.mutableBytes
                forwarder.receive(&raw, length: length, path: path, at: now, into: batch)
            }
        }
    }

    /// Sends the batch, the datagrams of subscribers with a link through it.
    private func sendBatch(at now: Instant) {
        guard !links.isEmpty else {
            eventLoop.send(batch)
            return
        }
        for index in 0..<batch.count {
            batch.withDatagram(index) { bytes, path in
                if let socket = path.local.socket, let link = links[socket] {
                    link.send(bytes, to: path, at: now)
                } else {
                    append(bytes, to: path)
                }
            }
        }
        batch.removeAll()
        for link in links.values {
            link.depart(at: now) { [self] bytes, path in unsafe append(bytes.span.bytes, to: path) }
        }
        eventLoop.send(unshaped)
    }

    private func append(_ bytes: RawSpan, to path: NetworkPath) {
        if unshaped.count == unshaped.capacity { eventLoop.send(unshaped) }
        unshaped.append(to: path, copying: bytes)
    }

    private func handle(_ event: PeerEvent, of id: PeerID, at now: Instant) {
        let client = clients[id]
        client?.handle(event, at: now)
        switch event {
        case .connected: waiting.removeValue(forKey: id)?.resume(returning: nil)
        case .closed(let reason):
            if let continuation = waiting.removeValue(forKey: id) {
                continuation.resume(returning: reason)
            } else if !expectsEnds, !expectedEnds.contains(id) {
                ends[id] = reason
            }
        // The other events are the server's. A closed client is kept for its counts.
        default: break
        }
    }
}
