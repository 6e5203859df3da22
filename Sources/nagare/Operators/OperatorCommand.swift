import Access
import ArgumentParser
import Foundation
import JSON
import Operators
import ToolCommands
import Web

/// Why a command of operators failed.
struct OperatorFailure: Error, Equatable {
    let message: String
    let exitStatus: Int32

    init(_ failure: OperatorsClient.Failure) {
        message = failure.message
        exitStatus =
            switch failure.status {
            case nil, 503: 69  // EX_UNAVAILABLE
            case 401, 403: 77  // EX_NOPERM
            default: 1
            }
    }
}

/// The options of all commands that use the operators' API.
struct OperatorOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The admin address of the node.", valueName: "url"))
    var api = "http://127.0.0.1:3000"

    @Option(
        name: .customLong("api-ca"),
        help: ArgumentHelp(
            "Trust the certificates in this file for an admin address of https, PEM. (default: the system's)",
            valueName: "file"
        )
    )
    var authority: String?

    @Option(
        help: ArgumentHelp(
            "The node's admin-token or admin-read-token, or @ and its file. (default: NAGARE_ADMIN_TOKEN)",
            valueName: "@file"
        )
    )
    var adminToken: String?

    @Flag(help: "Print the answer as JSON.")
    var json = false

    func client(environment: [String: String]) throws(CommandError) -> OperatorsClient {
        var flags: [Setting: [String]] = [:]
        if let adminToken { flags[.adminToken] = [adminToken] }
        let reader = SettingReader(layers: [.commandLine(flags), .environment(environment)])
        let source: CheckedSecretSource<AdminToken>? = try reader.secret(.adminToken)
        let token = try source?.read().token.secret
        do throws(ServerStartError) {
            if let client = try OperatorsClient(url: api, token: token, authority: authority) { return client }
        } catch {
            throw .usage("--api-ca cannot be used: \(error.message)")
        }
        throw .usage("--api is \"\(api)\": write the node's admin address as http://HOST:PORT or https://HOST:PORT.")
    }
}

/// A command that uses the operators' API.
protocol OperatorCommand: AsyncParsableCommand, Sendable {
    typealias Send = @Sendable (OperatorsClient.Call) async throws -> JSONValue

    var options: OperatorOptions { get }

    /// Performs the command.
    /// - Returns: The answer for programs.
    func answer(_ send: Send) async throws -> JSONValue

    /// The answer as text for people, with a newline at the end of each line.
    func text(_ answer: JSONValue) -> String
}

extension OperatorCommand {
    mutating func run() async throws {
        let client = try options.client(environment: ProcessInfo.processInfo.environment)
        let command = self
        let result: Result<JSONValue, any Error>
        do {
            result = .success(try await command.answer { try await client.send($0) })
        } catch {
            result = .failure(error)
        }
        await client.shutdown()
        do {
            let answer = try result.get()
            let output = options.json ? "\(answer.text)\n" : text(answer)
            FileHandle.standardOutput.write(Data(output.utf8))
        } catch let failure as OperatorsClient.Failure {
            throw OperatorFailure(failure)
        }
    }

    /// All items of a list that comes in pages.
    func all(_ name: String, _ path: [String], _ send: Send) async throws -> JSONValue {
        var items: [JSONValue] = []
        var query = ["limit": "100"]
        while true {
            let page = try await send(OperatorsClient.Call(.get, path, query: query))
            items += page[name]?.array ?? []
            guard let next = page["next"]?.string, next != query["after"] else { break }
            query["after"] = next
        }
        return .object([name: .array(items)])
    }
}

/// A table of text.
enum TextTable {
    /// The widest column. A longer cell moves what follows in its own row only.
    private static let widthMax = 40

    /// - Parameter rows: the header first; each as long as the header.
    static func text(_ rows: [[String]]) -> String {
        let rows = rows.map { $0.map(\.printable) }
        let columns =
            rows.first?.indices.map { column in
                rows.map { width($0[column]) }.filter { $0 <= widthMax }.max() ?? 0
            } ?? []
        return rows.map { row in
            let cells = zip(row, columns).map { cell, width in
                cell + String(repeating: " ", count: max(width - Self.width(cell), 0))
            }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            return line + "\n"
        }
        .joined()
    }

    /// The columns of a terminal that a text takes: characters of East Asia and emoji take two.
    private static func width(_ text: String) -> Int {
        text.reduce(0) { sum, character in
            switch character.unicodeScalars.first?.value ?? 0 {
            case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
                0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
                sum + 2
            default: sum + 1
            }
        }
    }

    /// A name for people, shortened to the width of a column. What a command needs, such as an ID, is never shortened.
    static func name(_ text: String) -> String {
        guard width(text) > widthMax else { return text }
        var short = text
        while width(short) >= widthMax { short.removeLast() }
        return short + "…"
    }

    /// A time in seconds since 1970 as text.
    static func time(_ value: JSONValue?) -> String {
        guard let seconds = value?.integer else { return "never" }
        return Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
    }
}
