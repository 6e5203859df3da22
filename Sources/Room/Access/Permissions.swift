public import Room
public import Wire

/// A participant's role in a channel, for all signaling protocols.
public struct AccessRole: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    /// Publishes media.
    public static let publisher = Self(rawValue: 1)
    /// Receives media.
    public static let viewer = Self(rawValue: 2)
    /// Both.
    public static let member: Self = [.publisher, .viewer]

    public init(_ role: Role) {
        self = []
        if role.publishes { insert(.publisher) }
        if role.watches { insert(.viewer) }
    }
}

/// The permissions of a participant in a channel and their duration, for tokens, webhooks and nodes without
/// authentication.
public struct Permissions: Hashable, Sendable {
    /// The permitted roles.
    public var role = AccessRole.member
    /// The kinds of media that it may publish and receive.
    public var kinds = Set(MediaKind.allCases)
    /// How long after its connection the permission expires (`connection_lifetime`); `nil` without an end.
    /// `ChannelModel.tick` ends the participant then.
    public var lifetime: Duration?
    /// When the permission expires, connected or not: the expiry of the token or URL. `nil` without an end.
    /// `ChannelModel.tick` ends the participant then.
    public var expiry: AccessExpiry?
    /// Bit/s that it may publish, audio and video together; `nil` for the node's limit.
    public var publishBitsPerSecondMax: Int?
    /// Bit/s that it may be sent, all media together; `nil` for the node's maximum.
    public var receiveBitsPerSecondMax: Int?
    /// The most members of the channel, the participant included; `nil` for the node's limit.
    public var channelConnectionsMax: Int?

    public init() {}

    /// Whether a participant may take a role.
    public func permits(_ role: AccessRole) -> Bool { self.role.isSuperset(of: role) }
    /// Whether media of a kind may be published and received.
    public func permits(_ kind: MediaKind) -> Bool { kinds.contains(kind) }
}
