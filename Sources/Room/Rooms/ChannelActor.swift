import MediaTypes
import Synchronization
import Wire

/// One channel of a node: its ``ChannelModel`` with the media planes, sessions, mailboxes and listeners around it.
///
/// It is pinned to a control loop, and only its own calls run one after the other: another channel waits neither for its
/// work nor for what it awaits. It exists as long as somebody is in the channel, listens to it, or is about to.
actor ChannelActor {
    /// What all channels of a node share.
    struct Context: Sendable {
        let planes: [MediaLocation: any MediaPlane]
        let limits: RoomLimits
        let environment: RoomEnvironment
        let node: NodeDirectory
        let executors: ControlExecutors
        let notice: @Sendable (Rooms.Notice) -> Void

        /// The plane of a loop that a participant was placed on.
        func plane(at location: MediaLocation) -> any MediaPlane {
            guard let plane = planes[location] else { preconditionFailure("\(location) is a loop of this node") }
            return plane
        }
    }

    nonisolated let name: ChannelName
    /// Unique on the node and never used again. The channel's media shares a socket under it.
    nonisolated let number: UInt64
    private nonisolated let executor: ControlExecutors.Executor
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.unowned }
    let context: Context
    private nonisolated let inbox = PeerEventInbox()
    /// Participants that lost their places to newcomers of other channels.
    private nonisolated let evicted = Mutex<[ParticipantID]>([])

    var model: ChannelModel
    var sessions: [SessionID: Rooms.Session] = [:]
    var sessionOf: [ParticipantID: SessionID] = [:]
    var mailboxes: [ParticipantID: ParticipantMailbox] = [:]
    var listeners: [ListenerID: AsyncStream<Void>.Continuation] = [:]

    /// The commands that wait for each media plane, and the task that sends them.
    var commands: [MediaLocation: MediaCommandQueue] = [:]
    var workers: [MediaLocation: Task<Void, Never>] = [:]
    /// Connections to sources on other loops that are under way, by slot. Each has a task of its own, so that a loop that
    /// does not answer holds up only the slots that want its tracks.
    var crossLoopConnects: [TrackID: Task<Void, Never>] = [:]
    /// Newcomers whose transports are to be examined, and the task that does it.
    var unexamined: [(id: ParticipantID, peer: PeerID, location: MediaLocation)] = []
    var examiner: Task<Void, Never>?
    /// Calls that await a media plane.
    var callsUnderWay = 0
    /// Whether the node has forgotten this actor: the next newcomer gets another one.
    private(set) var isRetired = false

    init(name: ChannelName, number: UInt64, context: Context) {
        self.name = name
        self.number = number
        self.context = context
        executor = context.executors.executor(for: name)
        model = ChannelModel(name: name, limits: context.limits)
    }

    // MARK: Events of peers

    /// Takes an event on any thread. ``takeEvents()`` has to follow.
    /// - Returns: whether no event was waiting.
    nonisolated func post(_ event: PeerEvent, from peer: PeerID) -> Bool { inbox.post(event, from: peer) }

    /// Handles the events that arrived so far.
    func takeEvents() {
        for (peer, event) in inbox.take() where model.hasPeer(peer) {
            switch event {
            case .connected: context.notice(.connected(peer))
            case .formatUnsupported(let slot, let codec): context.notice(.formatUnsupported(peer, slot: slot, codec))
            default: break
            }
            apply { $0.received(event, from: peer) }
        }
    }

    // MARK: Evictions

    /// Ends a participant that lost its place, soon and on the channel's own executor.
    nonisolated func evict(_ id: ParticipantID) {
        evicted.withLock { $0.append(id) }
        Task { await self.takeEvictions() }
    }

    private func takeEvictions() {
        let ids = evicted.withLock { ids in
            defer { ids = [] }
            return ids
        }
        if !ids.isEmpty { apply { $0.leftTogether(ids, reason: .crowdedOut) } }
    }

    // MARK: Life

    /// Gives the node the channel's figures, and retires when nothing is left to do. To be called after every change.
    func publish() {
        guard !isRetired else { return }
        let summary = model.summary
        context.node.withModel { $0.summaryChanged(of: name, to: summary) }
        guard model.isUnused, workers.isEmpty, crossLoopConnects.isEmpty, examiner == nil, callsUnderWay == 0
        else { return }
        precondition(sessions.isEmpty && mailboxes.isEmpty && listeners.isEmpty, "they end with their participants")
        isRetired = true
        context.node.retire(self)
    }

    /// A call begins that awaits a media plane. The actor does not retire before ``endCall()``.
    func beginCall() { callsUnderWay += 1 }
    func endCall() {
        callsUnderWay -= 1
        publish()
    }

    /// Lets time pass.
    func tick(at now: RoomTime) { perform(model.tick(at: now)) }

    /// Ends every participant and every listener.
    func shutdown() {
        apply { $0.end(reason: .shutdown).effects }
        for id in Array(listeners.keys) { stopListening(id) }
    }

    /// Waits until the media planes have done all that was decided so far. Returns whether there was anything to wait for.
    func settle() async -> Bool {
        takeEvictions()
        var didWait = false
        while let task = workers.values.first ?? examiner ?? crossLoopConnects.values.first {
            await task.value
            didWait = true
        }
        return didWait
    }
}
