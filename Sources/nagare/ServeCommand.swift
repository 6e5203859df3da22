import ArgumentParser
import Foundation
import ToolCommands

/// `nagare serve`: runs a node until SIGTERM or SIGINT.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run a node.",
        discussion: """
            Every option is also a key of the configuration file, as "tls-cert: PATH", and an environment variable, as \
            NAGARE_TLS_CERT=PATH. The command line overrides the environment, and the environment overrides the file.
            """
    )

    @Option(name: .customLong(Setting.fileFlag), help: ArgumentHelp(Setting.fileHelp, valueName: "file"))
    var config: String?

    @OptionGroup(title: SettingDeclaration.Group.development.title)
    var development: SettingOptions<0>

    @OptionGroup(title: SettingDeclaration.Group.http.title)
    var http: SettingOptions<1>

    @OptionGroup(title: SettingDeclaration.Group.media.title)
    var media: SettingOptions<2>

    @OptionGroup(title: SettingDeclaration.Group.access.title)
    var access: SettingOptions<3>

    @OptionGroup(title: SettingDeclaration.Group.sora.title)
    var sora: SettingOptions<4>

    @OptionGroup(title: SettingDeclaration.Group.admin.title)
    var admin: SettingOptions<5>

    @OptionGroup(title: SettingDeclaration.Group.operation.title)
    var operation: SettingOptions<6>

    @OptionGroup(title: SettingDeclaration.Group.cluster.title)
    var cluster: SettingOptions<7>

    /// The settings that were given as flags, each with its values.
    var flags: [Setting: [String]] {
        let groups = [
            development.values, http.values, media.values, access.values, sora.values, admin.values, operation.values,
            cluster.values,
        ]
        return groups.reduce(into: [:]) { flags, group in flags.merge(group) { $1 } }
    }

    /// The command line, `environment` and the file that either of them names.
    func source(environment: [String: String], machine: Machine) -> SettingSource {
        let variable = environment[Setting.fileVariable].flatMap { $0.isEmpty ? nil : $0 }
        return SettingSource(flags: flags, environment: environment, path: config ?? variable, machine: machine)
    }

    func run() async throws {
        let source = source(environment: ProcessInfo.processInfo.environment, machine: .current)
        try await Node(try source.read(), rereading: source).run()
    }
}

/// Where the settings of a node come from. The file is read at each ``read()``.
struct SettingSource: Sendable {
    let flags: [Setting: [String]]
    let environment: [String: String]
    /// Of the configuration file; `nil` without one.
    let path: String?
    /// As it was when the node started.
    let machine: Machine

    /// - Throws: the first invalid setting.
    func read() throws(CommandError) -> LoadedSettings {
        var layers = [ConfigurationLayer.commandLine(flags), .environment(environment)]
        if let path { layers.append(try .file(path: path, contents: try SmallFile.contents(path))) }
        let configuration = try NodeConfiguration.resolve(
            layers,
            machine: machine,
            unknownVariables: NodeConfiguration.unknownVariables(environment)
        )
        return LoadedSettings(configuration: configuration, reader: SettingReader(layers: layers))
    }
}
