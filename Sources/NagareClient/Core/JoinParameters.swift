/// Complete and checked options.
struct JoinParameters: Hashable, Sendable {
    /// Of the nodes' WebSockets; at least one.
    var urls: [String]
    var channel: String
    var user: String
    /// As the node takes it in `metadata.access_token`.
    var accessToken: JSONValue?
    var displayName: String?
    var metadata: [String: JSONValue]
    var profile: ChannelProfile?
    var role: ChannelRole
    /// Whether the application chose the role.
    var statesRole: Bool
    var canPublish: Bool
    var publishes: Set<TrackKind>
    var subscribes: Set<TrackKind>
    var source: TrackSource
    var video: VideoOptions
    var joinTimeout: Duration?

    /// What the main connection asks for first.
    var connect: ConnectMessage {
        ConnectMessage(
            channel: channel,
            user: user,
            accessToken: accessToken,
            displayName: displayName,
            metadata: metadata,
            direction: canPublish ? .sendrecv : .recvonly,
            options: video,
            profile: profile,
            role: statesRole || profile == .interactive ? role : nil,
            source: source,
            subscribesManually: subscribes.count < TrackKind.allCases.count
        )
    }
}
