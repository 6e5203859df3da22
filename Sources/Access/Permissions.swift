public import Room
public import Wire

/// What a participant does in a channel, whichever signaling protocol it speaks.
public struct AccessRole: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    /// Sends media to the channel.
    public static let publisher = Self(rawValue: 1)
    /// Receives the channel's media.
    public static let viewer = Self(rawValue: 2)
    /// Both.
    public static let member: Self = [.publisher, .viewer]

    public init(_ role: Role) {
        self = []
        if role.publishes { insert(.publisher) }
        if role.watches { insert(.viewer) }
    }
}

/// What a participant may do in a channel and for how long: the same type for tokens, webhooks and a node that is open to
/// everybody.
public struct Permissions: Hashable, Sendable {
    /// The roles that it may take.
    public var role = AccessRole.member
    /// The kinds of media that it may publish and receive.
    public var kinds = Set(MediaKind.allCases)
    /// The permission ends so long after the participant connected, and the room ends the participant then; `nil` without
    /// an end.
    public var lifetime: Duration?
    /// Bit/s that it may publish, audio and video together; `nil` for the node's limit.
    public var publishBitsPerSecondMax: Int?
    /// Members that the channel may have, the participant included; `nil` for the node's limit.
    public var channelConnectionsMax: Int?

    public init() {}

    /// Whether a participant may take a role.
    public func permits(_ role: AccessRole) -> Bool { self.role.isSuperset(of: role) }
    /// Whether media of a kind may be published and received.
    public func permits(_ kind: MediaKind) -> Bool { kinds.contains(kind) }
}
