import ArgumentParser
import JSON
import Signaling

/// `nagare relay`: lists the rooms of the 1:1 relay at a node.
struct CallsCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "relay",
        abstract: "List the rooms of the 1:1 relay. End them by kick, ban, block or terminate."
    )

    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue { try await all("rooms", ["relay"], send) }

    func text(_ answer: JSONValue) -> String {
        var rows = [["ROOM", "MEDIA", "USER", "CONNECTION", "SINCE"]]
        for room in answer["rooms"]?.array ?? [] {
            for registration in room["registrations"]?.array ?? [] {
                rows.append([
                    room["room"]?.string ?? "", room["media"]?.string ?? "", registration["user_id"]?.string ?? "",
                    registration["connection_id"]?.string ?? "", TextTable.time(registration["created_at"]),
                ])
            }
        }
        return TextTable.text(rows)
    }
}
