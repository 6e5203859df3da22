import ArgumentParser
import JSON
import Operators

/// `nagare reload`: lets a node read its settings again.
struct ReloadCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Let a node read its configuration file, certificates and keys again, without a restart.",
        discussion: """
            Certificates, tokens, keys, limits on participants and channels, webhooks and the log level are in force at once, \
            for whom comes from then on. Other settings that have changed are listed: they need a restart. An unusable \
            setting or file changes nothing.
            """
    )

    @OptionGroup var options: OperatorOptions

    func answer(_ send: Send) async throws -> JSONValue {
        try await send(OperatorsClient.Call(.post, ["reload"]))
    }

    func text(_ answer: JSONValue) -> String {
        let names = { (member: String) in (answer[member]?.array ?? []).compactMap(\.string).joined(separator: ", ") }
        let (changed, left) = (names("changed"), names("needs_restart"))
        var text = changed.isEmpty ? "nothing has changed that can be reloaded\n" : "in force now: \(changed)\n"
        if !left.isEmpty { text += "in force after a restart: \(left)\n" }
        return text
    }
}
