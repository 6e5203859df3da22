import Access
import ArgumentParser
import Foundation
import JSON
import Room
import Signaling

/// `nagare token`: makes a signed token for one channel.
struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Make a signed token (JWT) for one channel.",
        discussion: """
            The key comes from --jwt-key, NAGARE_JWT_KEY or jwt-key in the configuration file, as for the node. Sora clients \
            present the token as metadata.access_token, WHIP and WHEP clients as Bearer token. Standard output has the token \
            only.
            """
    )

    @Option(help: ArgumentHelp("The channel that the token is for.", valueName: "name"))
    var channel: String

    @Option(
        help: ArgumentHelp(
            "The permitted role: sendonly, recvonly, or sendrecv for all roles. (default: all)",
            valueName: "role"
        )
    )
    var role: String?

    @Option(
        help: ArgumentHelp(
            "The time until the token expires for joins: a number with s, m, h or d, or never. (default: 1h)",
            valueName: "time"
        )
    )
    var expires = "1h"

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

    @Option(help: ArgumentHelp("A key: hs256:@FILE, es256:@FILE or eddsa:@FILE. May be repeated.", valueName: "key"))
    var jwtKey: [String] = []

    @Option(help: ArgumentHelp("Read jwt-key from this configuration file.", valueName: "file"))
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

    /// The token.
    /// - Parameters:
    ///   - now: The time in seconds since 1970.
    ///   - id: The token's `jti`.
    func token(environment: [String: String], now: Int64, id: String) throws(StartupError) -> String {
        let claims = try claims(now: now, id: id)
        var keys: [JWTKey] = []
        for source in try sources(environment) { keys.append(try source.key()) }
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

    private func claims(now: Int64, id: String) throws(StartupError) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        if let claims {
            guard let object = (try? JSONValue(parsing: claims))?.object else {
                throw .usage("--claims is not a JSON object: write it as '{\"simulcast\": true}'.")
            }
            members = object
        }
        guard let name = ChannelName(channel) else {
            throw .usage("--channel must have 1 to \(ChannelName.bytesMax) bytes without control characters.")
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
        if expires != "never" { members["exp"] = .integer(now + (try Self.seconds(expires, "--expires"))) }
        if let notBefore { members["nbf"] = .integer(now + (try Self.seconds(notBefore, "--not-before"))) }
        if let clientId { members["client_id"] = .string(clientId) }
        if let maxChannelConnections { members["max_channel_connections"] = .integer(maxChannelConnections) }
        if let problem = SignatureAuthorizer.problem(ofClaims: members) {
            throw .usage("The token would be refused: \(problem)")
        }
        return members
    }

    /// `90`, `90s`, `15m`, `12h`, `30d`.
    static func seconds(_ text: String, _ flag: String) throws(StartupError) -> Int64 {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        let unit = text.last.flatMap { units[$0] }
        guard let number = Int64(unit == nil ? text[...] : text.dropLast()), (0...1_000_000_000).contains(number) else {
            throw .usage("\(flag) is \"\(text)\": write a time as 90s, 15m, 12h or 30d.")
        }
        return number * (unit ?? 1)
    }

    /// The keys of the command line, the environment or the file, in this order of precedence.
    private func sources(_ environment: [String: String]) throws(StartupError) -> [JWTKeySource] {
        var layers = [
            ConfigurationLayer.commandLine(jwtKey.isEmpty ? [:] : [.jwtKey: jwtKey]), .environment(environment),
        ]
        let variable = environment[Setting.fileVariable].flatMap { $0.isEmpty ? nil : $0 }
        if let path = config ?? variable {
            layers.append(try .file(path: path, contents: try SmallFile.contents(path)))
        }
        return try SettingReader(layers: layers).jwtKeys()
    }
}
