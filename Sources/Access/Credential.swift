/// A client's token and the result of its verification, made once per request by ``Authorizer/verify(_:)``.
public struct Credential: Sendable {
    public let token: String
    /// `nil` for authorizers without claims.
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
