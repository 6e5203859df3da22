/// The lifetime of a channel from its first participant to its last: a session in Sora's sense.
package struct ChannelSession: Hashable, Sendable, Codable {
    package let id: ChannelSessionID
    package let channel: ChannelName
    /// In nanoseconds since 1970 UTC.
    package let createdAt: Int64

    package init(id: ChannelSessionID, channel: ChannelName, createdAt: Int64) {
        self.id = id
        self.channel = channel
        self.createdAt = createdAt
    }

    /// Whether this one stays when nodes have two sessions of a channel: the older one, and of equally old ones the one with
    /// the lower identifier.
    package func precedes(_ other: Self) -> Bool {
        (createdAt, id.value) < (other.createdAt, other.id.value)
    }
}
