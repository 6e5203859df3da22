import Access
import JSON

/// The server's messages as JSON text.
enum AyameServerMessage {
    static let ping = #"{"type":"ping"}"#
    static let bye = #"{"type":"bye"}"#

    static func reject(_ reason: String) -> String {
        JSONValue.object(["type": "reject", "reason": .string(reason)]).text
    }

    /// The node's answer to an offer.
    static func answer(_ sdp: String) -> String {
        JSONValue.object(["type": "answer", "sdp": .string(sdp)]).text
    }

    /// The client's permission ends soon.
    /// - Parameter expiry: in seconds since 1970.
    static func expiring(at expiry: Int64) -> String {
        JSONValue.object(["type": "expiring", "expiresAt": .integer(Int(expiry))]).text
    }

    /// The answer to `refresh`: the new end in seconds since 1970, or `nil` for none; or a sentence.
    static func refreshed(_ result: Result<Int64?, AyameRefusal>) -> String {
        var members: [String: JSONValue] = ["type": "refreshed"]
        switch result {
        case .success(let expiry): members["expiresAt"] = expiry.map { .integer(Int($0)) } ?? .null
        case .failure(let refusal): members["reason"] = .string(refusal.reason)
        }
        return JSONValue.object(members).text
    }

    /// - Parameters:
    ///   - hasPartner: Whether the client has to send an offer: the other member is there, or the node answers.
    ///   - acceptance: What the client gets besides.
    static func accept(
        connectionID: String,
        hasPartner: Bool,
        media: CallMedia = .direct,
        _ acceptance: AyameAcceptance
    ) -> String {
        var members: [String: JSONValue] = [
            "type": "accept",
            "connectionId": .string(connectionID),
            "isExistClient": .bool(hasPartner),
            // The Web SDK and Momo read only this spelling.
            "isExistUser": .bool(hasPartner),
        ]
        if media != .direct { members["media"] = .string(media.rawValue) }
        members["authzMetadata"] = acceptance.metadata
        members["iceServers"] = acceptance.iceServers
        return JSONValue.object(members).text
    }
}

/// What an admitted client gets.
struct AyameAcceptance: Hashable, Sendable {
    /// The operator's answer for the application; `nil` without one.
    var metadata: JSONValue?
    /// An array of ICE servers; `nil` leaves the client to its own.
    var iceServers: JSONValue?
}

/// An admitted client's permission.
struct AyamePermission: Sendable {
    let connectionID: String
    var acceptance = AyameAcceptance()
    /// The path of the media.
    var media = CallMedia.direct
    /// Whether an operator decided on the path: the client is refused in a room with another one.
    var isMediaRequired = false
    /// What the authorizer granted.
    var grants = Grants()
    /// Whether the operator's server for the relay decided when the permission ends. It is asked again before the end.
    var isExpiryOfWebhook = false

    /// The client's name for bans: that of its token, or its own.
    func clientID(_ registration: AyameRegistration) -> String? { grants.clientID ?? registration.clientID }
}

/// The decision on a client.
enum AyameDecision: Sendable {
    case allowed(AyamePermission)
    /// The reason is for the client.
    case rejected(reason: String)
}
