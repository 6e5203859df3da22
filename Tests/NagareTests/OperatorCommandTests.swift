import ArgumentParser
import JSON
import Operators
import Synchronization
import Testing
import ToolCommands

@testable import nagare

@Suite struct OperatorCommandTests {
    /// Answers with the given values in turn, and keeps the calls.
    private final class Answers: Sendable {
        private let state: Mutex<(calls: [OperatorsClient.Call], answers: [JSONValue])>
        init(_ answers: [JSONValue]) { state = Mutex(([], answers)) }
        var calls: [OperatorsClient.Call] { state.withLock { $0.calls } }
        func send(_ call: OperatorsClient.Call) -> JSONValue {
            state.withLock { state in
                state.calls.append(call)
                return state.answers.isEmpty ? .null : state.answers.removeFirst()
            }
        }
    }

    private func run(_ arguments: [String], _ answers: Answers) async throws -> String {
        let command = try #require(try NagareCommand.parseAsRoot(arguments) as? any OperatorCommand)
        let answer = try await command.answer { answers.send($0) }
        return command.text(answer)
    }

    @Test(arguments: [
        (
            ["kick", "a b", "x", "y"],
            OperatorsClient.Call(.post, ["channels", "a b", "kick"], body: ["users": ["x", "y"]])
        ),
        (["ban", "c", "x"], OperatorsClient.Call(.put, ["channels", "c", "bans", "x"], body: [:])),
        (
            ["ban", "c", "x", "--for", "15m"],
            OperatorsClient.Call(.put, ["channels", "c", "bans", "x"], body: ["seconds": 900])
        ),
        (["ban", "c"], OperatorsClient.Call(.get, ["channels", "c", "bans"], query: ["limit": "100"])),
        (["unban", "c", "x"], OperatorsClient.Call(.delete, ["channels", "c", "bans", "x"])),
        (["block", "users", "x"], OperatorsClient.Call(.put, ["blocks", "users", "x"], body: [:])),
        (["block", "streams"], OperatorsClient.Call(.get, ["blocks", "streams"], query: ["limit": "100"])),
        (["unblock", "streams", "c"], OperatorsClient.Call(.delete, ["blocks", "streams", "c"])),
        (
            ["role", "c", "x", "audience"],
            OperatorsClient.Call(.post, ["channels", "c", "members", "x", "role"], body: ["role": "audience"])
        ),
        (
            ["mute", "c", "x"],
            OperatorsClient.Call(.post, ["channels", "c", "members", "x", "mute"], body: ["muted": true])
        ),
        (
            ["mute", "c", "x", "--kind", "video", "--off"],
            OperatorsClient.Call(
                .post,
                ["channels", "c", "members", "x", "mute"],
                body: ["muted": false, "kind": "video"]
            )
        ),
        (
            ["subscribe", "c", "x"],
            OperatorsClient.Call(.post, ["channels", "c", "members", "x", "subscriptions"], body: ["subscribed": true])
        ),
        (
            ["subscribe", "c", "x", "--to", "y", "--kind", "audio", "--source", "screen", "--off"],
            OperatorsClient.Call(
                .post,
                ["channels", "c", "members", "x", "subscriptions"],
                body: ["subscribed": false, "user_id": "y", "kind": "audio", "source": "screen"]
            )
        ),
        (["terminate", "c"], OperatorsClient.Call(.delete, ["channels", "c"])),
        (["drain"], OperatorsClient.Call(.put, ["drain"], body: [:])),
        (
            ["drain", "--deadline", "60", "--admit", "0"],
            OperatorsClient.Call(.put, ["drain"], body: ["deadline_seconds": 60, "admit_seconds": 0])
        ),
        (["drain", "--show"], OperatorsClient.Call(.get, ["drain"])),
        (["reload"], OperatorsClient.Call(.post, ["reload"])), (["undrain"], OperatorsClient.Call(.delete, ["drain"])),
        (["relay"], OperatorsClient.Call(.get, ["relay"], query: ["limit": "100"])),
        (["members", "c"], OperatorsClient.Call(.get, ["channels", "c", "members"], query: ["limit": "100"])),
    ])
    func `a command makes one call`(arguments: [String], call: OperatorsClient.Call) async throws {
        let answers = Answers([["results": [["user_id": "x", "code": 0, "ended": 1]]]])
        _ = try await run(arguments, answers)
        #expect(answers.calls == [call])
    }

    @Test(
        arguments: [
            (["changed": [], "needs_restart": []], "nothing has changed that can be reloaded\n"),
            (
                ["changed": ["token", "limit channels"], "needs_restart": ["http"]],
                "in force now: token, limit channels\nin force after a restart: http\n"
            ),
        ] as [(JSONValue, String)]
    )
    func `a reload tells what is in force now, and what needs a restart`(answer: JSONValue, text: String) async throws {
        #expect(try await run(["reload"], Answers([answer])) == text)
    }

    @Test func `all pages of a list make one table`() async throws {
        let answers = Answers([
            ["channels": [["channel": "a", "members": 10, "created_at": 0]], "next": "a"],
            ["channels": [["channel": "long\u{1B}", "connections": 2]]],
        ])
        let text = try await run(["channels"], answers)
        #expect(answers.calls.map { $0.query["after"] } == [nil, "a"])
        let lines = text.split(separator: "\n")
        #expect(lines.count == 3 && !text.contains("\u{1B}"))
        #expect(lines[0].hasPrefix("CHANNEL") && lines[1].hasSuffix("1970-01-01T00:00:00Z"))
        let heading = try #require(lines[0].firstRange(of: "MEMBERS"))
        let column = lines[0].distance(from: lines[0].startIndex, to: heading.lowerBound)
        #expect(lines[1].dropFirst(column).hasPrefix("10"), "columns are aligned")
    }

    @Test func `the table of members has the state of each connection`() async throws {
        let connections: JSONValue = [
            ["connection_id": "c1", "role": "sendrecv", "state": "interrupted"],
            ["connection_id": "c2", "role": "recvonly", "state": "connected"],
        ]
        let answers = Answers([["members": [["user_id": "x", "connections": connections]]]])
        let lines = try await run(["members", "c"], answers).split(separator: "\n")
        #expect(lines.count == 3 && lines[0].contains("STATE"))
        #expect(lines[1].contains("interrupted") && lines[2].contains("connected"))
    }

    @Test func `the worst connections come first, with what people call their role and quality`() async throws {
        func connection(_ id: String, _ role: String, _ up: Int, _ down: Int, state: String = "connected") -> JSONValue
        {
            [
                "connection_id": .string(id), "role": .string(role), "state": .string(state), "muted": ["audio"],
                "network": ["uplink": .integer(up), "downlink": .integer(down)],
            ]
        }
        let members: JSONValue = [
            ["user_id": "good", "connections": [connection("c1", "sendrecv", 1, 2)]],
            ["user_id": "bad", "connections": [connection("c2", "recvonly", 0, 4)]],
            ["user_id": "lost", "connections": [connection("c3", "sendonly", 1, 1, state: "interrupted")]],
        ]
        let all = try await run(["members", "c"], Answers([["members": members]])).split(separator: "\n")
        #expect(all.dropFirst().map { String($0.prefix { $0 != " " }) } == ["lost", "bad", "good"])
        #expect(all[2].contains("audience") && all[2].contains("unknown up, bad down") && all[3].contains("host"))
        #expect(all.dropFirst().allSatisfy { $0.contains("audio") })
        let bad = try await run(["members", "c", "--bad"], Answers([["members": members]])).split(separator: "\n")
        #expect(bad.count == 3 && !bad.contains { $0.hasPrefix("good") })
    }

    @Test func `a name of 128 characters breaks no table`() async throws {
        let long = String(repeating: "名", count: 128)
        let connections: JSONValue = [["connection_id": "c1", "role": "sendrecv", "state": "connected"]]
        let members: JSONValue = [
            ["user_id": "a", "display_name": .string(long), "connections": connections],
            ["user_id": "b", "display_name": "B", "connections": connections],
            ["user_id": .string(String(repeating: "x", count: 128)), "connections": connections],
        ]
        let lines = try await run(["members", "c"], Answers([["members": members]])).split(separator: "\n")
        #expect(lines.count == 4 && lines[1].contains("名…") && lines[3].contains(String(repeating: "x", count: 128)))
        let column = try #require(lines[0].firstRange(of: "ROLE")).lowerBound
        let offset = lines[0].distance(from: lines[0].startIndex, to: column)
        #expect(lines[2].dropFirst(offset).hasPrefix("host"))
        #expect(offset <= 60, "neither the name nor the ID widens its column for all")
        let wide = lines[1].prefix { $0 != "h" }
        #expect(wide.count + wide.count { $0 == "名" } == offset, "a wide character takes two columns")
    }

    @Test func `the pages of subscriptions make one table with a row for each user`() async throws {
        let camera: JSONValue = [["kind": "audio", "source": "camera"], ["kind": "video", "source": "camera"]]
        let page = { (user: String) -> JSONValue in
            [["connection_id": "c1", "tracks": camera, "users": [["user_id": .string(user), "tracks": []]]]]
        }
        let answers = Answers([["connections": page("x"), "next": "x"], ["connections": page("y")]])
        let lines = try await run(["subscriptions", "c", "u"], answers).split(separator: "\n")
        #expect(answers.calls.map { $0.query["after"] } == [nil, "x"])
        #expect(
            lines.map { $0.split(separator: " ").map(String.init) }.dropFirst() == [
                ["c1", "x", "none"], ["c1", "y", "none"], ["c1", "(others)", "camera", "audio,", "camera", "video"],
            ]
        )
    }

    @Test func `a kick of nobody fails`() async throws {
        let answers = Answers([["results": [["user_id": "x", "code": 1, "ended": 0]]]])
        await #expect(throws: OperatorsClient.Failure.self) { try await run(["kick", "c", "x"], answers) }
    }

    @Test(arguments: [(nil, 69), (503, 69), (401, 77), (403, 77), (404, 1), (500, 1)] as [(Int?, Int32)])
    func `the exit status tells failures apart`(status: Int?, exitStatus: Int32) {
        let failure = OperatorFailure(OperatorsClient.Failure(status: status, "It failed."))
        #expect(failure.exitStatus == exitStatus && failure.message == "It failed.")
    }

    @Test(arguments: ["localhost:3000", "ftp://localhost", "http://", "http://localhost/v1", ""])
    func `an address that is none of a node is refused`(url: String) throws {
        var options = try OperatorOptions.parse([])
        options.api = url
        #expect(throws: CommandError.self) { try options.client(environment: [:]) }
    }

    @Test func `authorities that cannot be read are refused with their file`() throws {
        let options = try OperatorOptions.parse(["--api", "https://localhost:3000", "--api-ca", "/nowhere/ca.pem"])
        let error = #expect(throws: CommandError.self) { try options.client(environment: [:]) }
        #expect(
            error?.message.hasPrefix("--api-ca cannot be used: The certificates for the node's API, /nowhere/ca.pem")
                == true
        )
    }

    @Test(arguments: ["short", "0123456789abcdef with spaces", "@/nowhere/to/be/found"])
    func `an unusable token of operators is refused`(token: String) throws {
        let options = try OperatorOptions.parse([])
        #expect(throws: CommandError.self) { try options.client(environment: ["NAGARE_ADMIN_TOKEN": token]) }
    }

    @Test func `the progress of a drain is told in one line`() async throws {
        let answers = Answers([
            [
                "state": "draining", "clients": 1, "phase": "newcomers", "elapsed_seconds": 3, "remaining_seconds": 57,
                "shuts_down": false,
            ],
            ["state": "ready", "clients": 2],
        ])
        #expect(
            try await run(["drain"], answers)
                == "draining: 1 client, 57 s until the deadline; newcomers are refused\n"
        )
        #expect(try await run(["undrain"], answers) == "ready: 2 clients\n")
    }
}
