package import Base
package import ChannelTypes
package import MediaTypes
import Room

/// A node's place in its cluster: its own incarnation and record, its heartbeats, and what it knows of the others.
///
/// The owner sends each ``nextRequest(at:)`` to the store and hands back its result, whenever that comes; there is one
/// request at a time, and one second from each to the next. Nothing of a running call depends on it: without a store the
/// node keeps a provisional incarnation and the view that it has.
package struct Membership: Sendable {
    package enum Request: Hashable, Sendable {
        case enlist(RegisterNode)
        case beat(Heartbeat)
    }

    /// What the owner acts upon and logs. Each is told once, when it begins.
    package enum Event: Hashable, Sendable {
        /// The store assigned the incarnation in ``Membership/instance``. All rooms have to be attached.
        case enlisted
        /// Another run of this node has a higher incarnation. This one takes no new rooms.
        case fenced
        /// That run is gone. This one has a later incarnation, and takes new rooms again.
        case returned
        /// The store lost what it knew, wholly (``StoreIncident/emptied``) or in part (``StoreIncident/olderCopy``). All rooms
        /// have to be attached again.
        case storeChanged(StoreIncident)
        case storeLost(StoreError)
        case storeReturned
        /// ``Membership/view`` is another one.
        case viewChanged
    }

    /// From one request to the next, whatever comes of it.
    package static let period = Interval.seconds(1)
    /// What changes all the time, such as the load, is told this often at most.
    package static let measurementInterval = Interval.seconds(5)
    /// In a large cluster, all nodes together tell one changed measurement in this time at most. An answer to a heartbeat has
    /// room for ``StoreTimes/changesMax`` of them, and a node that cannot keep up never has the whole view.
    package static let measurementShare = Interval.milliseconds(25)
    /// A node without a store gets ready after so long.
    package static let settledAfter = Interval.seconds(3)
    /// The times that a node asks for an incarnation above its last one.
    static let enlistmentsMax = 8
    /// This many requests in a row fail before the store counts as lost.
    static let failuresMax = 3

    /// This run. Without an incarnation of the store it is provisional: a random one of the upper half of the range.
    package private(set) var instance: NodeInstance
    package private(set) var record: NodeRecord
    package private(set) var view = ClusterView()
    /// A higher incarnation of this node exists, and is there as far as the store tells.
    package private(set) var isFenced = false
    /// The last request was answered.
    package private(set) var isStoreUp = false

    /// Whether records without a signature are accepted: those of builds that do not sign. Records with a wrong one never are.
    private var acceptsUnsigned: Bool
    private let startedAt: Instant
    /// The last incarnation that an earlier run had from the store, as far as is known.
    private var previous: NodeIncarnation?
    private var enlistments = 0
    /// The run that fences this one is gone: the next request asks for a later incarnation.
    private var isReturning = false
    /// The highest incarnation of this node that the store told of.
    private var successor: NodeIncarnation?
    private var generator: SplitMix64
    private var nextRequestAt: Instant
    private var isRequestUnderWay = false
    private var failures = 0

    private var generation: StoreGeneration?
    private var cursor: Int64 = 0
    /// The store's clock at its last answer to a heartbeat, in milliseconds.
    private var answeredMS: Int64 = 0
    /// The store has told of all nodes.
    private var hasWholeView = false
    /// Nobody was absent before this time of the store's clock, by its last answer.
    private var graceMS: Int64 = 0
    /// What the request under way says of this node, and what the store has of it.
    private var telling: NodeRecord?
    private var told: NodeRecord?
    private var toldAt: Instant
    private var audit = ViewAudit()
    private var attachQueue = AttachQueue()
    private var confirmations = AttachConfirmations()
    /// Channels that absent nodes may have, to be attached again when those return.
    private var awaited: [NodeID: Set<ChannelName>] = [:]

    /// - Parameters:
    ///   - saved: What the node kept of an earlier run, of use when it is of the same node.
    ///   - acceptsUnsigned: Whether records of other nodes need no signature.
    ///   - seed: For everything random.
    /// - Throws: ``RecordTooLong``.
    package init(
        node: NodeID,
        record: NodeRecord,
        saved: SavedView?,
        acceptsUnsigned: Bool = false,
        seed: UInt64,
        at now: Instant
    ) throws(RecordTooLong) {
        try record.requireLength()
        self.acceptsUnsigned = acceptsUnsigned
        generator = SplitMix64(seed: seed)
        instance = NodeInstance(node: node, incarnation: NodeIncarnation(using: &generator))
        self.record = record
        startedAt = now
        nextRequestAt = now
        toldAt = now
        if let saved, saved.instance.node == node {
            if saved.instance.incarnation.isAssigned { previous = saved.instance.incarnation }
            for change in saved.members where change.instance.node != node { _ = view.take(change) }
        }
    }

    // MARK: Its own record

    /// Sets what the node tells of itself. The store learns of it with the next heartbeat, of changed measurements later.
    /// - Throws: ``RecordTooLong``. The record stays as it was then.
    package mutating func setRecord(_ record: NodeRecord) throws(RecordTooLong) {
        try record.requireLength()
        self.record = record
    }

    /// Whether new rooms may begin here.
    package var takesNewRooms: Bool { record.state == .ready && !isFenced }

    /// Whether the node knows enough to get ready: the store has assigned an incarnation and told of all nodes, or did not
    /// in ``settledAfter``.
    package func isSettled(at now: Instant) -> Bool {
        now - startedAt >= Self.settledAfter || hasWholeView
    }

    /// Where new rooms may begin, by what this node knows.
    package var placement: Placement {
        Placement(view, own: takesNewRooms ? ClusterView.Member(instance: instance, record: record) : nil)
    }

    /// Where rooms may be, by what this node knows.
    package var placementWithClosed: Placement {
        Placement(withClosed: view, own: ClusterView.Member(instance: instance, record: record))
    }

    /// What to keep on disk.
    package var savedView: SavedView {
        let members = view.members.values.sorted { $0.instance.node < $1.instance.node }
        return SavedView(
            instance: previous.map { NodeInstance(node: instance.node, incarnation: $0) } ?? instance,
            members: members.map { HeartbeatAnswer.Change(instance: $0.instance, record: $0.record) }
        )
    }

    /// A room's entry without the runs of nodes that are gone, and without absent nodes. A later run than the known one is there.
    package func present(in entry: RoomEntry) -> RoomEntry {
        var entry = entry
        entry.nodes = entry.nodes.filter { node, attachment in
            guard let known = view[node] else { return true }
            let attached = attachment.incarnation.rawValue
            let seen = known.instance.incarnation.rawValue
            return attached > seen || attached == seen && !known.isAbsent
        }
        return entry
    }

    /// The runs in a room's entry that a later run of the same node has replaced.
    func replaced(in entry: RoomEntry) -> [NodeID: NodeIncarnation] {
        entry.nodes.mapValues(\.incarnation).filter { node, incarnation in
            view[node].map { incarnation.rawValue < $0.instance.incarnation.rawValue } ?? false
        }
    }

    // MARK: Requests

    /// When to call ``nextRequest(at:)`` and ``nextRooms(at:)``; `nil` while only an answer is awaited.
    package var nextDeadline: Instant? {
        let attaching = attachQueue.nextDeadline ?? confirmations.nextDeadline
        return earliest(isRequestUnderWay ? nil : nextRequestAt, mayAttach ? attaching : nil)
    }

    /// A request to send, if one is due. Its result has to be handed back, a failure too.
    package mutating func nextRequest(at now: Instant) -> Request? {
        guard !isRequestUnderWay, now >= nextRequestAt else { return nil }
        isRequestUnderWay = true
        nextRequestAt = now + Self.period
        let candidate = StoreGeneration(using: &generator)
        guard instance.incarnation.isAssigned, !isReturning else {
            return .enlist(RegisterNode(node: instance.node, candidate: candidate))
        }
        telling = recordToTell(at: now)
        if audit.begin(at: now) { cursor = 0 }
        return .beat(
            Heartbeat(
                instance: instance,
                record: telling,
                generation: generation,
                cursor: cursor,
                answeredMS: answeredMS,
                candidate: candidate
            )
        )
    }

    private func recordToTell(at now: Instant) -> NodeRecord? {
        // A fenced run would replace the record of the other one in a store that forgot that one.
        guard !isFenced, record != told else { return nil }
        guard let told, told.withoutMeasurements == record.withoutMeasurements else { return record }
        let interval = max(Self.measurementInterval, Self.measurementShare * (view.members.count + 1))
        return now - toldAt >= interval ? record : nil
    }

    /// The store answered ``Request/enlist(_:)``.
    package mutating func receivedEnlistment(
        _ result: Result<NodeIncarnation, StoreError>,
        at now: Instant
    ) -> [Event] {
        guard isRequestUnderWay else { return [] }
        isRequestUnderWay = false
        switch result {
        case .failure(let error):
            // The other run may be back before the store is.
            isReturning = false
            return failed(error)
        case .success(let incarnation):
            guard incarnation.isAssigned else {
                isReturning = false
                return failed(.malformed)
            }
            enlistments += 1
            // A store that lost its data gives numbers again until the heartbeats of the others raise them. With one that
            // it had, the node would be ignored by those who know the later one. With that of another node, the two would
            // refuse each other's links.
            if incarnation.rawValue <= highestKnown, enlistments < Self.enlistmentsMax { return succeeded() }
            previous = nil
            instance = NodeInstance(node: instance.node, incarnation: incarnation)
            // The first heartbeat needs no pause.
            nextRequestAt = now
            guard isFenced else { return succeeded() + [.enlisted] }
            isFenced = false
            isReturning = false
            told = nil
            return succeeded() + [.returned, .enlisted]
        }
    }

    /// The store answered ``Request/beat(_:)``.
    package mutating func receivedBeat(_ result: Result<HeartbeatAnswer, StoreError>, at now: Instant) -> [Event] {
        guard isRequestUnderWay else { return [] }
        isRequestUnderWay = false
        defer { telling = nil }
        switch result {
        case .failure(let error):
            // The request may have taken effect nevertheless; telling the same again does no harm.
            if telling != nil { told = nil }
            return failed(error)
        case .success(let answer):
            let events = succeeded()
            return events + apply(answer, at: now)
        }
    }

    /// The highest incarnation of the store that this node knows of, of its own runs and of others.
    private var highestKnown: UInt32 {
        let others = view.members.values.map(\.instance.incarnation)
        let own = [previous, successor, instance.incarnation].compactMap(\.self)
        return (own + others).filter(\.isAssigned).map(\.rawValue).max() ?? 0
    }

    private mutating func failed(_ error: StoreError) -> [Event] {
        isStoreUp = false
        failures += 1
        return failures == Self.failuresMax ? [.storeLost(error)] : []
    }

    private mutating func succeeded() -> [Event] {
        let wasLost = failures >= Self.failuresMax
        failures = 0
        isStoreUp = true
        return wasLost ? [.storeReturned] : []
    }

    // MARK: Answers

    private mutating func apply(_ answer: HeartbeatAnswer, at now: Instant) -> [Event] {
        var events: [Event] = []
        let isOtherStore = generation != nil && answer.generation != generation
        if isOtherStore { events.append(.storeChanged(incident(of: answer))) }
        if let telling {
            told = telling
            toldAt = now
        }
        // Another copy of the store has another record of this node, or none.
        if isOtherStore || !answer.isKnown { told = nil }
        // Whoever reads the store from its start would ignore this node until it tells of itself.
        if answer.changes.contains(where: { $0.instance == instance && !accepts($0) }) { told = nil }
        if answer.generation != generation || answer.graceMS != graceMS {
            audit.schedule(for: answer, at: now)
        }
        generation = answer.generation
        cursor = answer.cursor
        answeredMS = answer.timeMS
        if answer.cursor >= answer.revision { hasWholeView = true }
        graceMS = answer.graceMS
        let isFencedNow = isFencedBy(answer)
        if isFencedNow, !isFenced {
            isFenced = true
            events.append(.fenced)
        }
        for other in answer.changes.map(\.instance) where other.node == instance.node {
            if other.incarnation.rawValue > successor?.rawValue ?? 0 { successor = other.incarnation }
        }
        // Heartbeats of a fenced run keep nobody present, so it is the other one that is absent. Nobody is before the end of the
        // grace, in which a run tells a store of itself again that lost it. A run that drains leaves the name to the other one,
        // which may be late only.
        let isGone = !isFencedNow || answer.absent.contains(instance.node)
        if isFenced, isGone, record.state == .ready, answer.timeMS >= answer.graceMS {
            isReturning = true
            enlistments = 0
        }
        if take(answer, at: now) { events.append(.viewChanged) }
        attachAwaited(at: now)
        return events
    }

    /// An empty store counts its changes from the first node on that tells it of itself. A copy has far more behind it.
    private func incident(of answer: HeartbeatAnswer) -> StoreIncident {
        answer.revision <= Int64(view.members.count) + 1 ? .emptied : .olderCopy
    }

    private func isFencedBy(_ answer: HeartbeatAnswer) -> Bool {
        answer.isFenced
            || answer.changes.contains {
                $0.instance.node == instance.node
                    && $0.instance.incarnation.rawValue > instance.incarnation.rawValue
            }
    }

    /// Sets whether records of other nodes need no signature. The store is asked for all nodes then.
    package mutating func setAcceptsUnsigned(_ accepts: Bool, at now: Instant) {
        guard accepts != acceptsUnsigned else { return }
        acceptsUnsigned = accepts
        audit.restart(at: now)
    }

    private func accepts(_ change: HeartbeatAnswer.Change) -> Bool {
        switch change.signature {
        case .valid: true
        case .missing: acceptsUnsigned
        case .invalid: false
        }
    }

    /// Returns whether the view is another one now.
    private mutating func take(_ answer: HeartbeatAnswer, at now: Instant) -> Bool {
        var isChanged = false
        for change in answer.changes {
            let isAccepted = accepts(change)
            // Operators are shown a record under this node's name that is not its own.
            guard change.instance.node != instance.node || !isAccepted else {
                audit.stopIgnoring(instance.node)
                if view.stopIgnoring(instance.node) { isChanged = true }
                continue
            }
            audit.take(change, isAccepted: isAccepted)
            let isNews = isAccepted ? view.take(change) : view.ignore(change)
            if isNews { isChanged = true }
        }
        if answer.cursor >= answer.revision, let list = audit.finish() {
            var complete = list
            _ = complete.setAbsent(answer.absent)
            return view.replace(by: complete) || isChanged
        }
        var forgotten: Set<NodeID> = []
        if answer.timeMS >= answer.graceMS {
            // A node that returns is among the changes. Any other one that is not absent any more was forgotten.
            let returned = Set(answer.changes.map(\.instance.node))
            forgotten = Set(
                view.members.filter {
                    $0.value.isAbsent && !answer.absent.contains($0.key) && !returned.contains($0.key)
                }.keys
            )
            if !forgotten.isEmpty { audit.schedule(at: now) }
        }
        return view.setAbsent(answer.absent, forgotten: forgotten) || isChanged
    }

    // MARK: Channels

    /// The rooms that wait to be attached.
    package var roomsWaiting: Int { attachQueue.count }

    /// Has rooms attached that the store may not know of: all of the node's after ``Event/enlisted`` and
    /// ``Event/storeChanged``, and each one whose attaching failed. They are spread over some seconds.
    package mutating func attachLater(_ rooms: some Sequence<ChannelName>, at now: Instant) {
        attachQueue.add(rooms, using: &generator, at: now)
    }

    /// Has rooms attached again when an absent node returns that may have them: the node does not tell of them by itself when it
    /// was not without the store.
    package mutating func attachLater(_ rooms: some Sequence<ChannelName>, whenReturned node: NodeID, at now: Instant) {
        guard view[node] != nil else { return }
        awaited[node, default: []].formUnion(rooms)
        attachAwaited(at: now)
    }

    private mutating func attachAwaited(at now: Instant) {
        for (node, rooms) in awaited.sorted(by: { $0.key < $1.key }) where view[node]?.isAbsent != true {
            awaited[node] = nil
            if view[node] != nil { attachLater(rooms.sorted { $0.value < $1.value }, at: now) }
        }
    }

    /// The store answered for a room. After the first time, the room is attached once more.
    package mutating func attached(_ room: ChannelName, at now: Instant) { confirmations.attached(room, at: now) }

    /// A room ended that may wait to be attached.
    package mutating func roomEnded(_ room: ChannelName) {
        attachQueue.remove(room)
        confirmations.remove(room)
    }

    private var mayAttach: Bool { isStoreUp && !isFenced && instance.incarnation.isAssigned }

    /// The rooms to attach now. None while the store does not answer or the node is fenced.
    /// - Parameter count: the most rooms to return.
    package mutating func nextRooms(at now: Instant, max count: Int = .max) -> [ChannelName] {
        guard mayAttach else { return [] }
        // Those that the store does not know come first.
        guard attachQueue.count == 0 else { return attachQueue.next(at: now, max: count) }
        return confirmations.next(at: now, max: count, using: &generator)
    }
}
