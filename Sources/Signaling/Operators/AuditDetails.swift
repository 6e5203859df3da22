import Access
import JSON
import Logging

/// What a change of an operator concerns, for the log. Of the request it takes only members that name somebody or something,
/// because others may be secrets.
struct AuditDetails {
    /// The members of requests, and their names in the log: `role` there is the operator's.
    private static let members = [
        "channel": "channel", "channel_id": "channel_id", "session_id": "session_id", "connection_id": "connection_id",
        "sender_connection_id": "sender_connection_id", "receiver_connection_id": "receiver_connection_id",
        "send_connection_id": "send_connection_id", "recv_connection_id": "recv_connection_id",
        "client_id": "client_id", "user": "user", "user_id": "user_id", "users": "users", "role": "member_role",
        "kind": "kind", "app": "app", "mode": "mode",
    ]
    /// The longest text of a member, in characters.
    private static let charactersMax = 512

    private(set) var metadata: Logger.Metadata = [:]
    /// What was wrong and what to do; `nil` for a request that was not refused, or for which the status says it.
    var refusal: String?

    /// Takes what a request's body names.
    mutating func take(body: [UInt8]) {
        guard let members = (try? JSONValue(parsing: body))?.object else { return }
        for (member, name) in Self.members {
            guard let text = members[member].flatMap(Self.text) else { continue }
            metadata[name] = "\(text)"
        }
    }

    /// Takes the ID of a token that was made, which the log of a refusal has too.
    mutating func take(answer: JSONValue?) {
        guard let id = answer?["jti"]?.string else { return }
        metadata["token_id"] = "\(id)"
    }

    private static func text(_ value: JSONValue) -> String? {
        let texts =
            value.array.map { $0.prefix(charactersMax).compactMap(\.string) } ?? [value.string].compactMap { $0 }
        guard !texts.isEmpty else { return nil }
        return String(texts.joined(separator: " ").prefix(charactersMax)).printable
    }
}
