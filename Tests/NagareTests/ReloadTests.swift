import Foundation
import Glibc
import TestSupport
import Testing

@testable import nagare

/// SIGHUP to the program, as a process.
@Suite(.timeLimit(.minutes(30)))
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
        let mismatch = await node.errors.first { $0.contains("The certificate in use stays") }
        #expect(mismatch?.contains("do not belong together") == true)
        try write("garbage", "garbage")
        node.send(SIGHUP)
        let garbage = await node.errors.first { $0.contains("The certificate in use stays") }
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
        #expect(await node.errors.first { $0.contains("nothing to reload") } != nil)
        node.send(SIGTERM)
        #expect(await node.exitStatus() == 0)
        let development = try RunningNode(["serve", "--dev"] + RunningNode.anyPorts)
        _ = try await development.ready()
        development.send(SIGHUP)
        #expect(await development.exitStatus() == 128 + SIGHUP)
    }
}
