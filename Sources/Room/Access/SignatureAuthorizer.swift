import Base
package import ChannelTypes
package import JSON
package import Logging
import Wire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The keys of a ``SignatureAuthorizer``.
package struct AccessKeys: Sendable {
    /// A JWT is verified with the keys of its algorithm and key id.
    package var jwt: [JWTKey]
    /// Further keys of JWTs, at a URL; `nil` without one.
    package var remote: RemoteKeySet?
    /// Of the apps' tokens.
    package var apps: AppKeys
    /// `nil` where URLs are not signed.
    package var urls: URLKeys?

    package init(
        jwt: [JWTKey] = [],
        remote: RemoteKeySet? = nil,
        apps: AppKeys = AppKeys(),
        urls: URLKeys? = nil
    ) {
        self.jwt = jwt
        self.remote = remote
        self.apps = apps
        self.urls = urls
    }

    /// Whether there is no key.
    package var isEmpty: Bool { !verifiesJWTs && apps.isEmpty && urls == nil }

    /// Whether JWTs are accepted.
    var verifiesJWTs: Bool { !jwt.isEmpty || remote != nil }
}

/// Authenticates clients by signatures: of JWTs (RFC 7519), of apps' tokens and of URLs.
///
/// A token is in the `Authorization` header or in `metadata.access_token`. An app's token may also be there as an
/// object, or its fields may be those of `metadata`.
///
/// A JWT's claim `channel_id` names the channel. `role`, `exp`, `nbf` and `max_channel_connections` restrict the token
/// further, `client_id` or `sub` names the client, and all grants of authentication webhooks are possible claims.
///
/// What a client is permitted ends at the expiry of its token or URL: see ``Permissions/expiry``.
package struct SignatureAuthorizer: Authorizer {
    private let keys: AccessKeys
    private let logger: Logger
    private let ignoredGrants: IgnoredGrants
    private let now: @Sendable () -> Double

    /// - Parameters:
    ///   - keys: at least one.
    ///   - logger: logs refusals with their reasons, without tokens and signatures.
    ///   - now: seconds since 1970; `nil` for the machine's clock.
    package init(
        keys: AccessKeys,
        logger: Logger,
        now: (@Sendable () -> Double)? = nil
    ) {
        precondition(!keys.isEmpty, "without a key nothing is valid")
        self.keys = keys
        self.logger = logger
        ignoredGrants = IgnoredGrants(of: "token", logger: logger)
        self.now = now ?? { Date().timeIntervalSince1970 }
    }

    /// Why a JWT with these claims would be refused, as a sentence; `nil` for valid claims.
    package static func problem(ofClaims claims: [String: JSONValue]) -> String? {
        do {
            _ = try TokenClaims(claims: claims)
            return nil
        } catch {
            return error.message
        }
    }

    package func verify(_ token: String) async -> Credential {
        // Base64 has no dots, and a JWT has two.
        guard keys.apps.isEmpty || (keys.verifiesJWTs && token.contains(".")) else {
            return credential(token: token) { () throws(AppTokenError) in try AppToken(parameter: token) }
        }
        guard let remote = keys.remote else { return Credential(token: token, claims: claims(ofJWT: token, keys.jwt)) }
        let known = remote.keysInHand
        var claims = claims(ofJWT: token, keys.jwt + known.keys)
        if case .failure(let problem) = claims, problem.needsOtherKeys,
            await remote.refreshForUnknownKey(since: known.fetched)
        {
            claims = self.claims(ofJWT: token, keys.jwt + remote.keys)
        }
        return Credential(token: token, claims: claims)
    }

    private func claims(ofJWT token: String, _ keys: [JWTKey]) -> Result<TokenClaims, TokenProblem> {
        Result { () throws(TokenProblem) in try TokenClaims(token, keys: keys) }
    }

    package func verify(signature: String, ofPath path: String, for action: AuthorizedAction) -> Credential? {
        guard let urls = keys.urls else { return nil }
        let claims = Result { () throws(TokenProblem) in
            try TokenClaims(signature: signature, path: path, permitting: action, keys: urls)
        }
        return Credential(token: signature, claims: claims, isOfURL: true)
    }

    private func credential(token: String, _ parse: () throws(AppTokenError) -> AppToken) -> Credential {
        let claims = Result { () throws(TokenProblem) in
            do throws(AppTokenError) {
                return try TokenClaims(try parse(), keys: keys.apps)
            } catch {
                throw TokenProblem(error)
            }
        }
        return Credential(token: token, claims: claims)
    }

    package func authorize(
        _ action: AuthorizedAction,
        _ credential: Credential?,
        from network: ClientNetwork
    ) async -> Authorization {
        guard let credential else { return unauthenticated(action) }
        var tokenID: String?
        do {
            let claims = try await claims(of: credential)
            tokenID = claims.id
            // A participant outlives its token when a later one extends its permission. The later one controls it then.
            try claims.checkTime(now())
            switch action {
            case .publish(let channel):
                try claims.checkChannel(channel)
                try claims.checkRole(.publisher)
            case .watch(let channel):
                try claims.checkChannel(channel)
                try claims.checkRole(.viewer)
            case .observe(let channel): try claims.checkChannel(channel)
            case .control(let channel):
                try claims.checkChannel(channel)
                // Other users have tokens of the channel, too.
                return .asOwner
            case .probe: break
            }
            return .allowed
        } catch {
            logger.notice(
                "token refused",
                metadata: [
                    "action": "\(action.words)", "address": "\(network)", "token_id": Self.logged(tokenID),
                    "reason": "\(error.message.printable)",
                ]
            )
            if let reason = error.clientReason ?? error.answerReason {
                return .refused(reason: reason, isForbidden: error.isForbidden, kind: error.kind)
            }
            return error.isForbidden ? .forbidden : .unauthenticated
        }
    }

    /// The decision without a token.
    private func unauthenticated(_ action: AuthorizedAction) -> Authorization {
        guard keys.urls != nil else { return .unauthenticated }
        switch action {
        // The session of a signed URL has no token, only a secret URL of its own.
        case .control: return .asOwner
        case .probe: return .allowed
        case .publish, .watch, .observe: break
        }
        guard !keys.verifiesJWTs, keys.apps.isEmpty else { return .unauthenticated }
        return .refused(
            reason: "This server requires a signed URL: add \(URLSignature.parameter) to its query.",
            isForbidden: false
        )
    }

    package func admit(_ request: AccessRequest) async -> AccessDecision {
        var tokenID: String?
        do {
            let grants = try await grants(to: request, &tokenID)
            await ignoredGrants.note(grants)
            return .allowed(grants)
        } catch {
            logger.notice(
                "newcomer refused",
                metadata: [
                    "channel": "\(request.channel)", "participant": "\(request.participant)",
                    "role": "\(request.role.rawValue)", "address": "\(request.network)",
                    "token_id": Self.logged(tokenID), "reason": "\(error.message.printable)",
                ]
            )
            return .denied(reason: error.clientReason)
        }
    }

    /// The new token has to be for the channel and user of the old one, and permit what the participant does.
    package func refresh(_ request: RefreshRequest) async -> AccessDecision {
        var tokenID: String?
        do throws(TokenProblem) {
            let credential = await credential(of: request.credential, or: request.metadata)
            guard let credential else {
                throw TokenProblem(clientReason: "There is no new token: send it as access_token.")
            }
            let claims = try await claims(of: credential)
            tokenID = claims.id
            try claims.checkTime(now())
            try claims.checkChannel(request.channel)
            try claims.checkRole(AccessRole(request.role))
            guard claims.grants.clientID == request.user?.authorizedName else {
                throw .forbidden("The new token is for another user.", isForClient: true)
            }
            if let old = request.app, let new = claims.grants.app, old != new {
                throw .forbidden("The new token is of another app.", isForClient: true)
            }
            if let kind = request.kinds.first(where: { !claims.grants.permissions.permits($0) }) {
                throw .forbidden("The new token does not permit \(kind.rawValue).", isForClient: true)
            }
            return .allowed(claims.grants)
        } catch {
            logger.notice(
                "new token refused",
                metadata: [
                    "channel": "\(request.channel)", "token_id": Self.logged(tokenID),
                    "reason": "\(error.message.printable)",
                ]
            )
            return .denied(reason: error.clientReason ?? error.answerReason)
        }
    }

    /// The ID of a token with a valid signature, which its issuer chose. It tells which token was refused, and admits nobody.
    private static func logged(_ tokenID: String?) -> Logger.MetadataValue {
        "\((tokenID.map { String($0.prefix(128)) } ?? "-").printable)"
    }

    /// - Parameter tokenID: is set to that of a token with a valid signature.
    private func grants(
        to request: AccessRequest,
        _ tokenID: inout String?
    ) async throws(TokenProblem) -> Grants {
        guard let credential = await credential(of: request.credential, or: request.metadata) else {
            throw TokenProblem("There is no token, neither in the Authorization header nor in metadata.access_token.")
        }
        let claims = try await claims(of: credential)
        tokenID = claims.id
        try claims.checkTime(now())
        try claims.checkChannel(request.channel)
        try claims.checkClientID(request.clientID)
        try claims.checkRole(AccessRole(request.role))
        if let most = claims.grants.permissions.channelConnectionsMax {
            // Channels check the limit again when they reserve a place, because several newcomers may be checked at once.
            guard request.members < most else {
                throw .forbidden("The channel has \(request.members) members, and the token permits \(most).")
            }
        }
        return claims.grants
    }

    /// The request's credential, or without one that of its metadata.
    private func credential(of presented: Credential?, or metadata: JSONValue?) async -> Credential? {
        if let presented { return presented }
        if let token = metadata?["access_token"]?.string { return await verify(token) }
        guard !keys.apps.isEmpty, let fields = metadata?.presentedAppFields else { return nil }
        return credential(token: "") { () throws(AppTokenError) in try AppToken(fields: fields) }
    }

    private func claims(of credential: Credential) async throws(TokenProblem) -> TokenClaims {
        if let claims = credential.claims { return try claims.get() }
        guard let claims = await verify(credential.token).claims else { throw TokenProblem("The token is not a JWT.") }
        return try claims.get()
    }
}
