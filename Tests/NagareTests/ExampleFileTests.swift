import Foundation
import SRTP
import Testing

@testable import nagare

/// `ops/nagare.example.yaml`, which is also the documentation of the settings.
@Suite struct ExampleFileTests {
    private static let machine = Machine(cores: 4, addresses: [], srtpBackends: [.openssl, .libsrtp2])

    private func contents() throws -> String {
        let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent("ops/nagare.example.yaml"), encoding: .utf8)
    }

    /// The file with every setting in force: a setting is a comment that starts like one, or an item of its list.
    private func uncommented() throws -> String {
        try contents().split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let text = String(line.dropFirst(2))
            let isSetting = Setting.allCases.contains { text.hasPrefix("\($0.rawValue):") }
            return line.hasPrefix("# ") && (isSetting || text.hasPrefix("  - ")) ? text : String(line)
        }
        .joined(separator: "\n")
    }

    @Test func `it can be used as it is`() throws {
        let layer = try ConfigurationLayer.file(path: "example", contents: Array(try contents().utf8))
        for setting in Setting.allCases { #expect(try layer.entry(for: setting) == nil) }
    }

    @Test func `it names every setting, and all of them together are valid`() throws {
        let layer = try ConfigurationLayer.file(path: "example", contents: Array(try uncommented().utf8))
        for setting in Setting.allCases { #expect(try layer.entry(for: setting) != nil, "\(setting.rawValue)") }
        // There is one way to decide who may take part, and the file shows three.
        for way in ["token", "jwt-key", "auth-webhook-url"] {
            let ways = ["token:", "jwt-key:", "auth-webhook-url:"].filter { $0 != "\(way):" }
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
            #expect((configuration.webhooks.authenticationURL != nil) == (way == "auth-webhook-url"))
            #expect(configuration.media.count == 2 && configuration.sora.turnURLs.count == 2)
        }
    }

    @Test func `what it shows as a default is the default`() throws {
        let text = try uncommented().split(separator: "\n").filter { line in
            !["token:", "auth-webhook-url:"].contains { line.hasPrefix($0) }
        }
        let layer = try ConfigurationLayer.file(path: "example", contents: Array(text.joined(separator: "\n").utf8))
        let shown = try NodeConfiguration.resolve([layer], machine: Self.machine)
        let actual = try NodeConfiguration.resolve([.commandLine([.announce: ["203.0.113.7"]])], machine: Self.machine)
        #expect(shown.isDevelopment == actual.isDevelopment)
        #expect(shown.http == actual.http)
        #expect(shown.media.first == actual.media.first)
        #expect(shown.admin == actual.admin)
        #expect(shown.loops == actual.loops)
        #expect(shown.controlLoops == actual.controlLoops)
        #expect(shown.srtpBackend == actual.srtpBackend)
        #expect(shown.socketOptions == actual.socketOptions)
        #expect(shown.logLevel == actual.logLevel)
        #expect(shown.graceSeconds == actual.graceSeconds)
        #expect(shown.webhooks.timeoutSeconds == actual.webhooks.timeoutSeconds)
        #expect(shown.sora.videoCodec == actual.sora.videoCodec)
        #expect(shown.sora.spotlightNumber == actual.sora.spotlightNumber)
        #expect(shown.sora.spotlightFocusRID == actual.sora.spotlightFocusRID)
        #expect(shown.sora.spotlightUnfocusRID == actual.sora.spotlightUnfocusRID)
        #expect(shown.sora.acceptsBundleID == actual.sora.acceptsBundleID)
        #expect(shown.sora.pingSeconds == actual.sora.pingSeconds)
        #expect(shown.sora.label == actual.sora.label)
    }
}
