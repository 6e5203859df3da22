import Room
import Synchronization

/// The rooms of the 1:1 relay, with at most two members each. A room ends when a member leaves it.
///
/// All changes and all relayed messages are serialized here, so that of two simultaneous clients one is the first, and no
/// message reaches a client before its `accept`.
final class AyameRooms: Sendable {
    /// A client's connection in a room.
    struct Member: Sendable {
        let connectionID: String
        /// The client's own name and key, both not empty; `nil` without. A client with the same ones replaces it.
        let identity: Identity?
        let isStandalone: Bool
        /// The name by which bans know the client; `nil` without one.
        let user: String?
        /// Sends a text. It must not block or call the rooms.
        let send: @Sendable (String) -> Void
        /// Ends the registration and closes the WebSocket. It must not block or call the rooms.
        let close: @Sendable (AyameClose) -> Void
    }

    struct Identity: Hashable, Sendable {
        let clientID: String
        let signalingKey: String

        init?(_ registration: AyameRegistration) {
            guard let clientID = registration.clientID, let key = registration.signalingKey, !key.isEmpty else {
                return nil
            }
            self.clientID = clientID
            signalingKey = key
        }
    }

    private struct Call {
        let media: RelayMedia
        var members: [Member] = []
    }

    /// The answer to a client that joins a room.
    enum Answer: Hashable {
        /// It is in the room, whose media takes this path.
        case joined(RelayMedia)
        /// The room has two members.
        case full
        /// The room's media takes another path than an operator requires.
        case otherMedia
        /// An operator blocks the client or the room.
        case blocked(RoomError)
    }

    private let rooms = Mutex<[ChannelName: Call]>([:])

    /// The number of rooms.
    var count: Int { rooms.withLock { $0.count } }

    /// Joins a room. Its first member decides on the path of its media.
    /// - Parameters:
    ///   - isMediaRequired: whether the client may not join a room with another path.
    ///   - refusal: why the client is blocked, looked up in the same step as it joins, so that no block is missed.
    ///   - accept: Called with whether there is another member, before that one's messages can reach the client.
    func join(
        _ name: ChannelName,
        _ member: Member,
        media: RelayMedia = .direct,
        isMediaRequired: Bool = false,
        refusal: () -> RoomError? = { nil },
        accept: (_ hasPartner: Bool, _ media: RelayMedia) -> Void
    ) -> Answer {
        rooms.withLock { rooms in
            if let error = refusal() { return .blocked(error) }
            if let identity = member.identity,
                rooms[name]?.members.contains(where: { $0.identity == identity }) == true
            {
                Self.end(&rooms, name) { other in
                    if other.identity == identity { other.close(.replaced) } else { other.leave(.bye) }
                }
            }
            var call = rooms[name] ?? Call(media: media)
            guard call.members.count < 2 else { return .full }
            guard !isMediaRequired || call.media == media else { return .otherMedia }
            accept(!call.members.isEmpty, call.media)
            call.members.append(member)
            rooms[name] = call
            return .joined(call.media)
        }
    }

    private static func end(
        _ rooms: inout [ChannelName: Call],
        _ name: ChannelName,
        _ leave: (Member) -> Void
    ) {
        for member in rooms.removeValue(forKey: name)?.members ?? [] { leave(member) }
    }

    /// Ends the registrations that a block refuses, and the rooms that they are in.
    /// - Returns: The connection identifiers of those registrations.
    func end(refusedBy block: Block) -> [String] {
        rooms.withLock { rooms in
            let names: [ChannelName] =
                switch block.subject {
                case .user: Array(rooms.keys)
                case .member(_, let channel), .stream(let channel): [channel]
                }
            var ended: [String] = []
            for name in names {
                let refused = rooms[name]?.members.filter { $0.isRefused(by: block) } ?? []
                guard !refused.isEmpty else { continue }
                let ids = refused.map(\.connectionID)
                ended += ids
                Self.end(&rooms, name) { $0.leave(ids.contains($0.connectionID) ? .blocked(by: block) : .bye) }
            }
            return ended
        }
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
    func leave(_ name: ChannelName, _ connectionID: String) {
        rooms.withLock { rooms in
            guard let members = rooms[name]?.members, members.contains(where: { $0.connectionID == connectionID })
            else { return }
            Self.end(&rooms, name) { if $0.connectionID != connectionID { $0.leave(.bye) } }
        }
    }
}

extension AyameRooms.Member {
    fileprivate func isRefused(by block: Block) -> Bool {
        switch block.subject {
        case .user(let name), .member(let name, _): user == name
        case .stream: true
        }
    }

    /// Ends the registration because the room ended, or for a reason of its own.
    fileprivate func leave(_ reason: AyameClose) {
        if !isStandalone { send(AyameServerMessage.bye) }
        close(reason)
    }
}

extension AyameClose {
    /// The close of a registration that an operator's block ended.
    fileprivate static func blocked(by block: Block) -> Self {
        if case .stream = block.subject { return Self("STREAM-BLOCKED", "An operator blocked the room.") }
        return Self("BANNED", "An operator banned the user.")
    }
}
