import Foundation
import Glibc
import TestSupport
import Testing

@testable import nagare

/// SIGHUP to the program, as a process.
@Suite(.timeLimit(.minutes(10)))
struct ReloadTests {
    private static let node = ["serve", "--token", "0123456789abcdef"] + RunningNode.anyPorts

    @Test func `SIGHUP reads the certificate again, and unusable files change nothing`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (chain, key) = (folder.appending(path: "chain.pem"), folder.appending(path: "key.pem"))
        func write(_ certificate: String, _ privateKey: String) throws {
            try certificate.write(to: chain, atomically: true, encoding: .utf8)
            try privateKey.write(to: key, atomically: true, encoding: .utf8)
        }
        try write(TestCertificate.chain, TestCertificate.key)
        let node = try RunningNode(Self.node + ["--tls-cert", chain.path, "--tls-key", key.path])
        let ports = try await node.ready()
        try write(TestCertificate.otherChain, TestCertificate.otherKey)
        node.send(SIGHUP)
        let renewed = await node.errors.first { $0.contains("reloaded the certificate") }
        #expect(renewed?.contains("serial=\(TestCertificate.otherSerial)") == true)
        try write(TestCertificate.chain, TestCertificate.otherKey)
        node.send(SIGHUP)
        let mismatch = await node.errors.first { $0.contains("Nothing has changed") }
        #expect(mismatch?.contains("do not belong together") == true)
        try write("garbage", "garbage")
        node.send(SIGHUP)
        let garbage = await node.errors.first { $0.contains("Nothing has changed") }
        #expect(garbage?.contains(chain.path) == true)
        #expect(try Connection.get("/healthz", port: ports.admin).hasPrefix("HTTP/1.1 200"))
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }

    @Test func `a node without a certificate goes on at SIGHUP, and a development node ends with its terminal`()
        async throws
    {
        let node = try RunningNode(Self.node)
        _ = try await node.ready()
        node.send(SIGHUP)
        #expect(await node.errors.first { $0.contains("reloaded the settings") } != nil)
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
        let development = try RunningNode(["serve", "--dev"] + RunningNode.anyPorts)
        _ = try await development.ready()
        development.send(SIGHUP)
        #expect(await development.exitStatus() == 128 + SIGHUP)
    }

    @Test(
        arguments: [
            (.token, true, true), (.clusterSecret, true, false), (.webhookCA, false, false), (.jwksCA, false, false),
            (.clusterStoreCA, false, false),
        ] as [(Setting, Bool, Bool)]
    )
    func `other contents of a file are a change of its setting`(
        setting: Setting,
        hasAt: Bool,
        isReloadable: Bool
    ) throws {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        func snapshot(_ contents: String) throws -> SettingSnapshot {
            try contents.write(to: file, atomically: true, encoding: .utf8)
            let value = (hasAt ? "@" : "") + file.path
            return try SettingSnapshot(SettingReader(layers: [.commandLine([setting: [value]])]))
        }
        let first = try snapshot("one")
        #expect(try snapshot("one").changes(since: first).isEmpty)
        #expect(try snapshot("two").changes(since: first) == [setting])
        #expect(setting.isReloadable == isReloadable)
    }

    @Test func `SIGHUP puts tokens, limits and the log level of the file in force, and names what needs a restart`()
        async throws
    {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (file, key) = (folder.appending(path: "nagare.yaml"), folder.appending(path: "key"))
        let token = folder.appending(path: "token")
        func write(_ text: String) throws { try text.write(to: file, atomically: true, encoding: .utf8) }
        func writeKey(_ text: String) throws { try text.write(to: key, atomically: true, encoding: .utf8) }
        try writeKey("0123456789abcdef0123456789abcdef")
        try write("admin-token: \"@\(key.path)\"\nloops: 2\n")
        let options = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--media", "127.0.0.1:0"]
        let node = try RunningNode(["serve", "--config", file.path] + options)
        let ports = try await node.ready()
        func status(_ path: String, port: UInt16, token: String) throws -> Substring? {
            try Connection.get(path, port: port, token: token).split(separator: " ").dropFirst().first
        }
        #expect(try status("/api/channels/a", port: ports.page, token: "none") == "200")
        #expect(try status("/v1/channels", port: ports.admin, token: "0123456789abcdef0123456789abcdef") == "200")

        try writeKey("fedcba9876543210fedcba9876543210")
        try "0123456789abcdef\n".write(to: token, atomically: true, encoding: .utf8)
        try write(
            """
            admin-token: "@\(key.path)"
            token: "@\(token.path)"
            loops: 1
            log-level: debug
            limit: [channels=7, connections=100]
            """
        )
        node.send(SIGHUP)
        let line = try #require(await node.errors.first { $0.contains("reloaded the settings") })
        #expect(line.contains(#"changed="token admin-token log-level limit channels""#))
        #expect(line.contains(#"needs_restart="loops limit connections""#))
        #expect(!line.contains("0123456789abcdef"))
        #expect(try status("/api/channels/a", port: ports.page, token: "none") == "401")
        #expect(try status("/api/channels/a", port: ports.page, token: "0123456789abcdef") == "200")
        #expect(try status("/v1/channels", port: ports.admin, token: "0123456789abcdef0123456789abcdef") == "401")
        #expect(try status("/v1/channels", port: ports.admin, token: "fedcba9876543210fedcba9876543210") == "200")

        try "fedcba9876543210\n".write(to: token, atomically: true, encoding: .utf8)
        node.send(SIGHUP)
        let rotated = try #require(await node.errors.first { $0.contains("reloaded the settings") })
        #expect(rotated.contains("changed=token") && !rotated.contains("fedcba9876543210"))
        #expect(try status("/api/channels/a", port: ports.page, token: "0123456789abcdef") == "401")
        #expect(try status("/api/channels/a", port: ports.page, token: "fedcba9876543210") == "200")

        try write("tokn: x\n")
        node.send(SIGHUP)
        let refused = try #require(await node.errors.first { $0.contains("Nothing has changed") })
        #expect(refused.contains("unknown key") && refused.contains("do you mean"))
        #expect(try status("/api/channels/a", port: ports.page, token: "fedcba9876543210") == "200")
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
    }
}
