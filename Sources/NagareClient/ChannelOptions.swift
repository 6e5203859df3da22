public import Foundation

/// What a channel is. All its members use the same profile.
public enum ChannelProfile: String, Hashable, Sendable {
    /// Everyone may publish, and everyone is announced to everyone.
    case communication
    /// Hosts publish and are announced; the audience receives.
    case interactive
}

/// What a member is in an interactive channel.
public enum ChannelRole: String, Hashable, Sendable {
    case host
    case audience
}

/// A kind of media.
public enum TrackKind: String, Hashable, Sendable, CaseIterable {
    case audio
    case video
}

/// What a connection's video shows.
public enum TrackSource: String, Hashable, Sendable {
    case camera
    case screen
}

/// What this device can publish.
public enum LocalMedia: String, Hashable, Sendable, CaseIterable {
    case microphone
    case camera
    case screen

    public var kind: TrackKind { self == .microphone ? .audio : .video }
    public var source: TrackSource { self == .screen ? .screen : .camera }
}

/// What admits a user to a channel.
public enum ChannelToken: Hashable, Sendable {
    /// A token of the node, a JWT, or an app's token in its single-parameter form, which names the channel and the user.
    case token(String)
    /// An app's token in its multi-parameter form: the hash that the app's server computed, with what it covers.
    case app(id: String, nonce: String = "", timestamp: Int, token: String)
}

/// How the camera's picture is sent.
public struct VideoOptions: Hashable, Sendable {
    /// `VP8`, `VP9`, `AV1`, `H264` or `H265`; `nil`: the node's choice.
    public var codec: String?
    /// In kbit/s; `nil`: the node's choice.
    public var bitRate: Int?
    /// Whether to send three sizes of the picture.
    public var isSimulcast: Bool

    public init(codec: String? = nil, bitRate: Int? = nil, isSimulcast: Bool = false) {
        self.codec = codec
        self.bitRate = bitRate
        self.isSimulcast = isSimulcast
    }
}

/// What a client joins a channel with.
public struct ChannelOptions: Sendable {
    /// The most addresses of ``urls``.
    public static let urlsMax = 64

    /// The addresses of the nodes, which are tried in this order: `wss://node.example.com/signaling`. Without a path,
    /// `/signaling` is meant.
    public var urls: [URL]
    /// The channel; may be empty if the token names it.
    public var channel: String
    /// The user; may be empty if the token names it.
    public var user: String
    public var token: ChannelToken?
    /// What others see.
    public var displayName: String?
    /// Further members of the metadata that the operator's authentication service gets.
    public var metadata: [String: JSONValue] = [:]
    /// `nil`: the channel's profile, or a communication.
    public var profile: ChannelProfile?
    /// `nil`: a host if the client can publish, otherwise the audience.
    public var role: ChannelRole?
    /// Whether this connection can ever publish. One that cannot only watches.
    public var canPublish = true
    /// What is published from the start, and again when the user becomes a host.
    public var publishes: Set<TrackKind> = [.audio, .video]
    /// What is received of all users from the start. ``ChannelClient/subscribe(user:kind:source:)`` changes it.
    public var subscribes: Set<TrackKind> = [.audio, .video]
    /// What the connection's video shows: `screen` for a process of its own that shares the screen.
    public var source = TrackSource.camera
    public var video = VideoOptions()
    /// How long ``ChannelClient/join(token:)`` tries; `nil`: until it is refused.
    public var joinTimeout: Duration? = .seconds(30)

    public init(urls: [URL], channel: String = "", user: String = "", token: ChannelToken? = nil) {
        self.urls = urls
        self.channel = channel
        self.user = user
        self.token = token
    }
}
