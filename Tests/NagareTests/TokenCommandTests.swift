import Access
import ArgumentParser
import Foundation
import Glibc
import JSON
import Signaling
import Testing

@testable import nagare

/// `nagare token`.
@Suite(.timeLimit(.minutes(30)))
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

    @Test(arguments: [
        (["--channel", ""], "--channel must have 1 to 255 bytes without control characters."),
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
    func `an error is one sentence`(arguments: [String], sentence: String) throws {
        let key = ["NAGARE_JWT_KEY": "hs256:\(Self.secret.replacing(",", with: "-"))"]
        let command = try TokenCommand.parse(arguments)
        #expect(throws: StartupError.usage(sentence)) {
            _ = try command.token(environment: key, now: 0, id: "t")
        }
    }

    @Test func `the error for a missing key names the settings`() throws {
        let command = try TokenCommand.parse(["--channel", "a"])
        let sentence = "There is no key to sign with: set --jwt-key, NAGARE_JWT_KEY or jwt-key in the file of --config."
        #expect(throws: StartupError.usage(sentence)) {
            _ = try command.token(environment: [:], now: 0, id: "t")
        }
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
        let ask = { (authorization: String, channel: String) throws -> String in
            let connection = try Connection(port: ports.page)
            connection.write(
                "GET /api/channels/\(channel) HTTP/1.1\r\nHost: localhost\r\n\(authorization)Connection: close\r\n\r\n"
            )
            return connection.readAll()
        }
        #expect(try ask("", "lobby").hasPrefix("HTTP/1.1 401"))
        #expect(try ask("Authorization: Bearer \(token)\r\n", "lobby").hasPrefix("HTTP/1.1 200"))
        #expect(try ask("Authorization: Bearer \(token)\r\n", "other").hasPrefix("HTTP/1.1 403"))
        #expect(try ask("Authorization: Bearer \(token)x\r\n", "lobby").hasPrefix("HTTP/1.1 401"))

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
