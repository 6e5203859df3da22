/// A token as a client presented it, and what its verification found.
///
/// ``Authorizer/verify(_:)`` makes it once per request; the decisions about the request share it.
public struct Credential: Sendable {
    public let token: String
    /// `nil` where the authorizer reads no claims.
    let claims: Result<TokenClaims, TokenProblem>?

    public init(token: String) {
        self.token = token
        claims = nil
    }

    init(token: String, claims: Result<TokenClaims, TokenProblem>) {
        self.token = token
        self.claims = claims
    }
}
