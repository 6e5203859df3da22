import ArgumentParser
import JSON
import Operators
import ToolCommands

/// `nagare ban`: keeps a user out of a channel.
struct BanCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "ban",
        abstract: "Keep a user out of a channel, or list the bans of a channel."
    )

    @Argument(help: "The channel.") var channel: String
    @Argument(help: "The user's ID; without it, list the bans.") var user: String?
    @Option(name: .customLong("for"), help: BlockTime.help) var time: String?
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        let path = ["channels", channel, "bans"]
        guard let user else { return try await all("bans", path, send) }
        return try await send(OperatorsClient.Call(.put, path + [user], body: try BlockTime.body(time)))
    }

    func text(_ answer: JSONValue) -> String {
        guard let bans = answer["bans"]?.array else { return BlockTime.text(answer) }
        return TextTable.text(
            [["USER", "UNTIL"]] + bans.map { [$0["user_id"]?.string ?? "", TextTable.time($0["until"])] }
        )
    }
}

/// `nagare unban`: lifts a ban.
struct UnbanCommand: OperatorCommand {
    static let configuration = CommandConfiguration(commandName: "unban", abstract: "Lift a user's ban from a channel.")

    @Argument(help: "The channel.") var channel: String
    @Argument(help: "The user's ID.") var user: String
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        try await send(OperatorsClient.Call(.delete, ["channels", channel, "bans", user]))
    }

    func text(_ answer: JSONValue) -> String { "lifted\n" }
}

/// What `nagare block` blocks.
enum BlockedKind: String, ExpressibleByArgument, CaseIterable, Sendable {
    case streams, users
}

/// `nagare block`: keeps a user out of all channels, or publishers out of one.
struct BlockCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "block",
        abstract: "Keep a user out of all channels, or all publishers out of a channel, or list what is blocked."
    )

    @Argument(help: "streams or users.") var kind: BlockedKind
    @Argument(help: "The channel of the stream, or the user's ID; without it, list what is blocked.") var name: String?
    @Option(name: .customLong("for"), help: BlockTime.help) var time: String?
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        let path = ["blocks", kind.rawValue]
        guard let name else { return try await all("blocks", path, send) }
        return try await send(OperatorsClient.Call(.put, path + [name], body: try BlockTime.body(time)))
    }

    func text(_ answer: JSONValue) -> String {
        guard let blocks = answer["blocks"]?.array else { return BlockTime.text(answer) }
        return TextTable.text(
            [["NAME", "UNTIL"]] + blocks.map { [$0["name"]?.string ?? "", TextTable.time($0["until"])] }
        )
    }
}

/// `nagare unblock`: lifts a block.
struct UnblockCommand: OperatorCommand {
    static let configuration = CommandConfiguration(commandName: "unblock", abstract: "Lift a block.")

    @Argument(help: "streams or users.") var kind: BlockedKind
    @Argument(help: "The channel of the stream, or the user's ID.") var name: String
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        try await send(OperatorsClient.Call(.delete, ["blocks", kind.rawValue, name]))
    }

    func text(_ answer: JSONValue) -> String { "lifted\n" }
}

/// How long a ban or block lasts.
enum BlockTime {
    static let help = ArgumentHelp(
        "How long it lasts: a number with s, m, h or d. (default: until it is lifted)",
        valueName: "time"
    )

    /// - Parameter text: `90s`, `15m`, `12h` or `30d`; `nil` for without an end.
    static func body(_ text: String?) throws(CommandError) -> JSONValue {
        guard let text else { return [:] }
        return ["seconds": .integer(try TokenCommand.seconds(text, "--for"))]
    }

    static func text(_ answer: JSONValue) -> String {
        "until: \(TextTable.time(answer["until"])), connections ended: \(answer["ended"]?.integer ?? 0)\n"
    }
}
