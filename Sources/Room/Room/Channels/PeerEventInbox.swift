import MediaTypes
import Synchronization

/// A queue of peer events from media threads to an actor.
///
/// Its size is bounded by the peers and their tracks: the latest event of each kind is kept for each peer, track and
/// slot, and only `closed` of a peer that closed.
final class PeerEventInbox: Sendable {
    private struct State {
        var order: [PeerID] = []
        var waiting: [PeerID: [PeerEvent]] = [:]
    }
    private let state = Mutex(State())

    /// - Returns: whether the queue was empty.
    func post(_ event: PeerEvent, from peer: PeerID) -> Bool {
        state.withLock { state in
            let wasEmpty = state.order.isEmpty
            if state.waiting[peer] == nil { state.order.append(peer) }
            event.merge(into: &state.waiting[peer, default: []])
            return wasEmpty
        }
    }

    /// Removes and returns all events, peers in the order of their first event.
    func take() -> [(peer: PeerID, event: PeerEvent)] {
        let taken = state.withLock { state in
            let taken = state
            state = State()
            return taken
        }
        return taken.order.flatMap { peer in (taken.waiting[peer] ?? []).map { (peer, $0) } }
    }
}
