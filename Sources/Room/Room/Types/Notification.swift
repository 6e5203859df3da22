import Base
package import ChannelTypes
package import MediaTypes
package import Wire

/// A notification to members. It is encoded once for all receivers.
package final class Notification: Sendable {
    package enum Content: Hashable, Sendable {
        /// A member is connected. `others` are the members before it, for the newcomer itself; `nil` for other
        /// receivers.
        case created(Member, minutes: Int, session: ChannelSessionID, counts: ChannelCounts, others: [Member]?)
        /// A member has been connected for another minute.
        case updated(Member, minutes: Int, session: ChannelSessionID, counts: ChannelCounts)
        /// A member left; it is not in the counts.
        case destroyed(Member, minutes: Int, session: ChannelSessionID, counts: ChannelCounts)
        case spotlightFocused(Member, isFixed: Bool)
        case spotlightUnfocused(Member, isFixed: Bool)
        /// The receiver receives another layer of a sender's video.
        case layerSwitched(LayerSwitch)
        /// A filter starts or stops blocking a track for a receiver.
        case forwarding(isBlocked: Bool, kind: MediaKind, source: ParticipantID, destination: ParticipantID)
        /// The stability of the network between receiver and node changed: from 0, stable, to 3, very unstable.
        case networkStatus(unstableLevel: Int)
        /// The quality of the receiver's own network has another level.
        case networkQuality(LinkQuality)
        /// The quality of a publisher's network has another level.
        case othersQuality(Member, LinkQuality)
        /// The receiver cannot decode a sender's codec, so the track is not forwarded to it.
        case codecUnsupported(CodecName, source: ParticipantID, destination: ParticipantID)
        /// The receiver's own ICE connection state changed.
        case iceStateChanged(current: ICEState, previous: ICEState)
        /// A member's connection is lost, and its place is kept.
        case interrupted(Member)
        /// An interrupted member is back.
        case resumed(Member)
        /// The receiver's token or URL expires soon. The participant ends then.
        case accessExpires(unixSeconds: Int64)
        /// The receiver has joined.
        case channelJoined(JoinedChannel)
        /// The first connection of a user is announced.
        case userOnline(ChannelUser)
        /// The last announced connection of a user is gone.
        case userOffline(String, Departure)
        /// Media of a connection begins or stops to come, or was muted or unmuted.
        case tracksChanged(PublishedTracks)
        /// The first key frame of a connection's video came, so many milliseconds after the connection asked to join.
        case firstFrame(Member, elapsedMilliseconds: Int)
        /// The receiver's own role changed.
        case roleChanged(ChannelRole, by: Initiator.Kind)
        /// A user raised or lowered its hand.
        case handChanged(Hand)
        /// What was written in the channel's chat before the receiver read it, the oldest first.
        case chatHistory([ChatMessage])
        /// An operator muted or unmuted the receiver, or a moderator muted it.
        case muted(MediaKind, isMuted: Bool, by: Initiator.Kind)
    }
    package enum ICEState: String, Hashable, Sendable { case checking, connected }
    package struct LayerSwitch: Hashable, Sendable {
        package enum Trigger: Hashable, Sendable {
            /// A layer of the sender stopped or came back.
            case sender
            /// The receiver, or an operator for it, requested another layer.
            case receiver
        }
        package let sender: ParticipantID?
        /// The requested layer.
        package let requested: LayerChoice
        /// The sender's layers, the lowest first, and those of them that the node may choose for the receiver.
        package let layers: [RID]
        package let permitted: [RID]
        /// `nil` when nothing is sent.
        package let current: RID?
        package let previous: RID?
        package let isHigher: Bool
        package let trigger: Trigger
    }

    /// When it happened, in nanoseconds since 1970 UTC.
    package let timestamp: Int64
    package let content: Content
    private let text = Replaceable<String?>(nil)

    package init(_ content: Content, timestamp: Int64) {
        self.content = content
        self.timestamp = timestamp
    }

    /// The encoded notification, made by the first caller and cached.
    package func encoded(_ make: (Notification) -> String) -> String {
        if let made = text.current { return made }
        let made = make(self)
        text.current = made
        return made
    }
}
