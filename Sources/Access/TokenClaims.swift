import JSON
import Room

/// Why a token does not let its bearer in, as a sentence for the log.
struct TokenProblem: Error, Hashable {
    /// Whether the token is good and only permits something else.
    var isForbidden = false
    let sentence: String

    init(_ sentence: String) { self.sentence = sentence }

    static func forbidden(_ sentence: String) -> Self {
        var problem = Self(sentence)
        problem.isForbidden = true
        return problem
    }
}

/// What a token says once its signature was checked (RFC 7519).
struct TokenClaims {
    /// The longest token that is looked at; as long as an HTTP header may be.
    static let bytesMax = 8_192
    /// The longest header of a token as it is sent, in bytes: a kibibyte in Base64.
    static let headerBytesMax = 1_368
    /// How far the clocks of who makes tokens and of the node may differ, in seconds.
    static let leewaySeconds = 5.0

    /// The channel that the token is for.
    let channel: String
    /// In seconds since 1970.
    let expiry: Double?
    let notBefore: Double?
    /// The token's own name, for the log.
    let id: String?
    /// The permissions and overrides of the bearer.
    let grants: Grants

    /// Checks the token's form and signature, and nothing of what it says.
    ///
    /// The header names the key, so it has to be read first, within tight limits. The claims are read only once the
    /// signature is good: whoever holds no key makes the node parse nothing more.
    init(_ token: String, keys: [JWTKey]) throws(TokenProblem) {
        guard token.utf8.count <= Self.bytesMax else { throw TokenProblem("The token is too long.") }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.count <= Self.headerBytesMax,
            let header = Self.object(parts[0], limits: .tokenHeader), let signature = Base64URL.decoded(parts[2])
        else { throw TokenProblem("The token is no JWT.") }
        // RFC 7515 §4.1.11: who does not understand what is critical refuses.
        guard header["crit"] == nil else { throw TokenProblem("The token's header has \"crit\".") }
        let algorithm = header["alg"]?.string ?? ""
        let id = header["kid"]?.string
        let candidates = keys.filter { key in
            key.algorithm.rawValue == algorithm && (id == nil || key.id == nil || key.id == id)
        }
        guard !candidates.isEmpty else {
            throw TokenProblem("No key is configured for the algorithm and the key id that the token's header names.")
        }
        let input = Array((parts[0] + "." + parts[1]).utf8)
        guard candidates.contains(where: { $0.verifies(signature, over: input) }) else {
            throw TokenProblem("The token's signature is not valid.")
        }
        guard let claims = Self.object(parts[1], limits: .standard) else {
            throw TokenProblem("The token's claims are no JSON object.")
        }
        do {
            try self.init(claims: claims)
        } catch {
            throw TokenProblem("A claim of the token is wrong: \(error.sentence)")
        }
    }

    /// - Throws: a sentence that names the first claim of the wrong shape.
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

    // MARK: What it permits

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
