import MediaTypes
import Wire

/// One participant, without its receiving side (``Viewer``).
struct Participant: Sendable, Codable {
    let id: ParticipantID
    /// Changes when a new connection takes its place.
    var peer: PeerID
    let channel: ChannelName
    var location: MediaLocation
    let displayName: String?
    let network: ClientNetwork
    let bundle: Bundle
    let user: UserIdentity?
    /// The app whose token admitted it; `nil` for a client without such a token.
    let app: String?
    let duplicateUsers: DuplicateUserPolicy?
    /// `nil` for one that leaves when its connection is lost.
    var resumption: Resumption?
    /// Grows with every participant of the node.
    let order: UInt64
    let following: Following
    var member: Member
    var receivesNotifications: Bool
    var notifiesICEState: Bool
    let announces: Bool
    /// What notifications say instead of what it publishes.
    let announcedAudio: Bool?
    let announcedVideo: Bool?
    let isSimulcast: Bool
    let spotlight: Spotlight?
    var agent: ClientAgent
    /// `nil` for a client that does not know them.
    let options: MemberOptions?
    /// What its transport negotiates. ``role`` is what it does of that at present.
    let negotiatedRole: Role
    /// Whether its authorization lets it publish.
    var mayPublish: Bool
    let eventMetadataJSON: String?
    let lifetimeSeconds: Int64?
    /// When its permission expires; `nil` without an end.
    var expiry: AccessExpiry?
    /// Bit/s that its grant lets it be sent; `nil` for the node's maximum.
    let grantedReceiveBitsPerSecondMax: Int?
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
    /// Whether others were notified of it.
    var isAnnounced = false
    /// What it muted last. Others may not know it yet: see ``known``.
    var mutedByItself: Set<MediaKind> = []
    var mutedByOperator: Set<MediaKind> = []
    /// The budget of its changes of itself; `nil` for a member of another node, which has the budget.
    var changes: OwnChanges?
    /// The quality of its network.
    var quality = LinkQuality.unknown
    /// The tracks with speech at present.
    var speaking: Set<MID> = []
    /// Its deadlines in ``ChannelModel/updateDeadlines``, ``ChannelModel/lifetimeDeadlines`` and
    /// ``ChannelModel/expiryDeadlines``, in seconds of the monotonic clock.
    var updateSecond: Int64?
    var lifetimeEndSecond: Int64?
    var expirySecond: Int64?
    /// Whether it was warned of its expiry.
    var isExpiryAnnounced = false
    /// Its deadline in ``ChannelModel/setupDeadlines``.
    var setupSecond: Int64?
    /// The video codecs that it can decode; `nil` where its description does not list them.
    var decodedVideo: Set<CodecName>?

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
        member = Member(
            id: place.participant,
            clientID: request.clientID ?? place.participant.value,
            bundleID: bundle.id,
            role: role,
            sendsAudio: request.sendsAudio ?? false,
            sendsVideo: request.sendsVideo ?? false,
            notifyMetadataJSON: request.notifyMetadataJSON,
            authorizedMetadataJSON: request.authorizedMetadataJSON
        )
        receivesNotifications = request.receivesNotifications
        notifiesICEState = request.notifiesICEState
        announces = request.announces
        announcedAudio = request.sendsAudio
        announcedVideo = request.sendsVideo
        isSimulcast = request.isSimulcast
        spotlight = request.spotlight
        agent = request.agent
        options = request.options
        negotiatedRole = request.role
        mayPublish = request.mayPublish
        eventMetadataJSON = request.eventMetadataJSON
        lifetimeSeconds = request.lifetime.map { max($0.components.seconds, 0) }
        expiry = request.expiry
        grantedReceiveBitsPerSecondMax = request.receiveBitsPerSecondMax
        receiveBitsPerSecondMax = request.receiveBitsPerSecondMax
        createdAt = now
        setup = ConnectionSetup(request, at: now.instant)
        firstPeer = place.peer
        isRemote = false
    }

    var role: Role { member.role }
    var isConnected: Bool { connectedAt != nil }
    /// Whether it publishes, and its transport is up.
    var isLive: Bool { isConnected && role.publishes }
    /// The tracks that it publishes.
    var publications: [Publication] { role.publishes ? negotiatedPublications : [] }
    /// The kinds that it or an operator muted, as others know it.
    var muted: Set<MediaKind> { known.muted.union(mutedByOperator) }

    mutating func activate(_ publications: [Publication]) {
        isActive = true
        let publications = publications.continuing(negotiatedPublications)
        negotiatedPublications = publications
        member.sendsAudio = announcedAudio ?? publications.contains { $0.kind == .audio }
        member.sendsVideo = announcedVideo ?? publications.contains { $0.kind == .video }
    }

    func source(isFocused: Bool, isSpeaker: Bool) -> Source {
        Source(
            id: id,
            clientID: member.clientID,
            peer: peer,
            location: location,
            publications: publications,
            video: options?.source ?? .camera,
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
            displayName: displayName,
            createdAt: createdAt.unixNanoseconds,
            connectedAt: connectedAt?.unixNanoseconds,
            setupTime: connectedAt.map { .nanoseconds(($0.instant - createdAt.instant).nanoseconds) },
            isSimulcast: isSimulcast || publications.contains(where: \.isSimulcast),
            spotlight: spotlight,
            publications: publications,
            channelRole: channelRole,
            source: options?.source ?? .camera,
            muted: muted,
            eventMetadataJSON: eventMetadataJSON,
            receiveBitsPerSecondMax: receiveBitsPerSecondMax,
            user: user,
            expiry: expiry,
            app: app,
            quality: quality,
            setup: setup
        )
    }

    /// How long it has been connected.
    func duration(at now: RoomTime) -> Duration {
        .nanoseconds(connectedAt.map { max((now.instant - $0.instant).nanoseconds, 0) } ?? 0)
    }
}
