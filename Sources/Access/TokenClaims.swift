import JSON
import Room

/// Why a token is refused, as a sentence for the log.
struct TokenProblem: Error, Hashable {
    /// Whether the token is valid but does not permit the action.
    var isForbidden = false
    let sentence: String

    init(_ sentence: String) { self.sentence = sentence }

    static func forbidden(_ sentence: String) -> Self {
        var problem = Self(sentence)
        problem.isForbidden = true
        return problem
    }
}

/// The claims of a token with a valid signature (RFC 7519).
struct TokenClaims {
    /// The longest token in bytes, as long as the longest HTTP header.
    static let bytesMax = 8_192
    /// The longest encoded header of a token in bytes: 1 KiB in Base64.
    static let headerBytesMax = 1_368
    /// The permitted difference between the clocks of the issuer and the node, in seconds.
    static let leewaySeconds = 5.0

    /// The channel that the token permits.
    let channel: String
    /// In seconds since 1970.
    let expiry: Double?
    let notBefore: Double?
    /// `jti`, for the log.
    let id: String?
    let grants: Grants

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
        let algorithm = header["alg"]?.string ?? ""
        let id = header["kid"]?.string
        let candidates = keys.filter { key in
            key.algorithm.rawValue == algorithm && (id == nil || key.id == nil || key.id == id)
        }
        guard !candidates.isEmpty else {
            throw TokenProblem("No key is configured for the algorithm and key id of the token's header.")
        }
        let input = Array((parts[0] + "." + parts[1]).utf8)
        guard candidates.contains(where: { $0.verifies(signature, over: input) }) else {
            throw TokenProblem("The token's signature is not valid.")
        }
        guard let claims = Self.object(parts[1], limits: .standard) else {
            throw TokenProblem("The token's claims are not a JSON object.")
        }
        do {
            try self.init(claims: claims)
        } catch {
            throw TokenProblem("A claim of the token is invalid: \(error.sentence)")
        }
    }

    /// - Throws: a sentence that names the first invalid claim.
    init(claims: [String: JSONValue]) throws(JSONShapeError) {
        let fields = JSONFields(claims)
        channel = try fields.requiredString("channel_id")
        expiry = try Self.time(fields, "exp")
        notBefore = try Self.time(fields, "nbf")
        id = try fields.string("jti")
        var grants = try Grants(claims)
        if grants.clientID == nil { grants.clientID = try fields.string("sub") }
        if let role: Role = try fields.choice("role") { grants.permissions.role = AccessRole(role) }
        grants.permissions.channelConnectionsMax = try fields.integer("max_channel_connections", 0...1_000_000)
        self.grants = grants
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
        if let expiry, now >= expiry + Self.leewaySeconds { throw TokenProblem("The token expired.") }
        if let notBefore, now < notBefore - Self.leewaySeconds { throw TokenProblem("The token is not valid yet.") }
    }

    func checkChannel(_ name: ChannelName) throws(TokenProblem) {
        // Names compare byte by byte, as channels do.
        guard Array(channel.utf8) == Array(name.value.utf8) else {
            throw .forbidden("The token is for another channel.")
        }
    }

    func checkRole(_ wanted: AccessRole) throws(TokenProblem) {
        guard !grants.permissions.permits(wanted) else { return }
        throw .forbidden("The token's role does not permit to \(wanted.contains(.publisher) ? "publish" : "watch").")
    }
}
