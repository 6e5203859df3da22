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
        /// Sends a text. It must not block or call the rooms.
        let send: @Sendable (String) -> Void
        /// Closes the WebSocket. It must not block or call the rooms.
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

    private let rooms = Mutex<[ChannelName: [Member]]>([:])

    /// The number of rooms.
    var count: Int { rooms.withLock { $0.count } }

    /// Joins a room.
    /// - Parameter accept: Called with whether there is another member, before that one's messages can reach the client.
    /// - Returns: Whether the client is in the room; `false` when it has two members.
    func join(_ name: ChannelName, _ member: Member, accept: (_ hasPartner: Bool) -> Void) -> Bool {
        rooms.withLock { rooms in
            if let identity = member.identity, rooms[name]?.contains(where: { $0.identity == identity }) == true {
                Self.end(&rooms, name, except: identity)
            }
            let members = rooms[name] ?? []
            guard members.count < 2 else { return false }
            accept(!members.isEmpty)
            rooms[name] = members + [member]
            return true
        }
    }

    /// Ends the room for everybody: the old connection of the identity is replaced, and the other member has to call again.
    private static func end(_ rooms: inout [ChannelName: [Member]], _ name: ChannelName, except identity: Identity) {
        for member in rooms.removeValue(forKey: name) ?? [] {
            if member.identity == identity {
                member.close(.replaced)
            } else {
                member.leaveByBye()
            }
        }
    }

    /// Sends a text to the other member of the room, if there is one.
    /// - Returns: Whether there was one.
    func relay(_ text: String, in name: ChannelName, from connectionID: String) -> Bool {
        rooms.withLock { rooms in
            guard let members = rooms[name], members.contains(where: { $0.connectionID == connectionID }),
                let partner = members.first(where: { $0.connectionID != connectionID })
            else { return false }
            partner.send(text)
            return true
        }
    }

    /// Ends the room of a member that left. The other member gets a `bye`, unless it is standalone.
    func leave(_ name: ChannelName, _ connectionID: String) {
        rooms.withLock { rooms in
            guard let members = rooms[name], members.contains(where: { $0.connectionID == connectionID }) else {
                return
            }
            rooms.removeValue(forKey: name)
            for member in members where member.connectionID != connectionID { member.leaveByBye() }
        }
    }
}

extension AyameRooms.Member {
    /// Ends the connection because the room ended.
    fileprivate func leaveByBye() {
        if !isStandalone { send(AyameServerMessage.bye) }
        close(.bye)
    }
}
