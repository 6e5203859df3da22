import Base

/// The deliveries of all channels of a node, against the limit of the node.
///
/// Beyond it, a channel's deliveries are paid for at an equal part of the limit. So channels that cause too many wait, and one
/// that causes few does not notice.
struct NodeDeliveries: Sendable {
    private var bucket = TokenBucket(0)
    /// The second that ``channels`` is of.
    private var second: Int64 = 0
    /// The channels with deliveries in this second, by their numbers, and how many there were in the one before.
    private var channels: Set<UInt64> = []
    private var channelsBefore = 0

    /// Takes deliveries.
    /// - Returns: what the channel may have a second; `nil` while the node is within its limit.
    mutating func take(_ count: Int, by channel: UInt64, perSecond limit: Int, at now: Instant) -> Int? {
        if bucket.rate.tokens != limit { bucket = TokenBucket(limit) }
        let current = now.nanoseconds / 1_000_000_000
        if current != second {
            channelsBefore = current == second + 1 ? channels.count : 0
            channels.removeAll(keepingCapacity: true)
            second = current
        }
        channels.insert(channel)
        let isWithin = bucket.hasRoom(at: now)
        bucket.charge(count, at: now)
        return isWithin ? nil : max(limit / max(channels.count, channelsBefore), 1)
    }
}
