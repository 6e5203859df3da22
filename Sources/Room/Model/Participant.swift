import MediaTypes
import Wire

/// One participant, without its receiving side (``Viewer``).
struct Participant: Sendable, Codable {
    let id: ParticipantID
    let peer: PeerID
    let channel: ChannelName
    let location: MediaLocation
    let displayName: String?
    let network: ClientNetwork
    let bundle: Bundle
    /// Grows with every participant of the node.
    let order: UInt64
    let following: Following
    var member: Member
    var receivesNotifications: Bool
    let notifiesICEState: Bool
    let announces: Bool
    /// What notifications say instead of what it publishes.
    let announcedAudio: Bool?
    let announcedVideo: Bool?
    let isSimulcast: Bool
    let spotlight: Spotlight?
    let agent: ClientAgent
    let eventMetadataJSON: String?
    let lifetimeSeconds: Int64?
    /// When its permission expires; `nil` without an end.
    let expiry: AccessExpiry?
    /// Bit/s that its grant lets it be sent; `nil` for the node's maximum.
    let grantedReceiveBitsPerSecondMax: Int?
    /// Bit/s that it may be sent at present: those of its grant, or an operator's choice.
    var receiveBitsPerSecondMax: Int?
    let createdAt: RoomTime
    /// Whether its media is known to the media plane.
    var isActive = false
    /// Whether its transport is up.
    var isTransportUp = false
    /// When it was both active and its transport up; `nil` before.
    var connectedAt: RoomTime?
    var publications: [Publication] = []
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

    init(
        _ request: JoinRequest,
        as place: ParticipantPlace,
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
        following = request.following
        member = Member(
            id: place.participant,
            clientID: request.clientID ?? place.participant.value,
            bundleID: bundle.id,
            role: request.role,
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
        eventMetadataJSON = request.eventMetadataJSON
        lifetimeSeconds = request.lifetime.map { max($0.components.seconds, 0) }
        expiry = request.expiry
        grantedReceiveBitsPerSecondMax = request.receiveBitsPerSecondMax
        receiveBitsPerSecondMax = request.receiveBitsPerSecondMax
        createdAt = now
    }

    var role: Role { member.role }
    var isConnected: Bool { connectedAt != nil }
    /// Whether it publishes, and its transport is up.
    var isLive: Bool { isConnected && role.publishes }

    mutating func activate(_ publications: [Publication]) {
        isActive = true
        self.publications = publications
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
            isFocused: isFocused,
            isSpeaker: isSpeaker
        )
    }

    func connection(in session: ChannelSessionID) -> Connection {
        Connection(
            member: member,
            channel: channel,
            session: session,
            agent: agent,
            displayName: displayName,
            createdAt: createdAt.unixNanoseconds,
            connectedAt: connectedAt?.unixNanoseconds,
            setupTime: connectedAt.map { .nanoseconds(($0.instant - createdAt.instant).nanoseconds) },
            isSimulcast: isSimulcast || publications.contains(where: \.isSimulcast),
            spotlight: spotlight,
            publications: publications,
            eventMetadataJSON: eventMetadataJSON,
            receiveBitsPerSecondMax: receiveBitsPerSecondMax
        )
    }

    /// How long it has been connected.
    func duration(at now: RoomTime) -> Duration {
        .nanoseconds(connectedAt.map { max((now.instant - $0.instant).nanoseconds, 0) } ?? 0)
    }
}
