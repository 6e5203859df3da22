public import DTLS
import ICE
public import MediaTypes
public import SRTP
public import Wire

/// What a forwarding core needs from outside: identity, entropy and the date.
public struct ForwarderConfiguration {
    /// Shown to every peer; its fingerprint stands in the SDP.
    public var certificate: DTLSCertificate
    /// Random 64-bit numbers: SSRC-like identifiers and first sequence numbers.
    public var random: () -> UInt64
    /// Nanoseconds since 1970 at `Instant(nanoseconds: 0)`: the wall clock of sender reports.
    public var unixNanosecondsAtZero: Int64
    /// Peers on one core; more are refused.
    public var peersMax: Int
    /// The SRTP profiles that are offered and accepted, best first.
    public var srtpProfiles = DTLSConnection.profiles
    /// What encrypts and decrypts; must be an available one.
    public var srtpBackend = SRTPBackend.preferred
    /// Bytes that the history of one received video stream may grow to. 0 keeps no packets, for a core that only
    /// receives: nothing is sent on or repeated then.
    public var historyBytesMax = 2 * 1024 * 1024

    /// The same entropy in the form that the standard library asks for.
    struct Generator: RandomNumberGenerator {
        let random: () -> UInt64
        mutating func next() -> UInt64 { random() }
    }
    var generator: Generator { Generator(random: random) }

    public init(
        certificate: DTLSCertificate,
        unixNanosecondsAtZero: Int64,
        peersMax: Int = 10_000,
        random: @escaping () -> UInt64
    ) {
        self.certificate = certificate
        self.unixNanosecondsAtZero = unixNanosecondsAtZero
        self.peersMax = peersMax
        self.random = random
    }
}

/// What the owner of a forwarding core asked wrongly.
public enum ForwarderError: Error, Hashable, Sendable, CustomStringConvertible {
    case unknownPeer(PeerID)
    case unknownTrack(TrackID)
    case kindMismatch(slot: TrackID, track: TrackID)
    case duplicatePeer(PeerID)
    case duplicateSlot(TrackID)
    case ssrcUsed(SSRC)
    case tooManySlots(limit: Int)
    case unknownLocation(MediaLocation)
    case unknownLink(LinkID)
    case tooManyPeers(limit: Int)
    case tooManyMirrors(limit: Int)
    case transportSetupFailed

    public var description: String {
        switch self {
        case .unknownPeer(let id): "There is no \(id) here; it has left."
        case .unknownTrack(let id): "There is no track \(id) here; its peer has left."
        case .kindMismatch(let slot, let track): "\(slot) and \(track) are not of the same kind of media."
        case .duplicatePeer(let id): "\(id) is here already."
        case .duplicateSlot(let id): "The slot \(id) is here already; a new one needs a MID of its own."
        case .ssrcUsed(let ssrc): "SSRC \(ssrc) was used toward this peer before; a slot needs its own."
        case .tooManySlots(let limit):
            "The peer's slots had \(limit) SSRCs out of order, which is the limit; it must join anew."
        case .unknownLocation(let location): "There is no media loop \(location) here."
        case .unknownLink(let link): "There is no link \(link.rawValue) from this loop."
        case .tooManyPeers(let limit): "This loop carries \(limit) peers, which is its limit."
        case .tooManyMirrors(let limit): "This loop plays \(limit) tracks of other loops, which is its limit."
        case .transportSetupFailed: "The DTLS transport could not be set up; the machine may be out of memory."
        }
    }
}

/// The forwarding core of one loop: every peer on it, and the one place where datagrams come in.
///
/// Sans-IO: bytes and an instant go in, datagrams come out into the batch that the caller passes, and events wait in
/// `takeEvents`. After every turn in which anything was called, `endTurn` does what was put off.
@safe
public final class Forwarder {
    let configuration: ForwarderConfiguration
    private var peers: [PeerID: Peer] = [:]
    private var peersByFragment: [String: Peer] = [:]
    private var peersByPath: PathTable
    private var streams: [StreamID: ReceivedStream] = [:]
    private var deadlines = DeadlineQueue()
    /// When the packets that wait to leave are looked at, for each peer that has any.
    var sendSchedule = DeadlineQueue()
    private var dirty: ContiguousArray<Unretained<Peer>?> = []
    /// Those who are being served.
    private var serving: ContiguousArray<Unretained<Peer>?> = []
    /// Peers that ended in this turn: whoever works on one may finish with it.
    private var gone: [Peer] = []
    private var events: [(PeerID, PeerEvent)] = []
    private var nextStream: UInt64 = 0
    /// Feedback is written here and copied into the batch; one for all, so that it is allocated once.
    var writer = RTCPWriter()

    /// Encrypts and decrypts for every peer of the core.
    let engine: SRTPEngine
    let slotStates = StateSlab<SlotState>()
    private let sendStates = StateSlab<EgressState>()
    /// Tracks with packets of this turn that wait to be sent on; peers and mirrors keep them alive.
    var pending: ContiguousArray<Unretained<ReceivedTrack>> = []

    let relays = RelayTable()

    public internal(set) var counters = ForwarderCounters()
    var overload = OverloadState()

    /// Validated address pairs that one peer may be reached by at a time.
    static let pathsPerPeerMax = 8
    /// Between two times that a peer is served by its own deadline.
    static let serviceSpacing = Interval.milliseconds(1)

    public init(_ configuration: ForwarderConfiguration) {
        self.configuration = configuration
        peersByPath = PathTable(seed: configuration.random())
        guard let engine = try? SRTPEngine(configuration.srtpBackend) else {
            preconditionFailure("the backend \(configuration.srtpBackend.rawValue) is available")
        }
        self.engine = engine
    }

    var historyBytesMax: Int { configuration.historyBytesMax }

    // MARK: - Peers

    public var peerCount: Int { peers.count }

    /// Adds a peer in the server's role (ICE lite).
    public func addPeer(_ parameters: PeerParameters, at now: Instant) throws(ForwarderError) {
        try addPeer(
            parameters,
            agent: .lite(
                ICELiteAgent(
                    local: parameters.localCredentials,
                    remote: parameters.remote.credentials,
                    at: now,
                    tieBreaker: configuration.random(),
                    pathSecret: configuration.random()
                )
            ),
            at: now
        )
    }

    /// Adds a peer in the client's role, which checks the server's candidates and nominates.
    /// - Parameter candidates: the pairs to check; each must be used by no other peer of this core.
    package func addClientPeer(
        _ parameters: PeerParameters,
        candidates: [NetworkPath],
        at now: Instant
    ) throws(ForwarderError) {
        var generator = configuration.generator
        let agent = ICEControllingAgent(
            local: parameters.localCredentials,
            remote: parameters.remote.credentials,
            candidates: candidates,
            at: now,
            tieBreaker: configuration.random(),
            using: &generator
        )
        try addPeer(parameters, agent: .controlling(agent), at: now)
        for path in candidates { controllingPeers[path] = peers[parameters.id] }
    }

    private func addPeer(
        _ parameters: PeerParameters,
        agent: ICEAgent,
        at now: Instant
    ) throws(ForwarderError) {
        guard peers[parameters.id] == nil else { throw .duplicatePeer(parameters.id) }
        guard peers.count < configuration.peersMax else { throw .tooManyPeers(limit: configuration.peersMax) }
        let transport: PeerTransport
        do {
            transport = try PeerTransport(
                agent: agent,
                certificate: configuration.certificate,
                profiles: configuration.srtpProfiles,
                remote: parameters.remote,
                engine: engine,
                egress: Egress(
                    slab: sendStates,
                    firstTransportSequence: UInt16(truncatingIfNeeded: configuration.random())
                ),
                retransmitsWithoutRTX: parameters.send.contains { $0.kind == .video && $0.rtxSSRC == nil },
                at: now
            )
        } catch {
            throw .transportSetupFailed
        }
        let peer = Peer(parameters, transport: transport, core: self, at: now, random: configuration.random)
        peers[parameters.id] = peer
        peersByFragment[parameters.localCredentials.usernameFragment] = peer
        counters.peersAdded &+= 1
        markDirty(parameters.id)
    }

    /// Ends a peer: close_notify goes out, everything of it is freed, and `closed(.requested)` follows.
    public func removePeer(_ id: PeerID, at now: Instant, into batch: DatagramBatch) {
        guard let peer = peers[id] else { return }
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
        guard let peer = peers[id] else { throw .unknownPeer(id) }
        peer.transport.restartICE(local: local, remote: remote, at: now)
        peer.usernameFragments.append(local.usernameFragment)
        peersByFragment[local.usernameFragment] = peer
        if peer.usernameFragments.count > 2 { peersByFragment[peer.usernameFragments.removeFirst()] = nil }
        markDirty(id)
    }

    package func peer(_ id: PeerID) -> Peer? { peers[id] }

    /// Whose media a packet is that goes to a path, as ``PeerParameters/share`` says, and whether it is audio.
    /// - Parameter packet: an SRTP packet of ours.
    public func share(of packet: RawSpan, to path: NetworkPath) -> (share: UInt64, isAudio: Bool) {
        guard let peer = validatedPeer(path), packet.byteCount >= 12 else { return (0, false) }
        let slot = peer.slotTable.slot(SSRC(rawValue: packet.bigEndianUInt32(at: 8)))
        return (peer.share, slot?.parameters.kind == .audio)
    }

    // MARK: - Datagrams

    /// Takes one datagram, decrypting in place.
    ///
    /// What it is follows from its first byte (RFC 7983 §7). Nothing but authenticated STUN makes an address known.
    /// - Parameters:
    ///   - datagram: the datagram at the start of a buffer.
    ///   - length: its bytes.
    public func receive(
        _ datagram: inout MutableRawSpan,
        length: Int,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        counters.datagramsReceived &+= 1
        counters.bytesReceived &+= UInt64(length)
        guard length >= 1, length <= datagram.byteCount else {
            counters.drop(.unknownProtocol)
            return
        }
        switch datagram.bytes.byte(at: 0) {
        case 0...3: receivedSTUN(datagram.bytes.extracting(0..<length), path: path, at: now, into: batch)
        case 20...63: receivedDTLS(datagram.bytes.extracting(0..<length), path: path, at: now, into: batch)
        case 128...191: receivedMedia(&datagram, length: length, path: path, at: now, into: batch)
        default: counters.drop(.unknownProtocol)
        }
    }

    private func receivedSTUN(_ datagram: RawSpan, path: NetworkPath, at now: Instant, into batch: DatagramBatch) {
        let message: STUNMessageView
        do {
            message = try STUNMessageView(datagram)
        } catch {
            counters.drop(.malformedSTUN)
            return
        }
        guard let peer = findPeer(message, path: path) else {
            counters.drop(.unknownUsername)
            return
        }
        do {
            let wasSelected = peer.transport.selectedPath != nil
            let change = try peer.transport.receivedSTUN(message, path: path, at: now, into: batch)
            if !wasSelected, peer.transport.selectedPath != nil { counters.iceConnected &+= 1 }
            let proofs = peer.transport.takePathProofs()
            counters.unprovedNominations &+= UInt64(proofs.nominations)
            counters.pathChecksSent &+= UInt64(proofs.checks)
            counters.pathChecksAnswered &+= UInt64(proofs.answers)
            // An indication is not authenticated and proves nothing.
            if message.messageClass != .indication { notePaths(of: peer, path, at: now) }
            handle(change, of: peer, at: now, into: batch)
        } catch {
            counters.drop(DropReason(error))
        }
    }

    /// A request names our user name fragment; a response is to a check of ours and comes from where that went. Some
    /// agents, libnice among them, repeat the request's USERNAME in it, which names their fragment first.
    private func findPeer(_ message: borrowing STUNMessageView, path: NetworkPath) -> Peer? {
        switch message.messageClass {
        case .success, .error: return responsePeer(path)
        case .request, .indication:
            if let fragment = message.localUsernameFragment() { return peersByFragment[fragment] }
            return message.messageClass == .request ? nil : responsePeer(path)
        }
    }

    private func responsePeer(_ path: NetworkPath) -> Peer? { validatedPeer(path) ?? controllingPeers[path] }

    private func validatedPeer(_ path: NetworkPath) -> Peer? {
        peersByPath[path].map { $0.object }
    }

    /// In the client role: the peer that checks each of the server's candidates.
    private var controllingPeers: [NetworkPath: Peer] = [:]

    /// Silence after which another peer may take over an address pair: longer than clients let pass between two
    /// checks, so that a forged source address takes nobody's media away.
    private static let takeoverSilence = Interval.seconds(10)

    private func notePaths(of peer: Peer, _ path: NetworkPath, at now: Instant) {
        guard peer.transport.isValidated(path) else { return }
        if let owner = validatedPeer(path) {
            if owner === peer {
                peer.noteCheck(on: path, at: now)
                return
            }
            guard now - owner.lastCheck(on: path) >= Self.takeoverSilence else { return }
            owner.paths.removeAll { $0.path == path }
        }
        peersByPath.set(path, to: peer)
        peer.paths.append((path, now))
        if peer.paths.count > Self.pathsPerPeerMax {
            // The nominated pair stays, however old.
            let index = peer.paths.firstIndex { $0.path != peer.transport.selectedPath } ?? 0
            peersByPath.remove(peer.paths.remove(at: index).path)
        }
    }

    private func receivedDTLS(_ datagram: RawSpan, path: NetworkPath, at now: Instant, into batch: DatagramBatch) {
        guard let peer = validatedPeer(path) else {
            counters.drop(.unvalidatedAddress)
            return
        }
        let wasSelected = peer.transport.selectedPath != nil
        let change = peer.transport.receivedDTLS(datagram, path: path, at: now, into: batch)
        if !wasSelected, peer.transport.selectedPath != nil { counters.iceConnected &+= 1 }
        counters.handshakeDatagramsHeld &+= UInt64(peer.transport.takeHeldDatagrams())
        for _ in 0..<min(peer.transport.takeMalformedRecords(), 16) { counters.drop(.malformedDTLS) }
        handle(change, of: peer, at: now, into: batch)
    }

    private func receivedMedia(
        _ datagram: inout MutableRawSpan,
        length: Int,
        path: NetworkPath,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        guard let peer = peersByPath[path] else {
            counters.drop(.unvalidatedAddress)
            return
        }
        // The table's peer lives: nothing that its media does removes it.
        let refusal = peer.with { peer in
            receivedMedia(&datagram, length: length, of: peer, at: now, into: batch)
        }
        if let refusal { counters.drop(refusal) }
    }

    @inline(__always)
    private func receivedMedia(
        _ datagram: inout MutableRawSpan,
        length: Int,
        of peer: Peer,
        at now: Instant,
        into batch: DatagramBatch
    ) -> DropReason? {
        guard peer.isConnected else { return .notSecured }
        do {
            if RTPPacketView.isRTCP(datagram.bytes.extracting(0..<length)) {
                try peer.receivedRTCP(&datagram, length: length, at: now, into: batch)
            } else {
                try peer.receivedRTP(&datagram, length: length, core: self, at: now, into: batch)
            }
            return nil
        } catch {
            switch error {
            case .drop(let reason): return reason
            }
        }
    }

    private func handle(
        _ change: PeerTransport.Change?,
        of peer: Peer,
        at now: Instant,
        into batch: DatagramBatch
    ) {
        switch change {
        case .connected:
            counters.dtlsConnected &+= 1
            peer.becameConnected(at: now)
            emit(.connected, of: peer.id)
            markDirty(peer.id)
        case .closed(let reason):
            fanOutAll(at: now, into: batch)
            tearDown(peer, reason, at: now)
        case .pathChanged:
            counters.pathChanges &+= 1
            markDirty(peer.id)
        case nil: if !peer.transport.isConnected { markDirty(peer.id) }
        }
    }

    private func tearDown(_ peer: Peer, _ reason: PeerCloseReason, at now: Instant) {
        guard let leaving = peers.removeValue(forKey: peer.id) else { return }
        gone.append(leaving)
        for slot in peer.slots {
            // A source made on this side has no peer that would take it along.
            if let source = slot.source, source.id.peer == peer.id { source.streams.forEach(unregister) }
        }
        peer.detach(at: now)
        for track in peer.tracks { dropPending(track) }
        for (path, _) in peer.paths where peersByPath.isOf(peer, path) { peersByPath.remove(path) }
        controllingPeers = controllingPeers.filter { $0.value !== peer }
        for fragment in peer.usernameFragments where peersByFragment[fragment] === peer {
            peersByFragment[fragment] = nil
        }
        for stream in peer.streams { streams[stream.id] = nil }
        deadlines.set(peer.id, to: nil)
        sendSchedule.set(peer.id, to: nil)
        forgetDirty(peer)
        counters.close(reason)
        emit(.closed(reason), of: peer.id)
    }

    // MARK: - Time

    /// When `handleTimeout` is due.
    public var nextDeadline: Instant? {
        dirty.isEmpty ? earliest(deadlines.next, sendSchedule.next) : Instant(nanoseconds: .min)
    }

    /// Does everything that is due.
    public func handleTimeout(at now: Instant, into batch: DatagramBatch) {
        fanOutAll(at: now, into: batch)
        while let id = sendSchedule.popDue(at: now) { peers[id]?.sendWaiting(at: now, into: batch) }
        while let id = deadlines.popDue(at: now) {
            guard let peer = peers[id] else { continue }
            service(peer, at: now, into: batch)
        }
        endTurn(at: now, into: batch)
    }

    /// Does what the turn's datagrams and calls put off: sends on what was received, and what else it brought forth. To
    /// be called once after them; the batch may be read after it.
    public func endTurn(at now: Instant, into batch: DatagramBatch) {
        fanOutAll(at: now, into: batch)
        defer { completeBatch() }
        // Serving one peer may make another one dirty, which in turn asks for nothing further.
        var rounds = 0
        while !dirty.isEmpty, rounds < 3 {
            // Serving adds to `dirty`; the two take turns, so that neither's memory is made anew.
            swap(&dirty, &serving)
            var index = 0
            while index < serving.count {
                serving[index]?.with { peer in
                    peer.dirtyPlace = nil
                    service(peer, at: now, into: batch)
                }
                index += 1
            }
            serving.removeAll(keepingCapacity: true)
            rounds += 1
        }
        if !gone.isEmpty { gone.removeAll() }
    }

    /// Completes the datagrams that stand in the batch: a backend that encrypts many at a time may have put some off.
    /// To be called before a batch is read at another time than after a turn's end.
    public func completeBatch() { engine.flush() }

    /// Forgets what waits of a track that goes.
    func dropPending(_ track: ReceivedTrack) {
        pending.removeAll { $0.refers(to: track) }
        track.clearBacklog()
    }

    private func service(_ peer: Peer, at now: Instant, into batch: DatagramBatch) {
        if let due = peer.transport.nextDeadline, due <= now {
            let change = peer.transport.handleTimeout(at: now, into: batch)
            counters.handshakeDatagramsHeld &+= UInt64(peer.transport.takeHeldDatagrams())
            handle(change, of: peer, at: now, into: batch)
            guard peers[peer.id] != nil else { return }
        }
        peer.handleTimeout(at: now, into: batch)
        // What is still due could not be done now; waiting a moment keeps one peer from holding the loop.
        let deadline = peer.nextDeadline.map { max($0, now + Self.serviceSpacing) }
        peer.wakesAt = deadline
        deadlines.set(peer.id, to: deadline)
    }

    /// The peer has work at the end of this turn, if it is here.
    func markDirty(_ id: PeerID) {
        if let peer = peers[id] { markDirty(peer) }
    }

    private func markDirty(_ peer: Peer) {
        guard peer.dirtyPlace == nil else { return }
        peer.dirtyPlace = dirty.count
        dirty.append(Unretained(peer))
    }

    /// Takes a peer that goes off the lists, which do not keep it alive.
    private func forgetDirty(_ peer: Peer) {
        guard let place = peer.dirtyPlace else { return }
        peer.dirtyPlace = nil
        if place < serving.count, serving[place]?.refers(to: peer) == true { serving[place] = nil }
        if place < dirty.count, dirty[place]?.refers(to: peer) == true { dirty[place] = nil }
    }

    /// The peer's work is due no later than `instant`.
    func wake(_ peer: Peer, at instant: Instant) {
        if let current = peer.wakesAt, current <= instant { return }
        markDirty(peer)
    }

    // MARK: - What peers share

    func emit(_ event: PeerEvent, of peer: PeerID) { events.append((peer, event)) }

    /// What happened since the last call.
    public func takeEvents() -> [(PeerID, PeerEvent)] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    package func ntp(at now: Instant) -> NTPTimestamp {
        NTPTimestamp(unixNanoseconds: configuration.unixNanosecondsAtZero &+ now.nanoseconds)
    }

    func makeStreamID() -> StreamID {
        nextStream += 1
        return StreamID(rawValue: nextStream)
    }

    func register(_ stream: ReceivedStream) { streams[stream.id] = stream }
    func unregister(_ stream: ReceivedStream) { streams[stream.id] = nil }
    func stream(_ id: StreamID) -> ReceivedStream? { streams[id] }
    /// Of all peers and mirrors, in no order.
    var receivedStreams: Dictionary<StreamID, ReceivedStream>.Values { streams.values }

    /// What the core carries now.
    public var gauges: ForwarderGauges {
        var gauges = ForwarderGauges()
        for peer in peers.values {
            gauges.peers += 1
            gauges.connectedPeers += peer.transport.isConnected ? 1 : 0
            gauges.receivedTracks += peer.tracks.count { $0.announcedCodec != nil }
            gauges.slots += peer.slots.count
            gauges.connectedSlots += peer.slots.count { $0.source != nil }
            gauges.historyBytes += peer.streams.reduce(0) { $0 + $1.history.footprintBytes }
            gauges.stateBytes += peer.transport.egress.footprintBytes
        }
        for mirror in relays.mirrors.values {
            gauges.mirroredTracks += 1
            gauges.historyBytes += mirror.track.streams.reduce(0) { $0 + $1.history.footprintBytes }
        }
        gauges.isOverloaded = overload.controller.isOverloaded
        gauges.heldLayers = overload.controller.held.count
        gauges.stateBytes += slotStates.footprintBytes + sendStates.footprintBytes
        return gauges
    }
}

extension Forwarder {
    /// Whether no table holds anything of any peer: what a leak would show in.
    package var isEmpty: Bool {
        peers.isEmpty && peersByFragment.isEmpty && peersByPath.isEmpty && streams.isEmpty
            && controllingPeers.isEmpty && deadlines.count == 0 && sendSchedule.count == 0 && dirty.isEmpty
            && pending.isEmpty && relays.isEmpty
    }
}
