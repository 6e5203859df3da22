import ChannelTypes
import JSON
import Sora
import Web

/// A message from a client of the Ayame protocol.
enum AyameClientMessage: Sendable {
    case register(AyameRegistration)
    /// An `offer`, with its description if there is one.
    case offer(sdp: String?)
    /// An `answer` or `candidate` for the other member.
    case description
    /// A standalone client's media is connected, and it needs no signaling any more.
    case connected
    /// A new permission, in place of the one that ends soon.
    case refresh(AyameCredentials)
    case pong

    /// - Throws: The close for an invalid message and for an unknown type. Clients leave with a `bye`, which is unknown too.
    init(decoding text: String, limits: JSONLimits = .standard) throws(AyameClose) {
        let value: JSONValue
        do {
            value = try JSONValue(parsing: text, limits: limits)
        } catch {
            throw AyameClose.refused("INVALID-JSON", "A message is not JSON, or has too many values.")
        }
        guard let members = value.object, let type = members["type"]?.string else {
            throw AyameClose.refused("INVALID-MESSAGE", "A message has no \"type\".")
        }
        switch type {
        case "register": self = .register(try AyameRegistration(JSONFields(members)))
        case "offer": self = .offer(sdp: members["sdp"]?.string)
        case "answer", "candidate": self = .description
        case "connected": self = .connected
        case "refresh":
            do throws(JSONShapeError) {
                self = .refresh(try AyameCredentials(JSONFields(members)))
            } catch {
                throw AyameClose.refused("INVALID-MESSAGE", "A \"refresh\" message is refused: \(error.message)")
            }
        case "pong": self = .pong
        case "bye": throw .left
        default: throw AyameClose.refused("UNKNOWN-TYPE", "A message has an unknown \"type\".")
        }
    }
}

/// What a client presents, in `register` and in `refresh`.
struct AyameCredentials: Hashable, Sendable {
    /// The secret that the application gave to the client: a token of the node, or anything that the operator's server
    /// checks.
    let signalingKey: String?
    let metadata: JSONValue?

    /// The longest key, in bytes: as the longest token.
    static let keyBytesMax = 8_192

    init(_ fields: JSONFields) throws(JSONShapeError) {
        let old = try fields.string("key", bytesMax: Self.keyBytesMax)
        signalingKey = try fields.string("signalingKey", bytesMax: Self.keyBytesMax) ?? old
        metadata = fields.value("authnMetadata")
    }
}

/// The `register` message: which room a client joins, and as whom.
struct AyameRegistration: Sendable {
    /// The room; the relay's rooms have the names of channels, so that tokens for a channel hold for them.
    let room: ChannelName
    /// The client's name for itself; `nil` without one.
    let clientID: String?
    let credentials: AyameCredentials
    let client: String?
    let libwebrtc: String?
    let environment: String?
    /// Whether the client drops the signaling once its media is connected.
    let isStandalone: Bool
    /// The path of the media that the client asks for; `nil` without a wish.
    let media: CallMedia?
    /// Whether the client is told that its permission ends soon. Clients that do not know this message get none.
    let isWarned: Bool

    init(_ fields: JSONFields) throws(AyameClose) {
        do throws(JSONShapeError) {
            guard let room = ChannelName(try fields.requiredString("roomId")) else {
                throw JSONShapeError("\"roomId\" \(ChannelName.rule).")
            }
            self.room = room
            let clientID = try fields.string("clientId") ?? ""
            guard !clientID.unicodeScalars.contains(where: \.isControl) else {
                throw JSONShapeError("\"clientId\" has a control character.")
            }
            self.clientID = clientID.isEmpty ? nil : clientID
            credentials = try AyameCredentials(fields)
            client = try fields.string("ayameClient")
            libwebrtc = try fields.string("libwebrtc")
            environment = try fields.string("environment", bytesMax: 1_024)
            isStandalone = try fields.bool("standalone") ?? false
            media = try fields.choice("media")
            isWarned = try fields.bool("refresh") ?? false
        } catch {
            throw AyameClose.refused("INVALID-REGISTER", "A \"register\" message is refused: \(error.message)")
        }
    }
}

extension AyameRegistration {
    /// The client's software.
    var agent: ClientAgent { ClientAgent(signaling: .other, name: client ?? "", environment: environment) }
}

/// Why a connection ends. Clients of the protocol see code 1000 only; the reason is for people who debug.
struct AyameClose: Error, Hashable, Sendable {
    let close: WebSocketClose
    /// What happened, for the operator's log.
    let message: String
    /// Whether the client sent what it must not, and nothing else in the log says so.
    let isRefusal: Bool

    init(code: UInt16 = 1000, _ reason: String, _ message: String, isRefusal: Bool = false) {
        close = WebSocketClose(code, reason)
        self.message = message
        self.isRefusal = isRefusal
    }

    /// The close for a message that the node does not take.
    static func refused(_ reason: String, _ message: String) -> Self { Self(reason, message, isRefusal: true) }

    /// The client violated the WebSocket protocol, which closes the WebSocket.
    init(violation close: WebSocketClose) {
        let message = "The client violated the WebSocket protocol: \(close.reason)."
        self.init(code: close.code, close.reason, message, isRefusal: true)
    }

    static let stopping = Self(code: 1001, "SERVER-SHUTDOWN", "The node is shutting down.")
    static let registerTimeout = Self("REGISTER-TIMEOUT", "No \"register\" message arrived in time.")
    static let pongTimeout = Self("PONG-TIMEOUT", "The client did not answer pings; it may have lost its network.")
    static let tooManyMessages = refused("TOO-MANY-MESSAGES", "The client sent more messages than signaling needs.")
    static let notRegistered = refused("NOT-REGISTERED", "A client has to register before it sends anything else.")
    static let registeredTwice = refused("REGISTERED-TWICE", "A client can register only once per connection.")
    static let connected = Self("CONNECTED", "A standalone client's media is connected.")
    static let tokenExpired = Self("TOKEN-EXPIRED", "The token that admitted the client expired.")
    static let lifetimeExpired = Self("LIFETIME-EXPIRED", "The granted lifetime of the registration is over.")
    static let offeredAgain = refused("OFFERED-AGAIN", "A client offered again before the node answered its offer.")
    static let refreshedAgain = refused(
        "REFRESHED-AGAIN",
        "A client sent a second \"refresh\" before the answer to the first."
    )
    static let offerMissing = refused("INVALID-MESSAGE", "An \"offer\" message has no \"sdp\".")

    /// The node ended the client's media, or a block ended the registration.
    init(_ reason: EndReason) {
        let close = SoraClose(reason) ?? .disconnected
        self.init(close.close.reason, close.message)
    }

    static let left = Self("BYE", "The client left.")
    static let bye = Self("BYE", "The other member left, and with it the room ended.")
    /// Of a client whose room was at another node.
    static let nodeLost = Self("NODE-LOST", "The node that has the room is not reachable.")
    static let replaced = Self("REPLACED", "The same client registered again.")
    static func rejected(_ reason: String) -> Self { Self("REJECTED", "The client was rejected: \(reason)") }
}
