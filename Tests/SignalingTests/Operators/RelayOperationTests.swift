import ChannelTypes
import HTTPTypes
import JSON
import Room
import Synchronization
import Testing

@testable import Ayame
@testable import Operators
@testable import Signaling
@testable import Sora
@testable import Web
@testable import Webhooks

/// What operators do about registrations of the 1:1 relay.
@Suite(.timeLimit(.minutes(10))) struct RelayOperationTests {
    /// A client's messages and the reasons of its closes.
    private final class Seen: Sendable {
        private let texts = Mutex<[String]>([])
        var all: [String] { texts.withLock { $0 } }
        func add(_ text: String) { texts.withLock { $0.append(text) } }
    }

    private static func register(_ user: String, in bench: OperatorsBench) async throws -> Seen {
        let seen = Seen()
        let member = AyameRooms.Member(
            connectionID: ParticipantID.random().value,
            identity: nil,
            isStandalone: false,
            user: user,
            app: "live",
            registeredAt: 7,
            origin: .here { notice in
                switch notice {
                case .accepted: break
                case .text(let text): seen.add(text)
                case .ended(let close): seen.add(close.close.reason)
                }
            }
        )
        let room = try #require(ChannelName("call"))
        #expect(await bench.bench.relayCalls.join(room, member) == .joined(.direct))
        return seen
    }

    @Test func `rooms of the relay are listed`() async throws {
        try await OperatorsBench.run { bench in
            #expect(try await bench.call(.get, "/v1/relay") == ["rooms": []])
            #expect(try bench.problem(await bench.send(.get, "/v1/relay/call")) == .channelUnknown)
            _ = try await Self.register("alice", in: bench)
            _ = try await Self.register("bob", in: bench)
            let room = try await bench.call(.get, "/v1/relay/call")
            #expect(room["room"] == "call" && room["media"] == "direct" && room["app"] == "live")
            let registrations = room["registrations"]?.array ?? []
            #expect(registrations.map { $0["user_id"]?.string } == ["alice", "bob"])
            #expect(registrations.first?["created_at"] == 7 && registrations.first?["standalone"] == false)
            #expect(try await bench.call(.get, "/v1/relay") == ["rooms": [room]])
            #expect(try await bench.call(.get, "/v1/channels") == ["channels": []])
        }
    }

    @Test func `a kick ends the call of a user, whose media the node does not see`() async throws {
        try await OperatorsBench.run { bench in
            let (alice, bob) = (try await Self.register("alice", in: bench), try await Self.register("bob", in: bench))
            let path = "/v1/channels/call/members/carol/kick"
            #expect(try bench.problem(await bench.send(.post, path)) == .memberUnknown)
            #expect(try await bench.call(.post, "/v1/channels/call/members/alice/kick") == ["ended": 1])
            #expect(alice.all == [AyameServerMessage.bye, "KICKED"] && bob.all == [AyameServerMessage.bye, "BYE"])
            #expect(try bench.problem(await bench.send(.post, path)) == .channelUnknown)
            _ = try await Self.register("alice", in: bench)
            let results = try await bench.call(.post, "/v1/channels/call/kick", ["users": ["alice", "eve"]])["results"]
            #expect(results?.array?.map { $0["ended"]?.integer } == [1, 0])
        }
    }

    @Test func `a room at another node is found, and its registrations end`() async throws {
        let nodes = RelayNodes(open: ["a", "b"])
        let other = nodes.add("a")
        try await OperatorsBench.run(relayCluster: nodes.cluster(of: "b")) { bench in
            nodes.set(bench.bench.relayCalls, at: "b")
            #expect(try bench.problem(await bench.send(.get, "/v1/relay/call")) == .channelUnknown)
            let clients = ["alice", "bob"].map { RelayClient($0) }
            for client in clients { #expect(try await client.join(other) == .joined(.direct)) }
            let users = try await bench.call(.get, "/v1/relay/call")["registrations"]?.array?.map { $0["user_id"] }
            #expect(users == ["alice", "bob"])
            #expect(try await bench.call(.get, "/v1/relay") == ["rooms": []], "those of the node")
            let path = "/v1/channels/call/members/carol/kick"
            #expect(try bench.problem(await bench.send(.post, path)) == .memberUnknown)
            let results = try await bench.call(.post, "/v1/channels/call/kick", ["users": ["bob", "eve"]])["results"]
            #expect(results?.array?.map { $0["ended"]?.integer } == [1, 0])
            #expect(try await clients[1].awaits(3).last == "close KICKED")
            #expect(try await clients[0].awaits(3).last == "close BYE")
            for client in clients {
                client.forget()
                #expect(try await client.join(other) == .joined(.direct))
            }
            #expect(try await bench.call(.delete, "/v1/channels/call") == ["ended": 2])
            for client in clients { #expect(try await client.awaits(3).last == "close CHANNEL-TERMINATED") }
            #expect(try bench.problem(await bench.send(.delete, "/v1/channels/call")) == .channelUnknown)
        }
    }

    @Test func `the end of a channel ends the relay's room of the same name`() async throws {
        try await OperatorsBench.run { bench in
            let (alice, bob) = (try await Self.register("alice", in: bench), try await Self.register("bob", in: bench))
            #expect(try await bench.call(.delete, "/v1/channels/call") == ["ended": 2])
            for client in [alice, bob] { #expect(client.all == [AyameServerMessage.bye, "CHANNEL-TERMINATED"]) }
            #expect(try bench.problem(await bench.send(.delete, "/v1/channels/call")) == .channelUnknown)
        }
    }
}
