import Access
import ArgumentParser
import ChannelTypes
import Foundation
import JSON
import Signaling
import ToolCommands

/// `nagare token`: makes a signed token for one channel, or signs a URL.
struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Make a signed token for one channel, or sign a WHIP or WHEP URL.",
        discussion: """
            With --channel alone it makes a JWT, with --app or --user a token of an app, and with --url a signed URL.

            The keys come from the command line, the environment (NAGARE_JWT_KEY, NAGARE_APP, NAGARE_URL_KEY) or the \
            configuration file, as for the node. Sora clients present a token as metadata.access_token, WHIP and WHEP \
            clients as Bearer token. Standard output has the token or the URL only.
            """
    )

    @Option(help: ArgumentHelp("The channel that the token is for.", valueName: "name"))
    var channel: String?

    @Option(
        help: ArgumentHelp(
            "The permitted role: sendonly, recvonly, or sendrecv for all roles. (default: all)",
            valueName: "role"
        )
    )
    var role: String?

    @Option(
        help: ArgumentHelp(
            """
            The time until the token or URL expires: a number with s, m, h or d, or for a JWT never. Without it a token \
            is valid for 1h, and a URL for the validity of the node.
            """,
            valueName: "time"
        )
    )
    var expires: String?

    @Option(help: ArgumentHelp("The time until the token becomes valid.", valueName: "time"))
    var notBefore: String?

    @Option(help: ArgumentHelp("The client ID, which overrides the client's own.", valueName: "id"))
    var clientId: String?

    @Option(help: ArgumentHelp("Refuse the client when the channel has this many connections.", valueName: "n"))
    var maxChannelConnections: Int?

    @Option(help: ArgumentHelp("Further claims and grants, a JSON object.", valueName: "json"))
    var claims: String?

    @Option(help: ArgumentHelp("The ID of the signing key. (default: the first key that can sign)", valueName: "id"))
    var keyId: String?

    @Option(
        help: ArgumentHelp(
            "A key: hs256:@FILE, rs256:@FILE, es256:@FILE or eddsa:@FILE. May be repeated.",
            valueName: "key"
        )
    )
    var jwtKey: [String] = []

    @Option(
        help: ArgumentHelp(
            "Make a token of this app. ID alone names a configured app. (default with --user: the first configured app)",
            valueName: "id[:@file]"
        )
    )
    var app: String?

    @Option(help: ArgumentHelp("The user that the app's token is for.", valueName: "id"))
    var user: String?

    @Option(
        help: ArgumentHelp("The nonce of the app's token. (default: that of a strict token)", valueName: "text")
    )
    var nonce: String?

    @Flag(help: "Print the app's token as a JSON object of its fields instead of Base64.")
    var fields = false

    @Option(help: ArgumentHelp("Sign this WHIP or WHEP URL.", valueName: "url"))
    var url: String?

    @Option(
        help: ArgumentHelp("A key of signed URLs: primary:@FILE or secondary:@FILE. May be repeated.", valueName: "key")
    )
    var urlKey: [String] = []

    @Option(help: ArgumentHelp("The url-validity of the node.", valueName: "seconds"))
    var urlValidity: String?

    @Option(help: ArgumentHelp("Read the keys from this configuration file.", valueName: "file"))
    var config: String?

    func run() throws {
        let now = Date().timeIntervalSince1970
        let token = try token(
            environment: ProcessInfo.processInfo.environment,
            now: Int64(now),
            id: UUID().uuidString.lowercased()
        )
        FileHandle.standardOutput.write(Data("\(token)\n".utf8))
    }

    /// The token or the signed URL.
    /// - Parameters:
    ///   - now: The time in seconds since 1970.
    ///   - id: A JWT's `jti`, and without hyphens a signed URL's `rand`.
    func token(environment: [String: String], now: Int64, id: String) throws(CommandError) -> String {
        if let url {
            try refuse(
                [
                    ("channel", channel != nil), ("role", role != nil), ("not-before", notBefore != nil),
                    ("client-id", clientId != nil), ("max-channel-connections", maxChannelConnections != nil),
                    ("claims", claims != nil), ("key-id", keyId != nil), ("app", app != nil), ("user", user != nil),
                    ("nonce", nonce != nil), ("fields", fields),
                ],
                because: "a signed URL has a path and an expiry only"
            )
            return try signedURL(url, environment: environment, now: now, rand: id.replacing("-", with: ""))
        }
        if app != nil || user != nil {
            try refuse(
                [
                    ("role", role != nil), ("not-before", notBefore != nil), ("client-id", clientId != nil),
                    ("max-channel-connections", maxChannelConnections != nil), ("claims", claims != nil),
                    ("key-id", keyId != nil),
                ],
                because: "a token of an app has a channel, a user and an expiry only"
            )
            return try appToken(environment: environment, now: now)
        }
        try refuse([("nonce", nonce != nil), ("fields", fields)], because: "only tokens of apps have it, so add --app")
        return try jwt(environment: environment, now: now, id: id)
    }

    /// - Throws: when an option of another kind of token is set.
    private func refuse(_ options: [(name: String, isSet: Bool)], because reason: String) throws(CommandError) {
        guard let option = options.first(where: \.isSet) else { return }
        throw .usage("--\(option.name) is not possible here: \(reason).")
    }

    // MARK: URLs and tokens of apps

    private func signedURL(
        _ text: String,
        environment: [String: String],
        now: Int64,
        rand: String
    ) throws(CommandError) -> String {
        guard let url = SignableURL(text) else {
            throw .usage(
                "--url must be a URL with a path and without \(URLSignature.parameter): write it as "
                    + "https://HOST/whip/CHANNEL, percent-encoded."
            )
        }
        var flags: [Setting: [String]] = [:]
        if !urlKey.isEmpty { flags[.urlKey] = urlKey }
        if let urlValidity { flags[.urlValidity] = [urlValidity] }
        guard let keys = try reader(flags, environment).urlKeys().keys() else {
            throw .usage(
                "There is no key to sign with: set --url-key, NAGARE_URL_KEY or url-key in the file of --config."
            )
        }
        // The node adds its validity to the timestamp.
        let expiry = try expires.map { text throws(CommandError) in now + (try Self.seconds(text, "--expires")) }
        let timestamp = expiry.map { $0 - Int64(keys.validity) } ?? now
        do throws(URLSignatureError) {
            return url.signed(try keys.signature(path: url.path, timestamp: timestamp, rand: rand))
        } catch {
            throw .usage("The URL cannot be signed: \(error.message)")
        }
    }

    private func appToken(environment: [String: String], now: Int64) throws(CommandError) -> String {
        guard let channel else { throw .usage("--channel is missing: name the channel that the token is for.") }
        guard let user else { throw .usage("--user is missing: name the user that the app's token is for.") }
        let key = try appSource(environment).key()
        let expiry = now + (try Self.seconds(expires ?? "1h", "--expires"))
        let token: AppToken
        do throws(AppTokenError) {
            token = try key.token(channelID: channel, userID: user, nonce: nonce, expiry: expiry)
        } catch {
            throw .usage("The token would be refused: \(error.message)")
        }
        return fields ? JSONValue.object(token.fields).text : token.parameter
    }

    private func appSource(_ environment: [String: String]) throws(CommandError) -> AppKeySource {
        if let app, app.contains(":") { return try AppKeySource(app, origin: "--app") }
        let apps = try reader([:], environment).apps()
        guard let source = apps.first(where: { app == nil || $0.appID == app }) else {
            throw .usage(
                apps.isEmpty
                    ? "There is no app to sign for: set --app, NAGARE_APP or app in the file of --config."
                    : "--app is \"\(app ?? "")\", which is no configured app: write the ID of one, or ID:@FILE."
            )
        }
        return source
    }

    // MARK: JWTs

    private func jwt(environment: [String: String], now: Int64, id: String) throws(CommandError) -> String {
        let claims = try claims(now: now, id: id)
        var keys: [JWTKey] = []
        let sources = try reader(jwtKey.isEmpty ? [:] : [.jwtKey: jwtKey], environment).jwtKeys()
        for source in sources { keys.append(try source.key()) }
        guard !keys.isEmpty else {
            throw .usage(
                "There is no key to sign with: set --jwt-key, NAGARE_JWT_KEY or jwt-key in the file of --config."
            )
        }
        let able = keys.filter { $0.canSign && (keyId == nil || $0.id == keyId) }
        guard let token = able.first?.token(claims: claims) else {
            let which = keyId.map { "key with the id \"\($0)\"" } ?? "configured key"
            throw .usage("No \(which) can sign: a public key only verifies tokens.")
        }
        return token
    }

    private func claims(now: Int64, id: String) throws(CommandError) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        if let claims {
            guard let object = (try? JSONValue(parsing: claims))?.object else {
                throw .usage("--claims is not a JSON object: write it as '{\"simulcast\": true}'.")
            }
            members = object
        }
        guard let channel else { throw .usage("--channel is missing: name the channel that the token is for.") }
        guard let name = ChannelName(channel) else {
            throw .usage("--channel \(ChannelName.rule).")
        }
        members["channel_id"] = .string(name.value)
        if let role {
            guard Role(rawValue: role) != nil else {
                throw .usage("--role is \"\(role)\": write one of sendonly, recvonly, sendrecv.")
            }
            members["role"] = .string(role)
        }
        members["iat"] = .integer(now)
        members["jti"] = .string(id)
        if expires != "never" { members["exp"] = .integer(now + (try Self.seconds(expires ?? "1h", "--expires"))) }
        if let notBefore { members["nbf"] = .integer(now + (try Self.seconds(notBefore, "--not-before"))) }
        if let clientId { members["client_id"] = .string(clientId) }
        if let maxChannelConnections { members["max_channel_connections"] = .integer(maxChannelConnections) }
        if let problem = SignatureAuthorizer.problem(ofClaims: members) {
            throw .usage("The token would be refused: \(problem)")
        }
        return members
    }

    /// `90`, `90s`, `15m`, `12h`, `30d`.
    static func seconds(_ text: String, _ flag: String) throws(CommandError) -> Int64 {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        let unit = text.last.flatMap { units[$0] }
        guard let number = Int64(unit == nil ? text[...] : text.dropLast()), (0...1_000_000_000).contains(number) else {
            throw .usage("\(flag) is \"\(text)\": write a time as 90s, 15m, 12h or 30d.")
        }
        return number * (unit ?? 1)
    }

    /// Reads settings of the command line, the environment or the file, in this order of precedence.
    private func reader(
        _ flags: [Setting: [String]],
        _ environment: [String: String]
    ) throws(CommandError) -> SettingReader {
        var layers = [ConfigurationLayer.commandLine(flags), .environment(environment)]
        let variable = environment[Setting.fileVariable].flatMap { $0.isEmpty ? nil : $0 }
        if let path = config ?? variable {
            layers.append(try .file(path: path, contents: try SmallFile.contents(path)))
        }
        return SettingReader(layers: layers)
    }
}
