import ChannelTypes
import MediaTypes

/// What waits for a channel: events of its peers from media threads, and participants that newcomers of other channels evicted.
///
/// Its size is bounded by the peers and their tracks: the latest event of each kind is kept for each peer, track and
/// slot, and only `closed` of a peer that closed. A participant is evicted once.
struct ChannelInbox: Sendable {
    private var order: [PeerID] = []
    private var waiting: [PeerID: [PeerEvent]] = [:]
    private(set) var evicted: [ParticipantID] = []

    /// The events, peers in the order of their first one.
    var events: [(peer: PeerID, event: PeerEvent)] {
        order.flatMap { peer in (waiting[peer] ?? []).map { (peer, $0) } }
    }

    mutating func add(_ event: PeerEvent, from peer: PeerID) {
        if waiting[peer] == nil { order.append(peer) }
        event.merge(into: &waiting[peer, default: []])
    }

    mutating func evict(_ participants: [ParticipantID]) { evicted += participants }
}
