import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import Room
import Testing

@testable import Operators
@testable import Signaling
@testable import Sora
@testable import Web

/// The operations on the subscriptions of members.
@Suite struct MemberSubscriptionTests {
    private static let path = "/v1/channels/lobby/members/alice/subscriptions"

    /// The JSON of tracks that are each written as a kind and a source.
    private static func tracks(_ texts: String...) -> JSONValue {
        .array(
            texts.map { text -> JSONValue in
                let parts = text.split(separator: " ").map { JSONValue.string(String($0)) }
                return ["kind": parts[0], "source": parts[1]]
            }
        )
    }

    private static let all = tracks("audio camera", "audio screen", "video camera", "video screen")

    @Test func `an operator reads and changes what a member is subscribed to`() async throws {
        try await OperatorsBench.run { bench in
            #expect(try bench.problem(await bench.send(.get, Self.path)) == .channelUnknown)
            _ = try await bench.publish(as: "bob")
            #expect(try bench.problem(await bench.send(.get, Self.path)) == .memberUnknown)
            let body: JSONValue = ["subscribed": false, "user_id": "bob", "kind": "video"]
            #expect(try bench.problem(await bench.send(.post, Self.path, body)) == .memberUnknown)
            let token = try await bench.token(of: "alice")
            let session = try OpenSession(await bench.clients.post("/whep/lobby", Offers.watch, token: token))
            let before = try await bench.call(.get, Self.path)
            let id = JSONValue.string(session.participant)
            #expect(before == ["connections": [["connection_id": id, "tracks": Self.all, "users": []]]])

            #expect(try await bench.call(.post, Self.path, body) == ["changed": 1])
            #expect(try await bench.call(.post, Self.path, body) == ["changed": 0])
            let after = try await bench.call(.get, Self.path)["connections"]?.array?.first
            let entry: JSONValue = ["user_id": "bob", "tracks": Self.tracks("audio camera", "audio screen")]
            #expect(after?["tracks"] == Self.all && after?["users"] == [entry])

            let screens: JSONValue = ["subscribed": false, "source": "screen"]
            #expect(try await bench.call(.post, Self.path, screens) == ["changed": 1])
            let rest = try await bench.call(.get, Self.path)["connections"]?.array?.first
            #expect(rest?["tracks"] == Self.tracks("audio camera", "video camera"))
            #expect(rest?["users"]?.array?.first?["tracks"] == Self.tracks("audio camera"))
            // A user who only publishes is subscribed to nothing.
            let publisher = "/v1/channels/lobby/members/bob/subscriptions"
            #expect(try await bench.call(.get, publisher) == ["connections": []])
            #expect(try await bench.call(.post, publisher, screens) == ["changed": 0])
        }
    }

    @Test func `the users of a member's subscriptions come in pages`() async throws {
        try await OperatorsBench.run { bench in
            let token = try await bench.token(of: "alice")
            for _ in 0..<2 {
                let answer = try await bench.clients.post("/whep/lobby", Offers.watch, token: token)
                #expect(answer.status == .created)
            }
            for user in ["c", "a", "b", "d"] {
                let body: JSONValue = ["subscribed": false, "user_id": .string(user)]
                #expect(try await bench.call(.post, Self.path, body) == ["changed": 2])
            }
            var pages: [[[String]]] = []
            var next: String? = ""
            while let after = next, pages.count < 9 {
                let query = "?limit=3" + (after.isEmpty ? "" : "&after=\(after)")
                let page = try await bench.call(.get, Self.path + query)
                let connections = page["connections"]?.array ?? []
                pages.append(connections.map { $0["users"]?.array?.compactMap { $0["user_id"]?.string } ?? [] })
                next = page["next"]?.string
            }
            // A page has as many entries as fit, and all entries of a user.
            #expect(pages == [[["a", "b"], ["a", "b"]], [["c", "d"], ["c", "d"]]])
        }
    }

    @Test(
        arguments: [
            nil, [:], ["subscribed": 1], ["subscribed": true, "user_id": ""], ["subscribed": true, "user_id": 7],
            ["subscribed": true, "kind": "smell"], ["subscribed": true, "source": "window"],
            ["subscribed": true, "user": "bob"],
            ["subscribed": true, "user_id": .string(String(repeating: "a", count: 256))],
        ] as [JSONValue?]
    )
    func `a change of subscriptions that is none is refused`(body: JSONValue?) async throws {
        try await OperatorsBench.run { bench in
            let answer = try await bench.send(.post, Self.path, body)
            #expect(try bench.problem(answer) == .invalidRequest)
        }
    }

    @Test func `a member with subscriptions for too many users gets no more`() async throws {
        try await OperatorsBench.run { bench in
            let token = try await bench.token(of: "alice")
            let answer = try await bench.clients.post("/whep/lobby", Offers.watch, token: token)
            #expect(answer.status == .created)
            let lobby = try #require(ChannelName("lobby"))
            for number in 0..<1_024 {
                let selection = SubscriptionSelection(user: "user\(number)")
                let command = ChannelCommand.subscribe(false, to: selection, receiver: .user("alice"))
                try await bench.bench.directory.perform(command, in: lobby, by: .operator)
            }
            let body: JSONValue = ["subscribed": false, "user_id": "bob"]
            #expect(try bench.problem(await bench.send(.post, Self.path, body)) == .subscriptionsFull)
            #expect(try await bench.call(.post, Self.path, ["subscribed": true]) == ["changed": 1])
            #expect(try await bench.call(.post, Self.path, body) == ["changed": 1])
        }
    }
}
