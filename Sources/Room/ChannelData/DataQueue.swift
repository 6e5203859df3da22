import Base
import MediaTypes

/// Events of data channels that wait until their channel handles them.
///
/// A flow is what one participant sends to its signaling, or to others. Flows take turns, so that the burst of one delays an
/// event of another by one event. A flow whose first event cannot be handled yet is left out until then.
struct DataQueue: Sendable {
    struct Flow: Hashable, Sendable {
        let peer: PeerID
        /// Whether it is of channels for signaling. Such a flow does not wait for what its participant sends to others.
        let isSignaling: Bool
    }

    struct Entry: Sendable {
        let event: DataEvent
        /// When it arrived.
        let since: Instant
    }

    /// Pauses end at multiples of this, so that a thousand flows that are paused are looked at a hundred times a second.
    private static let pauseUnit: Int64 = 10_000_000

    /// Every flow with events.
    private var entries: [Flow: Queue<Entry>] = [:]
    /// The flows that are not paused, in the order of their turns; those of participants that left, too.
    private var turns = Queue<Flow>()
    /// Those that are, and until when, in the order in which they were paused.
    private var paused: [(flow: Flow, end: Instant)] = []
    /// The least time in ``paused``.
    private(set) var nextResume: Instant?

    var isEmpty: Bool { entries.isEmpty }

    /// Whether there is an event of a flow that is not paused.
    func hasTurn(at now: Instant) -> Bool {
        if let nextResume, nextResume <= now { return true }
        return !turns.isEmpty
    }

    mutating func append(_ event: DataEvent, of flow: Flow, at now: Instant) {
        if entries[flow] == nil { turns.append(flow) }
        entries[flow, default: Queue()].append(Entry(event: event, since: now))
    }

    /// The first event of the flow whose turn it is. ``removeFirst(of:)`` or ``pause(_:until:)`` follows.
    mutating func takeTurn(at now: Instant) -> (flow: Flow, entry: Entry)? {
        if let nextResume, nextResume <= now { resume(at: now) }
        while let flow = turns.removeFirst() {
            if let entry = entries[flow]?.first { return (flow, entry) }
        }
        return nil
    }

    /// The event was handled. The flow's next one has its turn behind the other flows.
    mutating func removeFirst(of flow: Flow) {
        entries[flow]?.removeFirst()
        guard entries[flow]?.isEmpty == false else {
            entries[flow] = nil
            return
        }
        turns.append(flow)
    }

    /// The event cannot be handled before `instant`.
    mutating func pause(_ flow: Flow, until instant: Instant) {
        let end = Instant(nanoseconds: (instant.nanoseconds / Self.pauseUnit + 1) * Self.pauseUnit)
        paused.append((flow, end))
        nextResume = earliest(nextResume, end)
    }

    private mutating func resume(at now: Instant) {
        let before = paused
        paused = []
        nextResume = nil
        for (flow, end) in before {
            if end <= now {
                turns.append(flow)
            } else {
                paused.append((flow, end))
                nextResume = earliest(nextResume, end)
            }
        }
    }

    /// Drops the events of a participant that left. It does not come back with the same identifier.
    mutating func remove(_ peer: PeerID) {
        entries[Flow(peer: peer, isSignaling: true)] = nil
        entries[Flow(peer: peer, isSignaling: false)] = nil
        paused.removeAll { $0.flow.peer == peer }
        if paused.isEmpty { nextResume = nil }
    }
}
