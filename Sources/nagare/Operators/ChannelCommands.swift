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
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        try await all("members", ["channels", channel, "members"], send)
    }

    func text(_ answer: JSONValue) -> String {
        var rows = [["USER", "NAME", "ROLE", "STATE", "PUBLISHES", "NETWORK", "PROTOCOL", "CONNECTION", "SINCE"]]
        for member in answer["members"]?.array ?? [] {
            for connection in member["connections"]?.array ?? [] {
                let kinds = ["audio", "video"].filter { connection[$0]?.bool == true }
                rows.append([
                    member["user_id"]?.string ?? "", member["display_name"]?.string ?? "-",
                    connection["role"]?.string ?? "",
                    connection["state"]?.string ?? "", kinds.isEmpty ? "-" : kinds.joined(separator: "+"),
                    "\(connection["network"]?["uplink"]?.integer ?? 0)/\(connection["network"]?["downlink"]?.integer ?? 0)",
                    connection["signaling"]?.string ?? "", connection["connection_id"]?.string ?? "",
                    TextTable.time(connection["created_at"]),
                ])
            }
        }
        return TextTable.text(rows)
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
