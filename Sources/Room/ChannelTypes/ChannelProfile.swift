/// What members of a channel are to each other. All members of a channel have the same profile.
package enum ChannelProfile: String, Hashable, Sendable, Codable, CaseIterable {
    /// Everyone may publish, and everyone is announced to everyone.
    case communication
    /// Hosts publish and are announced. The audience only receives, and nobody is notified of it.
    case interactive
}

/// What a member is in its channel. In an interactive channel it can change while the member is connected.
package enum ChannelRole: String, Hashable, Sendable, Codable, CaseIterable {
    /// It publishes.
    case host
    /// It only receives.
    case audience
}

/// What the video of a connection shows. A user's camera and screen are two connections.
package enum VideoSource: String, Hashable, Sendable, Codable, CaseIterable {
    case camera, screen
}

/// A member's options that other signaling does not have, from clients that know them.
package struct MemberOptions: Hashable, Sendable, Codable {
    /// `nil` for the channel's, or ``ChannelProfile/communication`` in a channel without one.
    package var profile: ChannelProfile?
    /// Ignored unless the channel is interactive. `nil` for host when it publishes.
    package var role: ChannelRole?
    package var source: VideoSource
    /// Whether it receives nothing before it subscribes.
    package var subscribesManually: Bool
    /// The token of an earlier connection that it continues.
    package var resumeToken: String?

    package init(
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
