import Ayame
import ChannelTypes
import HTTPTypes
import JSON
import Room

// Channels: lists, termination.

extension OperatorsAPI {
    private static let channelSchema = APISchema.object([
        APIProperty("channel", .string(1...255), required: true, "The channel's name."),
        APIProperty("session_id", .string(26...26), required: true, "Changes when the last member has left."),
        APIProperty("created_at", .integer(0...secondsMax), required: true, "When it began, in seconds since 1970."),
        APIProperty("members", .integer(0...countMax), required: true, "The number of users, with interrupted ones."),
        APIProperty("connections", .integer(0...countMax), required: true, "Connections, with interrupted ones."),
        APIProperty("publishers", .integer(0...countMax), required: true, "The connections that may publish."),
        APIProperty(
            "app",
            .string(1...64),
            "The app whose tokens admit to it; none without a member with such a token."
        ),
    ])
    /// The bounds of numbers in answers.
    static let countMax: Int64 = 1_000_000
    static let secondsMax: Int64 = 1 << 52

    static let channelOperations = [
        APIOperation(
            id: "listChannels",
            method: .get,
            path: APIOperation.path("/v1/channels"),
            summary: "The channels that have members, by name.",
            query: Page<Never>.query,
            answer: .object([
                APIProperty(
                    "channels",
                    .array(channelSchema, 0...Page<Never>.countMax, isUnique: false),
                    required: true,
                    "A page."
                ),
                Page<Never>.next,
            ])
        ) { try await $0.listChannels($1) },
        APIOperation(
            id: "getChannel",
            method: .get,
            path: APIOperation.path("/v1/channels/{channel}"),
            summary: "One channel.",
            answer: channelSchema,
            problems: [.channelUnknown]
        ) { try await $0.getChannel($1) },
        APIOperation(
            id: "terminateChannel",
            method: .delete,
            path: APIOperation.path("/v1/channels/{channel}"),
            summary: "Ends all connections of a channel. Its name can be used again.",
            answer: endedSchema,
            problems: [.channelUnknown]
        ) { try await $0.terminateChannel($1) },
    ]

    /// The answer of operations that end connections.
    static let endedSchema = APISchema.object([endedProperty])
    static let endedProperty = APIProperty(
        "ended",
        .integer(0...countMax),
        required: true,
        "The number of connections that ended."
    )

    private func listChannels(_ call: APICall) async throws -> JSONValue {
        let sessions = await directory.channelSessions.map { (name: $0.channel.value, session: $0) }
            .sorted { APIOrder.precedes($0.name, $1.name) }
        let page = Page(sessions, call) { $0.name }
        var channels: [JSONValue] = []
        for (_, session) in page.items { channels.append(await describe(session)) }
        var answer: [String: JSONValue] = ["channels": .array(channels)]
        answer["next"] = page.next.map { .string($0) }
        return .object(answer)
    }

    private func getChannel(_ call: APICall) async throws -> JSONValue {
        guard let session = await directory.channelSession(of: try call.channel()) else { throw Problem.channelUnknown }
        return await describe(session)
    }

    private func describe(_ session: ChannelSession) async -> JSONValue {
        let connections = await directory.places(in: session.channel)
        var answer: [String: JSONValue] = [
            "channel": .string(session.channel.value), "session_id": .string(session.id.value),
            "created_at": .integer(session.createdAt / 1_000_000_000),
            "members": .integer(Set(connections.map(\.member.clientID)).count),
            "connections": .integer(connections.count),
            "publishers": .integer(connections.count { $0.member.role.publishes }),
        ]
        answer["app"] = await directory.app(of: session.channel).map { .string($0) }
        return .object(answer)
    }

    private func terminateChannel(_ call: APICall) async throws -> JSONValue {
        let channel = try call.channel()
        // It may be at another node, which is told to end it.
        let room = await relayCalls.listing(of: channel)
        let ended = await directory.terminate(channel).map(\.value)
        let count = Set(ended).union(room?.registrations.map(\.connectionID) ?? []).count
        guard count > 0 else { throw Problem.channelUnknown }
        return ["ended": .integer(count)]
    }
}
