public import Foundation

/// What happens in a channel. The article “SwiftClient” says when.
public enum ChannelEvent: Hashable, Sendable {
    /// The client is in the channel: at the first connection and at each return.
    case joined(JoinedChannel)
    /// The client left by ``ChannelClient/leave()``.
    case left
    /// The server ended the membership. The client does not return by itself.
    case bye(ByeReason, NagareError)
    /// - Parameter failure: why the connection is not what it was, where something failed.
    case connectionStatus(ConnectionStatus, failure: NagareError?)
    /// - Parameter elapsed: since ``ChannelClient/join(token:)``.
    case userOnline(RemoteUser, elapsed: Duration)
    case userOffline(RemoteUser, OfflineReason)
    /// A user's connection is lost, and its place is kept.
    case userInterrupted(RemoteUser)
    case userResumed(RemoteUser)
    /// What flows of a user's connection changed: `audio` and `video` of it, or the connection is gone.
    case trackAvailable(RemoteUser, RemoteConnection)
    /// The engine receives a track, which can be played.
    case trackReceived(RemoteTrack)
    /// Another user muted a kind, or unmuted it.
    case remoteMuted(RemoteUser, RemoteConnection, TrackKind, isMuted: Bool)
    /// An operator muted the client's own kind, or lifts the mute.
    case muted(TrackKind, isMuted: Bool, by: Initiator)
    /// The client's own role changed.
    case roleChanged(ChannelRole, by: Initiator)
    /// The token expires at this time. ``ChannelClient/refreshToken(_:)`` takes a new one.
    case tokenWillExpire(Date)
    /// The token has expired, and the client is not in the channel any more.
    case tokenExpired(NagareError)
    /// Of the client's own network.
    case networkQuality(NetworkQuality)
    /// Of another user's network.
    case userNetworkQuality(RemoteUser, RemoteConnection)
    /// The first key frame of a user's video has reached the node.
    case firstFrameSent(RemoteUser, connectionID: String)
    /// The engine has the first frame of a received track.
    case firstFrameReceived(RemoteTrack)
    /// What an operator's server sent.
    case pushed(JSONValue)
    /// A failure that does not end the membership, such as a camera in use.
    case failed(NagareError)
}

extension ChannelEvent {
    static func tokenExpires(unixSeconds: Int) -> Self {
        .tokenWillExpire(Date(timeIntervalSince1970: Double(unixSeconds)))
    }
}

/// The state of the connection, with the numbers of the ARTC reference.
public enum ConnectionStatus: Int, Hashable, Sendable {
    case initial = 0
    case disconnected = 1
    case connecting = 2
    case connected = 3
    case reconnecting = 4
    case failed = 5
}

/// Why a user is not in the channel any more.
public enum OfflineReason: String, Hashable, Sendable {
    case quit = "left"
    case timedOut = "timed-out"
    case becameAudience = "became-audience"
    case kicked
    case banned
    case replaced
    case terminated
    case channelExpired = "channel-expired"
    case tokenExpired = "token-expired"
    /// Also: the client's own membership ended, and for what a later version adds.
    case ended

    /// 0 quit, 1 timed out, 2 became audience, as in the ARTC reference.
    public var code: Int {
        switch self {
        case .timedOut: 1
        case .becameAudience: 2
        default: 0
        }
    }
}

/// Why the server ended a membership.
public enum ByeReason: String, Hashable, Sendable {
    case kicked
    case banned
    /// The channel was closed, or reached its maximum age.
    case channelTerminated = "terminated"
    /// The same user joined from another place.
    case replaced

    /// 1 kicked, 2 channel terminated, 3 replaced, as in the ARTC reference.
    public var code: Int {
        switch self {
        case .kicked, .banned: 1
        case .channelTerminated: 2
        case .replaced: 3
        }
    }
}

/// Who decided a change of the client's own state.
public enum Initiator: Hashable, Sendable {
    case `self`
    case `operator`
    /// A value that this version does not know.
    case other(String)

    init(_ name: String?) {
        switch name {
        case "self": self = .`self`
        case "operator", nil: self = .operator
        case .some(let name): self = .other(name)
        }
    }
}

/// 0 unknown, 1 best … 6 no connection.
public struct NetworkQuality: Hashable, Sendable {
    public var uplink: Int
    public var downlink: Int

    public init(uplink: Int = 0, downlink: Int = 0) {
        self.uplink = min(max(uplink, 0), 6)
        self.downlink = min(max(downlink, 0), 6)
    }
}

/// The result of joining.
public struct JoinedChannel: Hashable, Sendable {
    public let channel: String
    public let user: String
    public let connectionID: String
    public let profile: ChannelProfile
    public let role: ChannelRole
    /// Since ``ChannelClient/join(token:)``; of a return since the connection was lost.
    public let elapsed: Duration
    /// Whether the client was in the channel before.
    public let isReturn: Bool
    /// How long the node keeps the place of a lost connection.
    public let grace: Duration
    /// The other users, without the audience of an interactive channel.
    public let users: [RemoteUser]
}

/// Another user of the channel.
public struct RemoteUser: Hashable, Sendable, Identifiable {
    public let id: String
    public internal(set) var name = ""
    public internal(set) var role = ChannelRole.host
    /// Whether its connection is lost and its place kept.
    public internal(set) var isInterrupted = false
    public internal(set) var metadata: JSONValue?
    /// One for camera and microphone, one for a screen.
    public internal(set) var connections: [RemoteConnection] = []

    init(id: String) { self.id = id }
}

/// One connection of another user.
public struct RemoteConnection: Hashable, Sendable, Identifiable {
    public let id: String
    public internal(set) var source = TrackSource.camera
    /// Whether audio comes at present, muted or not.
    public internal(set) var audio = false
    public internal(set) var video = false
    public internal(set) var isAudioMuted = false
    public internal(set) var isVideoMuted = false
    public internal(set) var networkQuality = NetworkQuality()
    public internal(set) var metadata: JSONValue?
    /// Whether it is gone.
    public internal(set) var hasEnded = false

    init(id: String) { self.id = id }
}

/// A track that the engine receives.
public struct RemoteTrack: Hashable, Sendable {
    public let user: String
    public let connectionID: String
    public let source: TrackSource
    public let kind: TrackKind
    /// The m-line of it, by which the engine knows it.
    public let mid: String
}
