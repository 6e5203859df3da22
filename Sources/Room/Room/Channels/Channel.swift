import Admission
import Base
import ChannelData
import ChannelTypes
import MediaTypes

/// One channel of a node: performs the effects of its ``ChannelModel`` on media planes, resources, mailboxes and
/// listeners.
///
/// It is pinned to a control loop. Calls about one channel are serialized; channels do not wait for each other. The
/// actor exists while the channel has participants or listeners, waits for departures at other nodes, or a call is under way.
actor Channel: PeerEventReceiver {
    /// The dependencies of all channels of a node.
    struct Context: Sendable {
        let planes: [MediaLocation: any MediaPlane]
        let environment: RoomEnvironment
        /// Of this node.
        let incarnation: NodeIncarnation
        let node: NodeDirectory
        let executors: ControlExecutors
        /// `nil` for a node without other nodes.
        let cluster: (any ChannelCluster)?
        let onEvent: @Sendable (ChannelDirectory.Event) -> Void

        /// Of the node at present. A channel keeps those that it began with.
        var limits: RoomLimits { node.withModel { $0.limits } }

        /// The plane of a participant's loop.
        func plane(at location: MediaLocation) -> any MediaPlane {
            guard let plane = planes[location] else { preconditionFailure("\(location) is a loop of this node") }
            return plane
        }
    }

    nonisolated let name: ChannelName
    /// Unique on the node and never reused. It is the share of the channel's peers: see ``PeerParameters/share``.
    nonisolated let number: UInt64
    private nonisolated let executor: ControlExecutors.Executor
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.unowned }
    let context: Context
    private nonisolated let inbox = Inbox(empty: ChannelInbox())

    /// Of ``waitAsJoin()``.
    var probesTaken = 0
    var model: ChannelModel
    /// The data channels of the participants.
    var data: DataRouter
    /// The chat of ``chatSession``.
    var chat: ChatHistory
    var chatSession: ChannelSessionID?
    /// The next job on events of data channels, while there is one.
    var dataJob: Task<Void, Never>?
    /// Waits while messages have no room in the meters of their senders.
    var dataTimer: Task<Void, Never>?
    var resources: [ResourceID: ChannelDirectory.Resource] = [:]
    var resourceOf: [ParticipantID: ResourceID] = [:]
    /// Peers that have TURN credentials and are not added to their loop.
    var turnPeers: [ParticipantID: (peer: PeerID, location: MediaLocation)] = [:]
    var mailboxes: [ParticipantID: ParticipantMailbox] = [:]
    /// The participants of this node, for the log.
    var attendances: [ParticipantID: ChannelDirectory.ParticipantInfo] = [:]
    var listeners: [ListenerID: AsyncStream<Void>.Continuation] = [:]

    /// The queued commands for each media plane, and the tasks that send them.
    var commands: [MediaLocation: MediaCommandQueue] = [:]
    var workers: [MediaLocation: Task<Void, Never>] = [:]
    /// Connections to sources on other loops that are under way, by slot. Each has its own task, so that a loop that
    /// does not answer delays only the slots that play its tracks.
    var crossLoopConnects: [TrackID: Task<Void, Never>] = [:]
    /// Slots whose connection to a source failed or whose source was lost, until the next tick connects them again.
    var slotsToReconnect: Set<TrackID> = []
    /// Transports to check for an ICE path, and the task that checks them.
    var uncheckedTransports: [(id: ParticipantID, peer: PeerID, location: MediaLocation)] = []
    var transportChecker: Task<Void, Never>?
    /// What other nodes know of the members of this one, and of what holds for the channel.
    var told: [ParticipantID: MemberRecord] = [:]
    var toldRegister: UInt64 = 0
    /// The session that other nodes know.
    var toldSession: ChannelSessionID?
    /// How members that left since other nodes were told did so.
    var departures: [ParticipantID: Departure] = [:]
    var opening: Task<Void, Never>?
    /// Whether other nodes know that this one has the channel.
    var isOpen = false
    /// Calls that await a media plane.
    var callsUnderWay = 0
    /// Whether the node has removed this actor. The next newcomer gets another one.
    private(set) var isRetired = false

    init(name: ChannelName, number: UInt64, limits: RoomLimits, context: Context) {
        self.name = name
        self.number = number
        self.context = context
        executor = context.executors.executor(for: name)
        model = ChannelModel(name: name, limits: limits)
        data = DataRouter(limits: limits)
        chat = ChatHistory(limits: limits)
    }

    // MARK: Events of peers and of other channels

    /// Queues an event on the thread of a media loop. The channel handles it on its control loop.
    nonisolated func receive(_ event: PeerEvent, from peer: PeerID) {
        if inbox.post({ $0.add(event, from: peer) }) { Task { await self.takeEvents() } }
    }

    /// Ends participants that newcomers of another channel evicted, later on the channel's own executor.
    nonisolated func evict(_ ids: [ParticipantID]) {
        if inbox.post({ $0.evict(ids) }) { Task { await self.takeEvents() } }
    }

    /// Handles the queued events; those of data channels as far as one job goes, and the rest in later ones.
    func takeEvents() {
        let waiting = inbox.take()
        if !waiting.evicted.isEmpty { apply { $0.leftTogether(waiting.evicted, reason: .evicted) } }
        for (peer, event) in waiting.events where model.hasPeer(peer) {
            switch event {
            case .data(let event):
                data.enqueue(event, from: peer, at: context.environment.clock.now().instant)
                continue
            case .dataEnded(let reason):
                if let id = model.participantOfPeer[peer], let attendance = attendance(of: id) {
                    context.onEvent(.dataEnded(attendance, reason))
                }
                continue
            case .connected:
                if let id = model.participantOfPeer[peer], let attendance = attendance(of: id) {
                    context.onEvent(.connected(attendance))
                }
            case .sourceLost(let mid):
                slotLacksSource(TrackID(peer: peer, mid: mid))
                publish()
                continue
            case .formatUnsupported(let slot, let codec):
                if let id = model.participantOfPeer[peer], let attendance = attendance(of: id) {
                    context.onEvent(.formatUnsupported(attendance, slot: slot, codec))
                }
            default: break
            }
            apply { $0.received(event, from: peer) }
        }
        serveData()
    }

    // MARK: Lifecycle

    /// Reports the channel's summary to the node, and retires the actor when the channel is unused. To be called after
    /// every change.
    func publish() {
        guard !isRetired else { return }
        var summary = model.summary
        // Every second has a tick.
        if !slotsToReconnect.isEmpty { summary.nextDeadlineSecond = .min }
        context.node.summaryChanged(of: name, to: summary, waitsUntil: model.departureWaitEnd)
        guard model.isUnused, workers.isEmpty, crossLoopConnects.isEmpty, transportChecker == nil, dataJob == nil,
            callsUnderWay == 0
        else { return }
        precondition(resources.isEmpty && mailboxes.isEmpty && listeners.isEmpty, "they end with their participants")
        isRetired = true
        closeInCluster()
        context.node.retire(self)
    }

    /// Begins a call that awaits a media plane. The actor does not retire before ``endCall()``.
    func beginCall() { callsUnderWay += 1 }
    func endCall() {
        callsUnderWay -= 1
        publish()
    }

    func tick(at now: RoomTime) {
        let slots = slotsToReconnect
        slotsToReconnect = []
        perform(model.tick(at: now) + model.connections(of: slots))
    }

    /// Ends every participant and every listener.
    func shutdown() {
        apply { $0.leftTogether($0.members(), reason: .shutdown) }
        for id in Array(listeners.keys) { stopListening(id) }
    }

    /// Waits until the media planes have performed all commands so far.
    /// - Returns: whether there was anything to wait for.
    func settle() async -> Bool {
        takeEvents()
        var didWait = false
        while let task = workers.values.first ?? transportChecker ?? crossLoopConnects.values.first ?? dataJob {
            await task.value
            didWait = true
        }
        return didWait
    }
}
