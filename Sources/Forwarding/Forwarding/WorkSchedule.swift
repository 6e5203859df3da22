import Base
import MediaTypes

/// When the core works on which peer: at the end of this turn, at a deadline of the peer's own, and when a packet that
/// waits may leave.
final class WorkSchedule {
    // They are accessed in one step at a time, so accesses are not checked.
    @exclusivity(unchecked) private var deadlines = DeadlineQueue()
    /// When the packets that wait to leave are looked at, for each peer that has any.
    @exclusivity(unchecked) private var sendTimes = DeadlineQueue()
    /// Peers with work at the end of this turn. A peer that is removed leaves a gap.
    private var dirty: ContiguousArray<Unretained<Peer>?> = []
    /// The peers of the round that is being served.
    private var serving: ContiguousArray<Unretained<Peer>?> = []
    /// Peers that were removed in this turn. A caller may still work on one of them.
    private var removed: [Peer] = []

    /// Between two times that a peer is served by its own deadline.
    private static let spacing = Interval.milliseconds(1)
    /// Serving a peer may make another one dirty, which in turn makes none dirty.
    private static let roundsMax = 3

    var isEmpty: Bool { unsafe deadlines.count == 0 && sendTimes.count == 0 && dirty.isEmpty }

    /// When something is due next; at once while a peer is dirty.
    var nextDeadline: Instant? {
        dirty.isEmpty ? earliest(unsafe deadlines.next, unsafe sendTimes.next) : Instant(nanoseconds: .min)
    }

    // MARK: - What is due

    /// A peer whose deadline has come. ``noteServed(_:at:)`` or ``dropDeadline(of:)`` sets another one.
    func firstDue(at now: Instant) -> PeerID? { unsafe deadlines.firstDue(at: now) }
    func dropDeadline(of peer: PeerID) { unsafe deadlines.set(peer, to: nil) }
    /// A peer whose waiting packets are looked at now. ``setSendTime(of:to:)`` sets another time.
    func firstSendDue(at now: Instant) -> PeerID? { unsafe sendTimes.firstDue(at: now) }
    /// When a peer's waiting packets are looked at again; `nil` when none waits.
    func setSendTime(of peer: PeerID, to instant: Instant?) { unsafe sendTimes.set(peer, to: instant) }

    /// The peer was served. What is still due could not be done now; waiting a moment keeps one peer from holding the loop.
    func noteServed(_ peer: Peer, at now: Instant) {
        let deadline = peer.nextDeadline.map { max($0, now + Self.spacing) }
        guard peer.turn.wakesAt != deadline else { return }
        peer.turn.wakesAt = deadline
        unsafe deadlines.set(peer.id, to: deadline)
    }

    /// The peer's work is due no later than `instant`.
    func wake(_ peer: Peer, at instant: Instant) {
        if let current = peer.turn.wakesAt, current <= instant { return }
        markDirty(peer)
    }

    // MARK: - The end of a turn

    /// The peer has work at the end of this turn.
    func markDirty(_ peer: Peer) {
        guard peer.turn.dirtyPlace == nil else { return }
        peer.turn.dirtyPlace = dirty.count
        dirty.append(Unretained(peer))
    }

    /// Calls `serve` with each dirty peer, and with those that become dirty by it.
    func serveDirty(_ serve: (Peer) -> Void) {
        var rounds = 0
        while !dirty.isEmpty, rounds < Self.roundsMax {
            // Serving adds to `dirty`. The two are swapped, so that neither is allocated again.
            swap(&dirty, &serving)
            var index = 0
            while index < serving.count {
                serving[index]?.with { peer in
                    peer.turn.dirtyPlace = nil
                    serve(peer)
                }
                index += 1
            }
            serving.removeAll(keepingCapacity: true)
            rounds += 1
        }
        if !removed.isEmpty { removed.removeAll() }
    }

    /// Removes a peer that leaves, and keeps it alive until the end of the turn.
    func remove(_ peer: Peer) {
        removed.append(peer)
        unsafe deadlines.set(peer.id, to: nil)
        unsafe sendTimes.set(peer.id, to: nil)
        guard let place = peer.turn.dirtyPlace else { return }
        peer.turn.dirtyPlace = nil
        if place < serving.count, serving[place]?.refers(to: peer) == true { serving[place] = nil }
        if place < dirty.count, dirty[place]?.refers(to: peer) == true { dirty[place] = nil }
    }
}

/// One peer's place in its core's ``WorkSchedule``.
struct ScheduledPeer {
    /// Where the peer stands among the dirty ones; `nil` when it is not dirty.
    fileprivate(set) var dirtyPlace: Int?
    /// When the core looks at the peer by itself.
    fileprivate(set) var wakesAt: Instant?
}
