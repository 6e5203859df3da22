package import ChannelTypes
package import MediaTypes
import Wire

/// A member of a channel as its own node tells the other nodes of it. It holds no secrets.
package struct MemberRecord: Hashable, Sendable, Codable {
    package let id: ParticipantID
    var member: Member
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
    var eventMetadataJSON: String?
    let expiry: AccessExpiry?
    /// In nanoseconds since 1970 UTC, by the clock of its node.
    let createdAt: Int64
    /// In nanoseconds since 1970 UTC, by the clock of its node; `nil` before it is connected.
    let connectedAt: Int64?
    /// See ``Participant/liveNumber``.
    let liveNumber: UInt64
    let isActive: Bool
    let isInterrupted: Bool
    /// See ``Participant/isSilent``; `nil` of a node whose build does not tell.
    let isSilent: Bool?
    let publications: [Publication]
    let mutedByItself: Set<MediaKind>
    let mutedByOperator: Set<MediaKind>
    /// See ``Participant/mutedByModerator``; `nil` of a node whose build does not tell.
    let mutedByModerator: Set<MediaKind>?
    /// See ``Participant/isHandRaised``; `nil` of a node whose build does not tell.
    let isHandRaised: Bool?
    let quality: LinkQuality
    /// Its tracks with speech.
    let speaking: Set<MID>
    let decodedVideo: Set<CodecName>?

    /// The node that the member is connected to.
    package var node: NodeIncarnation { location.node }
}

extension MemberRecord {
    init(_ participant: Participant) {
        id = participant.id
        member = participant.member
        member.updatedMetadataJSON = participant.known.metadataJSON
        peer = participant.peer
        location = participant.location
        negotiatedRole = participant.terms.negotiatedRole
        displayName = participant.terms.displayName
        bundle = participant.terms.bundle
        user = participant.terms.user
        app = participant.terms.app
        duplicateUsers = participant.terms.duplicateUsers
        announces = participant.terms.announces
        isSimulcast = participant.terms.isSimulcast
        spotlight = participant.terms.spotlight
        agent = participant.agent
        options = participant.terms.options
        eventMetadataJSON = participant.terms.eventMetadataJSON
        expiry = participant.expiry
        createdAt = participant.createdAt.unixNanoseconds
        connectedAt = participant.connectedAt?.unixNanoseconds
        liveNumber = participant.liveNumber
        isActive = participant.isActive
        isInterrupted = participant.resumption?.interruption != nil
        isSilent = participant.isSilent
        publications = participant.negotiatedPublications
        mutedByItself = participant.known.muted
        mutedByOperator = participant.mutedByOperator
        mutedByModerator = participant.mutedByModerator
        isHandRaised = participant.isHandRaised
        quality = participant.quality
        speaking = participant.speaking
        decodedVideo = participant.decodedVideo
    }
}

/// What the nodes of a cluster tell each other of a channel that they have. News of one node arrives in its order.
package enum ChannelUpdate: Hashable, Sendable, Codable {
    /// All that a node has of the channel, in place of what it told before. `others` are members whose records follow, as changed
    /// ones, because one message has no room for all.
    case all(
        ChannelSession?,
        [MemberRecord],
        ChannelRegister,
        labels: Set<String>,
        others: [ParticipantID]? = nil
    )
    /// Members of the node that are new or changed.
    case changed([MemberRecord])
    /// Members of the node that left.
    case left([Departed])
    /// What holds for the whole channel.
    case register(ChannelRegister)
    /// The labels of data channels that members of the node receive.
    case labels(Set<String>)

    package struct Departed: Hashable, Sendable, Codable {
        let id: ParticipantID
        let departure: Departure
        /// When it left, by the clock of its node, and later than all departures that its node knew of; in nanoseconds since
        /// 1970 UTC. `nil` from a build that does not tell it.
        var time: Int64?
    }

    enum CodingKeys: String, CodingKey { case all, changed, left, register, labels }
    enum AllCodingKeys: String, CodingKey { case _0, _1, _2, labels, others }
    enum ChangedCodingKeys: String, CodingKey { case _0 }
    enum LeftCodingKeys: String, CodingKey { case _0 }
    enum RegisterCodingKeys: String, CodingKey { case _0 }
    enum LabelsCodingKeys: String, CodingKey { case _0 }

    /// Leaves out members that this build does not understand: the others must not be lost with them.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard let key = container.allKeys.first, container.allKeys.count == 1 else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "one kind of news is expected")
            )
        }
        switch key {
        case .all:
            let all = try container.nestedContainer(keyedBy: AllCodingKeys.self, forKey: key)
            self = .all(
                try all.decodeIfPresent(ChannelSession.self, forKey: ._0),
                try all.decode(KnownElements<MemberRecord>.self, forKey: ._1).elements,
                try all.decode(ChannelRegister.self, forKey: ._2),
                labels: try all.decode(Set<String>.self, forKey: .labels),
                others: try all.decodeIfPresent([ParticipantID].self, forKey: .others)
            )
        case .changed:
            let changed = try container.nestedContainer(keyedBy: ChangedCodingKeys.self, forKey: key)
            self = .changed(try changed.decode(KnownElements<MemberRecord>.self, forKey: ._0).elements)
        case .left:
            let left = try container.nestedContainer(keyedBy: LeftCodingKeys.self, forKey: key)
            self = .left(try left.decode(KnownElements<Departed>.self, forKey: ._0).elements)
        case .register:
            let register = try container.nestedContainer(keyedBy: RegisterCodingKeys.self, forKey: key)
            self = .register(try register.decode(ChannelRegister.self, forKey: ._0))
        case .labels:
            let labels = try container.nestedContainer(keyedBy: LabelsCodingKeys.self, forKey: key)
            self = .labels(try labels.decode(Set<String>.self, forKey: ._0))
        }
    }
}

extension ChannelUpdate {
    /// All that a node has of a channel, in messages that links take.
    package static func all(
        _ session: ChannelSession?,
        members: [MemberRecord],
        _ register: ChannelRegister,
        labels: Set<String>
    ) -> [ChannelUpdate] {
        let parts = members.messageParts
        let others = parts.dropFirst().joined().map(\.id)
        let first = Self.all(
            session,
            parts.first ?? [],
            register,
            labels: labels,
            others: others.isEmpty ? nil : others
        )
        return [first] + parts.dropFirst().map { .changed($0) }
    }
}

extension [MemberRecord] {
    /// The most metadata that is told at once, in bytes of the message. Further members come without: a link has to take all.
    static let metadataBytesMax = 8 << 20
    /// The most bytes of a part. One record alone may have more.
    static let partBytesMax = 4 << 20

    /// The records in parts that each fit one message.
    var messageParts: [[MemberRecord]] {
        var parts: [[MemberRecord]] = []
        var (partBytes, metadataBytes) = (Self.partBytesMax, 0)
        for record in self {
            let metadata = record.metadataBytes
            metadataBytes += metadata
            let isWhole = metadataBytes <= Self.metadataBytesMax
            let bytes = MemberRecord.bytesWithoutMetadata + (isWhole ? metadata : 0)
            if partBytes + bytes > Self.partBytesMax {
                parts.append([])
                partBytes = 0
            }
            partBytes += bytes
            parts[parts.count - 1].append(isWhole ? record : record.withoutMetadata)
        }
        return parts
    }
}

extension MemberRecord {
    /// About what a record takes in a message without its metadata.
    fileprivate static let bytesWithoutMetadata = 2_048

    /// At most what the metadata takes in a message: each character of a JSON text may have to be escaped.
    fileprivate var metadataBytes: Int {
        let texts = [
            member.notifyMetadataJSON, member.updatedMetadataJSON, member.authorizedMetadataJSON, eventMetadataJSON,
        ]
        return texts.reduce(0) { $0 + 2 * ($1?.utf8.count ?? 0) }
    }

    fileprivate var withoutMetadata: Self {
        var record = self
        record.member.notifyMetadataJSON = nil
        record.member.updatedMetadataJSON = nil
        record.member.authorizedMetadataJSON = nil
        record.eventMetadataJSON = nil
        return record
    }
}

/// What is decided for a whole channel, by whichever node a client or an operator asked. The highest version wins, and of
/// equal ones the node with the highest incarnation.
package struct ChannelRegister: Hashable, Sendable, Codable {
    var version: UInt64 = 0
    var node = NodeIncarnation.standalone
    var filters: [ForwardingFilter] = []
    /// `nil` until an operator chooses it.
    var spotlightNumber: Int?
    /// `nil` until a member that knows profiles joins.
    var profile: ChannelProfile?
    /// What operators decided about users.
    var holds = OperatorOverrides()
    /// The senders that operators fixed in focus, in the order of the requests; `nil` of a node whose build does not tell.
    var fixed: [ParticipantID]?
    /// The app whose tokens admit to the channel. The first one stays, whatever the version.
    var app: String?
    /// The channel's last session, when none has begun since. Whatever the version, it is not used again.
    package var endedSession: ChannelSession?

    func isNewer(than other: Self) -> Bool { (version, node.rawValue) > (other.version, other.node.rawValue) }
}

extension ChannelRegister {
    /// Of a node that does not use the channel.
    package init(endedSession: ChannelSession?) {
        self.init()
        self.endedSession = endedSession
    }
}
