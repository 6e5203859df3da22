package import ChannelTypes

/// The channel's check of a newcomer, for ``NodeModel/admit(_:id:check:at:)``.
package struct AdmissionCheck: Hashable, Sendable {
    /// Whether the participant that the newcomer follows is not a publisher of the channel.
    package var isTargetUnknown = false
    /// Whether the newcomer requests another profile than the channel has.
    package var isProfileMismatched = false
    /// Whether the newcomer's app is another one than the channel's.
    package var isAppMismatched = false
    /// Whether the newcomer only sends, and an operator keeps its user in the audience.
    package var isHeldInAudience = false
    /// The limit of the channel that the newcomer would exceed.
    package var exceeded: RoomError?
    /// Whether the newcomer starts as audience, so that it does not publish yet.
    package var isAudience = false
    /// The members whose places the newcomer takes.
    package var replaced: [ParticipantID] = []
    package init() {}
}
