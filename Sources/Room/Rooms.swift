public import Forwarding
public import Wire

/// The rooms of one node: ``RoomModel`` with the media planes, the sessions and the listeners around it.
///
/// It runs on the default executor and not on a media loop: membership changes cost microseconds where they happen, but
/// snapshots and bursts of joins are not to share a thread with packets.
public actor Rooms {
    /// What a newcomer's media has to be negotiated with.
    public struct Reservation: Sendable {
        public let participant: ParticipantID
        public let session: SessionID
        public let peer: PeerID
        public let local: LocalTransport
        let home: Int
    }

    /// What is kept for a session beside its membership.
    public struct Session: Sendable {
        public let participant: ParticipantID
        public let peer: PeerID
        public let channel: ChannelName
        public let role: Role
        /// The media sections of the session in the order of its description.
        public let mids: [MID]
        /// What the first of them carries.
        public let headKind: MediaKind
        public internal(set) var local: LocalTransport
        public internal(set) var remoteCredentials: ICECredentials
        /// Changes with every ICE restart.
        public internal(set) var iceVersion: ICEVersion
        var isRestarting = false
        let home: Int
    }

    /// Something an operator may want to read, without secrets.
    public enum Notice: Sendable {
        case joined(ParticipantID, PeerID, ChannelName, Role)
        case connected(PeerID)
        case ended(ParticipantID, EndReason)
        /// A slot's source sends what the viewer did not negotiate.
        case formatUnsupported(PeerID, slot: MID, CodecName)
        /// The media plane refused a subscription, which happens when one of its ends is just leaving.
        case connectionFailed(slot: TrackID, String)
    }

    enum Work {
        case connect(TrackID)
        case remove(PeerID)
    }

    var model: RoomModel
    let planes: [any MediaPlane]
    private let inbox = PeerEventInbox()
    private let notice: @Sendable (Notice) -> Void
    private var generator = SystemRandomNumberGenerator()
    private var peerNext: UInt64 = 1
    private var listenerNext: UInt64 = 1

    private var sessions: [SessionID: Session] = [:]
    private var sessionOf: [ParticipantID: SessionID] = [:]
    private var requests: [ParticipantID: JoinRequest] = [:]
    var listeners: [ListenerID: (channel: ChannelName, changes: AsyncStream<Void>.Continuation)] = [:]
    var listenersOf: [ChannelName: Set<ListenerID>] = [:]

    /// What each home's media plane is still to do. A slot is in it once, and played by the source that it has then.
    private var work: [[Work]]
    private var wanted: [[TrackID: PlacedTrack?]]
    private var workers: [Task<Void, Never>?]
    /// Connections to sources of other homes that are under way, by slot. Each is on its own, so that a home which does
    /// not answer holds up nothing but the slots that want its tracks.
    private var crossings: [TrackID: Task<Void, Never>] = [:]
    /// The question for its load that each home has not answered yet.
    private var samplers: [Task<Void, Never>?]

    /// - Parameters:
    ///   - planes: one per media loop, at least one.
    ///   - notice: called on the rooms' executor; it must not block.
    public init(
        planes: [any MediaPlane],
        limits: RoomLimits = RoomLimits(),
        notice: @escaping @Sendable (Notice) -> Void = { _ in }
    ) {
        model = RoomModel(limits: limits, homeCount: planes.count)
        self.planes = planes
        self.notice = notice
        work = Array(repeating: [], count: planes.count)
        wanted = Array(repeating: [:], count: planes.count)
        workers = Array(repeating: nil, count: planes.count)
        samplers = Array(repeating: nil, count: planes.count)
    }

    /// Where the media planes report their peers' events. It may be called on any thread, and returns at once.
    public nonisolated var eventHandler: @Sendable (PeerID, PeerEvent) -> Void {
        let inbox = inbox
        return { peer, event in inbox.post(event, from: peer) }
    }

    /// Carries events to the rooms until the calling task is cancelled or ``shutdown()`` was called.
    public func run() async {
        for await _ in inbox.arrivals { takeEvents() }
        takeEvents()
    }

    /// Handles the events that arrived so far; ``run()`` does it by itself.
    public func takeEvents() {
        for (peer, event) in inbox.take() {
            switch event {
            case .connected: notice(.connected(peer))
            case .formatUnsupported(let slot, let codec): notice(.formatUnsupported(peer, slot: slot, codec))
            default: break
            }
            carryOut(model.received(event, from: peer))
        }
    }

    // MARK: - Joining

    /// Takes a place for a newcomer. It is followed by ``activate(_:remote:receive:send:headKind:mids:)`` or
    /// ``cancel(_:)``.
    public func reserve(_ request: JoinRequest) async throws(RoomError) -> Reservation {
        let participant = ParticipantID(using: &generator)
        let session = SessionID(using: &generator)
        let peer = PeerID(rawValue: peerNext)
        peerNext += 1
        let home = try model.joinRequested(request, id: participant, peer: peer)
        requests[participant] = request
        let transport = await planes[home].transport()
        let local = LocalTransport(
            credentials: ICECredentials(using: &generator),
            fingerprint: transport.fingerprint,
            candidates: transport.candidates
        )
        return Reservation(participant: participant, session: session, peer: peer, local: local, home: home)
    }

    /// Gives a place back whose media could not be negotiated.
    public func cancel(_ reservation: Reservation) {
        carryOut(model.left(reservation.participant, reason: .setupFailed))
    }

    /// Makes a newcomer with negotiated media a participant and opens its session.
    ///
    /// - Parameters:
    ///   - headKind: what the first media section carries.
    ///   - mids: the description's media sections in their order.
    /// - Throws: ``RoomError/endedDuringSetup`` when it was ended meanwhile, ``RoomError/media(_:)`` when the media
    ///   plane refuses. The place is given back in both cases.
    public func activate(
        _ reservation: Reservation,
        remote: RemoteTransport,
        receive: [ReceiveTrackParameters] = [],
        send: [SendTrackParameters] = [],
        headKind: MediaKind,
        mids: [MID]
    ) async throws(RoomError) -> Session {
        let id = reservation.participant
        do {
            try await planes[reservation.home].addPeer(
                PeerParameters(
                    id: reservation.peer,
                    localCredentials: reservation.local.credentials,
                    remote: remote,
                    receive: receive,
                    send: send
                )
            )
        } catch {
            carryOut(model.left(id, reason: .setupFailed))
            throw .media("\(error)")
        }
        guard let request = requests[id] else {
            enqueue(.remove(reservation.peer), at: reservation.home)
            throw .endedDuringSetup
        }
        let session = Session(
            participant: id,
            peer: reservation.peer,
            channel: request.channel,
            role: request.role,
            mids: mids,
            headKind: headKind,
            local: reservation.local,
            remoteCredentials: remote.credentials,
            iceVersion: ICEVersion(using: &generator),
            home: reservation.home
        )
        sessions[reservation.session] = session
        sessionOf[id] = reservation.session
        let publications = receive.map { Publication(mid: $0.mid, kind: $0.kind, isSimulcast: $0.rids.count > 1) }
        let decisions = try model.setupCompleted(
            id,
            publications: publications,
            slots: send.map { Slot(mid: $0.mid, kind: $0.kind) }
        )
        notice(.joined(id, reservation.peer, request.channel, request.role))
        carryOut(decisions)
        return session
    }

    // MARK: - Sessions

    /// What is known of a session; `nil` once it ended.
    public func session(_ id: SessionID) -> Session? { sessions[id] }

    /// Ends a session for its owner and frees all of it. Returns whether there was one.
    public func end(_ id: SessionID) -> Bool {
        guard let session = sessions[id] else { return false }
        carryOut(model.left(session.participant, reason: .left))
        return true
    }

    /// Puts new ICE credentials in force, the remote ones given and local ones made here.
    ///
    /// When it fails, the session goes on with what it had.
    /// - Parameter expected: refuse unless this is the current version; `nil` takes any.
    public func restartICE(
        _ id: SessionID,
        expected: ICEVersion?,
        remote: ICECredentials
    ) async throws(RoomError) -> Session {
        guard let session = sessions[id] else { throw .sessionUnknown }
        guard expected == nil || expected == session.iceVersion else { throw .versionMismatch }
        guard !session.isRestarting else { throw .restartUnderWay }
        sessions[id]?.isRestarting = true
        let local = ICECredentials(using: &generator)
        do {
            try await planes[session.home].restartICE(session.peer, local: local, remote: remote)
        } catch {
            sessions[id]?.isRestarting = false
            throw sessions[id] == nil ? .sessionUnknown : .media("\(error)")
        }
        guard var restarted = sessions[id] else { throw .sessionUnknown }
        restarted.isRestarting = false
        restarted.local.credentials = local
        restarted.remoteCredentials = remote
        restarted.iceVersion = ICEVersion(using: &generator)
        sessions[id] = restarted
        return restarted
    }

    // MARK: - Listening

    /// Opens a view of a channel's membership, which keeps the channel alive, until ``stopListening(_:)``.
    ///
    /// The stream yields once at the start and after changes; several changes may be one element. It ends at
    /// ``shutdown()``.
    public func listen(to channel: ChannelName) throws(RoomError) -> (id: ListenerID, changes: AsyncStream<Void>) {
        let id = ListenerID(rawValue: listenerNext)
        listenerNext += 1
        try model.listenerArrived(id, at: channel)
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        listeners[id] = (channel, continuation)
        listenersOf[channel, default: []].insert(id)
        continuation.yield()
        return (id, changes)
    }

    /// Ends a view. Nothing happens when it ended already.
    public func stopListening(_ id: ListenerID) {
        guard let (channel, changes) = listeners.removeValue(forKey: id) else { return }
        changes.finish()
        listenersOf[channel]?.remove(id)
        if listenersOf[channel]?.isEmpty == true { listenersOf[channel] = nil }
        model.listenerLeft(id, from: channel)
    }

    /// `nil` when the channel does not exist.
    public func snapshot(of channel: ChannelName) -> ChannelSnapshot? { model.snapshot(of: channel) }

    public var counts: RoomCounts { model.counts }
    public var isDraining: Bool { model.isDraining }

    /// Whether nothing at all is held.
    public var isEmpty: Bool {
        model.isEmpty && sessions.isEmpty && sessionOf.isEmpty && requests.isEmpty && listeners.isEmpty
            && listenersOf.isEmpty && work.allSatisfy(\.isEmpty) && wanted.allSatisfy(\.isEmpty) && crossings.isEmpty
    }

    // MARK: - The node's end

    /// From now on newcomers and listeners are refused; those who are there go on.
    public func startDraining() { model.drainingStarted() }

    /// Ends every participant and every listener, and returns when the media planes have done so.
    public func shutdown() async {
        carryOut(model.shutdownRequested())
        for id in Array(listeners.keys) { stopListening(id) }
        await settle()
        inbox.finish()
    }

    /// Waits until the media planes did all that was decided so far, and answered what they were asked.
    public func settle() async {
        while let task = (workers + samplers).lazy.compactMap({ $0 }).first ?? crossings.values.first {
            await task.value
        }
    }
}

// MARK: - Load

extension Rooms {
    /// Asks each media plane what it carries, so that newcomers go where there is room; to be called once a second.
    ///
    /// It returns at once. A plane that has not answered the question before is not asked again and gets no newcomers
    /// until it answers.
    public func sampleLoads() {
        for home in planes.indices {
            if samplers[home] != nil {
                model.loadUnanswered(by: home)
            } else {
                samplers[home] = Task { await self.sampleLoad(of: home) }
            }
        }
    }

    private func sampleLoad(of home: Int) async {
        let load = await planes[home].load()
        model.loadMeasured(load, of: home)
        samplers[home] = nil
    }
}

// MARK: - Carrying decisions out

extension Rooms {
    private func carryOut(_ decisions: [RoomModel.Decision]) {
        for decision in decisions {
            switch decision {
            case .connect(let slot, let source, let home):
                // Merged with one that waits: only the last source matters.
                if wanted[home].updateValue(source, forKey: slot) == nil { enqueue(.connect(slot), at: home) }
            case .removePeer(let peer, let home):
                enqueue(.remove(peer), at: home)
            case .ended(let id, let reason):
                requests[id] = nil
                if let session = sessionOf.removeValue(forKey: id) { sessions[session] = nil }
                notice(.ended(id, reason))
            case .channelChanged(let name):
                for id in listenersOf[name] ?? [] { listeners[id]?.changes.yield() }
            }
        }
    }

    private func enqueue(_ item: Work, at home: Int) {
        work[home].append(item)
        if workers[home] == nil { workers[home] = Task { await self.drainWork(at: home) } }
    }

    /// One task a home, so that a media plane sees the decisions about each slot in their order.
    private func drainWork(at home: Int) async {
        while !work[home].isEmpty {
            let batch = work[home]
            work[home] = []
            for item in batch {
                switch item {
                case .remove(let peer):
                    await planes[home].removePeer(peer)
                case .connect(let slot):
                    // While a crossing is under way what the slot wants next waits for its end.
                    guard crossings[slot] == nil, let source = wanted[home].removeValue(forKey: slot) else { continue }
                    if let source, source.home != home {
                        crossings[slot] = Task { await self.cross(slot, to: source, at: home) }
                    } else {
                        await connect(slot, to: source, at: home)
                    }
                }
            }
        }
        workers[home] = nil
    }

    private func cross(_ slot: TrackID, to source: PlacedTrack, at home: Int) async {
        await connect(slot, to: source, at: home)
        crossings[slot] = nil
        if wanted[home][slot] != nil { enqueue(.connect(slot), at: home) }
    }

    private func connect(_ slot: TrackID, to source: PlacedTrack?, at home: Int) async {
        do {
            try await planes[home].connect(slot: slot, to: source, layer: .richest)
        } catch {
            notice(.connectionFailed(slot: slot, "\(error)"))
        }
    }
}
