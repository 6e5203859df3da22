import Foundation
import TestSupport
import Testing

@testable import Web

@Suite struct TrustedAuthoritiesTests {
    private static func authorities(_ text: String) throws -> TrustedAuthorities {
        let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try TrustedAuthorities(path: path, for: "webhooks")
    }

    @Test func `the certificates of a file are trusted in place of the system's`() throws {
        let file = try Self.authorities(TestCertificate.chain)
        let system = try TrustedAuthorities(path: nil, for: "webhooks")
        #expect(file.certificates?.isEmpty == false && system.certificates == nil)
    }

    @Test(arguments: ["", "no certificate", TestCertificate.key])
    func `a file without certificates is refused with what to write`(text: String) {
        let error = #expect(throws: ServerStartError.self) { try Self.authorities(text) }
        #expect(error?.message.contains("Name a file of certificates in PEM format") == true)
    }

    @Test func `a file that is not there is refused with its name`() {
        let error = #expect(throws: ServerStartError.self) {
            try TrustedAuthorities(path: "/nowhere/ca.pem", for: "webhooks")
        }
        #expect(error?.message.hasPrefix("The certificates for webhooks, /nowhere/ca.pem, cannot be read") == true)
    }
}
