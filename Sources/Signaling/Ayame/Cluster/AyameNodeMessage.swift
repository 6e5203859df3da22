import ChannelTypes
import Foundation
import MediaTypes
import Room
import Web

/// What two nodes send each other about a guest: a client of the first node in a room that is at the second node. It is JSON, and
/// fields that are not known are ignored.
enum AyameNodeMessage: Hashable, Sendable, Codable {
    // From the client's node.
    case register(AyameGuest)
    /// The guest sends a text to the other member.
    case relay(String, from: String)
    /// - Parameter reason: for reports.
    case leave(String, reason: String)

    // From the room's node.
    /// The answer to ``register(_:)``, before any text. `turn` is the relay of the room's node to the other member, if it has one.
    case accepted(String, hasPartner: Bool, media: CallMedia, turn: TURNAccess? = nil)
    /// The other answer.
    case refused(String, reason: String)
    /// The other member, or the room, sends a text.
    case text(String, to: String)
    /// The registration has ended.
    case closed(String, code: UInt16, reason: String, message: String)

    private enum ClosedCodingKeys: String, CodingKey {
        case _0, code, reason
        // As nodes of earlier builds call it.
        case message = "sentence"
    }

    /// The longest text, as the longest message of a WebSocket.
    private static let textBytesMax = WebSocketLimits().messageBytesMax
    /// The longest message: JSON in JSON has a backslash before each quotation mark.
    private static let bytesMax = 2 * textBytesMax + 64 * 1024
    /// Of reasons and sentences.
    private static let reasonBytesMax = 1_024

    /// What a guest is told.
    init(_ notice: AyameRooms.Notice, to id: String) {
        switch notice {
        case .accepted(let hasPartner, let media, let turn):
            self = .accepted(id, hasPartner: hasPartner, media: media, turn: turn)
        case .text(let text): self = .text(text, to: id)
        case .ended(let end):
            self = .closed(id, code: end.close.code, reason: end.close.reason, message: end.message)
        }
    }

    /// `nil` for a message that ``init(_:)`` would refuse.
    var encoded: [UInt8]? {
        guard isWithinLimits, let bytes = Self.encode(self), bytes.count <= Self.bytesMax else { return nil }
        return bytes
    }

    /// `nil` for bytes that are no message, or one that is out of its limits.
    init?(_ bytes: [UInt8]) {
        guard bytes.count <= Self.bytesMax, let message = Self.decode(Self.self, bytes), message.isWithinLimits else {
            return nil
        }
        self = message
    }

    private var isWithinLimits: Bool {
        switch self {
        case .register(let guest): guest.isWithinLimits
        case .relay(let text, from: let id), .text(let text, to: let id):
            text.utf8.count <= Self.textBytesMax && Self.isConnectionID(id)
        case .leave(let id, let reason), .refused(let id, let reason):
            reason.utf8.count <= Self.reasonBytesMax && Self.isConnectionID(id)
        case .accepted(let id, _, _, let turn): Self.isConnectionID(id) && turn?.isWithinLimits ?? true
        case .closed(let id, let code, let reason, let message):
            WebSocketClose.isLegal(code) && reason.utf8.count <= WebSocketClose.reasonBytesMax
                && message.utf8.count <= Self.reasonBytesMax && Self.isConnectionID(id)
        }
    }

    fileprivate static func isConnectionID(_ text: String) -> Bool { ParticipantID(text) != nil }

    fileprivate static func encode(_ value: some Encodable) -> [UInt8]? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return (try? encoder.encode(value)).map { Array($0) }
    }

    fileprivate static func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) -> Value? {
        try? JSONDecoder().decode(type, from: Data(bytes))
    }
}

extension TURNAccess {
    /// UDP, TCP and TLS, and as many again.
    private static let urlsMax = 6
    private static let textBytesMax = 512

    fileprivate var isWithinLimits: Bool {
        (1...Self.urlsMax).contains(urls.count) && urls.allSatisfy { $0.hasPrefix("turn:") || $0.hasPrefix("turns:") }
            && (urls + [username, password]).allSatisfy { $0.utf8.count <= Self.textBytesMax }
    }
}

/// A client's registration as its node sends it to the node of the room.
struct AyameGuest: Hashable, Sendable, Codable {
    let connectionID: String
    let room: ChannelName
    let identity: AyameRooms.Identity?
    let isStandalone: Bool
    let user: String
    let app: String?
    let registeredAt: Int64
    let media: CallMedia
    let isMediaRequired: Bool

    /// The longest name of a user or an app, in bytes: 255 characters of four bytes.
    private static let nameBytesMax = 1_020

    init(_ member: AyameRooms.Member, in room: ChannelName, media: CallMedia, isMediaRequired: Bool) {
        connectionID = member.connectionID
        self.room = room
        identity = member.identity
        isStandalone = member.isStandalone
        user = member.user
        app = member.app
        registeredAt = member.registeredAt
        self.media = media
        self.isMediaRequired = isMediaRequired
    }

    fileprivate var isWithinLimits: Bool {
        AyameNodeMessage.isConnectionID(connectionID) && identity?.isWithinLimits ?? true
            && user.utf8.count <= Self.nameBytesMax && (app ?? "").utf8.count <= Self.nameBytesMax
            && registeredAt >= 0
    }

    /// The guest as a member of the room.
    func member(at node: NodeID) -> AyameRooms.Member {
        AyameRooms.Member(
            connectionID: connectionID,
            identity: identity,
            isStandalone: isStandalone,
            user: user,
            app: app,
            registeredAt: registeredAt,
            origin: .at(node)
        )
    }
}

/// A question of a node to another one about a room.
enum AyameNodeQuestion: Hashable, Sendable, Codable {
    /// Answered with an ``AyameNodeAnswer``.
    case find(ChannelName)
    /// An operator's decision about the room, for the node that has it. Answered with nothing.
    case kick(String, from: ChannelName)
    case terminate(ChannelName)

    private static let bytesMax = 8 * 1024

    /// `nil` for a decision that is not about one room, or ends nothing at other nodes.
    init?(_ decision: OperatorDecision) {
        switch decision {
        case .kicked(let user, let room): self = .kick(user, from: room)
        case .terminated(let room): self = .terminate(room)
        case .blocked: return nil
        }
    }

    var encoded: [UInt8] { AyameNodeMessage.encode(self) ?? [] }

    /// `nil` for bytes that are no question.
    init?(_ bytes: [UInt8]) {
        guard bytes.count <= Self.bytesMax, let question = AyameNodeMessage.decode(Self.self, bytes) else { return nil }
        self = question
    }

    var room: ChannelName {
        switch self {
        case .find(let room), .kick(_, from: let room), .terminate(let room): room
        }
    }
}

/// Whether a node has a room.
struct AyameNodeAnswer: Sendable, Codable {
    /// `nil` without the room.
    let room: AyameRooms.Listing?

    private static let bytesMax = 32 * 1024

    init(room: AyameRooms.Listing?) { self.room = room }

    var encoded: [UInt8] { AyameNodeMessage.encode(self) ?? [] }

    /// `nil` for bytes that do not answer a question about the room.
    init?(_ bytes: [UInt8], about name: ChannelName) {
        guard bytes.count <= Self.bytesMax, let answer = AyameNodeMessage.decode(Self.self, bytes),
            answer.room.map({ $0.room == name && (1...2).contains($0.registrations.count) }) ?? true
        else { return nil }
        self = answer
    }
}
