package import ChannelTypes
import Room

/// An event of a room of the 1:1 relay whose media goes from client to client, for webhooks. Members of other rooms are
/// participants of channels, which have reports of their own.
package struct CallReport: Hashable, Sendable {
    package struct Member: Hashable, Sendable {
        /// The name by which operators know the client.
        let user: String
        let connectionID: String

        package init(user: String, connectionID: String) {
            self.user = user
            self.connectionID = connectionID
        }
    }

    package enum Event: Hashable, Sendable {
        /// The first member registered.
        case opened
        case joined(Member)
        /// - Parameter reason: of the close, or ``leftByItself``.
        case left(Member, reason: String)
        /// The room has ended.
        case closed
    }

    /// The reason of a client that left by itself.
    package static let leftByItself = EndReason.left.name

    let event: Event
    let room: ChannelName
    /// Of the room, from its first member to its end.
    let session: ChannelSessionID
    let unixNanoseconds: Int64

    package init(event: Event, room: ChannelName, session: ChannelSessionID, unixNanoseconds: Int64) {
        self.event = event
        self.room = room
        self.session = session
        self.unixNanoseconds = unixNanoseconds
    }

    /// `nil` for an event of the room.
    var member: Member? {
        switch event {
        case .joined(let member), .left(let member, _): member
        case .opened, .closed: nil
        }
    }

    /// Why a member left; `nil` for other events.
    var reason: String? {
        if case .left(_, let reason) = event { reason } else { nil }
    }
}
