import ChannelTypes
import JSON

/// Why a token is refused, as a sentence for the log.
struct TokenProblem: Error, Hashable {
    /// Whether the token is valid but does not permit the action.
    var isForbidden = false
    let message: String
    /// What the client is told; `nil` for no reason.
    var clientReason: String?
    /// What the client is told whose request can be answered with a sentence; `nil` for no more than ``clientReason``. A
    /// newcomer over a WebSocket gets a word that client SDKs know.
    var answerReason: String?
    /// What programs are told; `nil` for no kind.
    var kind: RefusalKind?
    /// Whether a key that is not in hand might verify the token.
    var needsOtherKeys = false

    init(_ message: String) { self.message = message }

    /// A problem that the client is told.
    init(clientReason: String) {
        message = clientReason
        self.clientReason = clientReason
    }

    /// A problem of a JWT with a valid signature. It is the client's own token, so the client may know what is wrong with it.
    static func ofSigned(_ message: String, isForbidden: Bool = false) -> Self {
        var problem = Self(message)
        problem.isForbidden = isForbidden
        problem.answerReason = message
        return problem
    }

    init(_ error: AppTokenError) {
        isForbidden = error == .otherChannel || error == .otherUser
        message = error.reason
        clientReason = message
        kind = error.kind
    }

    init(_ error: URLSignatureError) {
        message = error.message
        clientReason = message
        kind = error.kind
    }

    /// - Parameter isForClient: whether the client is told.
    static func forbidden(_ message: String, isForClient: Bool = false) -> Self {
        var problem = isForClient ? Self(clientReason: message) : Self(message)
        problem.isForbidden = true
        return problem
    }
}

/// The claims of a token or URL with a valid signature.
struct TokenClaims {
    /// What was signed.
    enum Source {
        /// RFC 7519.
        case jwt
        case app(AppToken)
        /// The expiry in seconds since 1970.
        case url(expiry: Int64)
    }

    /// The longest token in bytes, as long as the longest HTTP header.
    static let bytesMax = 8_192
    /// The longest encoded header of a token in bytes: 1 KiB in Base64.
    static let headerBytesMax = 1_368
    /// The permitted difference between the clocks of a JWT's issuer and the node, in seconds.
    static let leewaySeconds = 5.0

    /// The channel that the token permits.
    let channel: String
    /// `exp` and `nbf` of a JWT, in seconds since 1970.
    let expiry: Double?
    let notBefore: Double?
    /// `jti`, for the log.
    let id: String?
    let grants: Grants
    let source: Source

    /// Checks the token's form and signature, and parses its claims. It does not check their values.
    ///
    /// The header names the key, so it is parsed first, within tight limits. The claims are parsed only if the
    /// signature is valid, so a client without a key cannot make the node parse them.
    init(_ token: String, keys: [JWTKey]) throws(TokenProblem) {
        guard token.utf8.count <= Self.bytesMax else { throw TokenProblem("The token is too long.") }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.count <= Self.headerBytesMax,
            let header = Self.object(parts[0], limits: .tokenHeader), let signature = Base64URL.decoded(parts[2])
        else { throw TokenProblem("The token is not a JWT.") }
        // RFC 7515 §4.1.11: a token with unknown critical extensions is invalid.
        guard header["crit"] == nil else { throw TokenProblem("The token's header has \"crit\".") }
        let (candidates, isUnknown) = try Self.candidates(header, keys)
        let input = Array((parts[0] + "." + parts[1]).utf8)
        guard candidates.contains(where: { $0.verifies(signature, over: input) }) else {
            var problem = TokenProblem("The token's signature is not valid.")
            problem.needsOtherKeys = isUnknown
            throw problem
        }
        guard let claims = Self.object(parts[1], limits: .standard) else {
            throw TokenProblem("The token's claims are not a JSON object.")
        }
        do {
            try self.init(claims: claims)
        } catch {
            throw TokenProblem("A claim of the token is invalid: \(error.message)")
        }
    }

    /// The keys to try: those of the token's algorithm, and with a key ID only the ones with this ID or without any; those without
    /// any only where they are few. A token that leaves more than ``JWTKey/candidatesMax`` is refused unseen.
    /// - Returns: also whether a key that is not among `keys` might be the one.
    private static func candidates(
        _ header: [String: JSONValue],
        _ keys: [JWTKey]
    ) throws(TokenProblem) -> (keys: [JWTKey], isUnknown: Bool) {
        guard let algorithm = header["alg"]?.string.flatMap(JWTKey.Algorithm.init(rawValue:)) else {
            let names = JWTKey.Algorithm.allCases.map(\.rawValue).joined(separator: ", ")
            throw TokenProblem("The algorithm in the token's header (alg) is none of \(names).")
        }
        let id = header["kid"]?.string
        let keys = keys.filter { $0.algorithm == algorithm }
        let named = id == nil ? [] : keys.filter { $0.id == id }
        let isUnknown = algorithm.isAsymmetric && (id == nil ? keys.isEmpty : named.isEmpty)
        var candidates = keys.filter { id == nil || $0.id == nil || $0.id == id }
        if !named.isEmpty, candidates.count > JWTKey.candidatesMax { candidates = named }
        guard candidates.count <= JWTKey.candidatesMax else {
            throw TokenProblem(
                "The token could be of \(candidates.count) \(algorithm.rawValue) keys, and \(JWTKey.candidatesMax) are tried at "
                    + "most: its header needs the ID of its key (kid)."
            )
        }
        guard candidates.isEmpty else { return (candidates, isUnknown) }
        var problem = TokenProblem(
            keys.isEmpty
                ? "There is no key for \(algorithm.rawValue), the algorithm in the token's header (alg)."
                : "No \(algorithm.rawValue) key has the key ID of the token's header (kid), \"\((id ?? "").prefix(64))\"."
        )
        problem.needsOtherKeys = isUnknown
        throw problem
    }

    /// The claims that are no grants: those of RFC 7519 §4.1, and what restricts the token.
    private static let names: Set<String> = [
        "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "channel_id", "role", "max_channel_connections",
    ]

    /// - Throws: a sentence that names the first invalid claim.
    init(claims: [String: JSONValue]) throws(JSONShapeError) {
        let fields = JSONFields(claims)
        channel = try fields.requiredString("channel_id")
        expiry = try Self.time(fields, "exp")
        notBefore = try Self.time(fields, "nbf")
        id = try fields.string("jti")
        var grants = try Grants(claims, besides: Self.names)
        // An empty `sub` names nobody, like an empty `client_id`.
        if grants.clientID == nil { grants.clientID = try fields.string("sub").flatMap { $0.isEmpty ? nil : $0 } }
        if let role: Role = try fields.choice("role") { grants.permissions.role = AccessRole(role) }
        grants.permissions.channelConnectionsMax = try fields.integer("max_channel_connections", 0...1_000_000)
        grants.permissions.expiry = expiry.map { AccessExpiry(unixSeconds: Self.wholeSeconds($0.rounded(.up))) }
        self.grants = grants
        source = .jwt
    }

    /// Checks the token's hash, and not its time.
    init(_ token: AppToken, keys: AppKeys) throws(AppTokenError) {
        try token.checkHash(keys)
        channel = token.channelID
        expiry = nil
        notBefore = nil
        id = nil
        var grants = Grants()
        grants.clientID = token.userID
        grants.app = token.appID
        grants.duplicateUsers = .replace
        grants.permissions.expiry = AccessExpiry(unixSeconds: token.expiry)
        if let profile = keys[token.appID]?.profile { grants.options = StatedOptions(profile: profile) }
        self.grants = grants
        source = .app(token)
    }

    /// Checks the URL's signature, and not its time. It permits one action, because the path names the action and the
    /// channel.
    init(
        signature text: String,
        path: String,
        permitting action: AuthorizedAction,
        keys: URLKeys
    ) throws(TokenProblem) {
        let signature: URLSignature
        do {
            signature = try URLSignature(parsing: text)
            try signature.checkHash(path: path, keys)
        } catch {
            throw TokenProblem(error)
        }
        var grants = Grants()
        switch action {
        case .publish(let channel): (self.channel, grants.permissions.role) = (channel.value, .publisher)
        case .watch(let channel): (self.channel, grants.permissions.role) = (channel.value, .viewer)
        case .observe, .control, .probe: throw .forbidden("A signed URL permits to publish or to watch only.")
        }
        let expiry = signature.expiry(keys)
        self.expiry = nil
        notBefore = nil
        id = nil
        if keys.expiryEnds.includes(grants.permissions.role) {
            grants.permissions.expiry = AccessExpiry(
                unixSeconds: expiry,
                warningSeconds: AccessExpiry.urlWarningSeconds
            )
        }
        self.grants = grants
        source = .url(expiry: expiry)
    }

    /// Clamped to 64 bits.
    private static func wholeSeconds(_ seconds: Double) -> Int64 {
        Int64(exactly: seconds.rounded(.down)) ?? (seconds < 0 ? .min : .max)
    }

    private static func time(_ fields: JSONFields, _ name: String) throws(JSONShapeError) -> Double? {
        guard let value = fields.value(name) else { return nil }
        guard let seconds = value.double else { throw JSONShapeError("\"\(name)\" has to be seconds since 1970.") }
        return seconds
    }

    private static func object(_ part: Substring, limits: JSONLimits) -> [String: JSONValue]? {
        Base64URL.decoded(part).flatMap { try? JSONValue(parsing: $0, limits: limits) }?.object
    }

    // MARK: Checks

    /// - Parameter now: seconds since 1970.
    func checkTime(_ now: Double) throws(TokenProblem) {
        switch source {
        case .jwt:
            if let expiry, now >= expiry + Self.leewaySeconds { throw .ofSigned("The token expired.") }
            if let notBefore, now < notBefore - Self.leewaySeconds {
                throw .ofSigned("The token is not valid yet.")
            }
        case .app(let token):
            do { try token.checkTime(Self.wholeSeconds(now)) } catch { throw TokenProblem(error) }
        case .url(let expiry):
            guard Self.wholeSeconds(now) < expiry else { throw TokenProblem(URLSignatureError.expired(at: expiry)) }
        }
    }

    func checkChannel(_ name: ChannelName) throws(TokenProblem) {
        if case .app(let token) = source {
            do { try token.checkChannel(name.value) } catch { throw TokenProblem(error) }
        }
        // Names compare byte by byte, as channels do.
        guard Array(channel.utf8) == Array(name.value.utf8) else {
            throw .ofSigned("The token is for another channel.", isForbidden: true)
        }
    }

    /// - Parameter clientID: the client's own choice; `nil` without one.
    func checkClientID(_ clientID: String?) throws(TokenProblem) {
        guard case .app(let token) = source else { return }
        do { try token.checkUser(clientID) } catch { throw TokenProblem(error) }
    }

    func checkRole(_ wanted: AccessRole) throws(TokenProblem) {
        guard !grants.permissions.permits(wanted) else { return }
        let verb = wanted.contains(.publisher) ? "publish" : "watch"
        throw .ofSigned("The token's role does not permit to \(verb).", isForbidden: true)
    }
}
