import ChannelTypes
import Room

/// What waits of one other node, in the order in which it came.
struct AyameNodeInbox: Sendable {
    typealias Refusal = @Sendable (_ user: String, ChannelName) -> RoomError?
    enum Event: Sendable {
        case message(AyameNodeMessage, Refusal)
        /// The link to the node is lost.
        case lost
    }

    private(set) var events: [Event] = []
    /// The length of the messages.
    private var bytes = 0

    /// As of a node's messages about channels.
    static let eventsMax = 65_536
    static let bytesMax = 64 << 20

    /// Adds a message of so many bytes.
    /// - Returns: `false` when as much waits as may. The loss of the node waits then in place of all that.
    mutating func add(_ message: AyameNodeMessage, bytes count: Int, refusal: @escaping Refusal) -> Bool {
        guard events.count < Self.eventsMax, bytes + count <= Self.bytesMax else {
            (events, bytes) = ([.lost], 0)
            return false
        }
        events.append(.message(message, refusal))
        bytes += count
        return true
    }

    /// There is always room for a loss: nothing tells of it again.
    mutating func addLoss() {
        if case .lost = events.last { return }
        events.append(.lost)
    }
}
