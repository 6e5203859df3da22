import ArgumentParser
import JSON
import Operators

/// `nagare role`: makes a user host or audience.
struct RoleCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "role",
        abstract: "Make a user of an interactive channel host, or audience until an operator makes it host."
    )

    enum Role: String, ExpressibleByArgument, CaseIterable, Sendable {
        case host, audience
    }

    @Argument(help: "The channel.") var channel: String
    @Argument(help: "The user's ID.") var user: String
    @Argument(help: "host or audience.") var role: Role
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        let body: JSONValue = ["role": .string(role.rawValue)]
        return try await send(OperatorsClient.Call(.post, ["channels", channel, "members", user, "role"], body: body))
    }

    func text(_ answer: JSONValue) -> String { "\(role.rawValue), \(TextTable.changed(answer))" }
}

/// `nagare mute`: stops the forwarding of a user's media.
struct MuteCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "mute",
        abstract: "Stop the forwarding of a user's media, which the user cannot undo, or start it again."
    )

    enum Kind: String, ExpressibleByArgument, CaseIterable, Sendable {
        case audio, video
    }

    @Argument(help: "The channel.") var channel: String
    @Argument(help: "The user's ID.") var user: String
    @Option(help: ArgumentHelp("Only audio or only video. (default: both)", valueName: "kind")) var kind: Kind?
    @Flag(help: "Unmute the user.") var off = false
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        var body: [String: JSONValue] = ["muted": .bool(!off)]
        body["kind"] = kind.map { .string($0.rawValue) }
        let path = ["channels", channel, "members", user, "mute"]
        return try await send(OperatorsClient.Call(.post, path, body: .object(body)))
    }

    func text(_ answer: JSONValue) -> String { "\(off ? "unmuted" : "muted"), \(TextTable.changed(answer))" }
}

extension TextTable {
    /// How many connections an operation changed.
    static func changed(_ answer: JSONValue) -> String {
        "connections changed: \(answer["changed"]?.integer ?? 0)\n"
    }
}
