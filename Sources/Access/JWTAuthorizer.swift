public import JSON
public import Logging
import Room

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Authenticates clients by signed tokens (RFC 7519), in the `Authorization` header or in `metadata.access_token`.
///
/// The claim `channel_id` names the channel. `role`, `exp`, `nbf` and `max_channel_connections` restrict the token
/// further, `client_id` or `sub` names the client, and all grants of authentication webhooks are possible claims.
public struct JWTAuthorizer: Authorizer {
    private let keys: [JWTKey]
    private let logger: Logger
    private let now: @Sendable () -> Double

    /// - Parameters:
    ///   - keys: at least one. A token is verified with the keys of its algorithm and key id.
    ///   - logger: logs refusals with their reasons, without the token.
    ///   - now: seconds since 1970; `nil` for the machine's clock.
    public init(
        keys: [JWTKey],
        logger: Logger,
        now: (@Sendable () -> Double)? = nil
    ) {
        precondition(!keys.isEmpty, "without a key no token is valid")
        self.keys = keys
        self.logger = logger
        self.now = now ?? { Date().timeIntervalSince1970 }
    }

    /// Why a token with these claims would be refused, as a sentence; `nil` for valid claims.
    public static func problem(ofClaims claims: [String: JSONValue]) -> String? {
        do {
            _ = try TokenClaims(claims: claims)
            return nil
        } catch {
            return error.sentence
        }
    }

    public func verify(_ token: String) -> Credential {
        Credential(token: token, claims: Result { () throws(TokenProblem) in try TokenClaims(token, keys: keys) })
    }

    public func authorize(_ action: AuthorizedAction, _ credential: Credential?) async -> Authorization {
        guard let credential else { return .unauthenticated }
        do {
            let claims = try claims(of: credential)
            switch action {
            case .publish(let channel):
                try claims.checkTime(now())
                try claims.checkChannel(channel)
                try claims.checkRole(.publisher)
            case .watch(let channel):
                try claims.checkTime(now())
                try claims.checkChannel(channel)
                try claims.checkRole(.viewer)
            case .observe(let channel):
                try claims.checkTime(now())
                try claims.checkChannel(channel)
            // A participant may outlive its token, and its owner can still end it.
            case .control(let channel): try claims.checkChannel(channel)
            case .probe: break
            }
            return .allowed
        } catch {
            logger.debug("token refused", metadata: ["reason": "\(error.sentence.printable)"])
            return error.isForbidden ? .forbidden : .unauthenticated
        }
    }

    public func admit(_ request: AccessRequest) async -> AccessDecision {
        do {
            let grants = try grants(to: request)
            return .allowed(grants)
        } catch {
            logger.info(
                "newcomer refused",
                metadata: [
                    "channel": "\(request.channel)", "participant": "\(request.participant)",
                    "role": "\(request.role.rawValue)", "reason": "\(error.sentence.printable)",
                ]
            )
            return .denied(reason: nil)
        }
    }

    private func grants(to request: AccessRequest) throws(TokenProblem) -> Grants {
        guard let credential = request.credential ?? request.presentedToken.map(verify) else {
            throw TokenProblem("There is no token, neither in the Authorization header nor in metadata.access_token.")
        }
        let claims = try claims(of: credential)
        try claims.checkTime(now())
        try claims.checkChannel(request.channel)
        try claims.checkRole(AccessRole(request.role))
        if let most = claims.grants.permissions.channelConnectionsMax {
            // Rooms check the limit again when they reserve a place, because several newcomers may be checked at once.
            guard request.members < most else {
                throw .forbidden("The channel has \(request.members) members, and the token permits \(most).")
            }
        }
        return claims.grants
    }

    private func claims(of credential: Credential) throws(TokenProblem) -> TokenClaims {
        try (credential.claims ?? verify(credential.token).claims ?? .failure(TokenProblem("The token is not a JWT.")))
            .get()
    }
}
