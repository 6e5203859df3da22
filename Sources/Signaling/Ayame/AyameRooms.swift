package import ChannelTypes
import Room
import Synchronization
import Web
package import Webhooks

/// The rooms of the 1:1 relay, with at most two members each. A room ends when a member leaves it.
///
/// All changes and all relayed messages are serialized here, so that of two simultaneous clients one is the first, and no
/// message reaches a client before its `accept`.
package final class AyameRooms: Sendable {
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
        /// Sends a text. It must not block or call the rooms.
        let send: @Sendable (String) -> Void
        /// Ends the registration and closes the WebSocket. It must not block or call the rooms.
        let close: @Sendable (AyameClose) -> Void
    }

    struct Identity: Hashable, Sendable, Codable {
        let clientID: String
        let signalingKey: String

        /// Whether both are as long as a client may send them. Another node tells them, too.
        var isWithinLimits: Bool {
            (1...255).contains(clientID.utf8.count)
                && (1...AyameRegistration.keyBytesMax).contains(signalingKey.utf8.count)
        }
    }

    struct Call: Sendable {
        let session: ChannelSessionID
        let media: CallMedia
        /// The app of the first member with an app's token; `nil` without one.
        var app: String?
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

    private let rooms = Mutex<[ChannelName: Call]>([:])
    private let clock: RoomClock
    private let onReport: @Sendable (CallReport) -> Void

    /// - Parameter onReport: called for each event of a room whose media goes from client to client, in order for each room.
    ///   It must not block or call the rooms.
    package init(clock: RoomClock = .system, onReport: @escaping @Sendable (CallReport) -> Void = { _ in }) {
        self.clock = clock
        self.onReport = onReport
    }

    /// The number of rooms.
    var count: Int { rooms.withLock { $0.count } }

    /// Reads the rooms. `body` must not block, or send to members.
    func read<Value: Sendable>(_ body: ([ChannelName: Call]) -> Value) -> Value { rooms.withLock { body($0) } }

    /// Joins a room. Its first member decides on the path of its media.
    /// - Parameters:
    ///   - isMediaRequired: whether the client may not join a room with another path.
    ///   - refusal: why the client is blocked, looked up in the same step as it joins, so that no block is missed.
    ///   - accept: Called with whether there is another member, before that one's messages can reach the client.
    func join(
        _ name: ChannelName,
        _ member: Member,
        media: CallMedia = .direct,
        isMediaRequired: Bool = false,
        refusal: () -> RoomError? = { nil },
        accept: (_ hasPartner: Bool, _ media: CallMedia) -> Void
    ) -> Answer {
        rooms.withLock { rooms in
            if let error = refusal() { return .refused(error) }
            // As in channels, clients without an app fit any room.
            if let app = member.app, let owner = rooms[name]?.app, app != owner { return .refused(.appMismatch) }
            if let identity = member.identity,
                rooms[name]?.members.contains(where: { $0.identity == identity }) == true
            {
                let others = end(&rooms, name) { ($0.identity == identity ? AyameClose.replaced : .bye).close.reason }
                for other in others {
                    if other.identity == identity { other.close(.replaced) } else { other.leave(.bye) }
                }
            }
            let isNew = rooms[name] == nil
            var call = rooms[name] ?? Call(session: .random(), media: media)
            guard call.members.count < 2 else { return .full }
            guard !isMediaRequired || call.media == media else { return .otherMedia }
            accept(!call.members.isEmpty, call.media)
            call.members.append(member)
            if call.app == nil { call.app = member.app }
            rooms[name] = call
            if isNew { report(.opened, of: call, in: name) }
            report(.joined(member.reported), of: call, in: name)
            return .joined(call.media)
        }
    }

    /// Ends the registrations that match, and the rooms that they are in.
    /// - Parameter reason: of a registration's end; `nil` for one that ends only if the other member's does.
    /// - Returns: The connection identifiers of the registrations with a reason.
    func end(in names: [ChannelName]? = nil, _ reason: (Member) -> AyameClose?) -> [String] {
        rooms.withLock { rooms in
            var ended: [String] = []
            for name in names ?? Array(rooms.keys) {
                let members = rooms[name]?.members ?? []
                let closes = members.map(reason)
                guard closes.contains(where: { $0 != nil }) else { continue }
                _ = end(&rooms, name) { (reason($0) ?? .bye).close.reason }
                for (member, close) in zip(members, closes) {
                    if close != nil { ended.append(member.connectionID) }
                    member.leave(close ?? .bye)
                }
            }
            return ended
        }
    }

    /// Removes a room.
    /// - Parameter reason: why each member left, for reports.
    /// - Returns: Its members, which are to be told.
    private func end(
        _ rooms: inout [ChannelName: Call],
        _ name: ChannelName,
        reason: (Member) -> String
    ) -> [Member] {
        guard let call = rooms.removeValue(forKey: name) else { return [] }
        for member in call.members { report(.left(member.reported, reason: reason(member)), of: call, in: name) }
        report(.closed, of: call, in: name)
        return call.members
    }

    private func report(_ event: CallReport.Event, of call: Call, in name: ChannelName) {
        guard call.media == .direct else { return }
        onReport(
            CallReport(event: event, room: name, session: call.session, unixNanoseconds: clock.unixNanoseconds)
        )
    }

    /// Sends a text to the other member of the room, if there is one.
    /// - Returns: Whether there was one.
    func relay(_ text: String, in name: ChannelName, from connectionID: String) -> Bool {
        rooms.withLock { rooms in
            guard let members = rooms[name]?.members, members.contains(where: { $0.connectionID == connectionID }),
                let partner = members.first(where: { $0.connectionID != connectionID })
            else { return false }
            partner.send(text)
            return true
        }
    }

    /// Ends the room of a member that left. The other member gets a `bye`, unless it is standalone.
    /// - Parameter reason: why it left, for reports. The end of the channel is also the other member's reason.
    func leave(_ name: ChannelName, _ connectionID: String, reason: String = CallReport.leftByItself) {
        rooms.withLock { rooms in
            guard let members = rooms[name]?.members, members.contains(where: { $0.connectionID == connectionID })
            else { return }
            let terminated = AyameClose(.channelTerminated)
            let close = reason == terminated.close.reason ? terminated : .bye
            _ = end(&rooms, name) { $0.connectionID == connectionID ? reason : close.close.reason }
            for other in members where other.connectionID != connectionID { other.leave(close) }
        }
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
        guard let clientID = registration.clientID, let key = registration.signalingKey, !key.isEmpty else {
            return nil
        }
        self.init(clientID: clientID, signalingKey: key)
    }
}

extension AyameRooms.Member {
    fileprivate var reported: CallReport.Member { CallReport.Member(user: user, connectionID: connectionID) }

    /// Ends the registration because the room ended, or for a reason of its own.
    func leave(_ reason: AyameClose) {
        if !isStandalone { send(AyameServerMessage.bye) }
        close(reason)
    }
}
