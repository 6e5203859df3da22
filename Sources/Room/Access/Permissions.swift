package import ChannelTypes
package import Wire

/// A participant's role in a channel, for all signaling protocols.
package struct AccessRole: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    /// Publishes media.
    package static let publisher = Self(rawValue: 1)
    /// Receives media.
    package static let viewer = Self(rawValue: 2)
    /// Both.
    package static let member: Self = [.publisher, .viewer]

    package init(_ role: Role) {
        self = []
        if role.publishes { insert(.publisher) }
        if role.watches { insert(.viewer) }
    }
}

/// The permissions of a participant in a channel and their duration, for tokens, webhooks and nodes without
/// authentication.
package struct Permissions: Hashable, Sendable {
    /// The permitted roles.
    package var role = AccessRole.member
    /// The kinds of media that it may publish and receive.
    package var kinds = Set(MediaKind.allCases)
    /// Whether it may mute, let in, move down and remove others of its channel while it is a host.
    package var moderates = false
    /// How long after its connection the permission expires (`connection_lifetime`); `nil` without an end.
    /// `ChannelModel.tick` ends the participant then.
    package var lifetime: Duration?
    /// When the permission expires, connected or not: the expiry of the token or URL. `nil` without an end.
    /// `ChannelModel.tick` ends the participant then.
    package var expiry: AccessExpiry?
    /// Bit/s that it may publish, audio and video together; `nil` for the node's limit.
    package var publishBitsPerSecondMax: Int?
    /// Bit/s that it may be sent, all media together; `nil` for the node's maximum.
    package var receiveBitsPerSecondMax: Int?
    /// The most members of the channel, the participant included; `nil` for the node's limit.
    package var channelConnectionsMax: Int?

    package init() {}

    /// Whether a participant may take a role.
    package func permits(_ role: AccessRole) -> Bool { self.role.isSuperset(of: role) }
    /// Whether media of a kind may be published and received.
    package func permits(_ kind: MediaKind) -> Bool { kinds.contains(kind) }
}
