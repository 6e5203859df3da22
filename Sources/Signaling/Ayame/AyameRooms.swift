import ChannelTypes
import MediaTypes
import Room
import Web
import Webhooks

/// The rooms of the 1:1 relay at one node, with at most two members each. A room ends when a member leaves it.
///
/// It decides; its owner performs the effects, each as soon as it is decided. So of two simultaneous clients one is the first, and
/// no message reaches a client before its `accept`.
package struct AyameRooms: Sendable {
    /// A client's connection in a room.
    struct Member: Sendable {
        let connectionID: String
        /// The client's own name and key, both not empty; `nil` without. A client with the same ones replaces it.
        let identity: Identity?
        let isStandalone: Bool
        /// The name by which operators know the client: of its token, or its own, or else its connection identifier.
        let user: String
        /// The app whose token admitted it; `nil` for a client without such a token.
        let app: String?
        /// When it registered, in seconds since 1970 UTC.
        let registeredAt: Int64
        let origin: Origin
    }

    /// The node that a member is connected to.
    enum Origin: Sendable {
        /// This one. The closure tells the client. It must not block.
        case here(@Sendable (Notice) -> Void)
        case at(NodeID)
    }

    /// What a member is told.
    enum Notice: Hashable, Sendable {
        /// It has joined, and gets texts from now on. `turn` is the node's relay to the other member, if there is one.
        case accepted(hasPartner: Bool, media: CallMedia, turn: TURNAccess? = nil)
        /// Of the other member, or of the room.
        case text(String)
        /// Its registration has ended, and with it its WebSocket.
        case ended(AyameClose)
    }

    /// What the owner of the rooms does, in order.
    enum Effect: Sendable {
        case tell(Member, Notice)
        /// An event of a room whose media goes from client to client.
        case report(CallReport.Event, ChannelName, ChannelSessionID)
        /// Ends the relay of a room that has ended.
        case closeRelay(CallTURNID, keepsAllocations: Bool)
    }

    struct Identity: Hashable, Sendable, Codable {
        let clientID: String
        let signalingKey: String

        /// Whether both are as long as a client may send them. Another node tells them, too.
        var isWithinLimits: Bool {
            (1...255).contains(clientID.utf8.count)
                && (1...AyameCredentials.keyBytesMax).contains(signalingKey.utf8.count)
        }
    }

    struct Call: Sendable {
        let session: ChannelSessionID
        let media: CallMedia
        /// The app of the first member with an app's token; `nil` without one.
        var app: String?
        /// The first member has its first credentials, the second one the other; `nil` without a relay.
        let relay: CallTURN?
        var members: [Member] = []
    }

    /// The answer to a client that joins a room.
    enum Answer: Hashable {
        /// It is in the room, whose media takes this path.
        case joined(CallMedia)
        /// The room has two members.
        case full
        /// The room's media takes another path than an operator requires.
        case otherMedia
        /// An operator blocks the client or the room, or the room is another app's.
        case refused(RoomError)
        /// For another reason: of the node that has the room, or because that node does not answer.
        case rejected(AyameRefusal)

        /// Why the client is refused; `nil` for one that has joined.
        var refusal: AyameRefusal? {
            switch self {
            case .joined: nil
            case .full: .full
            case .otherMedia: .otherMedia
            case .refused(let error): AyameRefusal(error)
            case .rejected(let refusal): refusal
            }
        }
    }

    private var calls: [ChannelName: Call] = [:]

    /// The number of rooms.
    var count: Int { calls.count }

    /// Whether a client that joins a room begins it, as its first member.
    func isNew(_ name: ChannelName, for member: Member) -> Bool {
        guard let members = calls[name]?.members else { return true }
        return member.identity.map { identity in members.contains { $0.identity == identity } } ?? false
    }

    /// Whether a room has this relay.
    func has(_ relay: CallTURN, in name: ChannelName) -> Bool { calls[name]?.relay?.id == relay.id }

    /// Joins a room. Its first member decides on the path of its media.
    /// - Parameters:
    ///   - isMediaRequired: whether the client may not join a room with another path.
    ///   - relay: for a room that the client begins and whose media goes from client to client.
    mutating func join(
        _ name: ChannelName,
        _ member: Member,
        media: CallMedia = .direct,
        isMediaRequired: Bool = false,
        relay: CallTURN? = nil
    ) -> (answer: Answer, effects: [Effect]) {
        // As in channels, clients without an app fit any room.
        if let app = member.app, let owner = calls[name]?.app, app != owner { return (.refused(.appMismatch), []) }
        var effects: [Effect] = []
        if let identity = member.identity, let others = calls[name]?.members,
            others.contains(where: { $0.identity == identity })
        {
            effects += remove(name) { ($0.identity == identity ? AyameClose.replaced : .bye).close.reason }
            for other in others {
                effects += other.identity == identity ? [.tell(other, .ended(.replaced))] : other.farewell(.bye)
            }
        }
        let isNew = calls[name] == nil
        var call = calls[name] ?? Call(session: .random(), media: media, relay: media == .direct ? relay : nil)
        guard call.members.count < 2 else { return (.full, effects) }
        guard !isMediaRequired || call.media == media else { return (.otherMedia, effects) }
        let hasPartner = !call.members.isEmpty
        let turn = hasPartner ? call.relay?.second : call.relay?.first
        effects.append(.tell(member, .accepted(hasPartner: hasPartner, media: call.media, turn: turn)))
        call.members.append(member)
        if call.app == nil { call.app = member.app }
        calls[name] = call
        if isNew { effects += report(.opened, of: call, in: name) }
        return (.joined(call.media), effects + report(.joined(member.reported), of: call, in: name))
    }

    /// Ends the registrations that match, and the rooms that they are in.
    /// - Parameter reason: of a registration's end; `nil` for one that ends only if the other member's does.
    /// - Returns: The connection identifiers of the registrations with a reason.
    mutating func end(
        in names: [ChannelName]? = nil,
        _ reason: (Member) -> AyameClose?
    ) -> (ended: [String], effects: [Effect]) {
        var ended: [String] = []
        var effects: [Effect] = []
        for name in names ?? Array(calls.keys) {
            let members = calls[name]?.members ?? []
            guard members.contains(where: { reason($0) != nil }) else { continue }
            effects += remove(name) { (reason($0) ?? .bye).close.reason }
            for member in members {
                let close = reason(member)
                if close != nil { ended.append(member.connectionID) }
                effects += member.farewell(close ?? .bye)
            }
        }
        return (ended, effects)
    }

    /// Ends the room of a member that left. The other member gets a `bye`, unless it is standalone.
    /// - Parameter reason: why it left, for reports. The end of the channel is also the other member's reason.
    mutating func leave(
        _ name: ChannelName,
        _ connectionID: String,
        reason: String = CallReport.leftByItself
    ) -> [Effect] {
        guard let members = calls[name]?.members, members.contains(where: { $0.connectionID == connectionID })
        else { return [] }
        let terminated = AyameClose(.channelTerminated)
        let close = reason == terminated.close.reason ? terminated : .bye
        // The media of a standalone client that needs no signaling any more goes on.
        let isConnected = reason == AyameClose.connected.close.reason
        let reports = remove(name, keepsAllocations: isConnected) {
            $0.connectionID == connectionID ? reason : close.close.reason
        }
        return reports + members.filter { $0.connectionID != connectionID }.flatMap { $0.farewell(close) }
    }

    /// The other member of a member's room; `nil` without one.
    func partner(of connectionID: String, in name: ChannelName) -> Member? {
        guard let members = calls[name]?.members, members.contains(where: { $0.connectionID == connectionID })
        else { return nil }
        return members.first { $0.connectionID != connectionID }
    }

    /// Removes a room, whose members are to be told.
    /// - Parameters:
    ///   - keepsAllocations: whether media that passes the relay goes on.
    ///   - reason: why each member left, for reports.
    private mutating func remove(
        _ name: ChannelName,
        keepsAllocations: Bool = false,
        reason: (Member) -> String
    ) -> [Effect] {
        guard let call = calls.removeValue(forKey: name) else { return [] }
        let relay = call.relay.map { [Effect.closeRelay($0.id, keepsAllocations: keepsAllocations)] } ?? []
        return relay + call.members.flatMap { report(.left($0.reported, reason: reason($0)), of: call, in: name) }
            + report(.closed, of: call, in: name)
    }

    private func report(_ event: CallReport.Event, of call: Call, in name: ChannelName) -> [Effect] {
        call.media == .direct ? [.report(event, name, call.session)] : []
    }

    // MARK: Lists

    /// All rooms, in no particular order.
    var listings: [Listing] { calls.map { Listing($0.key, $0.value) } }

    /// `nil` when nobody is in the room.
    func listing(of room: ChannelName) -> Listing? { calls[room].map { Listing(room, $0) } }

    /// The registrations of rooms whose media does not pass the node. The others are participants of channels, too.
    var directRegistrationCount: Int {
        calls.values.reduce(0) { $0 + ($1.media == .direct ? $1.members.count : 0) }
    }
}

extension ChannelSessionID {
    fileprivate static func random() -> Self {
        var generator = SystemRandomNumberGenerator()
        return Self(using: &generator)
    }
}

extension AyameRooms.Identity {
    init?(_ registration: AyameRegistration) {
        guard let clientID = registration.clientID, let key = registration.credentials.signalingKey, !key.isEmpty else {
            return nil
        }
        self.init(clientID: clientID, signalingKey: key)
    }
}

extension AyameRooms.Member {
    fileprivate var reported: CallReport.Member { CallReport.Member(user: user, connectionID: connectionID) }

    /// Tells it that its registration ends, because the room ended or for a reason of its own.
    func farewell(_ close: AyameClose) -> [AyameRooms.Effect] {
        (isStandalone ? [] : [.tell(self, .text(AyameServerMessage.bye))]) + [.tell(self, .ended(close))]
    }
}
