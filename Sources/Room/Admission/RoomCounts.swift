package import ChannelTypes

/// What the node holds, for metrics.
package struct RoomCounts: Hashable, Sendable {
    package var channels = 0
    /// Channels that have a participant.
    package var sessions = 0
    package var publishers = 0
    package var viewers = 0
    package var listeners = 0
    /// Participants whose transport is up.
    package var connections = ChannelCounts()
    package init() {}
}
