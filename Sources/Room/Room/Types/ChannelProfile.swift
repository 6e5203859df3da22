/// What members of a channel are to each other. All members of a channel have the same profile.
public enum ChannelProfile: String, Hashable, Sendable, Codable, CaseIterable {
    /// Everyone may publish, and everyone is announced to everyone.
    case communication
    /// Hosts publish and are announced. The audience only receives, and nobody is notified of it.
    case interactive
}

/// What a member is in its channel. In an interactive channel it can change while the member is connected.
public enum ChannelRole: String, Hashable, Sendable, Codable, CaseIterable {
    /// It publishes.
    case host
    /// It only receives.
    case audience
}

/// What the video of a connection shows. A user's camera and screen are two connections.
public enum VideoSource: String, Hashable, Sendable, Codable, CaseIterable {
    case camera, screen
}

/// A member's options that other signaling does not have, from clients that know them.
public struct MemberOptions: Hashable, Sendable, Codable {
    /// `nil` for the channel's, or ``ChannelProfile/communication`` in a channel without one.
    public var profile: ChannelProfile?
    /// Ignored unless the channel is interactive. `nil` for host when it publishes.
    public var role: ChannelRole?
    public var source: VideoSource
    /// Whether it receives nothing before it subscribes.
    public var subscribesManually: Bool
    /// The token of an earlier connection that it continues.
    public var resumeToken: String?

    public init(
        profile: ChannelProfile? = nil,
        role: ChannelRole? = nil,
        source: VideoSource = .camera,
        subscribesManually: Bool = false,
        resumeToken: String? = nil
    ) {
        self.profile = profile
        self.role = role
        self.source = source
        self.subscribesManually = subscribesManually
        self.resumeToken = resumeToken
    }
}
