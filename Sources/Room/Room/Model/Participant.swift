import Admission
import Base
import ChannelData
import ChannelTypes
import MediaTypes
import Wire

/// One participant, without its receiving side (``Viewer``).
struct Participant: Sendable, Codable {
    let id: ParticipantID
    /// Changes when a new connection takes its place.
    var peer: PeerID
    let channel: ChannelName
    var location: MediaLocation
    /// Grows with every participant of the node.
    let order: UInt64
    let terms: Terms
    var member: Member
    /// `nil` for one that leaves when its connection is lost.
    var resumption: Resumption?
    var receivesNotifications: Bool
    var notifiesICEState: Bool
    var agent: ClientAgent
    /// Whether its authorization lets it publish.
    var mayPublish: Bool
    /// Whether its authorization lets it moderate while it is a host.
    var mayModerate = false
    /// When its permission expires; `nil` without an end.
    var expiry: AccessExpiry?
    /// Bit/s that it may be sent at present: those of its grant, or an operator's choice.
    var receiveBitsPerSecondMax: Int?
    let createdAt: RoomTime
    /// The phases of its set-up, by its first connection.
    var setup = ConnectionSetup()
    /// The peer of that connection.
    let firstPeer: PeerID
    /// Whether it is connected to another node.
    let isRemote: Bool
    /// Orders publishers by when they went live, on all nodes alike; 0 before that.
    var liveNumber: UInt64 = 0
    /// Whether its media is known to the media plane.
    var isActive = false
    /// Whether its transport is up.
    var isTransportUp = false
    /// When it was both active and its transport up; `nil` before.
    var connectedAt: RoomTime?
    /// The tracks that it can publish.
    var negotiatedPublications: [Publication] = []
    /// The video codecs that it can decode; `nil` where its description does not list them.
    var decodedVideo: Set<CodecName>?
    /// Whether others were notified of it.
    var isAnnounced = false
    /// The kinds of which packets have come, over its earlier connections, too.
    var begun: Set<MediaKind> = []
    /// Whether it was reported that its media comes, since it is connected and publishes.
    var hasPublished = false
    /// Whether it was reported that a picture of it came.
    var hasShown = false
    /// Whether nothing of it comes any more, although its connection has not ended. See ``PeerEvent/silenceChanged(isSilent:)``.
    var isSilent = false
    /// What it muted last. Others may not know it yet: see ``known``.
    var mutedByItself: Set<MediaKind> = []
    var mutedByOperator: Set<MediaKind> = []
    /// What a moderator muted, and it has not unmuted since.
    var mutedByModerator: Set<MediaKind> = []
    /// Whether it asks to speak.
    var isHandRaised = false
    /// The budget of its changes of itself; `nil` for a member of another node, which has the budget.
    var changes: OwnChanges?
    /// The quality of its network.
    var quality = LinkQuality.unknown
    /// The tracks with speech at present.
    var speaking: Set<MID> = []
    var deadlines = Deadlines()

    /// What it joined with. None of it changes, also when a new connection takes its place.
    struct Terms: Sendable, Codable {
        let displayName: String?
        let network: ClientNetwork
        let bundle: Bundle
        let user: UserIdentity?
        /// The app whose token admitted it; `nil` for a client without such a token.
        let app: String?
        let duplicateUsers: DuplicateUserPolicy?
        let following: Following
        let announces: Bool
        /// What notifications say instead of what it publishes.
        let announcedAudio: Bool?
        let announcedVideo: Bool?
        let isSimulcast: Bool
        let spotlight: Spotlight?
        /// `nil` for a client that does not know them.
        let options: MemberOptions?
        /// What its transport negotiates. ``Participant/role`` is what it does of that at present.
        let negotiatedRole: Role
        let eventMetadataJSON: String?
        let lifetimeSeconds: Int64?
        /// Bit/s that its grant lets it be sent; `nil` for the node's maximum.
        let grantedReceiveBitsPerSecondMax: Int?

        init(_ request: JoinRequest, of id: ParticipantID) {
            displayName = request.displayName
            network = request.network
            bundle = Bundle(
                id: request.bundleID ?? id.value,
                scope: request.bundleScope ?? .network(request.network)
            )
            user = request.user
            app = request.app
            duplicateUsers = request.duplicateUsers
            following = request.following
            announces = request.announces
            announcedAudio = request.sendsAudio
            announcedVideo = request.sendsVideo
            isSimulcast = request.isSimulcast
            spotlight = request.spotlight
            options = request.options
            negotiatedRole = request.role
            eventMetadataJSON = request.eventMetadataJSON
            lifetimeSeconds = request.lifetime.map { max($0.components.seconds, 0) }
            grantedReceiveBitsPerSecondMax = request.receiveBitsPerSecondMax
        }

        /// Of a member of another node, which keeps what is not for others.
        init(_ record: MemberRecord) {
            displayName = record.displayName
            network = .unknown
            bundle = record.bundle
            user = record.user
            app = record.app
            duplicateUsers = nil
            following = .currentPublisher
            announces = record.announces
            announcedAudio = nil
            announcedVideo = nil
            isSimulcast = record.isSimulcast
            spotlight = record.spotlight
            options = record.options
            negotiatedRole = record.negotiatedRole
            eventMetadataJSON = record.eventMetadataJSON
            lifetimeSeconds = nil
            grantedReceiveBitsPerSecondMax = nil
        }
    }

    /// Its places in the deadline wheels of ``ChannelModel``, in seconds of the monotonic clock; `nil` while it is in none.
    struct Deadlines: Sendable, Codable {
        /// In ``ChannelModel/setupDeadlines``.
        var setup: Int64?
        /// In ``ChannelModel/updateDeadlines``.
        var update: Int64?
        /// In ``ChannelModel/lifetimeDeadlines``.
        var lifetimeEnd: Int64?
        /// In ``ChannelModel/expiryDeadlines``: the warning, and after it the end.
        var expiry: Int64?
        /// Whether it was warned of its expiry.
        var isExpiryAnnounced = false
    }

    /// - Parameter role: what it does in the channel first.
    init(
        _ request: JoinRequest,
        role: Role,
        as place: ParticipantLocation,
        at now: RoomTime
    ) {
        id = place.participant
        peer = place.peer
        location = place.location
        order = place.order
        channel = request.channel
        let terms = Terms(request, of: place.participant)
        self.terms = terms
        member = Member(
            id: place.participant,
            clientID: request.clientID ?? place.participant.value,
            bundleID: terms.bundle.id,
            role: role,
            sendsAudio: request.sendsAudio ?? false,
            sendsVideo: request.sendsVideo ?? false,
            notifyMetadataJSON: request.notifyMetadataJSON,
            authorizedMetadataJSON: request.authorizedMetadataJSON
        )
        receivesNotifications = request.receivesNotifications
        notifiesICEState = request.notifiesICEState
        agent = request.agent
        mayPublish = request.mayPublish
        mayModerate = request.mayModerate
        expiry = request.expiry
        receiveBitsPerSecondMax = request.receiveBitsPerSecondMax
        createdAt = now
        setup = ConnectionSetup(request, at: now.instant)
        firstPeer = place.peer
        isRemote = false
    }

    /// A member of another node that has only joined. ``update(_:)`` and what follows it bring it up to date.
    init(_ record: MemberRecord, order: UInt64, in channel: ChannelName, at now: RoomTime) {
        id = record.id
        peer = record.peer
        location = record.location
        self.channel = channel
        self.order = order
        terms = Terms(record)
        member = record.member
        receivesNotifications = false
        notifiesICEState = false
        agent = record.agent
        mayPublish = record.negotiatedRole.publishes
        expiry = record.expiry
        createdAt = now.earlier(unixNanoseconds: record.createdAt)
        firstPeer = record.peer
        isRemote = true
        liveNumber = record.liveNumber
    }

    var role: Role { member.role }
    /// Whether others are told that it is interrupted.
    var isInterrupted: Bool { isSilent || resumption?.interruption != nil }
    var isConnected: Bool { connectedAt != nil }
    /// Whether it publishes, and its transport is up.
    var isLive: Bool { isConnected && role.publishes }
    /// The tracks that it publishes.
    var publications: [Publication] { role.publishes ? negotiatedPublications : [] }
    /// The kinds of which packets come.
    var flowing: Set<MediaKind> { publications.flowingKinds }
    /// The kinds of `before` that stopped, or came again since.
    func flowChanges(since before: Self) -> Set<MediaKind> {
        flowing.symmetricDifference(before.flowing).intersection(before.begun)
    }
    /// The kinds that are not forwarded, because an operator or moderator muted them.
    var stopped: Set<MediaKind> { mutedByOperator.union(mutedByModerator) }
    /// The kinds that it, an operator or a moderator muted, as others know it.
    var muted: Set<MediaKind> { known.muted.union(stopped) }
    /// Whether it moderates the channel at present.
    var moderates: Bool { mayModerate && isConnected && role.publishes }

    mutating func activate(_ publications: [Publication]) {
        isActive = true
        let publications = publications.continuing(negotiatedPublications)
        negotiatedPublications = publications
        member.sendsAudio = terms.announcedAudio ?? publications.contains { $0.kind == .audio }
        member.sendsVideo = terms.announcedVideo ?? publications.contains { $0.kind == .video }
    }

    func source(isFocused: Bool, isSpeaker: Bool) -> Source {
        Source(
            id: id,
            clientID: member.clientID,
            peer: peer,
            location: location,
            publications: publications,
            video: terms.options?.source ?? .camera,
            isFocused: isFocused,
            isSpeaker: isSpeaker
        )
    }

    func connection(in session: ChannelSessionID) -> Connection {
        Connection(
            member: member,
            channel: channel,
            session: session,
            node: location.node,
            agent: agent,
            displayName: terms.displayName,
            createdAt: createdAt.unixNanoseconds,
            connectedAt: connectedAt?.unixNanoseconds,
            setupTime: connectedAt.map { .nanoseconds(($0.instant - createdAt.instant).nanoseconds) },
            isSimulcast: terms.isSimulcast || publications.contains(where: \.isSimulcast),
            spotlight: terms.spotlight,
            publications: publications,
            channelRole: channelRole,
            source: terms.options?.source ?? .camera,
            muted: muted,
            eventMetadataJSON: terms.eventMetadataJSON,
            receiveBitsPerSecondMax: receiveBitsPerSecondMax,
            user: terms.user,
            expiry: expiry,
            app: terms.app,
            quality: quality,
            negotiatedRole: terms.negotiatedRole,
            hasPublished: hasPublished,
            isSilent: isSilent,
            setup: setup
        )
    }

    /// How long it has been connected.
    func duration(at now: RoomTime) -> Duration {
        .nanoseconds(connectedAt.map { max((now.instant - $0.instant).nanoseconds, 0) } ?? 0)
    }
}

extension Participant {
    /// What the router of messages knows of it.
    var forData: DataParticipant {
        DataParticipant(
            id: id,
            peer: peer,
            location: location,
            bundle: terms.bundle,
            clientID: member.clientID,
            displayName: terms.displayName
        )
    }
}
