package import ChannelTypes

// The registrations of the relay, for operators. Their rooms have the names of channels.

extension AyameRooms {
    /// A room, for lists.
    package struct Listing: Hashable, Sendable, Codable {
        package struct Registration: Hashable, Sendable, Codable {
            package let connectionID: String
            package let user: String
            /// Whether it may do without signaling once its media is connected.
            package let isStandalone: Bool
            /// In seconds since 1970 UTC.
            package let registeredAt: Int64
        }
        package let room: ChannelName
        package let media: CallMedia
        /// The app whose tokens admit to it; `nil` without a member with such a token.
        package let app: String?
        /// Whether its members have TURN credentials for each other; `nil` for a room of a node that does not say so.
        package let hasRelay: Bool?
        /// One or two, in the order of registering.
        package let registrations: [Registration]

        init(_ room: ChannelName, _ call: Call) {
            self.room = room
            media = call.media
            app = call.app
            hasRelay = call.relay != nil
            registrations = call.members.map { member in
                Registration(
                    connectionID: member.connectionID,
                    user: member.user,
                    isStandalone: member.isStandalone,
                    registeredAt: member.registeredAt
                )
            }
        }
    }

    /// Ends the registrations that an operator's decision is about, and the rooms that they are in.
    /// - Returns: The connection identifiers of those registrations.
    mutating func end(by decision: OperatorDecision) -> (ended: [String], effects: [Effect]) {
        end(in: decision.callRoom.map { [$0] }) { decision.relayClose(of: $0.user) }
    }
}

extension OperatorDecision {
    /// The only room that it is about; `nil` for all rooms.
    var callRoom: ChannelName? {
        switch self {
        case .kicked(_, let room), .terminated(let room): room
        case .blocked(let block):
            switch block.subject {
            case .user: nil
            case .member(_, let room), .stream(let room): room
            }
        }
    }

    /// How the registration of a user in such a room ends; `nil` when the decision is not about it.
    func relayClose(of user: String) -> AyameClose? {
        switch self {
        case .kicked(let kicked, _): user == kicked ? AyameClose(.kicked) : nil
        case .terminated: AyameClose(.channelTerminated)
        case .blocked(let block):
            switch block.subject {
            case .user(let blocked), .member(let blocked, _): user == blocked ? AyameClose(.banned) : nil
            case .stream: .streamBlocked
            }
        }
    }
}

extension AyameClose {
    fileprivate static let streamBlocked = Self("STREAM-BLOCKED", "An operator blocked the room.")
}
