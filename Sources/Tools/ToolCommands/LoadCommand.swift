package import ArgumentParser
import Base
import Foundation
import Impairment
import Load
import Wire

/// `nagare load`: the load generator.
package struct LoadCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Measure a server with synthetic publishers and subscribers.",
        discussion: """
            Connects to any server by WHIP and WHEP, or by Sora signaling, with real ICE, DTLS and SRTP and synthetic \
            media. Every packet has a timestamp, which measures loss, duplicates, order and latency from end to end. \
            Publishers join first. The measured window starts when all clients are connected. The packets of a video \
            frame are sent in one burst, as encoders send them. One loop, on one core, drives 500 subscribers of \
            1.5 Mbit/s.

            --ramp finds the maximum number of subscribers: they join in steps, up to --subscribers, and each step is \
            measured for --duration, until the loss exceeds --goal-loss or p99 exceeds --goal-p99 twice in a row, or the \
            load generator is the bottleneck.

            --conference N is a call: each of N members publishes once and watches the N-1 others, with one transport \
            for each. A server without Nagare's participant names needs one channel for each publisher:
              --whip-path '/whip/{channel}-{publisher}' --whep-path '/whep/{channel}-{publisher}'

            --signaling sora uses Sora signaling over one WebSocket for each client: each subscriber gets every publisher \
            of its channel, and each member of a conference sends and receives, over one transport.

            The exit status is 1 when a client failed to connect, and with --expect-lossless when a packet was lost.
            """
    )

    @Option(help: ArgumentHelp("The server's URL.", valueName: "url"))
    var url = "http://127.0.0.1:8080"

    @Option(
        help: ArgumentHelp(
            "The signaling protocol: whip (WHIP and WHEP) or sora (Sora signaling over a WebSocket).",
            valueName: "protocol"
        )
    )
    fileprivate var signaling = SignalingName.whip

    @Option(help: ArgumentHelp("The WebSocket path of --signaling sora.", valueName: "path"))
    var signalingPath = "/signaling"

    @Option(
        help: ArgumentHelp(
            "Let a client whose session ends join again at this server of the cluster, and measure its return; may be "
                + "repeated; with --signaling sora only.",
            valueName: "url"
        )
    )
    var rejoin: [String] = []

    @Option(help: ArgumentHelp("The channel to publish to and to watch.", valueName: "name"))
    var channel = "load"

    @Option(
        help: ArgumentHelp(
            "Distribute the publishers over this many channels, NAME-1 to NAME-n; with --conference, one call in each.",
            valueName: "n"
        )
    )
    var channels = 1

    @Option(help: ArgumentHelp("The number of publishers. (default: 1)", valueName: "n"))
    var publishers: Int?

    @Option(
        help: ArgumentHelp(
            "The number of subscribers, distributed evenly over the publishers, or with --signaling sora over the "
                + "channels. (default: 1)",
            valueName: "n"
        )
    )
    var subscribers: Int?

    @Option(
        help: ArgumentHelp(
            "The number of members that each publish and watch all others, in place of publishers and subscribers.",
            valueName: "members"
        )
    )
    var conference: Int?

    @Option(help: ArgumentHelp("The video bit rate of each publisher; 0 for no video.", valueName: "kbit/s"))
    var videoKbps = 1_500

    @Option(help: ArgumentHelp("Video frames per second.", valueName: "n"))
    var fps = 30

    @Flag(help: "Publish and watch audio too.")
    var audio = false

    @Flag(help: "Publish three simulcast layers, each with half the bit rate of the one above; WHIP only.")
    var simulcast = false

    @Option(
        help: ArgumentHelp(
            "Give each subscriber a link of its own, as rate=1M,delay=50ms,queue=300ms, and report each; nagare impair "
                + "--help lists what a link takes. Seconds count from the subscriber's join.",
            valueName: "link"
        )
    )
    var viewerLink: String?

    @Option(help: ArgumentHelp("The link from each subscriber back to the server.", valueName: "link"))
    var viewerUplink: String?

    @Option(help: ArgumentHelp("The seed of the links' random decisions.", valueName: "n"))
    var linkSeed: UInt64 = 1

    @Option(help: ArgumentHelp("The length of the measured window; with --ramp, of each step's.", valueName: "seconds"))
    var duration = 30.0

    @Option(help: ArgumentHelp("The number of clients that join per second.", valueName: "n"))
    var joinRate = 20.0

    @Flag(help: "Let subscribers join in steps until the server or the load generator reaches its limit.")
    var ramp = false

    @Option(
        help: ArgumentHelp(
            "The number of subscribers that join in one step of the ramp. (default: a tenth of --subscribers)",
            valueName: "n"
        )
    )
    var rampStep: Int?

    @Option(help: ArgumentHelp("The maximum loss of a step of the ramp.", valueName: "percent"))
    var goalLoss = 0.1

    @Option(help: ArgumentHelp("The maximum p99 latency of a step of the ramp.", valueName: "ms"))
    var goalP99 = 50.0

    @Option(
        help: ArgumentHelp(
            "Offer this SRTP profile only: gcm (AEAD_AES_128_GCM), gcm256 (AEAD_AES_256_GCM) or cm "
                + "(AES128_CM_HMAC_SHA1_80). May be repeated, best first. (default: all three)",
            valueName: "profile"
        )
    )
    fileprivate var srtpProfile: [ProfileName] = []

    @Option(
        help: ArgumentHelp(
            "The SRTP backend of the clients: ipsec-mb, openssl or libsrtp2. (default: the first available)",
            valueName: "name"
        )
    )
    var srtpBackend: String?

    @Option(
        help: ArgumentHelp(
            "The number of client threads. (default: one for each 1000 clients)",
            valueName: "n"
        )
    )
    var loops: Int?

    @Option(
        help: ArgumentHelp(
            "Present this Bearer token; with --signaling sora, as access_token in the metadata.",
            valueName: "token"
        )
    )
    var token: String?

    @Option(
        help: ArgumentHelp(
            "The path to publish to, with {channel} and {publisher} (the publisher's number from 1) replaced.",
            valueName: "path"
        )
    )
    var whipPath = "/whip/{channel}"

    @Option(
        help: ArgumentHelp(
            "The path to watch, also with {participant} (the publisher's Nagare-Participant) replaced. "
                + "(default: /whep/{channel}, and with several publishers /whep/{channel}/{participant})",
            valueName: "path"
        )
    )
    var whepPath: String?

    @Option(
        help: ArgumentHelp(
            "The server's process ID on this machine, to measure its CPU time and memory.",
            valueName: "pid"
        )
    )
    var serverPID: Int?

    @Option(
        help: ArgumentHelp(
            "The server's Prometheus metrics, to measure its CPU time and memory and, for Nagare, its sent packets: "
                + "http://HOST:PORT/metrics.",
            valueName: "url"
        )
    )
    var metricsURL: String?

    @Option(
        name: .customLong("ca"),
        help: ArgumentHelp(
            "Trust the certificates in this file for URLs of https, PEM. (default: the system's)",
            valueName: "file"
        )
    )
    var authority: String?

    @Option(
        help: ArgumentHelp(
            "Write the report as JSON, schema nagare-load/1; - for standard output, without the table.",
            valueName: "file"
        )
    )
    var json: String?

    @Flag(help: "Exit with status 1 when a packet was lost.")
    var expectLossless = false

    /// The plan that the options describe.
    var loadConfiguration: LoadConfiguration {
        get throws {
            var configuration = LoadConfiguration()
            configuration.url = url
            configuration.rejoinURLs = rejoin
            configuration.signaling = signaling.signaling
            configuration.signalingPath = signalingPath
            configuration.channel = channel
            configuration.channels = channels
            configuration.publishers = publishers ?? 1
            configuration.subscribers = subscribers ?? 1
            if conference != nil, publishers != nil || subscribers != nil {
                throw CommandError.usage("--conference replaces --publishers and --subscribers: leave them out.")
            }
            configuration.conferenceMembers = conference
            configuration.videoBitsPerSecond = min(max(videoKbps, -1), 1_000_000) * 1_000
            configuration.framesPerSecond = fps
            configuration.sendsAudio = audio
            configuration.sendsSimulcast = simulcast
            configuration.viewerLink = try viewerLink.map { try ImpairCommand.conditions($0, "--viewer-link") }
            configuration.viewerUplink = try viewerUplink.map { try ImpairCommand.conditions($0, "--viewer-uplink") }
            configuration.linkSeed = linkSeed
            configuration.durationSeconds = duration
            configuration.joinRate = joinRate
            configuration.token = token
            configuration.serverPID = serverPID
            configuration.metricsURL = metricsURL
            configuration.certificateAuthorityPath = authority
            configuration.loops = loops
            configuration.srtpBackend = srtpBackend
            if !srtpProfile.isEmpty { configuration.srtpProfiles = srtpProfile.map(\.profile) }
            configuration.publishPath = whipPath
            if let whepPath {
                configuration.watchPath = whepPath
                configuration.watchParticipantPath = whepPath
            }
            if ramp {
                configuration.ramp = LoadConfiguration.Ramp(
                    step: rampStep ?? max(configuration.subscribers / 10, 1),
                    lossPercentMax: goalLoss,
                    p99MillisecondsMax: goalP99
                )
            } else if rampStep != nil {
                throw CommandError.usage("--ramp-step needs --ramp.")
            }
            return configuration
        }
    }

    package init() {}

    package func run() async throws {
        let configuration = try loadConfiguration
        do throws(LoadError) {
            try configuration.validate()
        } catch {
            throw CommandError(error)
        }
        try checkJSONFile()
        FileDescriptorLimit.raise()
        let signaling = WebSignaling(configuration)
        let outcome: Result<LoadReport, LoadError>
        do throws(LoadError) {
            outcome = .success(try await LoadRun.untilSignal(configuration, signaling))
        } catch {
            outcome = .failure(error)
        }
        await signaling.shutdown()
        let report: LoadReport
        do {
            report = try outcome.get()
        } catch {
            throw CommandError(error)
        }
        try show(report)
        try judge(report)
    }

    /// Checks before the run that the report can be written after it.
    private func checkJSONFile() throws {
        guard let json, json != "-" else { return }
        let descriptor = unsafe open(json, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw CommandError.system("\(json) cannot be written: \(ErrorText.words(errno)).")
        }
        close(descriptor)
    }

    private func show(_ report: LoadReport) throws {
        if json != "-" { FileHandle.standardOutput.write(Data(report.table.utf8)) }
        guard let json else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let text = try encoder.encode(report) + Data("\n".utf8)
        if json == "-" {
            FileHandle.standardOutput.write(text)
            return
        }
        do {
            try text.write(to: URL(fileURLWithPath: json))
        } catch {
            throw CommandError.system("\(json) cannot be written: \(error.localizedDescription)")
        }
    }

    private func judge(_ report: LoadReport) throws {
        if report.failedClients > 0 {
            let reason = report.failures.max { $0.value < $1.value }?.key ?? ""
            let clients = report.publishers + report.subscribers
            throw CommandError.system("\(report.failedClients) of \(clients) clients did not connect. \(reason)")
        }
        guard expectLossless, !report.isLossless else { return }
        throw CommandError.system("Something was lost, or a client left; see the report.")
    }
}

extension LoadRun {
    /// Runs until its end or the first SIGINT or SIGTERM, which ends it early and in order.
    fileprivate static func untilSignal(
        _ configuration: LoadConfiguration,
        _ signaling: WebSignaling
    ) async throws(LoadError) -> LoadReport {
        let run = try LoadRun(
            configuration,
            signaling: signaling,
            onProgress: { FileHandle.standardError.write(Data("\($0.line)\n".utf8)) },
            readMetrics: { (url) async throws(LoadError) -> String in try await signaling.metrics(at: url) }
        )
        let task = Task { () -> Result<LoadReport, LoadError> in
            do throws(LoadError) {
                return .success(try await run.run())
            } catch {
                return .failure(error)
            }
        }
        return try await task.valueUntilSignal().get()
    }
}

/// What `--signaling` takes.
private enum SignalingName: String, CaseIterable, ExpressibleByArgument {
    case whip, sora

    var signaling: LoadConfiguration.Signaling {
        switch self {
        case .whip: .whip
        case .sora: .sora
        }
    }
}

/// What `--srtp-profile` takes.
private enum ProfileName: String, CaseIterable, ExpressibleByArgument {
    case gcm, gcm256, cm

    var profile: SRTPProfile {
        switch self {
        case .gcm: .aeadAES128GCM
        case .gcm256: .aeadAES256GCM
        case .cm: .aes128CMHMACSHA1
        }
    }
}

extension CommandError {
    fileprivate init(_ error: LoadError) {
        switch error {
        case .usage(let message): self = .usage(message)
        case .failed(let message): self = .system(message)
        }
    }
}
