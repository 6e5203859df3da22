package import ChannelTypes

/// The action of an HTTP request, for ``Authorizer/authorize(_:_:)``.
package enum AuthorizedAction: Hashable, Sendable {
    case publish(ChannelName)
    case watch(ChannelName)
    /// Read the channel's event stream.
    case observe(ChannelName)
    /// Change, read or delete the resource of a participant of the channel.
    case control(ChannelName)
    /// Address a resource that does not exist.
    case probe
}

extension AuthorizedAction {
    /// The action and its channel, for the log.
    var words: String {
        switch self {
        case .publish(let channel): "publish to \(channel)"
        case .watch(let channel): "watch \(channel)"
        case .observe(let channel): "read the participants of \(channel)"
        case .control(let channel): "change a session of \(channel)"
        case .probe: "use a session that does not exist"
        }
    }
}

/// The answer to ``AuthorizedAction``.
package enum Authorization: Hashable, Sendable {
    case allowed
    /// The request has no valid token: status 401.
    case unauthenticated
    /// The token is valid but does not permit the action: status 403.
    case forbidden
    /// Permitted to viewers of the channel: ``Authorizer/admit(_:)`` decides, as for a viewer.
    case asViewer
    /// Permitted to the owner of the resource, by its ``Credential/ownerProof``: the user whose token created it, or the
    /// token itself where it names no user. A resource that was created without a token is protected by its secret URL
    /// only.
    case asOwner
    /// Not permitted: status 403 if the credential is valid but does not permit the action, and 401 otherwise. The
    /// reason is a sentence for the client, and the kind is for programs.
    case refused(reason: String, isForbidden: Bool, kind: RefusalKind? = nil)
}

/// Authenticates clients and decides on their requests.
package protocol Authorizer: Sendable {
    /// Verifies the token of a request, for both ``authorize(_:_:)`` and ``admit(_:)``.
    func verify(_ token: String) async -> Credential

    /// Verifies the signature in the URL of an HTTP request that has no token; see ``URLSignature``.
    /// - Parameters:
    ///   - path: as written in the URL, percent-encoded.
    ///   - action: what a request to this path does. The signature permits nothing else.
    /// - Returns: `nil` where URLs are not signed.
    func verify(signature: String, ofPath path: String, for action: AuthorizedAction) -> Credential?

    /// Decides on an HTTP request by its Bearer token (RFC 6750). Requests to publish or to watch are then also decided
    /// by ``admit(_:)``, after their body was read.
    /// - Parameters:
    ///   - credential: the request's token; `nil` without one.
    ///   - network: the client's, for the log.
    func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        from network: ClientNetwork
    ) async -> Authorization

    /// Decides on a newcomer of any signaling protocol. Only the newcomer waits for the decision.
    func admit(_ request: AccessRequest) async -> AccessDecision

    /// Decides on a new token or URL of a participant. Nothing but the expiry of the grants matters.
    func refresh(_ request: RefreshRequest) async -> AccessDecision
}

extension Authorizer {
    package func verify(_ token: String) async -> Credential { Credential(token: token) }
    package func verify(signature: String, ofPath path: String, for action: AuthorizedAction) -> Credential? { nil }
    package func refresh(_ request: RefreshRequest) async -> AccessDecision {
        .denied(reason: "Permissions do not expire on this server, so there is nothing to refresh.")
    }
}

/// Permits everything to everybody, and to every host to moderate: for development, and for networks that are protected by other means.
package struct OpenAuthorizer: Authorizer {
    package init() {}
    package func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        from network: ClientNetwork
    ) async -> Authorization { .allowed }
    package func admit(_ request: AccessRequest) async -> AccessDecision {
        var grants = Grants()
        grants.permissions.moderates = true
        return .allowed(grants)
    }
}

/// Permits everything to clients with one shared token.
package struct StaticTokenAuthorizer: Authorizer {
    private let expected: [UInt8]

    /// `nil` unless ``isBearerToken(_:)``.
    package init?(token: String) {
        guard isBearerToken(token) else { return nil }
        expected = Array(token.utf8)
    }

    package func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        from network: ClientNetwork
    ) async -> Authorization {
        guard let credential else { return .unauthenticated }
        return Self.isEqual(Array(credential.token.utf8), expected) ? .allowed : .unauthenticated
    }

    package func admit(_ request: AccessRequest) async -> AccessDecision {
        guard let token = request.presentedToken, Self.isEqual(Array(token.utf8), expected) else {
            return .denied(reason: nil)
        }
        return .allowed(Grants())
    }

    /// Compares in constant time, against timing attacks.
    package static func isEqual(_ given: [UInt8], _ expected: [UInt8]) -> Bool {
        var difference = given.count ^ expected.count
        for index in given.indices { difference |= Int(given[index] ^ expected[index % expected.count]) }
        return difference == 0
    }
}

/// Whether the text is a non-empty Bearer token by the syntax of RFC 6750 §2.1.
package func isBearerToken(_ text: String) -> Bool {
    !text.isEmpty
        && text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "-._~+/=".utf8.contains(byte)
            }
        }
}

/// The token of an `Authorization` header (RFC 6750 §2.1); `nil` for another scheme and an empty token.
package func bearerToken(_ header: String?) -> String? {
    guard let header, header.utf8.count <= 8192 else { return nil }
    let parts = header.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    let token = parts[1].drop { $0 == " " }
    return token.isEmpty ? nil : String(token)
}
