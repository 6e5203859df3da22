import Access
import ChannelTypes
import JSON
import MediaTypes
import Wire

/// A request of a client: a `request` of one that knows the channel extension, or a call over the data channel `rpc`.
struct ChannelRequest: Hashable, Sendable {
    /// How the request is answered. `id` is the client's name for it, as JSON text: `null` for a request without a valid one.
    enum Reply: Hashable, Sendable {
        /// With a `response`.
        case response(id: String)
        /// With a JSON-RPC 2.0 response on the data channel `rpc`.
        case rpc(id: String)
        case none
    }

    /// What the client requests.
    enum Method: Hashable, Sendable {
        /// A change that concerns the client itself, or others as a moderator makes it, and the JSON object that answers it.
        case perform(ChannelCommand, result: String)
        /// What the client is sent, and why not more.
        case statistics
        /// The users of the channel.
        case listMembers
        /// The new token, in any form that `metadata.access_token` has.
        case refreshToken(JSONValue)
        /// - Parameter pushes: whether all clients of the channel are told.
        case putMetadata(MetadataChange, pushes: Bool)
    }

    /// A request of the channel extension. Over the data channel `rpc` it is a method with ``rpcPrefix`` before the name.
    enum Name: String, Hashable, Sendable, CaseIterable {
        case setRole, setMuted, raiseHand, muteOthers, removeUser, subscribe, unsubscribe, statistics, listMembers,
            refreshToken

        static let rpcPrefix = "nagare/"

        var parameters: Set<String> {
            switch self {
            case .setRole: ["role", "user_id"]
            case .setMuted: ["kind", "muted", "user_id"]
            case .raiseHand: ["raised"]
            case .muteOthers: ["kind"]
            case .removeUser: ["user_id"]
            case .subscribe, .unsubscribe: ["user_id", "kind", "source"]
            case .statistics, .listMembers: []
            case .refreshToken: ["access_token"]
            }
        }
    }

    /// The longest request in bytes. Tokens make the longest ones.
    static let bytesMax = 16 * 1024
    /// The longest `id` in bytes of JSON text.
    static let idBytesMax = 64

    static let idRule = "\"id\" has to be a string or number of at most \(idBytesMax) bytes."

    let reply: Reply
    let method: Result<Method, RequestFailure>

    init(reply: Reply, method: Result<Method, RequestFailure>) {
        self.reply = reply
        self.method = method
    }

    /// Parses a message of type `request`.
    ///
    /// - Parameter participant: the client.
    init(_ fields: JSONFields, byteCount: Int, from participant: ParticipantID) {
        reply = Self.reply(to: fields)
        method = Result { () throws(RequestFailure) in
            guard Self.id(fields) != nil else { throw RequestFailure(.parametersInvalid, Self.idRule) }
            return try Self.method(fields, byteCount: byteCount, from: participant)
        }
    }

    /// How a message of type `request` is answered.
    static func reply(to fields: JSONFields) -> Reply { .response(id: id(fields) ?? "null") }

    /// The member `id` as JSON text; `nil` without a valid one.
    static func id(_ fields: JSONFields) -> String? {
        let id = fields.value("id").flatMap { $0.string == nil && $0.integer == nil ? nil : $0.text }
        guard let id, id.utf8.count <= idBytesMax + 2 else { return nil }
        return id
    }

    private static func method(
        _ fields: JSONFields,
        byteCount: Int,
        from participant: ParticipantID
    ) throws(RequestFailure) -> Method {
        guard byteCount <= bytesMax else {
            throw RequestFailure(.parametersInvalid, "A request may have at most \(bytesMax) bytes.")
        }
        do throws(JSONShapeError) {
            guard let name = Name(rawValue: try fields.requiredString("method", bytesMax: 64)) else {
                throw JSONShapeError("There is no method of this name.")
            }
            return try Method(name, JSONFields(try fields.object("params") ?? [:]), participant)
        } catch {
            throw RequestFailure(.parametersInvalid, "The request is refused: \(error.message)")
        }
    }
}

extension ChannelRequest.Method {
    init(
        _ name: ChannelRequest.Name,
        _ parameters: JSONFields,
        _ own: ParticipantID
    ) throws(JSONShapeError) {
        switch name {
        case .setRole:
            guard let role: ChannelRole = try parameters.choice("role") else {
                throw JSONShapeError("\"role\" is missing.")
            }
            let result = #"{"role":"\#(role.rawValue)"}"#
            let user = try parameters.string("user_id")
            self = .perform(.setRole(role, of: user.map { .user($0) } ?? .participant(own)), result: result)
        case .setMuted:
            guard let kind: MediaKind = try parameters.choice("kind"), let isMuted = try parameters.bool("muted") else {
                throw JSONShapeError("\"kind\" or \"muted\" is missing.")
            }
            if let user = try parameters.string("user_id") {
                guard isMuted else {
                    throw JSONShapeError("only the user itself can unmute; \"muted\" has to be true.")
                }
                self = .perform(.mute(.user(user), kinds: [kind]), result: "{}")
                return
            }
            self = .perform(.setMuted(isMuted, kinds: [kind], of: .participant(own)), result: "{}")
        case .raiseHand:
            guard let isRaised = try parameters.bool("raised") else { throw JSONShapeError("\"raised\" is missing.") }
            self = .perform(.raiseHand(isRaised, of: own), result: "{}")
        case .muteOthers:
            guard let kind: MediaKind = try parameters.choice("kind") else {
                throw JSONShapeError("\"kind\" is missing.")
            }
            self = .perform(.mute(.all, kinds: [kind]), result: "{}")
        case .removeUser:
            self = .perform(.end(.user(try parameters.requiredString("user_id")), .kicked), result: "{}")
        case .subscribe, .unsubscribe:
            let selection = try Self.selection(parameters)
            let isSubscribed = name == .subscribe
            self = .perform(.subscribe(isSubscribed, to: selection, receiver: .participant(own)), result: "{}")
        case .statistics: self = .statistics
        case .listMembers: self = .listMembers
        case .refreshToken:
            guard let token = parameters.value("access_token"), token.string != nil || token.object != nil else {
                throw JSONShapeError("\"access_token\" has to be a string or an object.")
            }
            self = .refreshToken(token)
        }
    }

    private static func selection(_ parameters: JSONFields) throws(JSONShapeError) -> SubscriptionSelection {
        SubscriptionSelection(
            user: try parameters.string("user_id"),
            kind: try parameters.choice("kind"),
            source: try parameters.choice("source")
        )
    }
}

/// Why a request of a client is refused.
struct RequestFailure: Error, Hashable, Sendable {
    /// The reasons that programs of clients tell apart.
    enum Reason: String, Hashable, Sendable {
        case parametersInvalid = "PARAMETERS-INVALID"
        case requestsFull = "REQUESTS-FULL"
        case notJoined = "NOT-JOINED"
        case subscriptionsFull = "SUBSCRIPTIONS-FULL"
        case channelNotInteractive = "CHANNEL-NOT-INTERACTIVE"
        case roleUnavailable = "ROLE-NOT-AVAILABLE"
        case publishingForbidden = "PUBLISHING-NOT-PERMITTED"
        case publishersFull = "PUBLISHERS-FULL"
        case roleSetByOperator = "ROLE-SET-BY-OPERATOR"
        case mutedByOperator = "MUTED-BY-OPERATOR"
        case moderatorsOnly = "NOT-A-MODERATOR"
        case userUnknown = "USER-UNKNOWN"
        case tokenInvalid = "TOKEN-INVALID"
        case spotlightUnused = "SPOTLIGHT-NOT-USED"
        case changesTooFrequent = "CHANGES-TOO-FREQUENT"
        case notJSON = "INVALID-JSON"
        case requestInvalid = "REQUEST-INVALID"
        case methodUnknown = "METHOD-UNKNOWN"
        case internalError = "INTERNAL-ERROR"

        /// A result code of the ARTC reference for applications that know those; 0 without one.
        var code: Int {
            switch self {
            case .parametersInvalid, .notJSON, .requestInvalid, .methodUnknown: 0x0103_0101
            case .channelNotInteractive, .roleUnavailable, .publishingForbidden, .publishersFull, .roleSetByOperator:
                0x0102_0201
            case .tokenInvalid: 0x0201_0205
            case .requestsFull, .notJoined, .subscriptionsFull, .mutedByOperator, .moderatorsOnly,
                .userUnknown, .spotlightUnused, .changesTooFrequent, .internalError:
                0
            }
        }
    }

    static let notJoined = Self(.notJoined, "The client has not joined; wait for the offer.")

    let reason: Reason
    /// What is wrong and what to do.
    let message: String

    init(_ reason: Reason, _ message: String) {
        self.reason = reason
        self.message = message
    }
}
