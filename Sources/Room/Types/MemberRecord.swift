public import MediaTypes
public import Wire

/// A member of a channel as its own node tells the other nodes of it. It holds no secrets.
public struct MemberRecord: Hashable, Sendable, Codable {
    public let id: ParticipantID
    let member: Member
    let peer: PeerID
    /// The media loop of its peer.
    let location: MediaLocation
    let negotiatedRole: Role
    let displayName: String?
    let bundle: Bundle
    let user: UserIdentity?
    let app: String?
    let duplicateUsers: DuplicateUserPolicy?
    let announces: Bool
    let isSimulcast: Bool
    let spotlight: Spotlight?
    let agent: ClientAgent
    let options: MemberOptions?
    let eventMetadataJSON: String?
    let expiry: AccessExpiry?
    /// In nanoseconds since 1970 UTC, by the clock of its node.
    let createdAt: Int64
    /// In nanoseconds since 1970 UTC, by the clock of its node; `nil` before it is connected.
    let connectedAt: Int64?
    /// See ``Participant/liveNumber``.
    let liveNumber: UInt64
    let isActive: Bool
    let isInterrupted: Bool
    let publications: [Publication]
    let mutedByItself: Set<MediaKind>
    let mutedByOperator: Set<MediaKind>
    let quality: LinkQuality
    /// Its tracks with speech.
    let speaking: Set<MID>
    let decodedVideo: Set<CodecName>?

    /// The node that the member is connected to.
    public var node: NodeIncarnation { location.node }
}

extension MemberRecord {
    init(_ participant: Participant) {
        id = participant.id
        member = participant.member
        peer = participant.peer
        location = participant.location
        negotiatedRole = participant.negotiatedRole
        displayName = participant.displayName
        bundle = participant.bundle
        user = participant.user
        app = participant.app
        duplicateUsers = participant.duplicateUsers
        announces = participant.announces
        isSimulcast = participant.isSimulcast
        spotlight = participant.spotlight
        agent = participant.agent
        options = participant.options
        eventMetadataJSON = participant.eventMetadataJSON
        expiry = participant.expiry
        createdAt = participant.createdAt.unixNanoseconds
        connectedAt = participant.connectedAt?.unixNanoseconds
        liveNumber = participant.liveNumber
        isActive = participant.isActive
        isInterrupted = participant.resumption?.interruption != nil
        publications = participant.negotiatedPublications
        mutedByItself = participant.mutedByItself
        mutedByOperator = participant.mutedByOperator
        quality = participant.quality
        speaking = participant.speaking
        decodedVideo = participant.decodedVideo
    }
}

/// What the nodes of a cluster tell each other of a channel that they have. News of one node arrives in its order.
public enum ChannelNews: Hashable, Sendable, Codable {
    /// All that a node has of the channel, in place of what it told before.
    case all(ChannelSession?, [MemberRecord], ChannelRegister, labels: Set<String>)
    /// Members of the node that are new or changed.
    case changed([MemberRecord])
    /// Members of the node that left.
    case left([Departed])
    /// What holds for the whole channel.
    case register(ChannelRegister)
    /// The labels of data channels that members of the node receive.
    case labels(Set<String>)

    public struct Departed: Hashable, Sendable, Codable {
        let id: ParticipantID
        let departure: Departure
    }
}

/// What is decided for a whole channel, by whichever node a client or an operator asked. The highest version wins, and of
/// equal ones the node with the highest incarnation.
public struct ChannelRegister: Hashable, Sendable, Codable {
    var version: UInt64 = 0
    var node = NodeIncarnation.standalone
    var filters: [ForwardingFilter] = []
    /// `nil` until an operator chooses it.
    var spotlightNumber: Int?
    /// `nil` until a member that knows profiles joins.
    var profile: ChannelProfile?
    /// What operators decided about users.
    var holds = OperatorHolds()
    /// The senders that operators fixed in focus, in the order of the requests; `nil` of a node whose build does not tell.
    var fixed: [ParticipantID]?

    func isNewer(than other: Self) -> Bool { (version, node.rawValue) > (other.version, other.node.rawValue) }
}

/// What a node asks the node of a member to do.
public enum MemberRequest: Hashable, Sendable, Codable {
    case end(ParticipantID, RemoteEnd)
    /// An operator makes the member host or audience.
    case role(ParticipantID, ChannelRole)
    /// An operator mutes a kind of the member's media or unmutes it.
    case mute(ParticipantID, MediaKind, Bool)
    /// An operator limits the rate at which the member is sent media, or with `nil` lets its grant decide.
    case sendingLimit(ParticipantID, bitsPerSecond: Int?)
    /// The member's video needs key frames.
    case keyFrame(ParticipantID)
    /// An operator requests another layer for a receiver; of one sender, or with `nil` of all.
    case layer(ParticipantID, LayerChoice, of: ParticipantID?)
    /// An operator requests video of another height for a receiver.
    case height(ParticipantID, Int?, of: ParticipantID?)
    /// An operator requests other layers for a receiver with spotlight; `nil` for the layers that it joined with.
    case spotlightLayers(ParticipantID, SpotlightLayers?, of: ParticipantID?)
    /// An operator subscribes a receiver to tracks, or unsubscribes it.
    case subscription(ParticipantID, Bool, SubscriptionSelection)
    /// An operator sends members a JSON text.
    case push([ParticipantID], json: String)
    /// An operator put a sender, of whichever node, into focus.
    case focus(ParticipantID, isFixed: Bool)
    /// An operator took a sender, of whichever node, out of focus.
    case unfocus(ParticipantID)

    /// The reasons for which one node ends a member of another.
    public enum RemoteEnd: String, Hashable, Sendable, Codable {
        case disconnectedByOperator, kicked, banned, channelTerminated, sessionTerminated, madeAudience, replaced

        var reason: EndReason {
            switch self {
            case .disconnectedByOperator: .disconnectedByOperator
            case .kicked: .kicked
            case .banned: .banned
            case .channelTerminated: .channelTerminated
            case .sessionTerminated: .sessionTerminated
            case .madeAudience: .madeAudience
            case .replaced: .replaced
            }
        }
    }
}
