import Testing
import Wire

@testable import Load

@Suite struct LoadConfigurationTests {
    /// What is wrong, and how it is made.
    static let mistakes: [(String, @Sendable (inout LoadConfiguration) -> Void)] = [
        (
            "no client",
            {
                $0.publishers = 0
                $0.subscribers = 0
            }
        ),
        ("a negative number", { $0.subscribers = -1 }),
        ("too many clients", { $0.subscribers = LoadConfiguration.clientsMax + 1 }),
        ("neither video nor audio", { $0.videoBitsPerSecond = 0 }),
        ("too high a bitrate", { $0.videoBitsPerSecond = 1_000_000_000 }),
        ("no frame rate", { $0.framesPerSecond = 0 }),
        ("no duration", { $0.durationSeconds = 0 }),
        ("a duration that is no number", { $0.durationSeconds = .nan }),
        ("no join rate", { $0.joinRate = 0 }),
        ("an empty ramp", { $0.ramp = LoadConfiguration.Ramp(subscribers: 0, seconds: 1) }),
        ("no scheme", { $0.url = "127.0.0.1:8080" }),
        ("no channel", { $0.channel = "" }),
    ]

    @Test(arguments: mistakes.indices)
    func `a configuration that cannot be run is refused in one sentence`(index: Int) throws {
        var configuration = LoadConfiguration()
        try configuration.validate()
        Self.mistakes[index].1(&configuration)
        let error = #expect(throws: LoadError.self, "\(Self.mistakes[index].0)") { try configuration.validate() }
        #expect(error?.sentence.hasSuffix(".") == true)
    }

    @Test(
        arguments: [
            ("http://127.0.0.1:8080", true, IPAddress.loopbackV4),
            ("http://localhost:8080/base", true, IPAddress.loopbackV4),
            ("https://[::1]:8080", false, IPAddress.loopbackV6),
            ("http://192.0.2.1", true, nil),
            ("https://sfu.example/x@y", false, nil),
            ("https://user@192.0.2.1:80", true, nil),
        ] as [(String, Bool, IPAddress?)]
    )
    func `the host decides what a client's socket reaches`(url: String, isV4: Bool, loopback: IPAddress?) {
        var configuration = LoadConfiguration()
        configuration.url = url
        #expect(configuration.hostIsV4 == isV4)
        #expect(configuration.loopback == loopback)
    }

    @Test(
        arguments: [
            (0, 0, "0"), (1.005, 2, "1.00"), (1.05, 1, "1.1"), (12.3456, 3, "12.346"), (-0.4, 0, "0"),
            (-2.5, 1, "-2.5"),
            (.infinity, 1, "inf"), (999.96, 1, "1000.0"),
        ] as [(Double, Int, String)]
    )
    func `a number has its decimals`(value: Double, places: Int, text: String) {
        #expect(decimal(value, places) == text)
    }

    @Test func `this process's usage can be read, and that of none cannot`() throws {
        let usage = try #require(ProcessUsage.read(nil))
        #expect(usage.residentBytes > 0)
        #expect(usage.cpuSeconds >= 0)
        #expect(ProcessUsage.read(0) == nil)
        var configuration = LoadConfiguration()
        configuration.serverPID = 0
        #expect(throws: LoadError.self) { try LoadRun(configuration, signaling: NoServer()) }
    }

    private struct NoServer: LoadSignaling {
        func publish(offer: String, number: Int) async throws(LoadError) -> AcceptedSession { throw .failed("No.") }
        func watch(
            offer: String,
            number: Int,
            participant: String?
        ) async throws(LoadError) -> AcceptedSession { throw .failed("No.") }
        func end(_ session: AcceptedSession) async {}
    }
}
