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

    /// The client's name for bans: that of its token, or its own.
    func clientID(_ registration: AyameRegistration) -> String? { grants.clientID ?? registration.clientID }
}

/// The decision on a client.
enum AyameDecision: Sendable {
    case allowed(AyamePermission)
    /// The reason is for the client.
    case rejected(reason: String)
}
