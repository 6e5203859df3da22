import ArgumentParser

/// `nagare limits`: lists what the setting `limit` changes.
struct LimitsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limits",
        abstract: "List the limits on what clients may use of a node, with their defaults.",
        discussion: """
            nagare serve --limit NAME=VALUE changes one. The configuration file has a list, limit: [NAME=VALUE].
            """
    )

    func run() { print(Limit.list) }
}
