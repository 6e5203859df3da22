import SRTP
import Testing
import ToolCommands
import Web

@testable import Telemetry
@testable import nagare

@Suite struct TraceSettingsTests {
    private static func settings(_ flags: [Setting: [String]]) throws -> TraceSettings? {
        let machine = Machine(cores: 1, addresses: [], srtpBackends: [.openssl])
        var flags = flags
        flags[.announce] = ["203.0.113.7"]
        return try NodeConfiguration.resolve([.commandLine(flags)], machine: machine).traces
    }

    @Test func `without a collector there are no traces`() throws {
        #expect(try Self.settings([:]) == nil)
    }

    @Test(arguments: [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318"), ("https://otel.example.com/", "https://otel.example.com"),
        ("http://[::1]:4318/base/", "http://[::1]:4318/base"),
    ])
    func `a collector is the base of its URLs`(text: String, endpoint: String) throws {
        let settings = try #require(try Self.settings([.otlpEndpoint: [text]]))
        #expect(settings.endpoint == endpoint && settings.sampleRatio == 1)
        let exporter = settings.exporter(NodeIdentity(name: "a", label: "l", version: "1.2"))
        #expect(exporter.endpoint == endpoint && exporter.version == "1.2")
        let resource = ["service.name": "nagare", "service.version": "1.2", "service.instance.id": "a"]
        #expect(exporter.resource == resource)
    }

    @Test(arguments: ["0", "0.25", "1"])
    func `a ratio is a share`(text: String) throws {
        let settings = try Self.settings([.otlpEndpoint: ["http://a"], .otlpSampleRatio: [text]])
        #expect(settings?.sampleRatio == Double(text))
    }

    @Test(
        arguments: [
            ("127.0.0.1:4318", nil, "as http://127.0.0.1:4318"), ("grpc://a", nil, "as http://127.0.0.1:4318"),
            ("http://user:secret@a", nil, "without a user"), ("http://a?b=c", nil, "without a user, a query"),
            ("http://a:4318/v1/traces", nil, "leave it out"), ("http://a", "1.1", "from 0 to 1"),
            ("http://a", "-0.1", "from 0 to 1"), ("http://a", "nan", "from 0 to 1"), ("http://a", "x", "from 0 to 1"),
            (nil, "0.5", "needs the address of a collector: --otlp-endpoint"),
        ] as [(String?, String?, String)]
    )
    func `a wrong value is refused with what to write`(endpoint: String?, ratio: String?, message: String) {
        var flags: [Setting: [String]] = [:]
        flags[.otlpEndpoint] = endpoint.map { [$0] }
        flags[.otlpSampleRatio] = ratio.map { [$0] }
        let error = #expect(throws: CommandError.self) { try Self.settings(flags) }
        let text = error.map { "\($0)" } ?? ""
        #expect(text.contains(message) && !text.contains("secret"))
    }
}
