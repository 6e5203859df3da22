public import MediaTypes
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
        /// The session of the channel that it is in.
        public let channelSession: ChannelSessionID
        public let peer: PeerID
        public let local: LocalTransport
        let home: Int
        /// Bit/s that it may publish; `nil` without a limit.
        let publishBitsPerSecondMax: Int?
        /// What the channel's media shares a socket under. The same for all of a channel, and another one for nearly
        /// every other.
        let share: UInt64
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
        /// What its owner presented; `nil` when it presented nothing.
        public let owner: OwnerProof?
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
        case subscriptionFailed(slot: TrackID, String)
        /// For webhooks and statistics. Those of one channel come in their order.
        case report(RoomReport)
    }

    var model: RoomModel
    let planes: [any MediaPlane]
    let clock: RoomClock
    private let inbox = PeerEventInbox()
    let notice: @Sendable (Notice) -> Void
    var generator = SystemRandomNumberGenerator()
    private var peerNext: UInt64 = 1
    var listenerNext: UInt64 = 1
    var prospects = Prospects()

    var sessions: [SessionID: Session] = [:]
    var sessionOf: [ParticipantID: SessionID] = [:]
    var mailboxes: [ParticipantID: ParticipantMailbox] = [:]
    var listeners: [ListenerID: (channel: ChannelName, changes: AsyncStream<Void>.Continuation)] = [:]
    var listenersOf: [ChannelName: Set<ListenerID>] = [:]

    /// What each home's media plane is still to do.
    var work: [PlaneWork]
    var workers: [Task<Void, Never>?]
    /// Connections to sources of other homes that are under way, by slot. Each is on its own, so that a home which does
    /// not answer holds up nothing but the slots that want its tracks.
    var crossings: [TrackID: Task<Void, Never>] = [:]
    /// The question for its load that each home has not answered yet.
    var samplers: [Task<Void, Never>?]
    /// Newcomers whose transports are to be looked at, and the task that does it.
    var unexamined: [(id: ParticipantID, peer: PeerID, home: Int)] = []
    var examiner: Task<Void, Never>?

    /// - Parameters:
    ///   - planes: one per media loop, at least one.
    ///   - notice: called on the rooms' executor; it must not block.
    public init(
        planes: [any MediaPlane],
        limits: RoomLimits = RoomLimits(),
        clock: RoomClock = .system,
        notice: @escaping @Sendable (Notice) -> Void = { _ in }
    ) {
        model = RoomModel(limits: limits, homeCount: planes.count)
        self.planes = planes
        self.clock = clock
        self.notice = notice
        work = Array(repeating: PlaneWork(), count: planes.count)
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
            apply { $0.received(event, from: peer) }
        }
    }

    // MARK: - Joining

    /// What is true of a newcomer to a channel before there is a place for it.
    ///
    /// The identifier goes into ``JoinRequest/id``; the session is the one that it will be in, unless that ends
    /// meanwhile. The counts are those of the connected members; `members` has those too that are still
    /// to connect.
    public func prospect(
        _ channel: ChannelName
    ) -> (
        id: ParticipantID, session: ChannelSessionID, counts: ChannelCounts, members: Int, decoders: VideoDecoders
    ) {
        let session = model.session(of: channel)?.id ?? prospects.session(of: channel, using: &generator)
        return (
            ParticipantID(using: &generator), session, model.counts(of: channel), model.memberCount(of: channel),
            model.decoders(in: channel)
        )
    }

    /// Takes a place for a newcomer. It is followed by
    /// ``activate(_:remote:receive:send:slots:headKind:mids:)`` or ``cancel(_:)``.
    public func reserve(_ request: JoinRequest) async throws(RoomError) -> Reservation {
        let participant = request.id ?? ParticipantID(using: &generator)
        let session = SessionID(using: &generator)
        let peer = PeerID(rawValue: peerNext)
        peerNext += 1
        apply { $0.makeRoom(for: request) }
        let channelSession =
            model.session(of: request.channel)?.id ?? prospects.session(of: request.channel, using: &generator)
        let home = try model.joinRequested(request, id: participant, peer: peer, session: channelSession)
        prospects.forget(request.channel)
        let transport = await planes[home].transport()
        let local = LocalTransport(
            credentials: ICECredentials(using: &generator),
            fingerprint: transport.fingerprint,
            candidates: transport.candidates
        )
        return Reservation(
            participant: participant,
            session: session,
            channelSession: channelSession,
            peer: peer,
            local: local,
            home: home,
            publishBitsPerSecondMax: request.publishBitsPerSecondMax ?? model.limits.publishBitsPerSecondMax,
            share: UInt64(bitPattern: Int64(request.channel.hashValue))
        )
    }

    /// Gives a place back whose media could not be negotiated.
    public func cancel(_ reservation: Reservation) {
        apply { $0.left(reservation.participant, reason: .setupFailed) }
    }

    /// Makes a newcomer with negotiated media a participant and opens its session.
    ///
    /// - Parameters:
    ///   - receive: what it sends.
    ///   - send: its slots for whomever it follows.
    ///   - slots: its slots for single senders, when it follows everyone.
    ///   - headKind: what the first media section carries.
    ///   - mids: the description's media sections in their order.
    ///   - owner: what the newcomer presented.
    /// - Throws: ``RoomError/endedDuringSetup`` when it was ended meanwhile, ``RoomError/media(_:)`` when the media
    ///   plane refuses. The place is given back in both cases.
    public func activate(
        _ reservation: Reservation,
        remote: RemoteTransport,
        receive: [ReceiveTrackParameters] = [],
        send: [SendTrackParameters] = [],
        slots: [SlotAssignment] = [],
        headKind: MediaKind,
        mids: [MID],
        owner: OwnerProof? = nil
    ) async throws(RoomError) -> Session {
        let id = reservation.participant
        do {
            try await planes[reservation.home].addPeer(
                PeerParameters(
                    id: reservation.peer,
                    localCredentials: reservation.local.credentials,
                    remote: remote,
                    receive: receive,
                    send: send + slots.map(\.parameters),
                    publishBitsPerSecondMax: reservation.publishBitsPerSecondMax,
                    share: reservation.share
                )
            )
        } catch {
            apply { $0.left(id, reason: .setupFailed) }
            throw .media("\(error)")
        }
        guard let participant = model.participants[id] else {
            enqueue(.remove(reservation.peer), at: reservation.home)
            throw .endedDuringSetup
        }
        let session = Session(
            participant: id,
            peer: reservation.peer,
            channel: participant.channel,
            role: participant.role,
            mids: mids,
            headKind: headKind,
            owner: owner,
            local: reservation.local,
            remoteCredentials: remote.credentials,
            iceVersion: ICEVersion(using: &generator),
            home: reservation.home
        )
        sessions[reservation.session] = session
        sessionOf[id] = reservation.session
        notice(.joined(id, reservation.peer, participant.channel, participant.role))
        let isToldNews = mailboxes[id] != nil
        let video = send.filter { $0.kind == .video }
        let decodedVideo = video.isEmpty ? nil : Set(video.flatMap(\.codecs).map(\.name))
        try apply { model throws(RoomError) in
            try model.setupCompleted(
                id,
                publications: receive.map {
                    Publication(mid: $0.mid, kind: $0.kind, rids: $0.rids, formats: $0.codecs)
                },
                slots: send.map { Slot(mid: $0.mid, kind: $0.kind) },
                assigned: slots,
                decodedVideo: decodedVideo,
                isToldNews: isToldNews
            )
        }
        return session
    }

    /// Whether nothing at all is held.
    public var isEmpty: Bool {
        model.isEmpty && sessions.isEmpty && sessionOf.isEmpty && mailboxes.isEmpty && listeners.isEmpty
            && listenersOf.isEmpty && work.allSatisfy(\.isEmpty) && crossings.isEmpty
    }

    // MARK: - The node's end

    /// From now on newcomers and listeners are refused; those who are there go on.
    public func startDraining() { model.drainingStarted() }

    /// Ends every participant and every listener, and returns when the media planes have done so.
    public func shutdown() async {
        apply { $0.shutdownRequested() }
        for id in Array(listeners.keys) { stopListening(id) }
        await settle()
        inbox.finish()
    }

    /// Waits until the media planes did all that was decided so far, and answered what they were asked.
    public func settle() async {
        while let task = (workers + samplers + [examiner]).lazy.compactMap({ $0 }).first ?? crossings.values.first {
            await task.value
        }
    }
}
