import MediaTypes

/// The memory that the data channels of all peers of one core take.
///
/// Each association is bounded by its window and its queue. These bounds are for all together: beyond them, an association that
/// takes more than its part of them gets no more.
final class DataBudget {
    /// Bytes of received data that associations hold: parts of messages, and messages that nobody took.
    static let heldBytesMax = 256 << 20
    /// Bytes that wait to be sent for the first time, or were sent and are not acknowledged. A message for many receivers counts for
    /// each.
    static let queuedBytesMax = 256 << 20
    /// Bytes of received messages that are on their way to their readers.
    static let creditBytesMax = 64 << 20

    /// Of all peers' received messages.
    let credit = DataCredit(bytesMax: DataBudget.creditBytesMax)
    /// Peers with data channels.
    var peerCount = 0
    var heldBytes = 0
    var queuedBytes = 0
    /// Packets are written here; at least as long as the longest one.
    var packet = [UInt8](repeating: 0, count: 1_200)

    /// Whether an association that holds this much has to end.
    func exceedsHeld(_ own: Int) -> Bool {
        heldBytes > Self.heldBytesMax && own > Self.heldBytesMax / max(peerCount, 1)
    }

    /// Whether an association that has queued this much may queue no more.
    func exceedsQueued(_ own: Int) -> Bool {
        queuedBytes > Self.queuedBytesMax && own > Self.queuedBytesMax / max(peerCount, 1)
    }
}
