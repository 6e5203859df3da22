import ArgumentParser
import JSON
import Operators

/// `nagare channels`: lists the channels of a node.
struct ChannelsCommand: OperatorCommand {
    static let configuration = CommandConfiguration(commandName: "channels", abstract: "List the channels of a node.")

    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue { try await all("channels", ["channels"], send) }

    func text(_ answer: JSONValue) -> String {
        let channels = answer["channels"]?.array ?? []
        return TextTable.text(
            [["CHANNEL", "MEMBERS", "CONNECTIONS", "PUBLISHERS", "SINCE"]]
                + channels.map { channel in
                    [
                        channel["channel"]?.string ?? "", "\(channel["members"]?.integer ?? 0)",
                        "\(channel["connections"]?.integer ?? 0)", "\(channel["publishers"]?.integer ?? 0)",
                        TextTable.time(channel["created_at"]),
                    ]
                }
        )
    }
}

/// `nagare members`: lists the members of a channel.
struct MembersCommand: OperatorCommand {
    static let configuration = CommandConfiguration(commandName: "members", abstract: "List the members of a channel.")

    @Argument(help: "The channel.") var channel: String
    @Flag(help: "List only connections with a bad network, or that are interrupted.") var bad = false
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        try await all("members", ["channels", channel, "members"], send)
    }

    /// The worst connections first, those of the same quality as the node lists them.
    func text(_ answer: JSONValue) -> String {
        let connections = (answer["members"]?.array ?? []).flatMap { member in
            (member["connections"]?.array ?? []).map { ListedConnection(member: member, connection: $0) }
        }
        let listed = connections.enumerated()
            .filter { !bad || $0.element.isBad }
            .sorted { ($1.element.badness, $0.offset) < ($0.element.badness, $1.offset) }
        return TextTable.text(
            [["USER", "NAME", "ROLE", "STATE", "QUALITY", "PUBLISHES", "MUTED", "PROTOCOL", "CONNECTION", "SINCE"]]
                + listed.map(\.element.row)
        )
    }
}

/// A connection in the list of members.
private struct ListedConnection {
    let member: JSONValue
    let connection: JSONValue

    /// From the level on that the field calls bad.
    private static let badFrom = 4
    private static let levels = ["unknown", "excellent", "good", "poor", "bad", "very bad", "disconnected"]

    private func level(_ direction: String) -> Int {
        let level = connection["network"]?[direction]?.integer.flatMap { Int(exactly: $0) } ?? 0
        return Self.levels.indices.contains(level) ? level : 0
    }

    private var isInterrupted: Bool { connection["state"]?.string == "interrupted" }

    var badness: Int { isInterrupted ? Self.levels.count : max(level("uplink"), level("downlink")) }
    var isBad: Bool { badness >= Self.badFrom }

    private var quality: String {
        let (up, down) = (level("uplink"), level("downlink"))
        return up == down ? Self.levels[up] : "\(Self.levels[up]) up, \(Self.levels[down]) down"
    }

    var row: [String] {
        let kinds = ["audio", "video"].filter { connection[$0]?.bool == true }
        let muted = connection["muted"]?.array?.compactMap(\.string) ?? []
        return [
            member["user_id"]?.string ?? "", TextTable.name(member["display_name"]?.string ?? "-"),
            connection["role"]?.string == "recvonly" ? "audience" : "host", connection["state"]?.string ?? "", quality,
            kinds.isEmpty ? "-" : kinds.joined(separator: "+"), muted.isEmpty ? "-" : muted.joined(separator: "+"),
            connection["signaling"]?.string ?? "", connection["connection_id"]?.string ?? "",
            TextTable.time(connection["created_at"]),
        ]
    }
}

/// `nagare kick`: removes users from a channel.
struct KickCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "kick",
        abstract: "Remove users from a channel. They may join again."
    )

    @Argument(help: "The channel.") var channel: String
    @Argument(help: "The users' IDs, up to 30.") var users: [String]
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        let body: JSONValue = ["users": .array(users.map { .string($0) })]
        let answer = try await send(OperatorsClient.Call(.post, ["channels", channel, "kick"], body: body))
        let results = answer["results"]?.array ?? []
        // A script must see that nobody was kicked.
        guard results.contains(where: { $0["code"]?.integer == 0 }) else {
            throw OperatorsClient.Failure(
                status: 404,
                "None of these users is in the channel; nagare members lists its members."
            )
        }
        return answer
    }

    func text(_ answer: JSONValue) -> String {
        let results = answer["results"]?.array ?? []
        return TextTable.text(
            [["USER", "RESULT", "CONNECTIONS ENDED"]]
                + results.map { result in
                    [
                        result["user_id"]?.string ?? "", result["code"]?.integer == 0 ? "kicked" : "not in the channel",
                        "\(result["ended"]?.integer ?? 0)",
                    ]
                }
        )
    }
}

/// `nagare terminate`: closes a channel.
struct TerminateCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "terminate",
        abstract: "End all connections of a channel. Its name can be used again."
    )

    @Argument(help: "The channel.") var channel: String
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        try await send(OperatorsClient.Call(.delete, ["channels", channel]))
    }

    func text(_ answer: JSONValue) -> String { "connections ended: \(answer["ended"]?.integer ?? 0)\n" }
}
