import ArgumentParser
import JSON
import Operators

/// `nagare drain`: drains a node, which can be taken back, or shows how far the drain is.
struct DrainCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain",
        abstract: "Drain a node: it takes no new clients, and tells those that are left at the deadline to leave.",
        discussion: """
            The node refuses new channels at once, and all newcomers after the admission time. It stays, and nagare undrain \
            takes the drain back. A second nagare drain sets other times.
            """
    )

    @OptionGroup var options: OperatorOptions

    @Option(help: ArgumentHelp("How long clients may stay. (default: 600)", valueName: "seconds"))
    var deadline: Int?

    @Option(
        help: ArgumentHelp(
            "How long newcomers may join channels that have members. (default: 10)",
            valueName: "seconds"
        )
    )
    var admit: Int?

    @Flag(help: "Change nothing; only show how far the drain is.")
    var show = false

    func answer(_ send: Send) async throws -> JSONValue {
        guard !show else { return try await send(OperatorsClient.Call(.get, ["drain"])) }
        var body: [String: JSONValue] = [:]
        body["deadline_seconds"] = deadline.map { .integer($0) }
        body["admit_seconds"] = admit.map { .integer($0) }
        return try await send(OperatorsClient.Call(.put, ["drain"], body: .object(body)))
    }

    func text(_ answer: JSONValue) -> String { DrainText.text(answer) }
}

/// `nagare undrain`: takes the drain of a node back.
struct UndrainCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "undrain",
        abstract: "Take the drain of a node back: it admits newcomers again."
    )

    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        try await send(OperatorsClient.Call(.delete, ["drain"]))
    }

    func text(_ answer: JSONValue) -> String { DrainText.text(answer) }
}

private enum DrainText {
    static func text(_ answer: JSONValue) -> String {
        let clients = answer["clients"]?.integer ?? 0
        let noun = clients == 1 ? "client" : "clients"
        let state = answer["state"]?.string ?? "?"
        guard let remaining = answer["remaining_seconds"]?.integer, let phase = answer["phase"]?.string else {
            return "\(state): \(clients) \(noun)\n"
        }
        let refused =
            switch phase {
            case "new_channels": "new channels are refused"
            case "newcomers": "newcomers are refused"
            default: "the clients were told to leave"
            }
        return "\(state): \(clients) \(noun), \(remaining) s until the deadline; \(refused)\n"
    }
}
