import JSON

/// The server's messages as JSON text.
enum AyameServerMessage {
    static let ping = #"{"type":"ping"}"#
    static let bye = #"{"type":"bye"}"#

    static func reject(_ reason: String) -> String {
        JSONValue.object(["type": "reject", "reason": .string(reason)]).text
    }

    /// - Parameters:
    ///   - hasPartner: Whether the other member is there, and the client has to send an offer.
    ///   - acceptance: What the client gets besides.
    static func accept(connectionID: String, hasPartner: Bool, _ acceptance: AyameAcceptance) -> String {
        var members: [String: JSONValue] = [
            "type": "accept",
            "connectionId": .string(connectionID),
            "isExistClient": .bool(hasPartner),
            // The Web SDK and Momo read only this spelling.
            "isExistUser": .bool(hasPartner),
        ]
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

/// The decision on a client.
enum AyameDecision: Hashable, Sendable {
    case allowed(connectionID: String, AyameAcceptance)
    /// The reason is for the client.
    case rejected(reason: String)
}
