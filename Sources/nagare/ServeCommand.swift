import ArgumentParser
import Foundation

/// `nagare serve`: runs a node until it is told to stop.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run a node.",
        discussion: """
            Every option can also be written in the configuration file, as "tls-cert: PATH", or in the environment, as \
            NAGARE_TLS_CERT=PATH. The command line wins over the environment, and the environment over the file.
            """
    )

    @Flag(
        inversion: .prefixedNo,
        help: "Loopback only, no authentication, nothing to configure."
    )
    var dev: Bool?

    @Option(help: ArgumentHelp("Read settings from this YAML file.", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp("Where to serve the page, WHIP and WHEP. (default: 0.0.0.0:8080)", valueName: "host:port")
    )
    var http: String?

    @Option(
        help: ArgumentHelp(
            "Where to take media, UDP; loop i takes port + i. May be repeated, for IPv4 and IPv6. (default: 0.0.0.0:7000)",
            valueName: "host:port"
        )
    )
    var media: [String] = []

    @Option(help: ArgumentHelp("An address that clients reach the media ports by. May be repeated.", valueName: "ip"))
    var announce: [String] = []

    @Option(
        help: ArgumentHelp(
            "Where to serve /metrics, /healthz and /readyz. (default: 127.0.0.1:3000)",
            valueName: "host:port"
        )
    )
    var admin: String?

    @Option(help: ArgumentHelp("How many media loops. (default: one a core)", valueName: "n"))
    var loops: String?

    @Option(help: ArgumentHelp("How many control loops, which run channels. (default: 1)", valueName: "n"))
    var controlLoops: String?

    @Option(
        help: ArgumentHelp(
            "What encrypts media: auto, libsrtp2, openssl or ipsec-mb. (default: auto, the fastest that there is)",
            valueName: "name"
        )
    )
    var srtpBackend: String?

    @Option(
        help: ArgumentHelp(
            "Hand datagrams to one client to the kernel together (UDP GSO). (default: on)",
            valueName: "on|off"
        )
    )
    var udpGso: String?

    @Option(
        help: ArgumentHelp(
            "Take datagrams of one client from the kernel together (UDP GRO). (default: on)",
            valueName: "on|off"
        )
    )
    var udpGro: String?

    @Option(help: ArgumentHelp("Serve HTTPS with this certificate chain, PEM.", valueName: "file"))
    var tlsCert: String?

    @Option(help: ArgumentHelp("The private key of the certificate, PEM.", valueName: "file"))
    var tlsKey: String?

    @Option(
        help: ArgumentHelp(
            "A reverse proxy in front, as an address or a range: what it says of its clients' addresses is believed. May be "
                + "repeated.",
            valueName: "ip[/bits]"
        )
    )
    var trustedProxy: [String] = []

    @Option(
        help: ArgumentHelp(
            "How it says them: x-forwarded-for or proxy-protocol. (default: x-forwarded-for)",
            valueName: "name"
        )
    )
    var proxyHeader: String?

    @Option(
        help: ArgumentHelp(
            "Let in only who presents this Bearer token. Other users of the machine can read it here: prefer "
                + "NAGARE_TOKEN or the file.",
            valueName: "token"
        )
    )
    var token: String?

    @OptionGroup(title: "WHO MAY, AND WHO IS TOLD")
    var access: AccessOptions

    @OptionGroup(title: "SORA'S CLIENTS")
    var sora: SoraOptions

    @Option(
        help: ArgumentHelp(
            "Change a limit on what clients may use: nagare limits lists them. May be repeated.",
            valueName: "name=value"
        )
    )
    var limit: [String] = []

    @Option(
        help: ArgumentHelp(
            "trace, debug, info, notice, warning, error or critical. (default: info)",
            valueName: "level"
        )
    )
    var logLevel: String?

    @Option(help: ArgumentHelp("How long a shutdown may take. (default: 10)", valueName: "seconds"))
    var grace: String?

    /// The flags that were given, each with its values.
    var flags: [Setting: [String]] {
        let single: [(Setting, String?)] = [
            (.dev, dev.map { String($0) }), (.http, http), (.admin, admin), (.loops, loops),
            (.controlLoops, controlLoops),
            (.srtpBackend, srtpBackend), (.udpGSO, udpGso), (.udpGRO, udpGro), (.tlsCertificate, tlsCert),
            (.tlsKey, tlsKey), (.proxyHeader, proxyHeader), (.token, token), (.logLevel, logLevel), (.grace, grace),
        ]
        var flags: [Setting: [String]] = [
            .media: media, .announce: announce, .trustedProxy: trustedProxy, .limit: limit,
        ]
        for (setting, value) in single + access.single + sora.single { flags[setting] = value.map { [$0] } }
        for (setting, values) in access.lists + sora.lists { flags[setting] = values }
        return flags.filter { !$0.value.isEmpty }
    }

    /// The configuration that the command line, `environment` and the file that one of them names give together.
    func nodeConfiguration(
        environment: [String: String],
        machine: Machine
    ) throws(StartupError) -> NodeConfiguration {
        var layers = [ConfigurationLayer.commandLine(flags), .environment(environment)]
        let variable = environment[Setting.fileVariable].flatMap { $0.isEmpty ? nil : $0 }
        if let path = config ?? variable {
            layers.append(try .file(path: path, contents: try SmallFile.contents(path)))
        }
        return try NodeConfiguration.resolve(
            layers,
            machine: machine,
            unknownVariables: NodeConfiguration.unknownVariables(environment)
        )
    }

    func run() async throws {
        let configuration = try nodeConfiguration(
            environment: ProcessInfo.processInfo.environment,
            machine: .current
        )
        try await Node(configuration).run()
    }
}
