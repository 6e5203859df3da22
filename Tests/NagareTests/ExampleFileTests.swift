import Foundation
import SRTP
import Testing

@testable import nagare

/// `ops/nagare.example.yaml`, which is also the documentation of the settings.
@Suite struct ExampleFileTests {
    private static let machine = Machine(cores: 4, addresses: [], srtpBackends: [.openssl, .libsrtp2])

    private func contents() throws -> String { try RepositoryFile.contents("ops/nagare.example.yaml") }

    /// The file with every setting in force: a setting is a comment that starts like one, or an item of its list.
    private func uncommented() throws -> String {
        try contents().split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let text = String(line.dropFirst(2))
            let isSetting = Setting.allCases.contains { text.hasPrefix("\($0.rawValue):") }
            return line.hasPrefix("# ") && (isSetting || text.hasPrefix("  - ")) ? text : String(line)
        }
        .joined(separator: "\n")
    }

    @Test func `the example file equals the output of nagare settings`() throws {
        #expect(try contents() == SettingDocuments.exampleFile, "nagare settings > ops/nagare.example.yaml")
    }

    @Test func `the example file is valid as it is`() throws {
        let layer = try ConfigurationLayer.file(path: "example", contents: Array(try contents().utf8))
        for setting in Setting.allCases { #expect(try layer.entry(for: setting) == nil) }
    }

    @Test func `the example file has every setting, and all its examples are valid together`() throws {
        let layer = try ConfigurationLayer.file(path: "example", contents: Array(try uncommented().utf8))
        for setting in Setting.allCases { #expect(try layer.entry(for: setting) != nil, "\(setting.rawValue)") }
        // Only one method of authentication may be set, and the file shows three.
        let methods = [
            ["token:"],
            [
                "jwt-key:", "jwks:", "jwks-ca:", "app:", "app-disabled:", "app-profile:", "app-token:", "url-key:",
                "url-validity:", "url-expiry:",
            ],
            ["auth-webhook-url:"],
        ]
        for method in methods {
            let way = String(method[0].dropLast())
            let ways = methods.filter { $0 != method }.flatMap(\.self)
            let text = try uncommented().split(separator: "\n", omittingEmptySubsequences: false)
            var isDropping = false
            let kept = text.filter { line in
                isDropping = ways.contains { line.hasPrefix($0) } || (isDropping && line.hasPrefix("  - "))
                return !isDropping
            }
            let one = try ConfigurationLayer.file(path: "example", contents: Array(kept.joined(separator: "\n").utf8))
            let configuration = try NodeConfiguration.resolve([one], machine: Self.machine)
            #expect(configuration.tls != nil)
            #expect((configuration.token != nil) == (way == "token"))
            #expect(configuration.jwtKeys.isEmpty == (way != "jwt-key"))
            #expect((configuration.keySet == nil) == (way != "jwt-key"))
            #expect(configuration.apps.isEmpty == (way != "jwt-key"))
            #expect(configuration.urlKeys.sources.isEmpty == (way != "jwt-key"))
            #expect((configuration.webhooks.authenticationURL != nil) == (way == "auth-webhook-url"))
            #expect(configuration.media.count == 2 && configuration.sora.turnURLs.count == 2)
        }
    }
}
