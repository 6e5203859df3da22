import ArgumentParser
import Foundation
import Logging
import Testing
import Web

@testable import nagare

@Suite struct OperationsTests {
    @Test(arguments: [("--webhook-ca", "webhooks"), ("--jwks-ca", "the keys of tokens")])
    func `a file of authorities that is not PEM is refused, and leaves no client behind`(
        flag: String,
        purpose: String
    ) throws {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        try "no certificate".write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let command = try ServeCommand.parse(
            [
                "--dev", "--jwks", "https://127.0.0.1:1/keys", "--event-webhook-url", "https://127.0.0.1:1/events",
                "--otlp-endpoint", "http://127.0.0.1:1", flag, path,
            ]
        )
        let configuration = try command.source(environment: [:], machine: .current).read().configuration
        let access = try NodeAccess(configuration, logger: logger)
        let certificates = try NodeCertificates(configuration)
        // A client that is made and not shut down would trap.
        let error = #expect(throws: ServerStartError.self) {
            try ControlServices(
                configuration,
                access: access,
                certificates: certificates,
                cluster: nil,
                records: nil,
                relays: nil,
                logger: logger
            )
        }
        #expect(error?.message.hasPrefix("The certificates for \(purpose), \(path), cannot be read") == true)
    }
}
