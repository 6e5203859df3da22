import Access
import ChannelTypes
import HTTPTypes
import JSON
import Room

// Signed tokens and URLs. They are secrets: nothing here logs them.

extension OperatorsAPI {
    /// The time until a token expires, in seconds, unless the request says otherwise.
    private static let tokenSecondsDefault: Int64 = 3_600

    private static let expiresIn = APIProperty(
        "expires_in",
        .integer(1...blockSecondsMax),
        "Seconds until it expires; without it \(tokenSecondsDefault), and for a URL its validity."
    )

    static let tokenOperation = APIOperation(
        id: "makeToken",
        method: .post,
        path: APIOperation.path("/v1/tokens"),
        summary:
            "Makes a signed token or URL with a key of the node: a JWT, a token of an app, or a signed WHIP or WHEP URL.",
        body: .variants(
            by: "kind",
            [
                APIVariant(
                    value: "jwt",
                    properties: [
                        APIProperty("channel", .string(1...255), required: true, "The channel that it is for."),
                        APIProperty(
                            "role",
                            .choice(Role.allCases.map(\.rawValue)),
                            "The permitted role; without it all."
                        ),
                        expiresIn,
                        APIProperty("not_before_in", .integer(0...blockSecondsMax), "Seconds until it becomes valid."),
                        APIProperty("client_id", .string(1...255), "The client ID, which overrides the client's own."),
                        APIProperty(
                            "max_channel_connections",
                            .integer(1...1_000_000),
                            "Refuse the client when the channel has this many connections."
                        ),
                        APIProperty("key_id", .string(1...255), "The signing key; without it the first that can sign."),
                        APIProperty("claims", .freeObject, "Further claims and grants."),
                    ]
                ),
                APIVariant(
                    value: "app",
                    properties: [
                        APIProperty("app", .string(1...64), "The app's ID. With one app it may be left out."),
                        APIProperty("channel", .string(1...64), required: true, "The channel that it is for."),
                        APIProperty("user", .string(1...64), required: true, "The user that it is for."),
                        APIProperty("nonce", .string(0...128), "Without it that of a strict token: see --app-token."),
                        expiresIn,
                    ]
                ),
                APIVariant(
                    value: "url",
                    properties: [
                        APIProperty("url", .string(1...2_048), required: true, "A WHIP or WHEP URL, percent-encoded."),
                        expiresIn,
                    ]
                ),
            ]
        ),
        isBodyRequired: true,
        answer: .object([
            APIProperty("token", .string(1...65_536), "The token."),
            APIProperty("url", .string(1...4_096), "The signed URL."),
            APIProperty("jti", .string(1...64), "The ID of a JWT. The log names it where the token is refused."),
            APIProperty("expires_at", .integer(0...secondsMax), required: true, "In seconds since 1970."),
        ]),
        problems: [.keyMissing, .refusedValue]
    ) { try $0.makeToken($1) }

    private func makeToken(_ call: APICall) throws -> JSONValue {
        let now = directory.unixSeconds
        let seconds = try call.body.integer("expires_in", 1...Int(Self.blockSecondsMax)).map(Int64.init)
        return switch try call.body.string("kind") {
        case "app": try appToken(call.body, expiry: now + (seconds ?? Self.tokenSecondsDefault))
        case "url": try signedURL(call.body, now: now, seconds: seconds)
        default: try jwt(call.body, now: now, expiry: now + (seconds ?? Self.tokenSecondsDefault))
        }
    }

    private func jwt(_ fields: JSONFields, now: Int64, expiry: Int64) throws -> JSONValue {
        guard ChannelName(fields.value("channel")?.string ?? "") != nil else {
            throw Problem(.refusedValue, "\"channel\" \(ChannelName.rule).")
        }
        var claims = try fields.object("claims") ?? [:]
        claims["channel_id"] = fields.value("channel")
        for name in ["role", "client_id", "max_channel_connections"] {
            if let value = fields.value(name) { claims[name] = value }
        }
        claims["iat"] = .integer(now)
        let id = makeID()
        claims["jti"] = .string(id)
        claims["exp"] = .integer(expiry)
        if let wait = try fields.integer("not_before_in", 0...Int(Self.blockSecondsMax)) {
            claims["nbf"] = .integer(now + Int64(wait))
        }
        if let problem = SignatureAuthorizer.problem(ofClaims: claims) {
            throw Problem(.refusedValue, "The token would be refused: \(problem)")
        }
        let wanted = try fields.string("key_id")
        let key = keys.jwt.first { $0.canSign && (wanted == nil || $0.id == wanted) }
        guard let token = key?.token(claims: claims) else {
            throw Problem(.keyMissing, "No such key of --jwt-key can sign; a public key only verifies tokens.")
        }
        return ["token": .string(token), "jti": .string(id), "expires_at": .integer(expiry)]
    }

    private func appToken(_ fields: JSONFields, expiry: Int64) throws -> JSONValue {
        let ids = keys.apps.ids
        let wanted = try fields.string("app")
        guard wanted != nil || ids.count < 2 else {
            throw Problem(.refusedValue, "The node has several apps; name one of them as \"app\".")
        }
        guard let key = (wanted ?? ids.first).flatMap({ keys.apps[$0] }) else {
            throw Problem(.keyMissing, "The node has no such app; configure it with --app.")
        }
        do throws(AppTokenError) {
            let token = try key.token(
                channelID: fields.value("channel")?.string ?? "",
                userID: fields.value("user")?.string ?? "",
                nonce: fields.value("nonce")?.string,
                expiry: expiry
            )
            return ["token": .string(token.parameter), "expires_at": .integer(expiry)]
        } catch {
            throw Problem(.refusedValue, "The token would be refused: \(error.message)")
        }
    }

    private func signedURL(_ fields: JSONFields, now: Int64, seconds: Int64?) throws -> JSONValue {
        guard let url = SignableURL(fields.value("url")?.string ?? "") else {
            throw Problem(
                .refusedValue,
                "\"url\" must be a URL with a path and without \(URLSignature.parameter): write it as "
                    + "https://HOST/whip/CHANNEL, percent-encoded."
            )
        }
        guard let urls = keys.urls else {
            throw Problem(.keyMissing, "The node has no key of signed URLs; configure it with --url-key.")
        }
        // The node adds its validity to the timestamp.
        let validity = Int64(urls.validity)
        let timestamp = seconds.map { now + $0 - validity } ?? now
        do throws(URLSignatureError) {
            let signed = url.signed(try urls.signature(path: url.path, timestamp: timestamp, rand: makeID()))
            return ["url": .string(signed), "expires_at": .integer(timestamp + validity)]
        } catch {
            throw Problem(.refusedValue, "The URL cannot be signed: \(error.message)")
        }
    }
}
