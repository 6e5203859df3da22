import ChannelTypes
import Room

extension AyameCalls {
    /// A client of this node in a room of another one.
    struct Registration: Sendable {
        let home: NodeID
        let room: ChannelName
        let member: AyameRooms.Member
        /// Of the room; `nil` until its node has accepted the client.
        var media: CallMedia?
        /// Until the room's node has answered. It gets `nil` when the link is lost.
        var answer: CheckedContinuation<AyameRooms.Answer?, Never>?
    }

    /// A client of another node in a room of this one. It belongs to the node that registered it.
    struct Guest: Hashable, Sendable {
        let node: NodeID
        let connectionID: String
    }

    struct State: Sendable {
        private(set) var registrations: [String: Registration] = [:]
        /// The keys of ``registrations`` by room.
        private(set) var elsewhere: [ChannelName: [String]] = [:]
        private(set) var guests: [Guest: ChannelName] = [:]

        /// As many guests as a node may have connections.
        private static let guestsMax = 65_536

        mutating func add(_ registration: Registration) {
            let id = registration.member.connectionID
            registrations[id] = registration
            elsewhere[registration.room, default: []].append(id)
        }

        mutating func remove(_ id: String) -> Registration? {
            guard let registration = registrations.removeValue(forKey: id) else { return nil }
            elsewhere[registration.room]?.removeAll { $0 == id }
            if elsewhere[registration.room]?.isEmpty == true { elsewhere[registration.room] = nil }
            return registration
        }

        /// The room's node has accepted the client.
        /// - Returns: who waits for that; `nil` when nobody does.
        mutating func accept(_ id: String, _ media: CallMedia) -> CheckedContinuation<AyameRooms.Answer?, Never>? {
            guard let answer = registrations[id]?.answer else { return nil }
            registrations[id]?.answer = nil
            registrations[id]?.media = media
            return answer
        }

        /// - Returns: `false` for a guest that is known, and when there are as many as may be.
        mutating func add(_ guest: Guest, in room: ChannelName) -> Bool {
            guard guests[guest] == nil, guests.count < Self.guestsMax else { return false }
            guests[guest] = room
            return true
        }

        /// - Returns: the guest's room; `nil` for a guest that is not known.
        mutating func remove(_ guest: Guest) -> ChannelName? { guests.removeValue(forKey: guest) }
    }
}
