import Ayame
import ChannelTypes
import HTTPTypes
import JSON

// Channels of the 1:1 relay: lists. Their registrations end by the operations on the channel of the same name.

extension OperatorsAPI {
    private static let roomSchema = APISchema.object([
        APIProperty("room", .string(1...255), required: true, "The room's name. It is also the name of a channel."),
        APIProperty(
            "media",
            .choice(CallMedia.allCases.map(\.rawValue)),
            required: true,
            "The path of the media: from client to client, or through the node."
        ),
        APIProperty("app", .string(1...64), "The app whose tokens admit to it; none without such a member."),
        APIProperty("turn", .boolean, "Whether its members got credentials for the TURN relay of its node."),
        APIProperty(
            "registrations",
            .array(
                .object([
                    APIProperty("connection_id", .string(26...26), required: true, "The registration's ID."),
                    APIProperty(
                        "user_id",
                        .string(0...255),
                        required: true,
                        "The user's ID: of its token, or its own clientId, or else the connection's ID."
                    ),
                    APIProperty("standalone", .boolean, required: true, "Whether it may do without signaling."),
                    APIProperty(
                        "created_at",
                        .integer(0...secondsMax),
                        required: true,
                        "When it registered, in seconds since 1970."
                    ),
                ]),
                1...2,
                isUnique: false
            ),
            required: true,
            "The room's members, in the order of registering."
        ),
    ])

    static let relayOperations = [
        APIOperation(
            id: "listRelayRooms",
            method: .get,
            path: APIOperation.path("/v1/relay"),
            summary: "The rooms of the 1:1 relay at this node, by name. The end of the channel of this name ends them.",
            query: Page<Never>.query,
            answer: .object([
                APIProperty(
                    "rooms",
                    .array(roomSchema, 0...Page<Never>.countMax, isUnique: false),
                    required: true,
                    "A page."
                ),
                Page<Never>.next,
            ])
        ) { await $0.listRelayRooms($1) },
        APIOperation(
            id: "getRelayRoom",
            method: .get,
            path: APIOperation.path("/v1/relay/{channel}"),
            summary: "One room of the 1:1 relay, at any node of the cluster.",
            answer: roomSchema,
            problems: [.channelUnknown]
        ) { try await $0.getRelayRoom($1) },
    ]

    private func listRelayRooms(_ call: APICall) async -> JSONValue {
        let rooms = await relayCalls.listings.sorted { APIOrder.precedes($0.room.value, $1.room.value) }
        let page = Page(rooms, call) { $0.room.value }
        var answer: [String: JSONValue] = ["rooms": .array(page.items.map(Self.describe))]
        answer["next"] = page.next.map { .string($0) }
        return .object(answer)
    }

    private func getRelayRoom(_ call: APICall) async throws(Problem) -> JSONValue {
        guard let room = await relayCalls.listing(of: try call.channel()) else {
            throw Problem(.channelUnknown, "Nobody is in this room of the relay; GET /v1/relay lists all rooms.")
        }
        return Self.describe(room)
    }

    private static func describe(_ room: AyameRooms.Listing) -> JSONValue {
        let registrations = room.registrations.map { registration -> JSONValue in
            [
                "connection_id": .string(registration.connectionID), "user_id": .string(registration.user),
                "standalone": .bool(registration.isStandalone), "created_at": .integer(registration.registeredAt),
            ]
        }
        var document: [String: JSONValue] = [
            "room": .string(room.room.value), "media": .string(room.media.rawValue),
            "registrations": .array(registrations),
        ]
        document["app"] = room.app.map { .string($0) }
        document["turn"] = room.hasRelay.map { .bool($0) }
        return .object(document)
    }
}
