package import ChannelTypes
package import Wire

/// A channel's membership at one moment, for channel event streams.
package struct ChannelSnapshot: Hashable, Sendable {
    /// One publishing participant.
    package struct Participant: Hashable, Sendable {
        package let id: ParticipantID
        package let displayName: String?
        /// Whether its transport is up.
        package let isLive: Bool
        package let publications: [Publication]
        /// The kinds of its media that it or an operator muted.
        package let muted: Set<MediaKind>
    }
    package let channel: ChannelName
    /// Grows with every change while the channel exists.
    package let revision: UInt64
    /// The publishers in the order of joining. Viewers are counted only, to keep the list short.
    package let participants: [Participant]
    /// The current publisher.
    package let current: ParticipantID?
    /// Active viewers.
    package let viewerCount: Int
}
