package import Base
package import ChannelTypes
package import MediaTypes

/// A participant's place on the node: its identifiers, unique on the node, and the media loop of its peer.
package struct ParticipantLocation: Hashable, Sendable {
    package let participant: ParticipantID
    package let peer: PeerID
    /// The peer's media loop.
    package let location: MediaLocation
    /// Grows with every participant of the node, so that iteration has one order everywhere.
    package let order: UInt64
}

/// What the node knows of a channel. The channel reports it after every change.
package struct ChannelSummary: Hashable, Sendable {
    /// `nil` without participants.
    package var session: ChannelSession?
    package var publishers = 0
    /// Active viewers.
    package var viewers = 0
    /// The connected members.
    package var connections = ChannelCounts()
    /// No deadline of the channel is before this second of the monotonic clock; `nil` without deadlines.
    package var nextDeadlineSecond: Int64?
    package init() {}

    package init(
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

/// What spans the channels of a node: admission, shares of networks, placement, and the indexes from a participant, a
/// peer, a resource or a listener to its channel.
///
/// No call takes longer than O(networks) or O(channels), whatever the size of a channel.
package struct NodeModel: Sendable {
    struct Member: Sendable {
        var place: ParticipantLocation
        let channel: ChannelName
        let network: ClientNetwork
        let createdAt: RoomTime
        /// The app whose token admitted it; `nil` without one.
        let app: String?
        /// Whether it publishes at present.
        var publishes: Bool
        /// Whether it keeps its place when its connection is lost.
        let keepsPlace: Bool
        var isConnected = false
    }
    /// A channel that has members or listeners.
    struct Channel: Sendable {
        var members = ParticipantList()
        var connectedCount = 0
        /// The number of participants by media loop.
        var locations: [MediaLocation: Int] = [:]
        var listenerCount = 0
        var summary = ChannelSummary()

        var isUnused: Bool { members.isEmpty && listenerCount == 0 }
    }
    struct Listener: Sendable {
        let channel: ChannelName
        let network: ClientNetwork
    }

    package var limits: RoomLimits
    package var joinPolicy = JoinPolicy()
    package internal(set) var admissions = AdmissionCounts()
    /// Messages between participants that were dropped.
    package private(set) var droppedMessages: [MessageDropReason: UInt64] = [:]
    /// Changes of members beyond their budgets.
    package private(set) var limitedChanges: [ChangeLimit: UInt64] = [:]
    private var deliveries = NodeDeliveries()
    var blocks = BlockTable()
    var recentlyEnded = RecentlyEnded()

    var members: [ParticipantID: Member] = [:]
    var channels: [ChannelName: Channel] = [:]
    /// Channels that have a member.
    var occupiedChannelCount = 0
    var placement: Placement
    var networks = NetworkShares()
    var publishers = PublisherCounts()
    var listeners: [ListenerID: Listener] = [:]
    /// Listeners of each network.
    var listenerCounts: [ClientNetwork: Int] = [:]
    var resources: [ResourceID: ParticipantID] = [:]
    /// The members of other nodes, and their channels.
    private var remoteMembers: [ParticipantID: ChannelName] = [:]
    private var totals = RoomCounts()
    private var orderNext: UInt64 = 0
    private var peerIDs: PeerIDSequence
    private var listenerNext: UInt64 = 1

    /// - Parameters:
    ///   - node: the incarnation that the peers' identifiers carry.
    ///   - locations: the media loops, at least one.
    package init(limits: RoomLimits = RoomLimits(), node: NodeIncarnation = .standalone, locations: [MediaLocation]) {
        self.limits = limits
        placement = Placement(locations: locations)
        peerIDs = PeerIDSequence(node: node)
    }

    /// Whether nothing is held: no channel, participant, listener, resource or index entry.
    package var isEmpty: Bool {
        channels.isEmpty && members.isEmpty && occupiedChannelCount == 0
            && placement.isEmpty && networks.isEmpty && publishers.isEmpty && listeners.isEmpty
            && listenerCounts.isEmpty && resources.isEmpty && remoteMembers.isEmpty
    }

    /// Totals of the channels' last summaries.
    package var counts: RoomCounts {
        var counts = totals
        counts.channels = channels.count
        counts.sessions = occupiedChannelCount
        counts.listeners = listeners.count
        return counts
    }

    /// The sessions of all channels, the oldest first.
    package var channelSessions: [ChannelSession] {
        channels.values.compactMap(\.summary.session).sorted {
            ($0.createdAt, $0.id.value) < ($1.createdAt, $1.id.value)
        }
    }

    /// The channels with the most connected members, the largest first.
    package func busiestChannels(_ count: Int) -> [ChannelName] {
        channels.filter { $0.value.connectedCount > 0 }
            .sorted { ($1.value.connectedCount, $0.key.value) < ($0.value.connectedCount, $1.key.value) }
            .prefix(max(count, 0)).map(\.key)
    }

    /// Whether the node refuses everyone who joins a channel, because of its ``JoinPolicy``.
    package func refusesJoins(to channel: ChannelName) -> Bool {
        joinPolicy.refusal(opensChannel: channels[channel]?.members.isEmpty ?? true) != nil
    }

    /// A message between participants was dropped.
    package mutating func messageDropped(_ reason: MessageDropReason) { droppedMessages[reason, default: 0] &+= 1 }

    /// Members of a channel made changes beyond their budgets.
    package mutating func changesLimited(_ counts: [ChangeLimit: UInt64]) {
        limitedChanges.merge(counts, uniquingKeysWith: &+)
    }

    /// A channel causes deliveries.
    /// - Returns: what it may have of them a second; `nil` while the node has no more than it may.
    package mutating func delivered(_ count: Int, by channel: UInt64, at now: Instant) -> Int? {
        deliveries.take(count, by: channel, perSecond: limits.nodeDeliveriesPerSecond, at: now)
    }

    // MARK: Identifiers

    /// Never used before.
    mutating func nextPeer() -> PeerID { peerIDs.next() }

    package mutating func nextOrder() -> UInt64 {
        defer { orderNext += 1 }
        return orderNext
    }

    /// Never used before on this node.
    package mutating func nextListener() -> ListenerID {
        defer { listenerNext += 1 }
        return ListenerID(rawValue: listenerNext)
    }

    // MARK: Lookups

    /// Whether it is a participant of this node.
    package func hasMember(_ id: ParticipantID) -> Bool { members[id] != nil }

    /// `nil` for an unknown participant.
    package func channel(of id: ParticipantID) -> ChannelName? { members[id]?.channel ?? remoteMembers[id] }
    /// `nil` for an unknown resource.
    package func channel(of resource: ResourceID) -> ChannelName? {
        resources[resource].flatMap { members[$0]?.channel }
    }
    /// `nil` for an unknown listener.
    package func channel(of listener: ListenerID) -> ChannelName? { listeners[listener]?.channel }

    // MARK: Other nodes

    package mutating func remoteJoined(_ id: ParticipantID, _ channel: ChannelName) { remoteMembers[id] = channel }
    package mutating func remoteLeft(_ id: ParticipantID) { remoteMembers[id] = nil }

    // MARK: Reports of channels

    /// A channel's summary changed.
    package mutating func summaryChanged(of name: ChannelName, to summary: ChannelSummary) {
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

    /// The channels that may have a deadline at `second` or before.
    package func channelsDue(at second: Int64) -> [ChannelName] {
        channels.filter { $0.value.summary.nextDeadlineSecond.map { $0 <= second } ?? false }.map(\.key)
    }

    mutating func removeChannelIfUnused(_ name: ChannelName) {
        guard let channel = channels[name], channel.isUnused else { return }
        count(channel.summary, -1)
        channels.removeValueAndRoom(forKey: name)
    }

    // MARK: Load

    /// The load that the loop at `location` measured.
    package mutating func loadMeasured(_ load: LoopLoad, of location: MediaLocation) {
        placement.measured(load, of: location)
    }

    /// The share of the loops' time that is in use, 0…1; a stalled loop counts as busy.
    package var load: Double {
        let loads = placement.loads
        return loads.map { min($0, 1) }.reduce(0, +) / Double(max(loads.count, 1))
    }

    /// The loop at `location` has not reported its load for a whole period.
    package mutating func loadMissing(of location: MediaLocation) { placement.loadMissing(of: location) }
}
