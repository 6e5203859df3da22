import MediaTypes
import Synchronization

/// Events of peers on their way from a media thread to an actor.
///
/// The number that waits is bounded by the peers and their tracks, however fast a peer makes events: see
/// ``PeerEvent/merge(into:)``.
final class PeerEventInbox: Sendable {
    private struct State {
        var order: [PeerID] = []
        var waiting: [PeerID: [PeerEvent]] = [:]
    }
    private let state = Mutex(State())

    /// Returns whether nothing was waiting.
    func post(_ event: PeerEvent, from peer: PeerID) -> Bool {
        state.withLock { state in
            let wasEmpty = state.order.isEmpty
            if state.waiting[peer] == nil { state.order.append(peer) }
            event.merge(into: &state.waiting[peer, default: []])
            return wasEmpty
        }
    }

    /// All that arrived since the last call, peers in the order of their first event.
    func take() -> [(peer: PeerID, event: PeerEvent)] {
        let taken = state.withLock { state in
            let taken = state
            state = State()
            return taken
        }
        return taken.order.flatMap { peer in (taken.waiting[peer] ?? []).map { (peer, $0) } }
    }
}
