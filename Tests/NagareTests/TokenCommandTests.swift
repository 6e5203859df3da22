import Access
import ArgumentParser
import ChannelTypes
import Foundation
import Glibc
import JSON
import Room
import Signaling
import Testing
import ToolCommands

@testable import nagare

/// `nagare token`.
@Suite(.timeLimit(.minutes(10)))
struct TokenCommandTests {
    private static let secret = "correct horse battery staple, twice over"

    private func claims(_ arguments: [String], environment: [String: String] = [:]) throws -> JSONValue {
        let command = try TokenCommand.parse(arguments)
        let token = try command.token(environment: environment, now: 1_000, id: "t")
        let parts = token.split(separator: ".")
        #expect(parts.count == 3)
        let padded = parts[1].replacing("-", with: "+").replacing("_", with: "/")
        let bytes = try #require(
            Data(base64Encoded: padded + String(repeating: "=", count: (4 - padded.count % 4) % 4))
        )
        return try JSONValue(parsing: Array(bytes))
    }

    @Test func `claims follow the options`() throws {
        let key = ["NAGARE_JWT_KEY": "hs256:\(Self.secret.replacing(",", with: "-"))"]
        #expect(
            try claims(["--channel", "lobby"], environment: key)
                == ["channel_id": "lobby", "iat": 1_000, "exp": 4_600, "jti": "t"]
        )
        let all = try claims(
            [
                "--channel", "ロビー", "--role", "sendonly", "--expires", "90", "--not-before", "2m", "--client-id", "c",
                "--max-channel-connections", "5", "--claims", #"{"simulcast":true,"channel_id":"other"}"#,
            ],
            environment: key
        )
        #expect(
            all == [
                "channel_id": "ロビー", "role": "sendonly", "iat": 1_000, "exp": 1_090, "nbf": 1_120, "client_id": "c",
                "max_channel_connections": 5, "simulcast": true, "jti": "t",
            ]
        )
        let forever = try claims(["--channel", "lobby", "--expires", "never"], environment: key)
        #expect(forever["exp"] == nil)
    }

    @Test func `the help states the validity of a token once`() {
        let help = TokenCommand.helpMessage(columns: 2_000)
        let line = help.split(separator: "\n").first { $0.contains("--expires") }
        #expect(line?.split(separator: "1h").count == 2)
        #expect(line?.contains("default:") == false)
    }

    @Test(arguments: [
        (["--channel", ""], "--channel \(ChannelName.rule)."), (["--channel", ".."], "--channel \(ChannelName.rule)."),
        (["--channel", "a", "--role", "host"], "--role is \"host\": write one of sendonly, recvonly, sendrecv."),
        (["--channel", "a", "--expires", "soon"], "--expires is \"soon\": write a time as 90s, 15m, 12h or 30d."),
        (["--channel", "a", "--expires=-5s"], "--expires is \"-5s\": write a time as 90s, 15m, 12h or 30d."),
        (["--channel", "a", "--claims", "[]"], "--claims is not a JSON object: write it as '{\"simulcast\": true}'."),
        (
            ["--channel", "a", "--claims", #"{"simulcast":"yes"}"#],
            "The token would be refused: \"simulcast\" has to be true or false."
        ),
        (
            ["--channel", "a", "--key-id", "k"],
            "No key with the id \"k\" can sign: a public key only verifies tokens."
        ),
        (
            ["--channel", "a", "--jwt-key", "hs256:short"],
            "--jwt-key is a secret of 5 bytes: HS256 needs at least 32, as openssl rand -base64 32 makes."
        ),
        (["--channel", "a", "--jwt-key", "es256:x"], "--jwt-key is no private or public ES256 key in PEM."),
    ])
    func `an error is one sentence`(arguments: [String], message: String) throws {
        let key = ["NAGARE_JWT_KEY": "hs256:\(Self.secret.replacing(",", with: "-"))"]
        let command = try TokenCommand.parse(arguments)
        #expect(throws: CommandError.usage(message)) {
            _ = try command.token(environment: key, now: 0, id: "t")
        }
    }

    @Test func `the error for a missing key names the settings`() throws {
        let command = try TokenCommand.parse(["--channel", "a"])
        let message = "There is no key to sign with: set --jwt-key, NAGARE_JWT_KEY or jwt-key in the file of --config."
        #expect(throws: CommandError.usage(message)) {
            _ = try command.token(environment: [:], now: 0, id: "t")
        }
    }

    // MARK: Tokens of apps

    private static let now: Int64 = 1_699_420_034

    private func make(_ arguments: [String], environment: [String: String] = [:]) throws -> String {
        try TokenCommand.parse(arguments).token(environment: environment, now: Self.now, id: "a-1-b")
    }

    @Test func `the token of an app is the published one with an empty nonce`() throws {
        let options = ["--channel", "abcChannel", "--user", "abcUser", "--expires", "1h", "--nonce", ""]
        let expected: JSONValue = [
            "appid": "abc", "channelid": "abcChannel", "userid": "abcUser", "nonce": "", "timestamp": 1_699_423_634,
            "token": "3c9ee8d9f8734f0b7560ed8022a0590659113955819724fc9345ab8eedf84f31",
        ]
        let key = ["NAGARE_APP": "first:other,abc:abckey"]
        for text in try [
            make(options + ["--app", "abc:abckey", "--fields"]),
            make(options + ["--app", "abc", "--fields"], environment: key),
            make(options + ["--fields"], environment: ["NAGARE_APP": "abc:abckey"]),
        ] {
            #expect(try JSONValue(parsing: text) == expected)
        }
        let parameter = try make(options + ["--app", "abc:abckey"])
        let bytes = try #require(Data(base64Encoded: parameter))
        #expect(try JSONValue(parsing: Array(bytes)) == expected)
    }

    @Test func `the token of an app is a strict one, unless it gets another nonce`() throws {
        let options = ["--channel", "abcChannel", "--user", "abcUser", "--expires", "1h"]
        let token = try AppToken(parameter: try make(options + ["--app", "abc:abckey"]))
        #expect(token.nonce == "10.7.")
        try token.verify(AppKeys([try AppKey(appID: "abc", key: "abckey", mode: .strict)]), at: Self.now)
        let other = try AppToken(parameter: try make(options + ["--app", "abc:abckey", "--nonce", "AK-1"]))
        #expect(other.nonce == "AK-1")
        let strict = ["NAGARE_APP": "abc:abckey", "NAGARE_APP_TOKEN": "strict"]
        #expect(try AppToken(parameter: try make(options, environment: strict)) == token)
        let refused = #expect(throws: CommandError.self) {
            try make(options + ["--nonce", "AK-1"], environment: strict)
        }
        #expect(refused?.message.hasPrefix("The token would be refused: \"nonce\" must begin with \"10.7.\"") == true)
    }

    // MARK: Signed URLs

    @Test func `a URL is signed with the primary key`() throws {
        let keys = ["--url-key", "secondary:the-second-of-the-keys", "--url-key", "primary:testkey-testkey1"]
        let now = URLKeys(["testkey-testkey1"])
        let signed = { (timestamp: Int64) throws in
            "https://h/whip/a?auth_key=" + (try now.signature(path: "/whip/a", timestamp: timestamp, rand: "a1b").text)
        }
        #expect(try make(["--url", "https://h/whip/a"] + keys) == signed(Self.now))
        // The node adds the validity: 1,800 s by default.
        #expect(try make(["--url", "https://h/whip/a", "--expires", "2h"] + keys) == signed(Self.now + 5_400))
        #expect(
            try make(["--url", "https://h/whip/a", "--expires", "1h", "--url-validity", "0"] + keys)
                == signed(Self.now + 3_600)
        )
        let environment = ["NAGARE_URL_KEY": "primary:testkey-testkey1", "NAGARE_URL_VALIDITY": "60"]
        #expect(
            try make(["--url", "https://h/whip/a", "--expires", "90s"], environment: environment)
                == signed(Self.now + 30)
        )
    }

    @Test(arguments: [
        ([], "--channel is missing: name the channel that the token is for."),
        (["--app", "a:k", "--user", "u"], "--channel is missing: name the channel that the token is for."),
        (["--app", "a:k", "--channel", "c"], "--user is missing: name the user that the app's token is for."),
        (
            ["--user", "u", "--channel", "c"],
            "There is no app to sign for: set --app, NAGARE_APP or app in the file of --config."
        ),
        (
            ["--app", "a", "--user", "u", "--channel", "c"],
            "There is no app to sign for: set --app, NAGARE_APP or app in the file of --config."
        ),
        (
            ["--app", "a:k", "--user", "u v", "--channel", "c"],
            "The token would be refused: \"userid\" must have 1 to 64 characters, only A-Z, a-z, 0-9, _ and -."
        ),
        (
            ["--app", "a:k", "--user", "u", "--channel", "c", "--expires", "never"],
            "--expires is \"never\": write a time as 90s, 15m, 12h or 30d."
        ),
        (
            ["--app", "a:two words", "--user", "u", "--channel", "c"],
            "--app is no key of app a: a key has 1 to 255 printable ASCII characters without spaces."
        ),
        (
            ["--app", "a:k", "--user", "u", "--channel", "c", "--role", "sendonly"],
            "--role is not possible here: a token of an app has a channel, a user and an expiry only."
        ),
        (
            ["--channel", "c", "--nonce", "n"],
            "--nonce is not possible here: only tokens of apps have it, so add --app."
        ),
        (
            ["--url", "https://h/whip/a", "--channel", "c"],
            "--channel is not possible here: a signed URL has a path and an expiry only."
        ),
        (
            ["--url", "/whip/a"],
            "--url must be a URL with a path and without auth_key: write it as https://HOST/whip/CHANNEL, "
                + "percent-encoded."
        ),
        (
            ["--url", "https://h/whip/a"],
            "There is no key to sign with: set --url-key, NAGARE_URL_KEY or url-key in the file of --config."
        ),
        (
            ["--url", "https://h/whip/a", "--url-key", "primary:some words with spaces"],
            "--url-key is no key of signed URLs: a key has 16 to 255 printable ASCII characters without spaces, as openssl "
                + "rand -hex 16 makes."
        ),
        (
            ["--url", "https://h/whip/a", "--url-key", "primary:0123456789abcde"],
            "--url-key is no key of signed URLs: a key has 16 to 255 printable ASCII characters without spaces, as openssl "
                + "rand -hex 16 makes."
        ),
    ])
    func `an error of tokens of apps and URLs is one sentence`(arguments: [String], message: String) throws {
        #expect(throws: CommandError.usage(message)) { _ = try make(arguments) }
    }

    /// Not inlined, because the optimizer of Swift 6.3 crashes on its typed errors within an asynchronous function.
    @inline(never) private static func made(_ arguments: [String]) throws -> String {
        let now = Int64(Date().timeIntervalSince1970)
        return try TokenCommand.parse(arguments).token(environment: [:], now: now, id: "r")
    }

    @Test func `a node accepts what the program made for an app and a URL`() async throws {
        let settings = ["--app", "live:correct-horse-battery", "--url-key", "primary:url-secret-of-16"]
        let token = try Self.made(["--app", settings[1], "--channel", "lobby", "--user", "u"])
        let url = try Self.made(["--url", "http://localhost/whep/lobby"] + settings[2...])
        let node = try RunningNode(["serve", "--dev"] + settings + RunningNode.anyPorts)
        let ports = try await node.ready()
        let ask = { (path: String, token: String?) in try Connection.get(path, port: ports.page, token: token) }
        #expect(try ask("/api/channels/lobby", nil).hasPrefix("HTTP/1.1 401"))
        #expect(try ask("/api/channels/lobby", token).hasPrefix("HTTP/1.1 200"))
        #expect(try ask("/api/channels/other", token).hasPrefix("HTTP/1.1 403"))
        #expect(try ask(String(url.dropFirst("http://localhost".count)), nil).hasPrefix("HTTP/1.1 204"))
        #expect(try ask("/whep/lobby", nil).hasPrefix("HTTP/1.1 401"))
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `the program prints only the token, and a node with the key accepts it`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("nagare-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("key")
        try Data("\(Self.secret)\n".utf8).write(to: file)
        let configuration = folder.appendingPathComponent("nagare.yaml")
        try Data("jwt-key: hs256:@\(file.path)\n".utf8).write(to: configuration)

        let command = try RunningNode(["token", "--config", configuration.path, "--channel", "lobby"])
        let lines = await command.output.all()
        #expect(await command.exitStatus() == 0)
        #expect(lines.count == 1 && lines.first?.split(separator: ".").count == 3)
        let token = try #require(lines.first)

        let node = try RunningNode(["serve", "--dev", "--config", configuration.path] + RunningNode.anyPorts)
        let ports = try await node.ready()
        let ask = { (token: String?, channel: String) in
            try Connection.get("/api/channels/\(channel)", port: ports.page, token: token)
        }
        #expect(try ask(nil, "lobby").hasPrefix("HTTP/1.1 401"))
        #expect(try ask(token, "lobby").hasPrefix("HTTP/1.1 200"))
        #expect(try ask(token, "other").hasPrefix("HTTP/1.1 403"))
        #expect(try ask("\(token)x", "lobby").hasPrefix("HTTP/1.1 401"))

        let list = try Connection(port: ports.admin)
        list.write(
            "POST / HTTP/1.1\r\nHost: localhost\r\nx-sora-target: Sora_20201013.ListConnections\r\nContent-Length: 0\r\n"
                + "Connection: close\r\n\r\n"
        )
        let answer = list.readAll()
        #expect(answer.hasPrefix("HTTP/1.1 200") && answer.hasSuffix("[]"))
        #expect(try Connection.get("/metrics", port: ports.admin).contains("\nsora_up 1\n"))
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }
}
