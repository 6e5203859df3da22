import Admission
import ChannelTypes
import MediaTypes
import Speakers

/// The lists of a channel's members by their activity, and the state of its session.
struct ChannelState: Sendable, Codable {
    /// The state of a ``ChannelSession``.
    struct Session: Sendable, Codable {
        var description: ChannelSession
        /// Whether a member has been connected, at this node or another one.
        var isAnnounced = false
        /// `nil` until a member that knows profiles joins.
        var profile: ChannelProfile?
        var filters = FilterList() { didSet { verdicts = [:] } }
        /// The cached verdict of ``filters`` on each publisher.
        var verdicts: [ParticipantID: FilterDecision] = [:]
        var speakers = ActiveSpeakers()
        var recentSpeakers = RecentSpeakers()
        /// What operators decided about users.
        var holds = OperatorOverrides()
        /// When the session ends, in seconds of the monotonic clock; `nil` without a limit.
        var endSecond: Int64?
        /// The version of what nodes agree on: see ``ChannelRegister``.
        var registerVersion: UInt64 = 0
        var registerNode = NodeIncarnation.standalone
        var lastDeparture: LastDeparture?
    }
    var session: Session?
    /// The session before ``session``.
    var endedSession: ChannelSession?
    /// The time of the last departure that this node knows of, in nanoseconds since 1970 UTC.
    var departedAt: Int64 = 0
    /// The app whose tokens admit to the channel; `nil` until a client with an app's token comes.
    var app: String?
    var members = ParticipantList()
    /// Members by bundle; most bundles have one member.
    var bundles: [Bundle: Set<ParticipantID>] = [:]
    /// Members by user.
    var identities: [UserIdentity: Set<ParticipantID>] = [:]
    var decoders = VideoDecoders()
    /// Members whose transport is up, and those of them that get notifications.
    var connected = ParticipantList()
    var notified = ParticipantList()
    /// Members that get notifications of users.
    var extended = ParticipantList()
    /// Announced members by client identifier.
    var users: [String: ParticipantList] = [:]
    var counts = ChannelCounts()
    var activeViewerCount = 0
    /// Members that publish, and those of them that are live, in the order of going live.
    var publishers = ParticipantList()
    var live: [ParticipantID] = []
    /// The highest ``Participant/liveNumber`` so far.
    var liveNumberMax: UInt64 = 0
    /// The members of other nodes, which are in the lists above too.
    var remote = RemoteMembers()
    var followersOfCurrent = ParticipantList()
    var followers: [ParticipantID: ParticipantList] = [:]
    var followersOfEveryone = ParticipantList()
    /// Viewers that use the spotlight.
    var spotlightViewers = ParticipantList()
    var listeners: Set<ListenerID> = []
    var revision: UInt64 = 0

    /// Whether this node has members.
    var hasOwnMembers: Bool { members.count > remote.members.count }
    /// Whether the channel has neither members nor listeners on this node, and what other nodes tell of it does not matter.
    var isUnused: Bool { !hasOwnMembers && listeners.isEmpty && session?.lastDeparture == nil }

    mutating func add(_ participant: Participant) {
        let (id, order) = (participant.id, participant.order)
        members.insert(id, order: order)
        bundles[participant.terms.bundle, default: []].insert(id)
        if let user = participant.terms.user { identities[user, default: []].insert(id) }
        if participant.role.publishes { publishers.insert(id, order: order) }
        guard participant.role.watches, !participant.isRemote else { return }
        if participant.terms.following == .everyone { followersOfEveryone.insert(id, order: order) }
        if participant.terms.spotlight != nil { spotlightViewers.insert(id, order: order) }
    }

    /// Removes a member that is about to leave from the lists of members that are notified of others.
    mutating func stopNotifying(order: UInt64) {
        notified.remove(order: order)
        extended.remove(order: order)
        followersOfCurrent.remove(order: order)
        followersOfEveryone.remove(order: order)
        spotlightViewers.remove(order: order)
    }

    /// Removes a member from every list except ``live`` and ``followers``, which the caller updates.
    mutating func remove(_ participant: Participant) {
        let order = participant.order
        members.remove(order: order)
        connected.remove(order: order)
        publishers.remove(order: order)
        stopNotifying(order: order)
        if participant.isConnected { counts.add(-1, participant.role) }
        if participant.isActive, participant.role.watches { activeViewerCount -= 1 }
        if let decoded = participant.decodedVideo { decoders.add(-1, decoded) }
        bundles[participant.terms.bundle]?.remove(participant.id)
        if bundles[participant.terms.bundle]?.isEmpty == true { bundles[participant.terms.bundle] = nil }
        if let user = participant.terms.user {
            identities[user]?.remove(participant.id)
            if identities[user]?.isEmpty == true { identities[user] = nil }
        }
        if case .participant(let target) = participant.terms.following {
            followers[target]?.remove(order: order)
            if followers[target]?.isEmpty == true { followers[target] = nil }
        }
    }
}
