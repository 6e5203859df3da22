public import Room

/// What a request wants to do, for whoever decides whether it may.
public enum AuthorizedAction: Hashable, Sendable {
    case publish(ChannelName)
    case watch(ChannelName)
    /// Read who is in the channel.
    case observe(ChannelName)
    /// Change or end the session of one participant of the channel.
    case control(ChannelName)
    /// Ask about a session that does not exist.
    case probe
}

/// The answer to ``AuthorizedAction``.
public enum Authorization: Hashable, Sendable {
    case allowed
    /// There is no valid token: 401.
    case unauthenticated
    /// The token is valid, and does not permit this: 403.
    case forbidden
    /// Whoever may watch the channel may do this: ``Authorizer/admit(_:)`` decides, as about a viewer.
    case asViewer
    /// Whoever presents the token that the session was opened with may do this. The session's address, which is secret,
    /// is enough where none was presented.
    case asOwner
}

/// Decides who may do what.
public protocol Authorizer: Sendable {
    /// Verifies the token of an HTTP request. The result serves both ``authorize(_:_:)`` and ``admit(_:)``.
    func verify(_ token: String) -> Credential

    /// Decides on an HTTP request by its Bearer token (RFC 6750). A request to publish or to watch is also decided on by
    /// ``admit(_:)``, after its body was read.
    /// - Parameter credential: the request's token; `nil` when it has none.
    func authorize(_ action: AuthorizedAction, _ credential: Credential?) async -> Authorization

    /// Decides on a newcomer, whatever its signaling. It may take as long as its own limits allow; the newcomer waits,
    /// and nobody else.
    func admit(_ request: AccessRequest) async -> AccessDecision
}

extension Authorizer {
    public func verify(_ token: String) -> Credential { Credential(token: token) }
}

/// Permits everything to everybody: development, or a network that is closed by other means.
public struct OpenAuthorizer: Authorizer {
    public init() {}
    public func authorize(_ action: AuthorizedAction, _ credential: Credential?) async -> Authorization { .allowed }
    public func admit(_ request: AccessRequest) async -> AccessDecision { .allowed(Grants()) }
}

/// Permits everything to those who know one token.
public struct StaticTokenAuthorizer: Authorizer {
    private let expected: [UInt8]

    /// `nil` when the token is empty or holds a character that RFC 6750 §2.1 does not allow in one.
    public init?(token: String) {
        guard isBearerToken(token) else { return nil }
        expected = Array(token.utf8)
    }

    public func authorize(_ action: AuthorizedAction, _ credential: Credential?) async -> Authorization {
        guard let credential else { return .unauthenticated }
        return Self.isEqual(Array(credential.token.utf8), expected) ? .allowed : .unauthenticated
    }

    /// The token is that of the `Authorization` header, or `access_token` in the client's metadata.
    public func admit(_ request: AccessRequest) async -> AccessDecision {
        guard let token = request.presentedToken, Self.isEqual(Array(token.utf8), expected) else {
            return .denied(reason: nil)
        }
        return .allowed(Grants())
    }

    /// Takes the same time wherever the two differ, so that a token cannot be found out byte by byte.
    package static func isEqual(_ given: [UInt8], _ expected: [UInt8]) -> Bool {
        var difference = given.count ^ expected.count
        for index in given.indices { difference |= Int(given[index] ^ expected[index % expected.count]) }
        return difference == 0
    }
}

/// Whether an `Authorization` header can carry the text as a Bearer token (RFC 6750 §2.1). It is not empty.
public func isBearerToken(_ text: String) -> Bool {
    !text.isEmpty
        && text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "-._~+/=".utf8.contains(byte)
            }
        }
}

/// The token of an `Authorization` header (RFC 6750 §2.1); `nil` when it is of another scheme or empty.
package func bearerToken(_ header: String?) -> String? {
    guard let header, header.utf8.count <= 8192 else { return nil }
    let parts = header.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    let token = parts[1].drop { $0 == " " }
    return token.isEmpty ? nil : String(token)
}
