import Base
package import ChannelTypes
package import Logging
package import MediaTypes
import Room

/// Runs a node's ``Membership`` against the store: heartbeats, and the attaching of rooms.
package actor ClusterMembership {
    /// What the owner acts upon.
    package enum Event: Sendable {
        case viewChanged(ClusterView)
        /// The store told of a room that was attached later than it began here.
        case found(ChannelName, RoomEntry)
        /// The node has a later incarnation than it started with, see ``Membership/Event/returned``.
        case returned(NodeInstance)
    }

    private static let tickInterval = Duration.milliseconds(100)
    /// Attaches for newcomers that are under way at once, and as many of rooms that are told later or again.
    private static let attachesMax = 64
    /// Channels that ended without the store's knowledge.
    private static let undetachedMax = 10_000
    /// Such rooms that the store is told of at once.
    private static let lateDetachesMax = 16
    /// From one line in the log about nodes that are ignored to the next.
    private static let ignoredLogInterval = Interval.seconds(10)
    /// The most nodes that such a line names.
    private static let ignoredNamesMax = 16

    private var membership: Membership
    private let store: any ClusterStore
    private let file: ViewFile?
    private let clock: RoomClock
    private let logger: Logger
    private let onEvent: @Sendable (Event) -> Void
    private var sessions: [ChannelName: RoomSession] = [:]
    /// The sessions that the store has of these rooms, for a store that lost them.
    private var adopted: [ChannelName: RoomSession] = [:]
    /// Channels that the store takes for rooms of this node, which they are no longer.
    private var undetached: Set<ChannelName> = []
    private let incidents: StoreIncidents
    private var savedView: SavedView?
    private var attaching = 0
    private var requesting = 0
    private var attachingLater = 0
    private var detachingLater = 0
    /// The nodes that are ignored as the log has them, and since when.
    private var ignoredLogged: Set<NodeID> = []
    private var ignoredLoggedAt: Instant?

    package init(
        _ configuration: ClusterConfiguration,
        store: any ClusterStore,
        clock: RoomClock = .system,
        incidents: StoreIncidents = StoreIncidents(),
        logger: Logger,
        onEvent: @escaping @Sendable (Event) -> Void
    ) throws(RecordTooLong) {
        file = configuration.stateDirectory.map {
            ViewFile(directory: $0, cluster: configuration.cluster, node: configuration.node)
        }
        var record = NodeRecord(state: .starting)
        record.region = configuration.region
        record.zone = configuration.zone
        record.publicURL = configuration.publicURL
        record.linkAddress = configuration.linkAddress
        record.build = configuration.build
        let saved = file?.load()
        savedView = saved
        membership = try Membership(
            node: configuration.node,
            record: record,
            saved: saved,
            acceptsUnsigned: configuration.acceptsUnsignedRecords,
            seed: UInt64.random(in: .min ... .max),
            at: clock.now().instant
        )
        self.store = store
        self.clock = clock
        self.incidents = incidents
        self.logger = logger
        self.onEvent = onEvent
    }

    private var now: Instant { clock.now().instant }

    package var instance: NodeInstance { membership.instance }
    package var view: ClusterView { membership.view }
    package var placement: Placement { membership.placement }
    package var placementWithClosed: Placement { membership.placementWithClosed }
    package var record: NodeRecord { membership.record }
    package var isStoreUp: Bool { membership.isStoreUp }
    package var isFenced: Bool { membership.isFenced }
    package var takesNewRooms: Bool { membership.takesNewRooms }
    package var roomsWaiting: Int { membership.roomsWaiting }

    /// Whether nothing that ``tick()`` began is under way.
    var isIdle: Bool { requesting == 0 && attachingLater == 0 && detachingLater == 0 }

    // MARK: Time

    /// Sends heartbeats and attaches rooms until the task is cancelled.
    package func run() async {
        while !Task.isCancelled {
            tick()
            guard (try? await Task.sleep(for: Self.tickInterval)) != nil else { return }
        }
    }

    /// Returns when the node knows enough of the cluster to take clients, or did not learn it in time.
    package func settle() async {
        while !membership.isSettled(at: now) {
            guard (try? await Task.sleep(for: .milliseconds(20))) != nil else { return }
        }
    }

    func tick() {
        if let request = membership.nextRequest(at: now) {
            requesting += 1
            Task {
                await perform(request)
                requesting -= 1
            }
        }
        attachWaiting()
        detachWaiting()
        logIgnored()
    }

    /// Says which nodes are ignored when that has changed. Whoever writes to the store may change it all the time.
    private func logIgnored() {
        let ignored = membership.view.ignored
        let isDue = ignoredLoggedAt.map { now - $0 >= Self.ignoredLogInterval } ?? true
        guard isDue, ignoredLogged != Set(ignored.keys) else { return }
        (ignoredLogged, ignoredLoggedAt) = (Set(ignored.keys), now)
        guard !ignored.isEmpty else {
            logger.notice("no node that the store tells of is ignored any more")
            return
        }
        let names = { (signature: RecordSignature) in
            let nodes = ignored.filter { $0.value.signature == signature }.keys.sorted()
            return nodes.prefix(Self.ignoredNamesMax).map(\.rawValue).joined(separator: " ")
        }
        logger.error(
            "The store has records of nodes that are not signed with this node's --cluster-secret. These nodes are ignored, and members of a channel there and here may not see each other. Upgrade nodes of earlier builds, or set --cluster-unsigned-records while you do; give all nodes the same secret; if all have it, somebody else writes to the store.",
            metadata: ["unsigned": "\(names(.missing))", "other-signature": "\(names(.invalid))"]
        )
    }

    private func attachWaiting() {
        for room in membership.nextRooms(at: now, max: Self.attachesMax - attachingLater) {
            guard sessions[room] != nil else { continue }
            attachingLater += 1
            Task { await attachAgain(room) }
        }
    }

    private func detachWaiting() {
        guard membership.isStoreUp else { return }
        for room in Array(undetached.prefix(Self.lateDetachesMax - detachingLater)) {
            undetached.remove(room)
            detachingLater += 1
            Task {
                await leave(room)
                detachingLater -= 1
            }
        }
    }

    private func perform(_ request: Membership.Request) async {
        switch request {
        case .enlist(let request):
            let result: Result<NodeIncarnation, StoreError>
            do throws(StoreError) { result = .success(try await store.enlist(request)) } catch {
                result = .failure(error)
            }
            handle(membership.receivedEnlistment(result, at: now))
            // The first heartbeat follows at once.
            tick()
        case .beat(let request):
            let result: Result<HeartbeatAnswer, StoreError>
            do throws(StoreError) { result = .success(try await store.beat(request)) } catch {
                result = .failure(error)
            }
            handle(membership.receivedBeat(result, at: now))
        }
    }

    private func handle(_ events: [Membership.Event]) {
        for event in events {
            switch event {
            case .enlisted:
                logger.info("enlisted in the cluster", metadata: ["node": "\(membership.instance)"])
                attachAll()
            case .fenced:
                logger.error(
                    "A later start of a node with this name is in the cluster. This one takes no new rooms. Give every node a --node-name of its own, and stop one of the two.",
                    metadata: ["node": "\(membership.instance)"]
                )
            case .returned:
                logger.notice(
                    "The later start of a node with this name is gone. This one takes new rooms again.",
                    metadata: ["node": "\(membership.instance)"]
                )
                onEvent(.returned(membership.instance))
            case .storeChanged(let incident):
                incidents.note(incident)
                logger.warning(
                    "the cluster's store lost data: this node's rooms are told again",
                    metadata: ["case": "\(incident.rawValue)"]
                )
                attachAll()
            // The store logs its own failures, which scripts find too.
            case .storeLost: break
            // Others may have taken this node for gone meanwhile.
            case .storeReturned: attachAll()
            case .viewChanged:
                onEvent(.viewChanged(membership.view))
                save()
            }
        }
    }

    /// Has all of the node's rooms told again.
    private func attachAll() { membership.attachLater(sessions.keys, at: now) }

    private func save() {
        let view = membership.savedView
        guard let file, view != savedView else { return }
        savedView = view
        do {
            try file.save(view)
        } catch {
            logger.warning(
                "The view of the cluster could not be saved. Without it this node cannot find the others when it starts while the store is away. Make --state-dir a folder that the node may write to.",
                metadata: ["error": "\(error)"]
            )
        }
    }

    /// Sets whether records of other nodes in the store need no signature.
    package func setAcceptsUnsignedRecords(_ accepts: Bool) { membership.setAcceptsUnsigned(accepts, at: now) }

    // MARK: The node's record

    package func setState(_ state: NodeState) {
        var record = membership.record
        record.state = state
        set(record)
    }

    package func measured(_ measurements: NodeMeasurements) {
        var record = membership.record
        record.setLoad(measurements.load)
        record.members = min(max(measurements.members, 0), Int(Int32.max))
        record.rooms = min(max(measurements.rooms, 0), Int(Int32.max))
        set(record)
    }

    private func set(_ record: NodeRecord) {
        do throws(RecordTooLong) {
            try membership.setRecord(record)
        } catch {
            logger.error(
                "What this node tells the others of itself is too long. Shorten --region, --zone, --public-url or --cluster-link."
            )
        }
    }

    // MARK: Channels

    /// Tells the store of a room.
    /// - Returns: `nil` when it does not answer in time. It is told later then.
    package func attach(_ room: ChannelName, session: RoomSession) async -> RoomEntry? {
        sessions[room] = session
        adopted[room] = nil
        undetached.remove(room)
        guard attaching < Self.attachesMax else {
            membership.attachLater([room], at: now)
            return nil
        }
        attaching += 1
        defer { attaching -= 1 }
        return await attachNow(room, session)
    }

    private func attachAgain(_ room: ChannelName) async {
        var entry: RoomEntry?
        if let session = adopted[room] ?? sessions[room] { entry = await attachNow(room, session) }
        attachingLater -= 1
        if let entry { onEvent(.found(room, entry)) }
        attachWaiting()
    }

    private func attachNow(_ room: ChannelName, _ session: RoomSession) async -> RoomEntry? {
        guard membership.instance.incarnation.isAssigned, !membership.isFenced, membership.isStoreUp else {
            membership.attachLater([room], at: now)
            return nil
        }
        let attached = sessions[room]
        do throws(StoreError) {
            let entry = try await store.attach(Attach(room: room, instance: membership.instance, session: session))
            guard let current = sessions[room] else {
                // The room ended meanwhile.
                await leave(room)
                return nil
            }
            if current == attached { adopted[room] = entry.session }
            membership.attached(room, at: now)
            return self.current(entry, of: room)
        } catch {
            if sessions[room] != nil { membership.attachLater([room], at: now) }
            return nil
        }
    }

    /// Without nodes that are gone: a newcomer would wait for them.
    private func current(_ entry: RoomEntry, of room: ChannelName) -> RoomEntry {
        let replaced = membership.replaced(in: entry)
        if !replaced.isEmpty { Task { _ = try? await store.sweep(Sweep(rooms: [room], gone: replaced)) } }
        let present = membership.present(in: entry)
        for node in entry.nodes.keys where present.nodes[node] == nil {
            membership.attachLater([room], whenReturned: node, at: now)
        }
        return present
    }

    /// Has rooms told again when an absent node returns that may have them.
    package func attachLater(_ rooms: Set<ChannelName>, whenReturned node: NodeID) {
        membership.attachLater(rooms, whenReturned: node, at: now)
    }

    /// Does nothing when the room was attached with another session since.
    package func detach(_ room: ChannelName, session: RoomSession) async {
        guard sessions[room] == session else { return }
        sessions[room] = nil
        adopted[room] = nil
        membership.roomEnded(room)
        await leave(room)
    }

    /// Tells the store that a room ended here, now or when it answers again.
    private func leave(_ room: ChannelName) async {
        guard membership.instance.incarnation.isAssigned else { return }
        let request = Detach(room: room, instance: membership.instance)
        let isTold = membership.isStoreUp ? (try? await store.detach(request)) != nil : false
        if sessions[room] != nil {
            // It began again meanwhile, and the store may have heard of that first.
            membership.attachLater([room], at: now)
        } else if !isTold, undetached.count < Self.undetachedMax {
            undetached.insert(room)
        }
    }

    /// Removes runs of nodes that are gone from the node's rooms, so that newcomers do not look for them.
    package func sweep(_ gone: [NodeID: NodeIncarnation]) async {
        guard !sessions.isEmpty, membership.isStoreUp else { return }
        do {
            _ = try await store.sweep(Sweep(rooms: Array(sessions.keys), gone: gone))
        } catch {
            logger.debug("rooms were not swept", metadata: ["error": "\(error)"])
        }
    }

    /// Says goodbye to the store: the node takes no rooms, and has none.
    package func leaveStore() async {
        setState(.stopping)
        let rooms = Array(undetached.union(sessions.keys))
        sessions = [:]
        undetached = []
        await withTaskGroup(of: Void.self) { group in
            for (index, room) in rooms.enumerated() {
                if index >= Self.attachesMax { await group.next() }
                group.addTask { await self.leave(room) }
            }
        }
        guard membership.instance.incarnation.isAssigned,
            let request = membership.nextRequest(at: now + Membership.period)
        else { return }
        await perform(request)
    }
}
