import Access
import JSON
import MediaTypes
import Sora

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
    ///   - metadata: The operator's answer for the application; `nil` without one.
    ///   - iceServers: An array of ICE servers; `nil` leaves the client to its own.
    static func accept(
        connectionID: String,
        hasPartner: Bool,
        media: CallMedia = .direct,
        metadata: JSONValue?,
        iceServers: JSONValue?
    ) -> String {
        var members: [String: JSONValue] = [
            "type": "accept",
            "connectionId": .string(connectionID),
            "isExistClient": .bool(hasPartner),
            // The Web SDK and Momo read only this spelling.
            "isExistUser": .bool(hasPartner),
        ]
        if media != .direct { members["media"] = .string(media.rawValue) }
        members["authzMetadata"] = metadata
        members["iceServers"] = iceServers
        return JSONValue.object(members).text
    }
}

/// What an admitted client gets.
struct AyameAcceptance: Hashable, Sendable {
    /// The operator's answer for the application; `nil` without one.
    var metadata: JSONValue?
    /// The operator's array of ICE servers, which are all that the client is told of; `nil` when it does not decide on them.
    var decidedServers: JSONValue?
    /// The TURN servers of the settings; `nil` without any.
    var servers: SoraConfiguration.TURN?
}

extension SoraConfiguration.TURN {
    /// As `RTCConfiguration.iceServers` has it.
    fileprivate var iceServer: JSONValue {
        .object([
            "urls": .array(urls.map { .string($0) }), "username": .string(username),
            "credential": .string(credential),
        ])
    }
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

    /// An array of ICE servers for the client; `nil` leaves it to its own.
    /// - Parameter turn: the node's relay to the other member of the call; `nil` without one.
    func iceServers(with turn: TURNAccess?) -> JSONValue? {
        if let decided = acceptance.decidedServers { return decided }
        let servers = [turn.map { SoraConfiguration.TURN($0) }, acceptance.servers]
            .compactMap { $0?.permitted(by: grants)?.iceServer }
        return servers.isEmpty ? nil : .array(servers)
    }

    /// The client's name for bans: that of its token, or its own.
    func clientID(_ registration: AyameRegistration) -> String? { grants.clientID ?? registration.clientID }
}

/// The decision on a client.
enum AyameDecision: Sendable {
    case allowed(AyamePermission)
    /// The reason is for the client.
    case rejected(reason: String)
}
