public import MediaTypes
import Synchronization
public import Wire

/// One piece of news for members, made once however many get it.
public final class Notification: Sendable {
    public enum Content: Hashable, Sendable {
        /// A member's transport is up. `others` is who was there before: for the newcomer itself, `nil` for others.
        case created(Member, minutes: Int, session: ChannelSessionID, counts: ChannelCounts, others: [Member]?)
        /// A minute of a member's life passed, or what others are told of it changed.
        case updated(Member, minutes: Int, session: ChannelSessionID, counts: ChannelCounts)
        /// A member left; it is not in the counts.
        case destroyed(Member, minutes: Int, session: ChannelSessionID, counts: ChannelCounts)
        case spotlightFocused(Member, isFixed: Bool)
        case spotlightUnfocused(Member, isFixed: Bool)
        /// The receiver gets another layer of a sender's video.
        case layerSwitched(LayerSwitch)
        /// A filter keeps a track from a receiver from now on, or does no longer.
        case forwarding(isBlocked: Bool, kind: MediaKind, source: ParticipantID, destination: ParticipantID)
        /// The network between the receiver and the node became more or less stable: 0, stable, to 3, very unstable.
        case networkStatus(unstableLevel: Int)
        /// The receiver cannot play what a sender sends, so nothing of it is forwarded to the receiver.
        case codecUnsupported(CodecName, source: ParticipantID, destination: ParticipantID)
        /// The receiver's own ICE connection goes from one state to another.
        case iceStateChanged(current: ICEState, previous: ICEState)
    }
    public enum ICEState: String, Hashable, Sendable { case checking, connected }
    public struct LayerSwitch: Hashable, Sendable {
        public enum Trigger: Hashable, Sendable {
            /// A layer of the sender stopped or came back.
            case sender
            /// Another layer was asked for.
            case receiver
        }
        public let sender: ParticipantID?
        /// What the receiver is to get.
        public let wished: LayerChoice
        /// `nil` when nothing flows.
        public let current: RID?
        public let previous: RID?
        public let isHigher: Bool
        public let trigger: Trigger
    }

    /// When it happened, in nanoseconds since 1970 UTC.
    public let timestamp: Int64
    public let content: Content
    private let text = Mutex<String?>(nil)

    public init(_ content: Content, timestamp: Int64) {
        self.content = content
        self.timestamp = timestamp
    }

    /// Its text in the one encoding that members are sent, made by whoever asks first.
    public func encoded(_ make: (Notification) -> String) -> String {
        if let made = text.withLock({ $0 }) { return made }
        let made = make(self)
        text.withLock { $0 = made }
        return made
    }
}
