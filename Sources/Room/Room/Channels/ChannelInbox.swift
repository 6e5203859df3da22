import ChannelTypes
import MediaTypes
import Synchronization

/// A queue to a channel: events of its peers from media threads, and participants that newcomers of other channels evicted.
///
/// Its size is bounded by the peers and their tracks: the latest event of each kind is kept for each peer, track and
/// slot, and only `closed` of a peer that closed. A participant is evicted once.
final class ChannelInbox: Sendable {
    private struct State {
        var order: [PeerID] = []
        var waiting: [PeerID: [PeerEvent]] = [:]
        var evicted: [ParticipantID] = []

        var isEmpty: Bool { order.isEmpty && evicted.isEmpty }
    }
    private let state = Mutex(State())

    /// - Returns: whether the queue was empty.
    func post(_ event: PeerEvent, from peer: PeerID) -> Bool {
        state.withLock { state in
            let wasEmpty = state.isEmpty
            if state.waiting[peer] == nil { state.order.append(peer) }
            event.merge(into: &state.waiting[peer, default: []])
            return wasEmpty
        }
    }

    /// - Returns: whether the queue was empty.
    func evict(_ participants: [ParticipantID]) -> Bool {
        state.withLock { state in
            let wasEmpty = state.isEmpty
            state.evicted += participants
            return wasEmpty
        }
    }

    /// Removes and returns everything, peers in the order of their first event.
    func take() -> (evicted: [ParticipantID], events: [(peer: PeerID, event: PeerEvent)]) {
        let taken = state.withLock { state in
            let taken = state
            state = State()
            return taken
        }
        return (taken.evicted, taken.order.flatMap { peer in (taken.waiting[peer] ?? []).map { (peer, $0) } })
    }
}
