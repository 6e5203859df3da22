public import MediaTypes
public import Wire

/// The channels of one node, as signaling and operators see them: finds the channel that a call is about.
///
/// Each channel is an actor of its own on a control loop, so calls about different channels do not wait for each other.
public final class Rooms: Sendable {
    /// What a newcomer's media has to be negotiated with.
    public struct Reservation: Sendable {
        public let participant: ParticipantID
        public let session: SessionID
        /// The session of the channel that it is in.
        public let channelSession: ChannelSessionID
        public let peer: PeerID
        public let local: LocalTransport
        let location: MediaLocation
        /// Bit/s that it may publish; `nil` without a limit.
        let publishBitsPerSecondMax: Int?
        /// The number that the channel's media shares a socket under; no other channel has it.
        let share: UInt64
    }

    /// A session: the signaling state of one active participant.
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
        let location: MediaLocation
    }

    /// An event for logs, webhooks and statistics. It holds no secrets.
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

    /// The result of a newcomer's negotiation.
    struct NegotiatedMedia: Sendable {
        var remote: RemoteTransport
        var receive: [ReceiveTrackParameters]
        var send: [SendTrackParameters]
        var slots: [SlotAssignment]
        var headKind: MediaKind
        var mids: [MID]
    }

    let node: NodeDirectory
    private let context: ChannelActor.Context
    private let inbox = PeerEventInbox()
    /// Yields once after events have arrived.
    private let arrivals: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation
    private let loadMonitor: LoadMonitor

    /// - Parameters:
    ///   - planes: one per media loop, at least one.
    ///   - node: the incarnation that the peers' identifiers carry.
    ///   - controlLoops: the executors that channels are pinned to by their names; without any, channels run on the global
    ///     pool.
    ///   - notice: called on the channels' executors, for one channel in the order of its events; it must not block.
    public init(
        planes: [any MediaPlane],
        node incarnation: NodeIncarnation = .standalone,
        limits: RoomLimits = RoomLimits(),
        environment: RoomEnvironment = .system,
        controlLoops: [any SerialExecutor] = [],
        notice: @escaping @Sendable (Notice) -> Void = { _ in }
    ) {
        node = NodeDirectory(limits: limits, node: incarnation, locations: planes.map(\.location))
        context = ChannelActor.Context(
            planes: Dictionary(uniqueKeysWithValues: planes.map { ($0.location, $0) }),
            limits: limits,
            environment: environment,
            node: node,
            executors: ControlExecutors(controlLoops),
            notice: notice
        )
        (arrivals, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        loadMonitor = LoadMonitor(planes: planes, node: node)
    }

    // MARK: - Events of the media planes

    /// Where the media planes report their peers' events. It may be called on any thread, and returns at once.
    public var eventHandler: @Sendable (PeerID, PeerEvent) -> Void {
        { [inbox, wake] peer, event in
            if inbox.post(event, from: peer) { wake.yield() }
        }
    }

    /// Carries events to the channels until the calling task is cancelled or ``shutdown()`` was called.
    public func run() async {
        for await _ in arrivals {
            for channel in distributeEvents() { Task { await channel.takeEvents() } }
        }
        await takeEvents()
    }

    /// Handles the events that arrived so far, and returns when that is done; ``run()`` handles them by itself.
    public func takeEvents() async {
        for channel in distributeEvents() { await channel.takeEvents() }
    }

    /// Hands the events that arrived to their channels. Returns the channels that had none waiting.
    private func distributeEvents() -> [ChannelActor] {
        inbox.take().compactMap { peer, event in
            guard let channel = node.actor(of: peer) else { return nil }
            return channel.post(event, from: peer) ? channel : nil
        }
    }

    // MARK: - Joining

    /// What is true of a newcomer to a channel before there is a place for it.
    ///
    /// The identifier goes into ``JoinRequest/id``; the session is the one that it will be in, unless that ends
    /// meanwhile. The counts are those of the connected members; `members` includes those that are still
    /// to connect.
    public func prospect(
        _ channel: ChannelName
    ) async -> (
        id: ParticipantID, session: ChannelSessionID, counts: ChannelCounts, members: Int, decoders: VideoDecoders
    ) {
        let id = context.environment.participantID()
        if let actor = node.actor(of: channel) {
            let prospect = await actor.prospect()
            return (id, prospect.session, prospect.counts, prospect.members, prospect.decoders)
        }
        let session = node.pendingSession(of: channel) { context.environment.channelSessionID() }
        return (id, session, ChannelCounts(), 0, VideoDecoders())
    }

    /// Takes a place for a newcomer. It is followed by
    /// ``activate(_:remote:receive:send:slots:headKind:mids:owner:)`` or ``cancel(_:)``.
    public func reserve(_ request: JoinRequest) async throws(RoomError) -> Reservation {
        while true {
            if let reservation = try await actor(of: request.channel).reserve(request) { return reservation }
        }
    }

    /// The channel's actor. It may have retired when a call gets there.
    func actor(of name: ChannelName) -> ChannelActor {
        node.actor(of: name) { number in ChannelActor(name: name, number: number, context: context) }
    }

    /// Gives a place back whose media could not be negotiated.
    public func cancel(_ reservation: Reservation) async {
        await end(reservation.participant, reason: .setupFailed)
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
        guard let channel = node.actor(of: reservation.participant) else { throw .endedDuringSetup }
        let media = NegotiatedMedia(
            remote: remote,
            receive: receive,
            send: send,
            slots: slots,
            headKind: headKind,
            mids: mids
        )
        return try await channel.activate(reservation, media, owner: owner)
    }

    /// Whether nothing at all is held.
    public var isEmpty: Bool {
        get async { node.isEmpty }
    }

    // MARK: - Time and load

    /// Lets time pass; to be called once a second. Ends participants whose time is over, and notifies members of their
    /// minutes.
    public func tick() async {
        let now = context.environment.clock.now()
        await tick(at: now.instant, unixNanoseconds: now.unixNanoseconds)
    }

    /// ``tick()`` at a given time, which the clock of the rooms agrees with.
    public func tick(at instant: Instant, unixNanoseconds: Int64) async {
        let now = RoomTime(instant: instant, unixNanoseconds: unixNanoseconds)
        let due = node.actors(dueAt: now.second)
        await withDiscardingTaskGroup { group in
            for channel in due { group.addTask { await channel.tick(at: now) } }
        }
    }

    /// Asks each media plane for its load, so that newcomers are placed where there is room; to be called once a second.
    ///
    /// It does not wait for answers. A plane that has not answered the question before is not asked again and gets no
    /// newcomers until it answers.
    public func sampleLoads() async { await loadMonitor.sample() }

    // MARK: - The node's end

    /// From now on newcomers and listeners are refused; those who are there go on.
    public func startDraining() async { node.withModel { $0.drainingStarted() } }

    /// Ends every participant and every listener, and returns when the media planes have done so.
    public func shutdown() async {
        await startDraining()
        for channel in node.actors { await channel.shutdown() }
        await settle()
        wake.finish()
    }

    /// Waits until the media planes have done all that was decided so far, and answered what they were asked.
    public func settle() async {
        var isSettled = false
        while !isSettled {
            isSettled = await !loadMonitor.settle()
            for channel in node.actors {
                if await channel.settle() { isSettled = false }
            }
        }
    }
}
