import HTTPTypes

/// What operators may do.
enum OperatorRole: String, CaseIterable, Sendable {
    /// Look up everything.
    case read
    /// Make changes, too.
    case operate

    /// Whether an operator of this role may do what needs `needed`.
    func permits(_ needed: OperatorRole) -> Bool { self == .operate || needed == .read }

    /// Why a request with the token for reading is refused.
    static let refusal =
        "This needs the role operate: send the node's --admin-token. The token of --admin-read-token permits reading only."
}

/// By what a request to the APIs of the admin listener is permitted. The raw value is for the log.
enum OperatorCredential: String, Sendable {
    /// No token is configured.
    case none
    case adminToken = "admin-token"
    case readToken = "admin-read-token"

    var role: OperatorRole { self == .readToken ? .read : .operate }
}

extension APIOperation {
    /// The role that the operation needs. GET changes nothing (RFC 9110 §9.2.1).
    var role: OperatorRole { method == .get ? .read : .operate }
}

extension AdminAPI {
    /// The role that an operation needs. All operations are POST requests; the name tells which ones only read.
    /// - Parameter target: the header, such as `Sora_20151104.DisconnectChannel`.
    static func role(of target: String?) -> OperatorRole {
        let name = (target ?? "").split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).last ?? ""
        return ["Get", "List"].contains(where: name.hasPrefix) ? .read : .operate
    }
}
