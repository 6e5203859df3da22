import ArgumentParser
import Dispatch
import Foundation
import Load

/// `nagare load`: publishes and watches through a server, and measures what arrives.
struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Measure a server with synthetic publishers and subscribers.",
        discussion: """
            Speaks WHIP and WHEP with any server; ICE, DTLS and SRTP are real, the pictures are not. Every packet is \
            stamped, so that loss, duplicates, order and latency are measured from end to end. Publishers join first. \
            The measured window begins when everybody is connected. The exit status is 1 when a client failed to \
            connect, and with --expect-lossless when anything was lost.
            """
    )

    @Option(help: ArgumentHelp("The server.", valueName: "url"))
    var url = "http://127.0.0.1:8080"

    @Option(help: ArgumentHelp("The channel to publish to and to watch.", valueName: "name"))
    var channel = "load"

    @Option(help: ArgumentHelp("How many clients publish.", valueName: "n"))
    var publishers = 1

    @Option(
        help: ArgumentHelp("How many clients watch. With several publishers they share them evenly.", valueName: "n")
    )
    var subscribers = 1

    @Option(help: ArgumentHelp("Each publisher's video in kbit/s; 0 for none.", valueName: "kbit/s"))
    var videoKbps = 1_500

    @Option(help: ArgumentHelp("Video frames per second.", valueName: "n"))
    var fps = 30

    @Flag(help: "Publish and watch audio too.")
    var audio = false

    @Option(help: ArgumentHelp("The length of the measured window.", valueName: "seconds"))
    var duration = 30.0

    @Option(help: ArgumentHelp("How many clients join per second.", valueName: "n"))
    var joinRate = 20.0

    @Option(
        help: ArgumentHelp(
            "Let subscribers join in steps of N, and measure each step for SECONDS.",
            valueName: "n:seconds"
        )
    )
    var ramp: String?

    @Option(help: ArgumentHelp("Present this Bearer token.", valueName: "token"))
    var token: String?

    @Option(
        help: ArgumentHelp(
            "Where to publish, under the URL; {channel} and {publisher}, a number from 1, are filled in.",
            valueName: "path"
        )
    )
    var whipPath = "/whip/{channel}"

    @Option(
        help: ArgumentHelp(
            "Where to watch, under the URL; {participant}, the publisher's Nagare-Participant, too. "
                + "(default: /whep/{channel}, and with several publishers /whep/{channel}/{participant})",
            valueName: "path"
        )
    )
    var whepPath: String?

    @Option(help: ArgumentHelp("The server's process on this machine, to measure its CPU time.", valueName: "pid"))
    var serverPID: Int?

    @Option(
        help: ArgumentHelp("Write the report as JSON; - for standard output, without the table.", valueName: "file")
    )
    var json: String?

    @Flag(help: "Exit with status 1 when anything was lost.")
    var expectLossless = false

    /// What the command line asks for.
    var loadConfiguration: LoadConfiguration {
        get throws {
            var configuration = LoadConfiguration()
            configuration.url = url
            configuration.channel = channel
            configuration.publishers = publishers
            configuration.subscribers = subscribers
            configuration.videoBitsPerSecond = min(max(videoKbps, -1), 1_000_000) * 1_000
            configuration.framesPerSecond = fps
            configuration.sendsAudio = audio
            configuration.durationSeconds = duration
            configuration.joinRate = joinRate
            configuration.token = token
            configuration.serverPID = serverPID
            configuration.publishPath = whipPath
            if let whepPath {
                configuration.watchPath = whepPath
                configuration.watchParticipantPath = whepPath
            }
            if let ramp {
                let parts = ramp.split(separator: ":", omittingEmptySubsequences: false)
                guard parts.count == 2, let count = Int(parts[0]), let seconds = Double(parts[1]) else {
                    throw StartupError.usage("--ramp takes N:SECONDS, like 50:10, not \(ramp).")
                }
                configuration.ramp = LoadConfiguration.Ramp(subscribers: count, seconds: seconds)
            }
            return configuration
        }
    }

    func run() async throws {
        let configuration = try loadConfiguration
        do throws(LoadError) {
            try configuration.validate()
        } catch {
            throw StartupError(error)
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
            throw StartupError(error)
        }
        try show(report)
        try judge(report)
    }

    /// Finds out before the run whether its report could be written after it.
    private func checkJSONFile() throws {
        guard let json, json != "-" else { return }
        let descriptor = unsafe open(json, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw StartupError.system("\(json) cannot be written: \(ErrorText.words(errno)).")
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
            throw StartupError.system("\(json) cannot be written: \(error.localizedDescription)")
        }
    }

    private func judge(_ report: LoadReport) throws {
        if report.failedClients > 0 {
            let reason = report.failures.max { $0.value < $1.value }?.key ?? ""
            let clients = report.publishers + report.subscribers
            throw StartupError.system("\(report.failedClients) of \(clients) clients did not connect. \(reason)")
        }
        guard expectLossless, !report.isLossless else { return }
        throw StartupError.system("Something was lost, or a client left; see the report.")
    }
}

extension LoadRun {
    /// Runs until its end or the first SIGINT or SIGTERM, which ends it early and in order. A second one ends the process.
    fileprivate static func untilSignal(
        _ configuration: LoadConfiguration,
        _ signaling: WebSignaling
    ) async throws(LoadError) -> LoadReport {
        let run = try LoadRun(configuration, signaling: signaling) { progress in
            FileHandle.standardError.write(Data("\(progress.line)\n".utf8))
        }
        let task = Task { () -> Result<LoadReport, LoadError> in
            do throws(LoadError) {
                return .success(try await run.run())
            } catch {
                return .failure(error)
            }
        }
        let sources = [SIGINT, SIGTERM].map { number in
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler {
                if task.isCancelled { _exit(128 + number) }
                task.cancel()
            }
            source.activate()
            return source
        }
        defer { for source in sources { source.cancel() } }
        return try await task.value.get()
    }
}

extension StartupError {
    fileprivate init(_ error: LoadError) {
        switch error {
        case .usage(let sentence): self = .usage(sentence)
        case .failed(let sentence): self = .system(sentence)
        }
    }
}
