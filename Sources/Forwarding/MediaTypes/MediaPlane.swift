public import Wire

/// The transport of one media loop, as in all of its descriptions.
public struct MediaTransport: Hashable, Sendable {
    public var fingerprint: Fingerprint
    /// Host candidates of UDP, most preferred first.
    public var candidates: [TransportAddress]
    /// Host candidates of ICE over TCP, which accept connections (RFC 6544 §4.1), most preferred first; empty without it.
    public var tcpCandidates: [TransportAddress]

    public init(
        fingerprint: Fingerprint,
        candidates: [TransportAddress],
        tcpCandidates: [TransportAddress] = []
    ) {
        self.fingerprint = fingerprint
        self.candidates = candidates
        self.tcpCandidates = tcpCandidates
    }
}

/// What a client needs to use the TURN server of its media loop. The password is never printed.
public struct TURNAccess: Hashable, Sendable, Codable, CustomStringConvertible, CustomDebugStringConvertible {
    /// `turn:` URIs (RFC 7065), most preferred first; not empty.
    public let urls: [String]
    public let username: String
    public let password: String

    public init(urls: [String], username: String, password: String) {
        self.urls = urls
        self.username = username
        self.password = password
    }

    public var description: String { "TURNAccess(\(urls.joined(separator: " ")), password hidden)" }
    public var debugDescription: String { description }
}

/// The TURN relay of one call between two clients: credentials for each of them at the same media loop. What one sends through it
/// reaches the relayed addresses of the other, and nothing else.
public struct CallTURN: Hashable, Sendable {
    public let id: CallTURNID
    public let first: TURNAccess
    public let second: TURNAccess

    public init(id: CallTURNID, first: TURNAccess, second: TURNAccess) {
        self.id = id
        self.first = first
        self.second = second
    }
}

/// Identifies the relay of a call.
public struct CallTURNID: Hashable, Sendable {
    /// The loop that relays.
    public let location: MediaLocation
    /// Its number, used once by that loop.
    public let number: UInt64

    public init(location: MediaLocation, number: UInt64) {
        self.location = location
        self.number = number
    }
}

/// A published track and the loop of its publisher.
public struct PlacedTrack: Hashable, Sendable {
    public let track: TrackID
    /// The publisher's loop.
    public let location: MediaLocation

    public init(track: TrackID, location: MediaLocation) {
        self.track = track
        self.location = location
    }
}

/// The media of one loop, as rooms use it.
///
/// Events of a peer go to ``PeerParameters/events``. The caller of ``addPeer(_:)`` must call
/// ``removePeer(_:)`` unless ``PeerEvent/closed(_:)`` was reported for the peer. A call after that event does nothing.
public protocol MediaPlane: Sendable {
    /// The loop's location, unique to it.
    var location: MediaLocation { get }

    /// The certificate and the addresses that peers of this loop connect to.
    var transport: MediaTransport { get }

    /// Accepts new TURN credentials for a peer that is not added yet, until ``removePeer(_:)`` or the peer's end. `nil` on a
    /// loop without a TURN server.
    func openTURN(for peer: PeerID) async -> TURNAccess?

    /// Accepts new TURN credentials for the two clients of a call, until ``closeCallRelay(_:keepsAllocations:)``. `nil` on a loop
    /// without a TURN server, and on one that relays as many calls as it may.
    func openCallRelay() async -> CallTURN?

    /// Ends the relay of a call. Does nothing for an unknown one.
    /// - Parameter keepsAllocations: whether those that the clients have stay for as long as they refresh them.
    func closeCallRelay(_ id: CallTURNID, keepsAllocations: Bool) async

    /// Adds a peer. Its connectivity checks are answered from now on.
    func addPeer(_ parameters: PeerParameters) async throws

    /// Ends the peer with close_notify and frees it, with its TURN credentials. Does nothing for an unknown peer.
    func removePeer(_ peer: PeerID) async

    /// Replaces the ICE credentials. The selected path stays until a check with the new ones succeeds (RFC 8445 §9).
    func restartICE(_ peer: PeerID, local: ICECredentials, remote: ICECredentials) async throws

    /// Adds and removes slots of a peer; when it fails, nothing has changed. The MIDs and SSRCs of removed slots are
    /// never reused by the peer. Unknown slots to remove are ignored.
    func changeSlots(of peer: PeerID, add: [SendTrackParameters], remove: [MID]) async throws

    /// Connects a slot of a peer on this loop to a source on any loop, or to none. The slot plays from the source's
    /// next key frame on. With the present source only the preference changes; a new layer starts at its key frame.
    /// Fails for an unknown peer or track.
    func connect(slot: TrackID, to source: PlacedTrack?, preference: LayerPreference) async throws

    /// Limits the rate at which a peer is sent media. Does nothing for an unknown peer.
    ///
    /// - Parameter bitsPerSecond: of all its media together, from the IP header on; `nil` for the settings' maximum.
    func limitSending(to peer: PeerID, bitsPerSecond: Int?) async

    /// Requests a key frame of every video stream that the peer sends at present. Does nothing for an unknown peer.
    func requestKeyFrame(of peer: PeerID) async

    /// Performs commands about data channels in their order. Those for unknown peers and closed channels do nothing.
    func perform(_ commands: [DataCommand]) async

    /// The peer's media as it is now; `nil` for an unknown peer.
    func statistics(of peer: PeerID) async -> PeerStatistics?

    /// The loop's load since the previous call. It has one caller, about once a second.
    func load() async -> LoopLoad
}

extension MediaPlane {
    /// A plane without a TURN server.
    public func openTURN(for peer: PeerID) async -> TURNAccess? { nil }
    /// A plane without a TURN server.
    public func openCallRelay() async -> CallTURN? { nil }
    /// A plane without a TURN server.
    public func closeCallRelay(_ id: CallTURNID, keepsAllocations: Bool) async {}
}
