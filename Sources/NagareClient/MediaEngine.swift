/// Captures and plays media: WebRTC's library in an app.
///
/// One engine serves one ``ChannelClient``, which asks it for a ``MediaConnection`` at each connection to a node.
public protocol MediaEngine: Sendable {
    /// Opens a device, and sends it in the connections of its source, the present ones and later ones.
    func start(_ media: LocalMedia) async throws
    /// Closes a device. Nothing of it is sent any more.
    func stop(_ media: LocalMedia) async
    /// Silences a device that is started. Of the camera, the node has to get nothing or black.
    func setMuted(_ media: LocalMedia, _ isMuted: Bool) async
    /// Makes the connection that an offer asks for.
    /// - Parameter events: takes what happens, on any thread, until the connection is closed.
    func makeConnection(
        _ setup: MediaConnectionSetup,
        events: @escaping @Sendable (MediaConnectionEvent) -> Void
    ) async throws -> any MediaConnection
}

/// One peer connection.
public protocol MediaConnection: Sendable {
    /// Applies the node's first offer.
    /// - Returns: the SDP of the answer.
    func answer(_ offer: ServerOffer) async throws -> String
    /// Applies a later offer of the node.
    /// - Returns: the SDP of the answer.
    func answerAgain(_ sdp: String) async throws -> String
    func statistics() async -> MediaStatistics
    func close() async
}

/// What a connection is for.
public struct MediaConnectionSetup: Hashable, Sendable {
    /// Which devices it sends: camera and microphone, or the screen.
    public var source: TrackSource
    public var iceServers: [ICEServer]
    /// Whether media may take TURN servers only.
    public var isRelayedOnly: Bool
}

public struct ICEServer: Hashable, Sendable {
    public var urls: [String]
    public var username: String?
    public var credential: String?
}

/// The node's first offer.
public struct ServerOffer: Hashable, Sendable {
    public var sdp: String
    /// The m-lines in which the client sends, by kind; empty for one that watches.
    public var sendingMIDs: [TrackKind: String]
    /// The sizes of the picture to send; empty: one.
    public var encodings: [VideoEncoding]
}

/// One size of the picture (`RTCRtpEncodingParameters`).
public struct VideoEncoding: Hashable, Sendable {
    public var rid: String?
    public var isActive: Bool
    public var scaleResolutionDownBy: Double?
    /// In bit/s.
    public var maxBitrate: Int?
    public var maxFramerate: Double?
}

public enum MediaConnectionEvent: Hashable, Sendable {
    case stateChanged(MediaConnectionState)
    case trackAdded(ReceivedTrack)
    case trackRemoved(mid: String)
    /// The first frame of a received track can be shown.
    case firstFrame(mid: String)
}

/// The states of `RTCPeerConnectionState` that matter to the client.
public enum MediaConnectionState: Hashable, Sendable {
    case connected
    /// Nothing arrives at present.
    case disconnected
    case failed
}

/// A received m-line.
public struct ReceivedTrack: Hashable, Sendable {
    public var mid: String
    public var kind: TrackKind
    /// The MediaStream of `a=msid`, which names the sender's connection.
    public var streamID: String

    public init(mid: String, kind: TrackKind, streamID: String) {
        self.mid = mid
        self.kind = kind
        self.streamID = streamID
    }
}

/// Counts of one connection since its start.
public struct MediaStatistics: Hashable, Sendable {
    public struct Track: Hashable, Sendable {
        public var mid: String
        public var kind: TrackKind
        public var packets = 0
        public var bytes = 0
        public var frames = 0

        public init(mid: String, kind: TrackKind, packets: Int = 0, bytes: Int = 0, frames: Int = 0) {
            self.mid = mid
            self.kind = kind
            self.packets = packets
            self.bytes = bytes
            self.frames = frames
        }
    }
    public var received: [Track] = []
    public var packetsSent = 0
    /// A JSON array of `RTCStats` objects, which the node gets when it asks for it; `nil` without.
    public var rtcStats: String?

    public init() {}
}
