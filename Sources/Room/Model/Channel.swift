import MediaTypes

/// A channel: who is in it in which way, and the properties of its session.
struct Channel: Sendable {
    /// What a session has, from its first participant to its last.
    struct Session: Sendable {
        let description: ChannelSession
        /// Whether a member of it has been connected.
        var isAnnounced = false
        var filters = FilterList() { didSet { verdicts = [:] } }
        /// What ``filters`` keep of each publisher that was asked about.
        var verdicts: [ParticipantID: FilterVerdict] = [:]
        var stage = SpotlightStage()
    }
    var session: Session?
    /// How many participants live on each loop that has any.
    var homes: [Int: Int] = [:]
    var members = Roster()
    /// Members by bundle, most of which have one.
    var bundles: [Bundle: Set<ParticipantID>] = [:]
    var decoders = VideoDecoders()
    /// Members whose transport is up, and those of them that get notifications.
    var connected = Roster()
    var hearers = Roster()
    var counts = ChannelCounts()
    var activeViewerCount = 0
    /// Those that publish, and those of them that are live, the latest last.
    var publishers = Roster()
    var live: [ParticipantID] = []
    var followersOfCurrent = Roster()
    var followers: [ParticipantID: Roster] = [:]
    var followersOfEveryone = Roster()
    /// Viewers that use the spotlight.
    var spotlightViewers = Roster()
    var listeners: Set<ListenerID> = []
    var revision: UInt64 = 0

    var isUnused: Bool { members.isEmpty && listeners.isEmpty }

    mutating func add(_ participant: Participant) {
        let (id, order) = (participant.id, participant.order)
        members.insert(id, order: order)
        bundles[participant.bundle, default: []].insert(id)
        homes[participant.home, default: 0] += 1
        if participant.role.publishes { publishers.insert(id, order: order) }
        guard participant.role.watches else { return }
        if participant.following == .everyone { followersOfEveryone.insert(id, order: order) }
        if participant.spotlight != nil { spotlightViewers.insert(id, order: order) }
    }

    /// Takes a member that is about to leave out of the lists of those who are told of others.
    mutating func stopTelling(order: UInt64) {
        hearers.remove(order: order)
        followersOfCurrent.remove(order: order)
        followersOfEveryone.remove(order: order)
        spotlightViewers.remove(order: order)
    }

    /// Takes it out of every list but those of live publishers and of followers.
    mutating func remove(_ participant: Participant) {
        let order = participant.order
        members.remove(order: order)
        connected.remove(order: order)
        publishers.remove(order: order)
        stopTelling(order: order)
        if participant.isConnected { counts.add(-1, participant.role) }
        if participant.isActive, participant.role.watches { activeViewerCount -= 1 }
        if let decoded = participant.decodedVideo { decoders.add(-1, decoded) }
        bundles[participant.bundle]?.remove(participant.id)
        if bundles[participant.bundle]?.isEmpty == true { bundles[participant.bundle] = nil }
        if let others = homes[participant.home].map({ $0 - 1 }) { homes[participant.home] = others > 0 ? others : nil }
        if case .participant(let target) = participant.following {
            followers[target]?.remove(order: order)
            if followers[target]?.isEmpty == true { followers[target] = nil }
        }
    }
}
