import Base
import MediaTypes

/// The memory that the data channels of all peers of one core take, and the packets that they send in one turn.
///
/// Each association is bounded by its window and its queue. These bounds are for all together: beyond them, an association that
/// takes more than its part of them gets no more.
final class DataBudget {
    /// Bytes of received data that associations hold: parts of messages, and messages that nobody took.
    static let heldBytesMax = 256 << 20
    /// Bytes that wait to be sent for the first time, or were sent and are not acknowledged. A message for many receivers counts for
    /// each.
    static let queuedBytesMax = 256 << 20
    /// Bytes of received messages that are on their way to their readers. Up to twice as many are, so that no peer gets nothing:
    /// see ``DataCredit/partBytes``.
    static let creditBytesMax = 64 << 20

    /// Packets with data that leave in one turn: about a millisecond of the loop. What has no room leaves in the next turns, so
    /// that media does not wait for it.
    static let packetsPerTurnMax = 512

    /// Of all peers' received messages.
    let credit = DataCredit(bytesMax: DataBudget.creditBytesMax)
    /// Peers with data channels.
    var peerCount = 0
    var heldBytes = 0
    var queuedBytes = 0
    // What follows is accessed in one step at a time, for each turn or packet, so accesses are not checked.

    /// Peers that found no packets left, in the order in which they are served. Their packets go before those of others.
    @exclusivity(unchecked) private var waiting: [PeerID] = []
    @exclusivity(unchecked) private var nextTurn: Instant?
    /// Packets with data that may still leave in this turn.
    @exclusivity(unchecked) private var packetsLeft = DataBudget.packetsPerTurnMax
    /// Packets are written here; at least as long as the longest one.
    var packet = [UInt8](repeating: 0, count: 1_200)

    // MARK: - The turn

    /// Whether packets with data may leave in this turn.
    var hasTurn: Bool { unsafe packetsLeft > 0 }

    /// A packet with data leaves.
    func takePacket() { unsafe packetsLeft -= 1 }

    /// Whether peers found no packets left.
    var hasWaiting: Bool { unsafe !waiting.isEmpty }
    /// When the next turn is due at the latest, while peers wait for it.
    var nextTurnAt: Instant? { unsafe nextTurn }

    func addWaiting(_ peer: PeerID) { unsafe waiting.append(peer) }
    func takeWaiting() -> [PeerID] {
        let taken = unsafe waiting
        unsafe waiting = []
        return taken
    }
    /// Puts those that were not served before those that wait since then.
    func putBack(_ peers: ArraySlice<PeerID>) { unsafe waiting.insert(contentsOf: peers, at: 0) }

    func turnEnded(at now: Instant) {
        unsafe packetsLeft = Self.packetsPerTurnMax
        unsafe nextTurn = waiting.isEmpty ? nil : now + .milliseconds(1)
    }

    // MARK: - Memory

    /// Whether an association that holds this much has to end.
    func exceedsHeld(_ own: Int) -> Bool {
        heldBytes > Self.heldBytesMax && own > Self.heldBytesMax / max(peerCount, 1)
    }

    /// Whether an association that has queued this much may queue no more.
    func exceedsQueued(_ own: Int) -> Bool {
        queuedBytes > Self.queuedBytesMax && own > Self.queuedBytesMax / max(peerCount, 1)
    }
}
