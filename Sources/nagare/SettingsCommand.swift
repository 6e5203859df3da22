import ArgumentParser

/// `nagare settings`: lists every setting.
struct SettingsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settings",
        abstract: "List the settings of nagare serve, as a configuration file in which all are commented out."
    )

    @Flag(help: "List them as the rows of a table in Markdown instead.")
    var markdown = false

    func run() {
        print(
            markdown ? SettingDocuments.table.joined(separator: "\n") + "\n" : SettingDocuments.exampleFile,
            terminator: ""
        )
    }
}
