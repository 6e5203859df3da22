import Access
import Base
import HTTPTypes
import Web

/// Decides who may use the APIs of the admin listener, and how often.
actor AdminAccess {
    /// Requests with a valid token: as many as the reference service permits to an account, with a burst for scripts.
    private static let calls = TokenRate(100, burst: 1_000)
    /// Requests without one, so that a token cannot be guessed.
    private static let failures = TokenRate(20, burst: 500)

    private var calls = TokenBucket(AdminAccess.calls)
    /// With the token for reading, so that a dashboard does not keep operators from acting.
    private var reads = TokenBucket(AdminAccess.calls)
    private var failures = TokenBucket(AdminAccess.failures)
    private let token: @Sendable () -> String?
    private let readToken: @Sendable () -> String?
    private let isLoopback: Bool

    /// - Parameters:
    ///   - token: The Bearer token of operators, evaluated at each request; `nil` without one.
    ///   - readToken: The one of operators who may only read; `nil` without one.
    ///   - isLoopback: Whether only programs of this machine reach the listener.
    init(
        token: @escaping @autoclosure @Sendable () -> String?,
        readToken: @escaping @autoclosure @Sendable () -> String? = nil,
        isLoopback: Bool
    ) {
        self.token = token
        self.readToken = readToken
        self.isLoopback = isLoopback
    }

    /// Whether a token is configured.
    private nonisolated var hasToken: Bool { token() != nil }

    /// By what a request is permitted; `nil` for one without a configured token.
    nonisolated func credential(of headers: HTTPFields) -> OperatorCredential? {
        guard let operating = token() else { return OperatorCredential.none }
        guard let token = bearerToken(headers[.authorization]).map({ Array($0.utf8) }) else { return nil }
        if StaticTokenAuthorizer.isEqual(token, Array(operating.utf8)) { return .adminToken }
        guard let reading = readToken(), StaticTokenAuthorizer.isEqual(token, Array(reading.utf8)) else { return nil }
        return .readToken
    }

    /// Why a request to `/v1` is refused; `nil` when it is not.
    /// - Parameters:
    ///   - role: The role that the operation needs.
    ///   - isPublic: Whether the operation needs no token.
    func refusal(
        _ headers: HTTPFields,
        role: OperatorRole,
        isPublic: Bool = false,
        at now: Instant
    ) -> Problem? {
        guard hasToken || isLoopback || isPublic else {
            return Problem(
                .forbidden,
                "The listener is on a network and has no token: set --admin-token, or listen on loopback."
            )
        }
        let credential = credential(of: headers)
        let isPermitted = isPublic || credential != nil
        let wait =
            if !isPermitted {
                failures.takeOrWait(at: now)
            } else if credential == .readToken {
                reads.takeOrWait(at: now)
            } else {
                calls.takeOrWait(at: now)
            }
        if let wait {
            return Problem(
                .tooManyRequests,
                "There were too many requests; wait.",
                headers: [.retryAfter: String(wait)]
            )
        }
        if isPublic { return nil }
        if let credential { return credential.role.permits(role) ? nil : Problem(.forbidden, OperatorRole.refusal) }
        return Problem(
            .unauthenticated,
            "Send the node's --admin-token as Authorization: Bearer TOKEN.",
            headers: [.wwwAuthenticate: "Bearer"]
        )
    }
}
