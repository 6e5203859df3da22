import Access
import JSON
import MediaTypes
import Room
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
        case setRole(ChannelRole)
        case setMuted(Bool, MediaKind)
        case subscribe(Bool, SubscriptionSelection)
        /// What the client is sent, and why not more.
        case statistics
        /// The new token, in any form that `metadata.access_token` has.
        case refreshToken(JSONValue)
        case requestLayer(RequestedRID, sender: ParticipantID?)
        case requestSpotlightLayers(focus: RequestedRID, unfocus: RequestedRID, sender: ParticipantID?)
        case resetSpotlightLayers(sender: ParticipantID?)
        /// - Parameter pushes: whether all clients of the channel are told.
        case putMetadata(MetadataChange, pushes: Bool)
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

    init(_ fields: JSONFields, byteCount: Int) {
        guard let id = Self.id(fields) else {
            reply = .response(id: "null")
            method = .failure(RequestFailure(.parametersInvalid, Self.idRule))
            return
        }
        reply = .response(id: id)
        method = Result { () throws(RequestFailure) in try Self.method(fields, byteCount: byteCount) }
    }

    /// The member `id` as JSON text; `nil` without a valid one.
    static func id(_ fields: JSONFields) -> String? {
        let id = fields.value("id").flatMap { $0.string == nil && $0.integer == nil ? nil : $0.text }
        guard let id, id.utf8.count <= idBytesMax + 2 else { return nil }
        return id
    }

    private static func method(_ fields: JSONFields, byteCount: Int) throws(RequestFailure) -> Method {
        guard byteCount <= bytesMax else {
            throw RequestFailure(.parametersInvalid, "A request may have at most \(bytesMax) bytes.")
        }
        do throws(JSONShapeError) {
            let name = try fields.requiredString("method", bytesMax: 64)
            let parameters = JSONFields(try fields.object("params") ?? [:])
            if let method = try Method(name, parameters) { return method }
            throw JSONShapeError("There is no method of this name.")
        } catch {
            throw RequestFailure(.parametersInvalid, "The request is refused: \(error.sentence)")
        }
    }
}

extension ChannelRequest.Method {
    /// `nil` for an unknown name.
    fileprivate init?(_ name: String, _ parameters: JSONFields) throws(JSONShapeError) {
        switch name {
        case "setRole":
            guard let role: ChannelRole = try parameters.choice("role") else {
                throw JSONShapeError("\"role\" is missing.")
            }
            self = .setRole(role)
        case "setMuted":
            guard let kind: MediaKind = try parameters.choice("kind"), let isMuted = try parameters.bool("muted") else {
                throw JSONShapeError("\"kind\" or \"muted\" is missing.")
            }
            self = .setMuted(isMuted, kind)
        case "subscribe": self = .subscribe(true, try Self.selection(parameters))
        case "unsubscribe": self = .subscribe(false, try Self.selection(parameters))
        case "statistics": self = .statistics
        case "refreshToken":
            guard let token = parameters.value("access_token"), token.string != nil || token.object != nil else {
                throw JSONShapeError("\"access_token\" has to be a string or an object.")
            }
            self = .refreshToken(token)
        default: return nil
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
            case .requestsFull, .notJoined, .subscriptionsFull, .mutedByOperator, .spotlightUnused,
                .changesTooFrequent, .internalError:
                0
            }
        }
    }

    let reason: Reason
    /// What is wrong and what to do.
    let sentence: String

    init(_ reason: Reason, _ sentence: String) {
        self.reason = reason
        self.sentence = sentence
    }
}
