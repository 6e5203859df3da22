import Impairment
import Testing
import Wire

@testable import Load

@Suite struct LoadConfigurationTests {
    /// The error and its cause.
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
        ("an empty ramp", { $0.ramp = LoadConfiguration.Ramp(step: 0) }),
        ("a ramp that tolerates more than everything", { $0.ramp = .init(step: 1, lossPercentMax: 101) }),
        ("a ramp that tolerates no latency", { $0.ramp = .init(step: 1, p99MillisecondsMax: 0) }),
        ("a ramp whose goal is no number", { $0.ramp = .init(step: 1, lossPercentMax: .nan) }),
        (
            "a ramp of a conference",
            {
                $0.ramp = LoadConfiguration.Ramp(step: 1)
                $0.conferenceMembers = 3
            }
        ),
        (
            "links of a conference",
            {
                $0.viewerLink = LinkConditions()
                $0.conferenceMembers = 3
            }
        ),
        (
            "simulcast over Sora's signaling",
            {
                $0.sendsSimulcast = true
                $0.signaling = .sora
            }
        ),
        (
            "simulcast without video",
            {
                $0.sendsSimulcast = true
                $0.sendsAudio = true
                $0.videoBitsPerSecond = 0
            }
        ),
        ("a conference of one", { $0.conferenceMembers = 1 }),
        ("a conference of too many", { $0.conferenceMembers = 101 }),
        (
            "conferences of too many in all",
            {
                $0.conferenceMembers = 100
                $0.channels = 3
            }
        ),
        ("no channels", { $0.channels = 0 }),
        ("more channels than publishers", { $0.channels = 2 }),
        ("no loop", { $0.loops = 0 }),
        ("too many loops", { $0.loops = LoadConfiguration.loopsMax + 1 }),
        ("no SRTP profile", { $0.srtpProfiles = [] }),
        ("an unknown SRTP backend", { $0.srtpBackend = "rot13" }),
        ("no scheme", { $0.url = "127.0.0.1:8080" }),
        ("no host", { $0.url = "http://" }),
        ("authorities in a file that there is not", { $0.certificateAuthorityPath = "/nowhere/ca.pem" }),
        ("metrics without a scheme", { $0.metricsURL = "127.0.0.1:3000/metrics" }),
        ("no channel", { $0.channel = "" }),
        ("a blank channel", { $0.channel = " \t" }),
        ("a channel that a path cannot hold", { $0.channel = "." }),
        ("a channel that leads a path elsewhere", { $0.channel = ".." }),
        (
            "a channel longer than Sora's signaling takes",
            {
                $0.signaling = .sora
                $0.channel = String(repeating: "x", count: 256)
            }
        ),
        ("a return over WHIP", { $0.rejoinURLs = ["http://127.0.0.1:8081"] }),
        (
            "a return to no URL",
            {
                $0.signaling = .sora
                $0.rejoinURLs = ["127.0.0.1:8081"]
            }
        ),
        (
            "no path of the WebSocket",
            {
                $0.signaling = .sora
                $0.signalingPath = ""
            }
        ),
    ]

    @Test(arguments: mistakes.indices)
    func `an invalid configuration is refused with one sentence`(index: Int) throws {
        var configuration = LoadConfiguration()
        try configuration.validate()
        Self.mistakes[index].1(&configuration)
        let error = #expect(throws: LoadError.self, "\(Self.mistakes[index].0)") { try configuration.validate() }
        #expect(error?.message.hasSuffix(".") == true)
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

    @Test(arguments: [(2, 1), (5, 1), (3, 4)])
    func `each member of a conference watches every other one of its own, once`(members: Int, channels: Int) throws {
        var configuration = LoadConfiguration()
        configuration.conferenceMembers = members
        configuration.channels = channels
        try configuration.validate()
        #expect(configuration.publisherCount == members * channels)
        #expect(configuration.subscriberCount == members * (members - 1) * channels)
        let watched = (0..<configuration.subscriberCount).map { configuration.publisher(watchedBy: $0) }
        for member in 0..<configuration.publisherCount {
            let conference = member / members
            let first = member * (members - 1)
            let others = (conference * members..<(conference + 1) * members).filter { $0 != member }
            #expect(Array(watched[first..<first + members - 1]) == others)
            let name = channels > 1 ? "load-\(conference + 1)" : "load"
            #expect(configuration.channel(ofPublisher: member) == name)
        }
    }

    @Test func `a member of a conference with one transport is one client`() throws {
        var configuration = LoadConfiguration()
        configuration.conferenceMembers = 4
        configuration.channels = 2
        #expect(configuration.clientCount == 32 && configuration.joiningSubscribers == 24)
        var report = LoadReport(configuration)
        report.publishersConnected = 8
        report.subscribersConnected = 24
        #expect(configuration.connectedClients(report) == 32)
        configuration.signaling = .sora
        try configuration.validate()
        #expect(configuration.clientCount == 8 && configuration.joiningSubscribers == 0)
        #expect(configuration.connectedClients(report) == 8)
        #expect(configuration.subscriberCount == 24)
    }

    @Test func `publishers are spread over channels, and subscribers over publishers`() throws {
        var configuration = LoadConfiguration()
        configuration.publishers = 4
        configuration.channels = 2
        configuration.channel = "room"
        try configuration.validate()
        #expect((0..<4).map { configuration.channel(ofPublisher: $0) } == ["room-1", "room-2", "room-1", "room-2"])
        #expect((0..<5).map { configuration.publisher(watchedBy: $0) } == [0, 1, 2, 3, 0])
        #expect(configuration.sharesChannels)
        configuration.channels = 4
        #expect(!configuration.sharesChannels)
        configuration.publishers = 0
        #expect(configuration.publisher(watchedBy: 7) == 0)
    }

    @Test func `there are as many loops as the sockets need, or more`() {
        var configuration = LoadConfiguration()
        #expect(configuration.loopCount == 1)
        configuration.subscribers = LoadLoop.clientsMax
        #expect(configuration.loopCount == 2)
        configuration.loops = 1
        #expect(configuration.loopCount == 2)
        configuration.loops = 3
        #expect(configuration.loopCount == 3)
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

    @Test func `a process that does not exist is refused`() throws {
        var configuration = LoadConfiguration()
        configuration.serverPID = 0
        #expect(throws: LoadError.self) { try LoadRun(configuration, signaling: NoServer()) }
    }

    private struct NoServer: LoadSignaling {
        func publish(offer: String, number: Int) async throws(LoadError) -> CreatedResource { throw .failed("No.") }
        func watch(
            offer: String,
            number: Int,
            participant: String?
        ) async throws(LoadError) -> CreatedResource { throw .failed("No.") }
        func end(_ session: CreatedResource) async {}
    }
}
