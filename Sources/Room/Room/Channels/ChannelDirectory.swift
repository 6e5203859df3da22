import Admission
package import Base
package import ChannelTypes
package import MediaTypes
package import Wire

/// The channels of one node. Signaling and the admin API call it, and it forwards each call to the channel's actor.
///
/// Each channel is its own actor on a control loop, so calls about different channels do not wait for each other.
package final class ChannelDirectory: Sendable {
    /// A newcomer's reserved place, with the node's side of the media negotiation.
    package struct Reservation: Sendable {
        package let participant: ParticipantID
        package let resource: ResourceID
        /// The client identifier of the member whose place it takes; `nil` for a newcomer.
        package let resumedClientID: String?
        /// The channel's session.
        package let channelSession: ChannelSessionID
        package let peer: PeerID
        package let local: LocalTransport
        /// `nil` unless it was asked for and the loop has a TURN server.
        package var turn: TURNAccess?
        let location: MediaLocation
        /// Bit/s that it may publish; `nil` for no limit.
        let publishBitsPerSecondMax: Int?
        /// Bit/s that it may be sent; `nil` for the node's maximum.
        let receiveBitsPerSecondMax: Int?
        let data: DataPlan?
        /// See ``PeerParameters/share``. Unique to the channel.
        let share: UInt64
    }

    /// The negotiated state of one active participant. Over WHIP and WHEP it is the resource that the client's requests
    /// address.
    package struct Resource: Sendable {
        package let participant: ParticipantID
        package let peer: PeerID
        package let channel: ChannelName
        package let role: Role
        /// The media sections in the order of the description.
        package let mids: [MID]
        /// The kind of the first media section.
        package let firstMediaKind: MediaKind
        /// The owner; `nil` for a resource that was created without a token.
        package internal(set) var owner: OwnerProof?
        /// The path of the endpoint that created it, as in the URL. A newly signed URL has the same.
        package let endpointPath: String?
        package internal(set) var local: LocalTransport
        package internal(set) var remoteCredentials: ICECredentials
        /// Changes with every ICE restart.
        package internal(set) var iceVersion: ICEVersion
        var isRestarting = false
        let location: MediaLocation
    }

    /// An event for logs, webhooks and statistics. It holds no secrets.
    package enum Event: Sendable {
        case joined(ParticipantInfo)
        /// The transport came up.
        case connected(ParticipantInfo)
        /// - Parameter attendance: `nil` for a participant of another node.
        case ended(ParticipantID, EndReason, attendance: ParticipantInfo?)
        /// A slot's source sends a codec that the viewer did not negotiate.
        case formatUnsupported(ParticipantInfo, slot: MID, CodecName)
        /// The node ended the association of a participant's data channels. There is one event for a participant at most.
        case dataEnded(ParticipantInfo, DataAssociationEnd)
        /// The media plane refused a connection of a slot, for example because one end is leaving.
        case subscriptionFailed(slot: TrackID, String)
        /// For webhooks and statistics. The reports of one channel are in order.
        case report(RoomReport)
    }

    /// Who an event is about, for the log.
    package struct ParticipantInfo: Hashable, Sendable {
        package let participant: ParticipantID
        package let peer: PeerID
        package let channel: ChannelName
        package let role: Role
        package let network: ClientNetwork
        package let agent: ClientAgent
        /// Whether its media was negotiated. Before, it has a place only.
        package internal(set) var hasJoined: Bool
        /// When it joined, or got its place.
        let start: Instant
        /// The time from the join to the event.
        package internal(set) var duration = Interval.zero
    }

    /// The result of a newcomer's negotiation.
    struct NegotiatedMedia: Sendable {
        var remote: RemoteTransport
        var receive: [ReceiveTrackParameters]
        var send: [SendTrackParameters]
        var slots: [SlotAssignment]
        var data: DataTransportParameters?
        var firstMediaKind: MediaKind
        var mids: [MID]
        var owner: OwnerProof?
        var endpointPath: String?
    }

    let node: NodeDirectory
    private let context: Channel.Context
    var environment: RoomEnvironment { context.environment }
    var cluster: (any ChannelCluster)? { context.cluster }
    /// Who is told what operators decide. The closures must not block or call the rooms.
    package struct Observers: Sendable {
        /// Called for each decision that ends connections, after newcomers are refused. It ends what it holds for users that are
        /// no participants, and returns the identifiers of what it ended.
        package var decision: @Sendable (OperatorDecision) async -> [ParticipantID] = { _ in [] }
        /// Called for each block that ``block(_:)`` sets and, with `nil`, that ``liftBlock(of:)`` lifts.
        package var block: @Sendable (Block.Subject, Block?) -> Void = { _, _ in }
        package init() {}
    }
    let observers: Observers
    private let loadMonitor: LoadMonitor

    /// - Parameters:
    ///   - planes: one per media loop, at least one.
    ///   - node: the incarnation that the peers' identifiers carry.
    ///   - controlLoops: the executors that channels are pinned to by their names; without any, channels run on the
    ///     global pool.
    ///   - cluster: the other nodes; `nil` for a node without any.
    ///   - observers: who is told what operators decide.
    ///   - onEvent: called on the channels' executors, in order for each channel. It must not block.
    package init(
        planes: [any MediaPlane],
        node incarnation: NodeIncarnation = .standalone,
        limits: RoomLimits = RoomLimits(),
        environment: RoomEnvironment = .system,
        controlLoops: [any SerialExecutor] = [],
        cluster: (any ChannelCluster)? = nil,
        observers: Observers = Observers(),
        onEvent: @escaping @Sendable (Event) -> Void = { _ in }
    ) {
        self.observers = observers
        node = NodeDirectory(limits: limits, node: incarnation, locations: planes.map(\.location))
        context = Channel.Context(
            planes: Dictionary(uniqueKeysWithValues: planes.map { ($0.location, $0) }),
            environment: environment,
            incarnation: incarnation,
            node: node,
            executors: ControlExecutors(controlLoops),
            cluster: cluster,
            onEvent: onEvent
        )
        loadMonitor = LoadMonitor(planes: planes, node: node)
    }

    // MARK: - Joining

    /// What authorization of a newcomer needs before there is a place for it.
    ///
    /// `id` is a new identifier for ``JoinRequest/id``. `session` is the session that the newcomer will be in, unless
    /// it ends before. `counts` are the connected members; `members` includes those that are not connected yet.
    package func joinContext(
        of channel: ChannelName
    ) async -> (
        id: ParticipantID, session: ChannelSessionID, counts: ChannelCounts, members: Int, decoders: VideoDecoders
    ) {
        let id = context.environment.participantID()
        while let actor = context.cluster == nil ? node.actor(of: channel) : self.actor(of: channel) {
            guard let joinContext = await actor.joinContext() else { continue }
            return (id, joinContext.session, joinContext.counts, joinContext.members, joinContext.decoders)
        }
        let session = node.pendingSession(of: channel) { context.environment.channelSessionID() }
        return (id, session, ChannelCounts(), 0, VideoDecoders())
    }

    /// Reserves a place for a newcomer. It is followed by
    /// ``activate(_:remote:receive:send:slots:data:firstMediaKind:mids:owner:endpointPath:)`` or ``cancel(_:)``.
    package func reserve(_ request: JoinRequest) async throws(RoomError) -> Reservation {
        while true {
            if let reservation = try await actor(of: request.channel).reserve(request) { return reservation }
        }
    }

    /// The channel's actor. It may have retired before a call reaches it.
    func actor(of name: ChannelName) -> Channel {
        node.actor(of: name) { number, limits in
            Channel(name: name, number: number, limits: limits, context: context)
        }
    }

    /// Releases a place whose media could not be negotiated.
    package func cancel(_ reservation: Reservation) async {
        await end(reservation, reason: .setupFailed)
    }

    /// Makes a newcomer with negotiated media an active participant and creates its resource.
    ///
    /// - Parameters:
    ///   - receive: the tracks that it publishes.
    ///   - send: its slots for the participant that it follows.
    ///   - slots: its slots for single senders, when it follows everyone.
    ///   - data: its data channels; `nil` without.
    ///   - firstMediaKind: the kind of the first media section.
    ///   - mids: the media sections in the order of the description.
    ///   - owner: the owner of the resource; `nil` for a newcomer without a token.
    ///   - endpointPath: the path of the WHIP or WHEP endpoint, as in the URL.
    /// - Throws: ``RoomError/endedDuringSetup`` when it has ended, ``RoomError/media(_:)`` when the media plane
    ///   refuses. The place is released in both cases.
    package func activate(
        _ reservation: Reservation,
        remote: RemoteTransport,
        receive: [ReceiveTrackParameters] = [],
        send: [SendTrackParameters] = [],
        slots: [SlotAssignment] = [],
        data: DataTransportParameters? = nil,
        firstMediaKind: MediaKind,
        mids: [MID],
        owner: OwnerProof? = nil,
        endpointPath: String? = nil
    ) async throws(RoomError) -> Resource {
        guard let channel = node.actor(of: reservation.participant) else { throw .endedDuringSetup }
        let media = NegotiatedMedia(
            remote: remote,
            receive: receive,
            send: send,
            slots: slots,
            data: data,
            firstMediaKind: firstMediaKind,
            mids: mids,
            owner: owner,
            endpointPath: endpointPath
        )
        return try await channel.activate(reservation, media)
    }

    /// Whether the node holds nothing.
    package var isEmpty: Bool {
        get async { node.isEmpty }
    }

    // MARK: - Time and load

    /// Handles the channels' deadlines: the ends of participants' lifetimes, setup timeouts and updates of every
    /// minute. To be called once a second.
    package func tick() async {
        let now = context.environment.clock.now()
        await tick(at: now.instant, unixNanoseconds: now.unixNanoseconds)
    }

    /// ``tick()`` at a given time of the rooms' clock.
    package func tick(at instant: Instant, unixNanoseconds: Int64) async {
        let now = RoomTime(instant: instant, unixNanoseconds: unixNanoseconds)
        let due = node.actors(dueAt: now.second)
        await withDiscardingTaskGroup { group in
            for channel in due { group.addTask { await channel.tick(at: now) } }
        }
    }

    /// Polls each media plane for its load, for the placement of newcomers. To be called once a second.
    ///
    /// It does not wait for answers. A plane that has not answered the previous call gets no newcomers until it
    /// answers.
    package func sampleLoads() async { await loadMonitor.sample() }

    /// One function for each control loop. It waits there as a client's join does: in the queue of a channel, once for each of
    /// its steps, and calls its argument after each. It changes nothing. On a loop that serves nobody it returns late or never.
    package var controlLoopProbes: [@Sendable (@Sendable () -> Void) async -> Void] {
        let context = context
        var probes: [@Sendable (@Sendable () -> Void) async -> Void] = []
        for name in context.executors.nameOnEachLoop {
            probes.append { waited in
                // The directory does not know it, so it is nobody's channel.
                let channel = Channel(name: name, number: 0, limits: context.limits, context: context)
                await channel.waitAsJoin(waited)
            }
        }
        return probes
    }

    // MARK: - Shutdown

    /// Refuses newcomers and listeners from now on, for good. Present ones stay.
    package func startDraining() async { node.withModel { $0.joinPolicy.stop() } }

    /// Ends every participant and listener with ``EndReason/shutdown``. It does not stop newcomers.
    package func endAll() async {
        for channel in node.actors { await channel.shutdown() }
    }

    /// Ends every participant and listener. Returns when the media planes have removed all peers.
    package func shutdown() async {
        await startDraining()
        await endAll()
        await settle()
    }

    /// Handles the events of peers that have arrived so far. The channels do so by themselves, a little later.
    package func takeEvents() async {
        for channel in node.actors { await channel.takeEvents() }
    }

    /// Waits until the media planes have performed all commands so far and answered all requests.
    package func settle() async {
        var isSettled = false
        while !isSettled {
            isSettled = await !loadMonitor.settle()
            for channel in node.actors {
                if await channel.settle() { isSettled = false }
            }
        }
    }
}
