import ChannelTypes
import JSON
import MediaTypes
import Room
import RoomTestSupport
import Testing

/// Who an operation of the admin API reaches: those that it names, and nobody else.
@Suite(.timeLimit(.minutes(1))) struct OperationTargetTests {
    /// Members of two channels, with a client of the same name in both, and one that is not connected yet.
    private struct Scene {
        let bench = OperationBench()
        let members: [OperationBench.Member]

        init() async throws {
            members = [
                try await bench.join("lobby", .sendrecv, client: "anna"),
                try await bench.join("lobby", .recvonly, client: "anna"),
                try await bench.join("lobby", .sendonly, client: "bert"),
                try await bench.join("lobby", .recvonly),
                try await bench.join("lobby", .sendrecv, client: "carl", isConnected: false),
                try await bench.join("lounge", .sendrecv, client: "anna"),
                try await bench.join("lounge", .recvonly, client: "dora"),
            ]
        }
    }

    /// A target: the channel, what else is named, and the members that get it by their index.
    struct Push: Sendable, CustomTestStringConvertible {
        let operation: String
        var channel = "lobby"
        var role: String?
        var client: String?
        /// The index of the member whose connection or, for `PushClient`, whose identifier is named.
        var member: Int?
        var receivers: [Int] = []
        var error: String?

        var testDescription: String {
            "\(operation) in \(channel), \(role ?? "-"), \(client ?? "-"), \(member.map { "\($0)" } ?? "-")"
        }
    }

    static let pushes: [Push] = [
        Push(operation: "PushChannel", receivers: [0, 1, 2, 3]),
        Push(operation: "PushChannel", channel: "lounge", receivers: [5, 6]),
        Push(operation: "PushChannel", channel: "empty", error: "CHANNEL-NOT-FOUND"),
        Push(operation: "PushChannel", channel: "Lobby", error: "CHANNEL-NOT-FOUND"),
        Push(operation: "PushChannelByRole", role: "sendrecv", receivers: [0]),
        Push(operation: "PushChannelByRole", role: "sendonly", receivers: [2]),
        Push(operation: "PushChannelByRole", role: "recvonly", receivers: [1, 3]),
        Push(operation: "PushChannelByRole", channel: "lounge", role: "recvonly", receivers: [6]),
        Push(operation: "PushChannelByRole", channel: "lounge", role: "sendonly", receivers: []),
        Push(operation: "PushChannelByRole", role: "host", error: "INVALID-PARAMETER"),
        Push(operation: "PushChannelByRole", error: "INVALID-PARAMETER"),
        Push(operation: "PushChannelByRole", channel: "empty", role: "sendrecv", error: "CHANNEL-NOT-FOUND"),
        Push(operation: "PushClient", client: "anna", receivers: [0, 1]),
        Push(operation: "PushClient", channel: "lounge", client: "anna", receivers: [5]),
        Push(operation: "PushClient", client: "bert", receivers: [2]),
        // A client without a name has the identifier of its connection.
        Push(operation: "PushClient", member: 3, receivers: [3]),
        // It is there, and cannot be told anything yet.
        Push(operation: "PushClient", client: "carl"),
        Push(operation: "PushClient", client: "dora", error: "CLIENT-NOT-FOUND"),
        Push(operation: "PushClient", client: "Anna", error: "CLIENT-NOT-FOUND"),
        Push(operation: "PushClient", client: "", error: "CLIENT-NOT-FOUND"),
        Push(operation: "PushClient", error: "INVALID-PARAMETER"),
        Push(operation: "PushClient", channel: "empty", client: "anna", error: "CHANNEL-NOT-FOUND"),
        Push(operation: "PushConnection", member: 1, receivers: [1]),
        Push(operation: "PushConnection", channel: "lounge", member: 5, receivers: [5]),
        // Of another channel, not connected, or no connection at all.
        Push(operation: "PushConnection", member: 5, error: "CONNECTION-NOT-FOUND"),
        Push(operation: "PushConnection", channel: "lounge", member: 0, error: "CONNECTION-NOT-FOUND"),
        Push(operation: "PushConnection", channel: "empty", member: 0, error: "CHANNEL-NOT-FOUND"),
        Push(operation: "PushConnection", member: 4, error: "CONNECTION-NOT-FOUND"),
        Push(operation: "PushConnection", error: "INVALID-PARAMETER"),
    ]

    @Test(arguments: pushes)
    func `a push reaches those whom it names, and nobody else`(push: Push) async throws {
        let scene = try await Scene()
        var arguments: [String: JSONValue] = ["channel_id": .string(push.channel), "data": ["n": 7]]
        arguments["role"] = push.role.map { .string($0) }
        arguments["client_id"] = push.client.map { .string($0) }
        if let member = push.member {
            let field = push.operation == "PushClient" ? "client_id" : "connection_id"
            arguments[field] = scene.members[member].name
        }
        let answer = await scene.bench.perform(push.operation, arguments)
        #expect(answer.error == push.error)
        switch push.error {
        case nil: #expect(answer.status == 200)
        case "INVALID-PARAMETER": #expect(answer.status == 400)
        default: #expect(answer.status == 404)
        }
        let told = await scene.bench.pushes(to: scene.members)
        for (index, texts) in told.enumerated() {
            #expect(texts == (push.receivers.contains(index) ? [#"{"n":7}"#] : []), "member \(index)")
        }
    }

    @Test(arguments: ["PushChannel", "PushChannelByRole", "PushClient", "PushConnection"])
    func `a push without data reaches nobody, and data may be null`(operation: String) async throws {
        let scene = try await Scene()
        let target: [String: JSONValue] = [
            "channel_id": "lobby", "role": "sendrecv", "client_id": "anna", "connection_id": scene.members[0].name,
        ]
        let refused = await scene.bench.perform(operation, target)
        #expect(refused.status == 400 && refused.error == "INVALID-PARAMETER")
        let pushed = await scene.bench.perform(operation, target.merging(["data": .string("x")]) { $1 })
        #expect(pushed.status == 200)
        #expect(await scene.bench.pushes(to: [scene.members[0]]) == [[#""x""#]])
    }

    @Test func `a member that has left gets nothing, and one that comes later only what is pushed then`() async throws {
        let scene = try await Scene()
        let push: [String: JSONValue] = ["channel_id": "lobby", "client_id": "anna", "data": 1]
        #expect(await scene.bench.perform("PushClient", push).status == 200)
        await scene.bench.directory.end(scene.members[0].id, reason: .left)
        let late = try await scene.bench.join("lobby", .recvonly, client: "anna")
        #expect(await scene.bench.perform("PushClient", push.merging(["data": 2]) { $1 }).status == 200)
        let gone: [String: JSONValue] = ["channel_id": "lobby", "connection_id": scene.members[0].name, "data": 3]
        #expect(await scene.bench.perform("PushConnection", gone).error == "CONNECTION-NOT-FOUND")
        let told = await scene.bench.pushes(to: [scene.members[0], scene.members[1], late])
        #expect(told == [["1"], ["1", "2"], ["2"]])
    }

    // MARK: Key frames

    @Test func `a key frame is requested of the connection that is named, once`() async throws {
        let scene = try await Scene()
        for index in [2, 0, 5] {
            let channel: JSONValue = index == 5 ? "lounge" : "lobby"
            let target: [String: JSONValue] = ["channel_id": channel, "connection_id": scene.members[index].name]
            #expect(await scene.bench.perform("RequestKeyFrame", target).status == 200)
        }
        await scene.bench.directory.settle()
        let requested = await scene.bench.plane.keyFrameRequests
        #expect(requested.count == 3 && Set(requested) == Set([2, 0, 5].map { scene.members[$0].peer }))
    }

    @Test func `no key frame is requested of a connection that is not in the channel`() async throws {
        let scene = try await Scene()
        await scene.bench.directory.end(scene.members[2].id, reason: .left)
        let targets: [(String, JSONValue, status: Int, String)] = [
            ("lobby", scene.members[5].name, 404, "CONNECTION-NOT-FOUND"),
            ("lounge", scene.members[0].name, 404, "CONNECTION-NOT-FOUND"),
            ("empty", scene.members[0].name, 404, "CONNECTION-NOT-FOUND"),
            ("lobby", scene.members[2].name, 404, "CONNECTION-NOT-FOUND"),
            ("lobby", "0123456789ABCDEFGHJKMNPQRS", 404, "CONNECTION-NOT-FOUND"),
            ("lobby", "anna", 404, "CONNECTION-NOT-FOUND"), ("lobby", "", 404, "CONNECTION-NOT-FOUND"),
            ("lobby", 5, 400, "INVALID-PARAMETER"),
        ]
        for (channel, connection, status, error) in targets {
            let target: [String: JSONValue] = ["channel_id": .string(channel), "connection_id": connection]
            let answer = await scene.bench.perform("RequestKeyFrame", target)
            #expect(answer.status == status && answer.error == error, "\(channel) \(connection)")
        }
        #expect(await scene.bench.plane.keyFrameRequests == [])
    }
}
