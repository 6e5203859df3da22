public import MediaTypes
import Wire

/// A participant's place on the node: identifiers that are unique on it, and the media loop that its peer lives on.
public struct ParticipantPlace: Hashable, Sendable {
    public let participant: ParticipantID
    public let peer: PeerID
    /// The loop that the peer lives on.
    public let location: MediaLocation
    /// Grows with every participant of the node, so that iteration has one order everywhere.
    public let order: UInt64
}

/// What the node knows of each channel. The channel's model keeps it up to date.
public struct ChannelSummary: Hashable, Sendable {
    /// `nil` when nobody is in the channel.
    public var session: ChannelSession?
    public var publishers = 0
    /// Active viewers.
    public var viewers = 0
    /// The connected members.
    public var connections = ChannelCounts()
    /// The second of the monotonic clock for which the channel's earliest deadline is set.
    public var nextDeadlineSecond: Int64?
    public init() {}

    init(
        session: ChannelSession?,
        publishers: Int,
        viewers: Int,
        connections: ChannelCounts,
        nextDeadlineSecond: Int64?
    ) {
        self.session = session
        self.publishers = publishers
        self.viewers = viewers
        self.connections = connections
        self.nextDeadlineSecond = nextDeadlineSecond
    }
}

/// What spans the channels of a node: admission, shares of networks, placement, and the indexes that lead from a
/// participant, a peer, a session or a listener to its channel.
///
/// Every call takes time in proportion to the networks or channels at most, never to the members of a channel.
public struct NodeModel: Sendable {
    /// What is kept of a participant.
    struct Member: Sendable {
        let place: ParticipantPlace
        let channel: ChannelName
        let network: ClientNetwork
        let createdAt: RoomTime
        var isConnected = false
    }
    /// What is kept of a channel that has members or listeners.
    struct Channel: Sendable {
        var members = ParticipantList()
        var connectedCount = 0
        /// How many participants live on each loop that has any.
        var locations: [MediaLocation: Int] = [:]
        var listenerCount = 0
        var summary = ChannelSummary()

        var isUnused: Bool { members.isEmpty && listenerCount == 0 }
    }
    struct Listener: Sendable {
        let channel: ChannelName
        let network: ClientNetwork
    }

    public let limits: RoomLimits
    /// The kinds of newcomers that the node admits.
    public var mode = NodeMode.normal
    /// Whether newcomers are refused because the node closes.
    public internal(set) var isDraining = false
    public internal(set) var admissions = AdmissionCounts()

    var members: [ParticipantID: Member] = [:]
    var participantOfPeer: [PeerID: ParticipantID] = [:]
    var channels: [ChannelName: Channel] = [:]
    /// Channels that have a member.
    var occupiedChannelCount = 0
    var placement: Placement
    var networks = NetworkShares()
    var listeners: [ListenerID: Listener] = [:]
    /// Listeners of each network.
    var listenerCounts: [ClientNetwork: Int] = [:]
    var sessions: [SessionID: ParticipantID] = [:]
    private var totals = RoomCounts()
    private var orderNext: UInt64 = 0
    private var peerIDs: PeerIDSequence
    private var listenerNext: UInt64 = 1

    /// - Parameters:
    ///   - node: the incarnation that the peers' identifiers carry.
    ///   - locations: the media loops, at least one.
    public init(limits: RoomLimits = RoomLimits(), node: NodeIncarnation = .standalone, locations: [MediaLocation]) {
        self.limits = limits
        placement = Placement(locations: locations)
        peerIDs = PeerIDSequence(node: node)
    }

    /// Whether nothing is held: no channel, participant, listener, session or index entry.
    public var isEmpty: Bool {
        channels.isEmpty && members.isEmpty && participantOfPeer.isEmpty && occupiedChannelCount == 0
            && placement.isEmpty && networks.isEmpty && listeners.isEmpty && listenerCounts.isEmpty && sessions.isEmpty
    }

    /// What is in use, as of the channels' last summaries.
    public var counts: RoomCounts {
        var counts = totals
        counts.channels = channels.count
        counts.sessions = occupiedChannelCount
        counts.listeners = listeners.count
        return counts
    }

    /// All sessions, the oldest first.
    public var channelSessions: [ChannelSession] {
        channels.values.compactMap(\.summary.session).sorted {
            ($0.createdAt, $0.id.value) < ($1.createdAt, $1.id.value)
        }
    }

    /// From now on newcomers and listeners are refused.
    public mutating func drainingStarted() { isDraining = true }

    // MARK: Identifiers

    /// Never used before.
    mutating func nextPeer() -> PeerID { peerIDs.next() }

    mutating func nextOrder() -> UInt64 {
        defer { orderNext += 1 }
        return orderNext
    }

    /// Never used before on this node.
    public mutating func nextListener() -> ListenerID {
        defer { listenerNext += 1 }
        return ListenerID(rawValue: listenerNext)
    }

    // MARK: Lookups

    /// `nil` for a participant that is gone.
    public func channel(of id: ParticipantID) -> ChannelName? { members[id]?.channel }
    /// `nil` for a peer that is gone.
    public func channel(of peer: PeerID) -> ChannelName? { participantOfPeer[peer].flatMap { members[$0]?.channel } }
    /// `nil` for a session that ended.
    public func channel(of session: SessionID) -> ChannelName? { sessions[session].flatMap { members[$0]?.channel } }
    /// `nil` for a listener that is gone.
    public func channel(of listener: ListenerID) -> ChannelName? { listeners[listener]?.channel }

    // MARK: Reports of channels

    /// A channel's figures changed.
    public mutating func summaryChanged(of name: ChannelName, to summary: ChannelSummary) {
        guard let before = channels[name]?.summary else { return }
        count(before, -1)
        count(summary, 1)
        channels[name]?.summary = summary
    }

    private mutating func count(_ summary: ChannelSummary, _ sign: Int) {
        totals.publishers += sign * summary.publishers
        totals.viewers += sign * summary.viewers
        totals.connections.sendrecv += sign * summary.connections.sendrecv
        totals.connections.sendonly += sign * summary.connections.sendonly
        totals.connections.recvonly += sign * summary.connections.recvonly
    }

    /// The channels that have a deadline at `second` or before.
    public func channelsDue(at second: Int64) -> [ChannelName] {
        channels.filter { $0.value.summary.nextDeadlineSecond.map { $0 <= second } ?? false }.map(\.key)
    }

    mutating func removeChannelIfUnused(_ name: ChannelName) {
        guard let channel = channels[name], channel.isUnused else { return }
        count(channel.summary, -1)
        channels[name] = nil
    }

    // MARK: Load

    /// The load that the loop at `location` measured.
    public mutating func loadMeasured(_ load: LoopLoad, of location: MediaLocation) {
        placement.measured(load, of: location)
    }

    /// The loop at `location` has not answered the question for its load for a whole period.
    public mutating func loadUnanswered(by location: MediaLocation) { placement.unanswered(by: location) }
}
