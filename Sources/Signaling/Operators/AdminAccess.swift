import Access
import HTTPTypes
import Room
import Synchronization

/// Decides who may use the APIs of the admin listener, and how often.
final class AdminAccess: Sendable {
    /// Requests with a valid token: as many as the reference service permits to an account, with a burst for scripts.
    private static let calls = (burst: 1_000, perSecond: 100.0)
    /// Requests without one, so that a token cannot be guessed.
    private static let failures = (burst: 500, perSecond: 20.0)

    private struct State {
        var calls = RateLimiter(burst: AdminAccess.calls.burst, perSecond: AdminAccess.calls.perSecond)
        var failures = RateLimiter(burst: AdminAccess.failures.burst, perSecond: AdminAccess.failures.perSecond)
    }
    private let expected: [UInt8]?
    private let isLoopback: Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - token: The Bearer token of operators; `nil` without one.
    ///   - isLoopback: Whether only programs of this machine reach the listener.
    init(token: String?, isLoopback: Bool) {
        expected = token.map { Array($0.utf8) }
        self.isLoopback = isLoopback
    }

    /// Whether a token is configured.
    var hasToken: Bool { expected != nil }

    /// Whether the request has the configured token, or none is configured.
    func permits(_ headers: HTTPFields) -> Bool {
        guard let expected else { return true }
        guard let token = bearerToken(headers[.authorization]) else { return false }
        return StaticTokenAuthorizer.isEqual(Array(token.utf8), expected)
    }

    /// Why a request to `/v1` is refused; `nil` when it is not.
    /// - Parameter isPublic: Whether the operation needs no token.
    func refusal(_ headers: HTTPFields, isPublic: Bool, at now: ContinuousClock.Instant) -> Problem? {
        guard hasToken || isLoopback || isPublic else {
            return Problem(
                .forbidden,
                "The listener is on a network and has no token: set --admin-token, or listen on loopback."
            )
        }
        let isPermitted = isPublic || permits(headers)
        let wait = state.withLock { state in
            isPermitted ? state.calls.take(for: .unknown, at: now) : state.failures.take(for: .unknown, at: now)
        }
        if let wait {
            return Problem(
                .tooManyRequests,
                "There were too many requests; wait.",
                headers: [.retryAfter: String(wait)]
            )
        }
        guard !isPermitted else { return nil }
        return Problem(
            .unauthenticated,
            "Send the node's --admin-token as Authorization: Bearer TOKEN.",
            headers: [.wwwAuthenticate: "Bearer"]
        )
    }
}
