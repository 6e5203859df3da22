import Access
import Ayame
import Base
import ChannelTypes
import HTTPTypes
import JSON
import MediaTypes
import Room
import Web
import Wire

// Members of a channel: lists and kicks. A member is a user with all its connections.

extension OperatorsAPI {
    /// The most users of one kick.
    static let kickedUsersMax = 30

    private static let connectionSchema = APISchema.object([
        APIProperty("connection_id", .string(26...26), required: true, "The connection's ID."),
        APIProperty(
            "bundle_id",
            .string(0...255),
            required: true,
            "The connections of one bundle do not receive each other."
        ),
        APIProperty("role", .choice(Role.allCases.map(\.rawValue)), required: true, "What it may send and receive."),
        APIProperty(
            "signaling",
            .choice(ClientAgent.Signaling.allCases.map(\.rawValue)),
            required: true,
            "The protocol by which it joined."
        ),
        APIProperty(
            "node",
            .string(0...255),
            required: true,
            "The name of the node that has it; empty for one that has just left the cluster."
        ),
        APIProperty("created_at", .integer(0...secondsMax), required: true, "When it joined, in seconds since 1970."),
        APIProperty("connected", .boolean, required: true, "Whether its media transport is up."),
        APIProperty(
            "state",
            .choice(Connection.State.allCases.map(\.rawValue)),
            required: true,
            "What it is doing; interrupted for a lost connection whose place is kept."
        ),
        APIProperty(
            "place_ends_at",
            .integer(0...secondsMax),
            "When the place of an interrupted connection ends unless it is back, in seconds since 1970."
        ),
        APIProperty("audio", .boolean, required: true, "Whether it publishes audio."),
        APIProperty("video", .boolean, required: true, "Whether it publishes video."),
        APIProperty(
            "muted",
            .array(.choice(MediaKind.allCases.map(\.rawValue)), 0...MediaKind.allCases.count, isUnique: true),
            required: true,
            "The kinds that it or an operator muted."
        ),
        APIProperty(
            "network",
            .object([
                APIProperty("uplink", qualitySchema, required: true, "Of what it sends."),
                APIProperty("downlink", qualitySchema, required: true, "Of what it is sent."),
            ]),
            required: true,
            "The quality of its network: 1 for excellent to 6 for disconnected, 0 for unknown."
        ),
    ])
    private static let qualitySchema = APISchema.integer(0...Int64(LinkQuality.Level.disconnected.rawValue))
    private static let memberSchema = APISchema.object([
        APIProperty("user_id", .string(0...255), required: true, "The user's ID: the client ID of its connections."),
        APIProperty("display_name", .string(0...1_024), "A name for people."),
        APIProperty(
            "connections",
            .array(connectionSchema, 1...Int(countMax), isUnique: false),
            required: true,
            "In the order of joining."
        ),
    ])

    static let memberOperations = [
        APIOperation(
            id: "listMembers",
            method: .get,
            path: APIOperation.path("/v1/channels/{channel}/members"),
            summary: "The members of a channel, by user ID.",
            query: Page<Never>.query,
            answer: .object([
                APIProperty(
                    "members",
                    .array(memberSchema, 0...Page<Never>.countMax, isUnique: false),
                    required: true,
                    "A page."
                ),
                Page<Never>.next,
            ]),
            problems: [.channelUnknown]
        ) { try await $0.listMembers($1) },
        APIOperation(
            id: "getMember",
            method: .get,
            path: APIOperation.path("/v1/channels/{channel}/members/{user}"),
            summary: "One member of a channel.",
            answer: memberSchema,
            problems: [.channelUnknown, .memberUnknown]
        ) { try await $0.getMember($1) },
        APIOperation(
            id: "kickMember",
            method: .post,
            path: APIOperation.path("/v1/channels/{channel}/members/{user}/kick"),
            summary: "Ends all connections of a user in a channel. It may join again.",
            answer: endedSchema,
            problems: [.channelUnknown, .memberUnknown]
        ) { try await $0.kickMember($1) },
        roleOperation,
        muteOperation,
        APIOperation(
            id: "kickMembers",
            method: .post,
            path: APIOperation.path("/v1/channels/{channel}/kick"),
            summary: "Kicks several users, with one result each.",
            body: .object([
                APIProperty(
                    "users",
                    .array(.string(1...255), 1...kickedUsersMax, isUnique: true),
                    required: true,
                    "The IDs of the users."
                )
            ]),
            isBodyRequired: true,
            answer: .object([
                APIProperty(
                    "results",
                    .array(
                        .object([
                            APIProperty("user_id", .string(1...255), required: true, "The user's ID."),
                            endedProperty,
                            APIProperty("code", .integer(0...Int64(UInt32.max)), required: true, "0 for success."),
                            APIProperty(
                                "message",
                                .choice(["Success", "Failed"]),
                                required: true,
                                "Whether it succeeded."
                            ),
                        ]),
                        1...kickedUsersMax,
                        isUnique: false
                    ),
                    required: true,
                    "In the order of the request."
                )
            ]),
            problems: [.channelUnknown]
        ) { try await $0.kickMembers($1) },
    ]

    /// - Throws: ``Problem/channelUnknown`` when nobody is in the channel.
    private func connections(_ call: APICall) async throws(Problem) -> [Connection] {
        let connections = await directory.places(in: try call.channel())
        guard !connections.isEmpty else { throw .channelUnknown }
        return connections
    }

    private func listMembers(_ call: APICall) async throws -> JSONValue {
        let names = cluster?.status.names ?? [:]
        let users = Dictionary(grouping: try await connections(call), by: \.member.clientID)
            .map { (name: $0.key, connections: $0.value) }
            .sorted { APIOrder.precedes($0.name, $1.name) }
        let page = Page(users, call) { $0.name }
        var answer: [String: JSONValue] = [
            "members": .array(page.items.map { describe($0.connections, of: $0.name, on: names) })
        ]
        answer["next"] = page.next.map { .string($0) }
        return .object(answer)
    }

    private func getMember(_ call: APICall) async throws -> JSONValue {
        let own = try await connections(call).filter { $0.member.clientID == call.user }
        guard !own.isEmpty else { throw Problem.memberUnknown }
        return describe(own, of: call.user, on: cluster?.status.names ?? [:])
    }

    /// - Parameter names: of the cluster's nodes.
    private func describe(
        _ connections: [Connection],
        of user: String,
        on names: [NodeIncarnation: String]
    ) -> JSONValue {
        let described = connections.map { connection -> JSONValue in
            let member = connection.member
            var document: [String: JSONValue] = [
                "connection_id": .string(member.id.value), "bundle_id": .string(member.bundleID),
                "role": .string(member.role.rawValue), "signaling": .string(connection.agent.signaling.rawValue),
                "node": .string(cluster == nil ? name : names[connection.node] ?? ""),
                "created_at": .integer(connection.createdAt / 1_000_000_000),
                "connected": .bool(connection.state == .connected), "state": .string(connection.state.rawValue),
                "audio": .bool(member.sendsAudio), "video": .bool(member.sendsVideo),
                "muted": .array(connection.muted.map(\.rawValue).sorted().map { .string($0) }),
                "network": [
                    "uplink": .integer(connection.quality.uplink.rawValue),
                    "downlink": .integer(connection.quality.downlink.rawValue),
                ],
            ]
            document["place_ends_at"] = connection.placeEndsAt.map { .integer(min($0, Self.secondsMax)) }
            return .object(document)
        }
        var answer: [String: JSONValue] = ["user_id": .string(user), "connections": .array(described)]
        answer["display_name"] = connections.lazy.compactMap(\.displayName).first.map { .string($0) }
        return .object(answer)
    }

    /// - Returns: The relay's room of the channel's name, which may be at another node; `nil` when nobody is in it.
    /// - Throws: ``Problem/channelUnknown`` when nobody is in the channel or in that room.
    private func requireMembers(of channel: ChannelName) async throws(Problem) -> AyameRooms.Listing? {
        let room = await relayCalls.listing(of: channel)
        guard await directory.channelSession(of: channel) != nil || room != nil else { throw .channelUnknown }
        return room
    }

    /// Kicks a user, and returns how many connections that ends. Those in a room at another node are told to end.
    private func kick(_ user: String, from channel: ChannelName, _ room: AyameRooms.Listing?) async -> Int {
        let ended = await directory.kick(user, from: channel).map(\.value)
        let registered = room?.registrations.filter { $0.user == user }.map(\.connectionID) ?? []
        return Set(ended).union(registered).count
    }

    private func kickMember(_ call: APICall) async throws -> JSONValue {
        let channel = try call.channel()
        let room = try await requireMembers(of: channel)
        let ended = await kick(call.user, from: channel, room)
        guard ended > 0 else { throw Problem.memberUnknown }
        return ["ended": .integer(ended)]
    }

    private func kickMembers(_ call: APICall) async throws -> JSONValue {
        let channel = try call.channel()
        let users = try call.body.strings("users", countMax: Self.kickedUsersMax, bytesMax: 4 * 255) ?? []
        var room = try await requireMembers(of: channel)
        var results: [JSONValue] = []
        for user in users {
            let ended = await kick(user, from: channel, room)
            // The room has ended with it.
            if room?.registrations.contains(where: { $0.user == user }) == true { room = nil }
            let code: UInt32 = ended > 0 ? 0 : ResultCode.badParameter.rawValue
            results.append([
                "user_id": .string(user), "ended": .integer(ended), "code": .integer(code),
                "message": ended > 0 ? "Success" : "Failed",
            ])
        }
        return ["results": .array(results)]
    }
}
