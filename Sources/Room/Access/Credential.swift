package import ChannelTypes

/// A client's token, or the signature of its URL, and the result of the verification. ``Authorizer/verify(_:)`` and
/// ``Authorizer/verify(signature:ofPath:for:)`` make it once per request.
package struct Credential: Sendable {
    package let token: String
    /// Whether it is the signature of a URL. It then does not come with later requests to the resource that it creates.
    package let isOfURL: Bool
    /// `nil` for authorizers without claims.
    let claims: Result<TokenClaims, TokenProblem>?

    /// The expiry of a valid token or URL; `nil` without one.
    package var expiry: AccessExpiry? { (try? claims?.get())?.grants.permissions.expiry }

    /// The app of a valid token; `nil` for other credentials.
    package var app: String? { (try? claims?.get())?.grants.app }

    /// The owner of the WHIP and WHEP sessions that the credential opens: the user that a token names, with any of its
    /// tokens, or else the token itself. `nil` for a signed URL, because later requests have no signature: the secret URL
    /// of the session protects it.
    package var ownerProof: OwnerProof? {
        guard !isOfURL else { return nil }
        guard let grants = (try? claims?.get())?.grants, let user = grants.clientID else {
            return OwnerProof(token: token)
        }
        return OwnerProof(user: user, app: grants.app)
    }

    package init(token: String) {
        self.token = token
        isOfURL = false
        claims = nil
    }

    init(token: String, claims: Result<TokenClaims, TokenProblem>, isOfURL: Bool = false) {
        self.token = token
        self.isOfURL = isOfURL
        self.claims = claims
    }
}
