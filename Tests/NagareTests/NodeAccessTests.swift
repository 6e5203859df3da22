import Access
import ArgumentParser
import Foundation
import Logging
import Testing
import ToolCommands

@testable import nagare

@Suite struct NodeAccessTests {
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func access(_ flags: [String], files: [String: String] = [:]) throws -> NodeAccess {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (name, text) in files {
            try text.write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
        }
        let flags = flags.map { $0.replacing("FOLDER", with: folder.path) }
        let command = try ServeCommand.parse(["--dev"] + flags)
        let configuration = try command.source(environment: [:], machine: .current).read().configuration
        return try NodeAccess(configuration, logger: logger)
    }

    @Test func `operators' tokens are read from their files, and are two`() throws {
        let flags = ["--admin-token", "@FOLDER/admin", "--admin-read-token", "@FOLDER/read"]
        let both = try access(flags, files: ["admin": "0123456789abcdef\n", "read": "fedcba9876543210\r\n"])
        #expect(both.adminToken?.secret == "0123456789abcdef" && both.adminReadToken?.secret == "fedcba9876543210")
        let same = #expect(throws: CommandError.self) {
            try access(flags, files: ["admin": "0123456789abcdef\n", "read": "0123456789abcdef"])
        }
        #expect(
            same?.message
                == "--admin-read-token is the token of --admin-token: choose another one, which permits reading only."
        )
        let short = #expect(throws: CommandError.self) {
            try access(flags, files: ["admin": "0123456789abcdef\n", "read": "short"])
        }
        #expect(short?.message.contains("read (--admin-read-token) is not a valid admin token") == true)
    }

    @Test func `tokens of all apps are strict where the node says so`() throws {
        let apps = ["--app", "a:0123456789abcdef", "--app", "b:fedcba9876543210"]
        for (flags, mode) in [([], .lenient), (["--app-token", "strict"], .strict)] as [([String], AppTokenMode)] {
            let keys = try access(apps + flags).keys.apps
            #expect(keys["a"]?.mode == mode && keys["b"]?.mode == mode)
        }
    }

    @Test func `a key set in a file that cannot be used is refused with the reason`() throws {
        let set = #"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"3HhX4RwvKJB74UDDiaSnPow7Q693Hq2Np97NIgYfcus"}]}"#
        let keys = try access(["--jwks", "FOLDER/jwks.json"], files: ["jwks.json": set]).keys
        #expect(keys.jwt.map(\.algorithm) == [.edDSA] && !keys.isEmpty)
        let none = #expect(throws: CommandError.self) {
            try access(["--jwks", "FOLDER/jwks.json"], files: ["jwks.json": #"{"keys":[{"kty":"oct","k":"AA"}]}"#])
        }
        #expect(
            none?.message.hasSuffix(
                "jwks.json (--jwks) cannot be used. It has no key that verifies RS256, ES256 or EdDSA. Key 1 is a shared "
                    + "secret, which no set may publish."
            ) == true
        )
        let missing = #expect(throws: CommandError.self) { try access(["--jwks", "FOLDER/jwks.json"]) }
        #expect(missing?.message.contains("no such file") == true)
    }

    @Test func `a short key of signed URLs is refused at the start`() throws {
        let flags = ["--url-key", "primary:@FOLDER/key"]
        #expect(try access(flags, files: ["key": "0123456789abcdef\n"]).keys.urls != nil)
        let short = #expect(throws: CommandError.self) { try access(flags, files: ["key": "0123456789abcde\n"]) }
        #expect(
            short?.message.hasSuffix(
                "key (--url-key) is no key of signed URLs: a key has 16 to 255 printable ASCII characters without spaces, as "
                    + "openssl rand -hex 16 makes."
            ) == true
        )
    }

    @Test func `many keys without an ID are refused, because a token would be tried with each`() throws {
        let flags = (0..<5).flatMap { ["--jwt-key", "hs256:\(String(repeating: "\($0)", count: 32))"] }
        #expect(try access(Array(flags.prefix(8))).keys.jwt.count == 4)
        let many = #expect(throws: CommandError.self) { try access(flags) }
        #expect(
            many?.message
                == "--jwt-key and --jwks have too many HS256 keys without a key ID: a token is tried with 4 keys at most. Give "
                + "them IDs, as hs256/ID:@FILE."
        )
    }

    @Test func `an RSA key that is too short is refused with its length`() throws {
        // Of 1,024 bits.
        let pem = """
            -----BEGIN PUBLIC KEY-----
            MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCs/V3r9a1CWlryU6RsAfo2BM3X
            uuk82wII6Bg5tq8Jtd+946mBZuRd4gnkmtCu7cvXnvFO9nPXRcCCxFi3gMIlMpRW
            EhmX09zPMn7jr+rbxXre2d6CQrhCwETs/jfzeUHmYzI6IsQAUXJiDW3jgJhu1i7I
            NiH+h7KAfXtvRR+3+wIDAQAB
            -----END PUBLIC KEY-----
            """
        let problem = #expect(throws: CommandError.self) {
            try access(["--jwt-key", "rs256:@FOLDER/short.pem"], files: ["short.pem": pem])
        }
        #expect(
            problem?.message.hasSuffix(
                "short.pem (--jwt-key) is an RSA key of 1024 bits: RS256 needs 2048 to 8192, as openssl genrsa 2048 makes."
            ) == true
        )
    }
}
