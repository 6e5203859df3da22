import ArgumentParser
import JSON
import Operators

/// `nagare subscriptions`: the tracks that a user receives.
struct SubscriptionsCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriptions",
        abstract: "List the tracks that the connections of a user are subscribed to."
    )

    @Argument(help: "The channel.") var channel: String
    @Argument(help: "The user's ID.") var user: String
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        var (ids, connections, users) = ([String](), [String: JSONValue](), [String: [JSONValue]]())
        var query = ["limit": "100"]
        while true {
            let path = ["channels", channel, "members", user, "subscriptions"]
            let page = try await send(OperatorsClient.Call(.get, path, query: query))
            for connection in page["connections"]?.array ?? [] {
                guard let id = connection["connection_id"]?.string else { continue }
                if connections.updateValue(connection, forKey: id) == nil { ids.append(id) }
                users[id, default: []] += connection["users"]?.array ?? []
            }
            guard let next = page["next"]?.string, next != query["after"] else { break }
            query["after"] = next
        }
        let merged = ids.map { id -> JSONValue in
            var connection = connections[id]?.object ?? [:]
            connection["users"] = .array(users[id] ?? [])
            return .object(connection)
        }
        return .object(["connections": .array(merged)])
    }

    func text(_ answer: JSONValue) -> String {
        let rows = (answer["connections"]?.array ?? []).flatMap { connection -> [[String]] in
            let id = connection["connection_id"]?.string ?? ""
            let users = connection["users"]?.array ?? []
            let own = users.map { [id, $0["user_id"]?.string ?? "", Self.tracks($0)] }
            return own + [[id, users.isEmpty ? "(all)" : "(others)", Self.tracks(connection)]]
        }
        return TextTable.text([["CONNECTION", "OF", "TRACKS"]] + rows)
    }

    private static func tracks(_ value: JSONValue) -> String {
        let tracks = (value["tracks"]?.array ?? []).map { track in
            "\(track["source"]?.string ?? "") \(track["kind"]?.string ?? "")"
        }
        return tracks.isEmpty ? "none" : tracks.joined(separator: ", ")
    }
}

/// `nagare subscribe`: changes the tracks that a user receives.
struct SubscribeCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscribe",
        abstract: "Subscribe the connections of a user to tracks of others, or unsubscribe them."
    )

    enum Source: String, ExpressibleByArgument, CaseIterable, Sendable {
        case camera, screen
    }

    @Argument(help: "The channel.") var channel: String
    @Argument(help: "The ID of the user who receives.") var user: String
    @Option(help: ArgumentHelp("Only tracks of this user. (default: of all users)", valueName: "user"))
    var to: String?
    @Option(help: ArgumentHelp("Only audio or only video. (default: both)", valueName: "kind"))
    var kind: MuteCommand.Kind?
    @Option(help: ArgumentHelp("Only of cameras or only of screens. (default: both)", valueName: "source"))
    var source: Source?
    @Flag(help: "Unsubscribe the user.") var off = false
    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        var body: [String: JSONValue] = ["subscribed": .bool(!off)]
        body["user_id"] = to.map { .string($0) }
        body["kind"] = kind.map { .string($0.rawValue) }
        body["source"] = source.map { .string($0.rawValue) }
        let path = ["channels", channel, "members", user, "subscriptions"]
        return try await send(OperatorsClient.Call(.post, path, body: .object(body)))
    }

    func text(_ answer: JSONValue) -> String {
        "\(off ? "unsubscribed" : "subscribed"), \(TextTable.changed(answer))"
    }
}
