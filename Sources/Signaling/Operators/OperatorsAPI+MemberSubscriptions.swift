import ChannelTypes
import HTTPTypes
import JSON
import Room
import Wire

// Subscriptions of members to the tracks of others.

extension OperatorsAPI {
    private static let kindSchema = APISchema.choice(MediaKind.allCases.map(\.rawValue))
    private static let sourceSchema = APISchema.choice(VideoSource.allCases.map(\.rawValue))
    private static let trackSchema = APISchema.object([
        APIProperty("kind", kindSchema, required: true, "The kind of media."),
        APIProperty("source", sourceSchema, required: true, "What the video of the sending connection shows."),
    ])
    private static let tracksSchema = APISchema.array(trackSchema, 0...TrackSelector.allCases.count, isUnique: true)

    private static let subscribedSchema = APISchema.object([
        APIProperty("connection_id", .string(26...26), required: true, "The ID of the connection that receives."),
        APIProperty(
            "tracks",
            tracksSchema,
            required: true,
            "What it is subscribed to of all users who have no entry, those who join later included."
        ),
        APIProperty(
            "users",
            .array(
                .object([
                    APIProperty("user_id", .string(0...255), required: true, "The ID of the user who sends."),
                    APIProperty("tracks", tracksSchema, required: true, "What it is subscribed to of this user."),
                ]),
                0...Page<Never>.countMax,
                isUnique: false
            ),
            required: true,
            "A page of the users of whom it receives other tracks than of the rest, by ID."
        ),
    ])

    static let memberSubscriptionOperations = [
        APIOperation(
            id: "listMemberSubscriptions",
            method: .get,
            path: APIOperation.path("/v1/channels/{channel}/members/{user}/subscriptions"),
            summary: "The tracks that the connections of a member are subscribed to.",
            query: Page<Never>.query,
            answer: .object([
                APIProperty(
                    "connections",
                    .array(subscribedSchema, 0...Int(countMax), isUnique: false),
                    required: true,
                    "Its connections that receive, in the order of joining."
                ),
                Page<Never>.next,
            ]),
            problems: [.channelUnknown, .memberUnknown]
        ) { try await $0.listMemberSubscriptions($1) },
        APIOperation(
            id: "subscribeMember",
            method: .post,
            path: APIOperation.path("/v1/channels/{channel}/members/{user}/subscriptions"),
            summary: "Subscribes the connections of a member to tracks, or unsubscribes them. The member can undo it.",
            body: .object([
                APIProperty("subscribed", .boolean, required: true, "Whether it receives the tracks."),
                APIProperty("user_id", .string(1...255), "Only tracks of this user; without it, those of all."),
                APIProperty("kind", kindSchema, "Only this kind of media; without it, both."),
                APIProperty("source", sourceSchema, "Only of connections that show this; without it, all."),
            ]),
            isBodyRequired: true,
            answer: changedSchema,
            problems: [.channelUnknown, .memberUnknown, .subscriptionsFull]
        ) { try await $0.subscribeMember($1) },
    ]

    private func listMemberSubscriptions(_ call: APICall) async throws -> JSONValue {
        let channel = try await occupiedChannel(call)
        let connections = try await directory.subscriptions(of: call.user, in: channel)
        let owned = connections.map { (subscription: $0, users: Set($0.users)) }
        var counts: [String: Int] = [:]
        for connection in owned {
            for user in connection.users { counts[user, default: 0] += 1 }
        }
        let names = counts.keys.sorted(by: APIOrder.precedes)
            .drop { name in call.after.map { !APIOrder.precedes($0, name) } ?? false }
        // A user counts once for each connection, so that many connections do not make a page long. The empty name does not
        // count: a page that ends with it could not be followed by another one.
        var count = 0
        let page = names.prefix { name in
            defer { count += name.isEmpty ? 0 : counts[name] ?? 0 }
            return count < call.limit
        }
        var answer: [String: JSONValue] = [
            "connections": .array(
                owned.map { Self.describe($0.subscription, users: page.filter($0.users.contains)) }
            )
        ]
        if page.count < names.count { answer["next"] = page.last.map { .string($0) } }
        return .object(answer)
    }

    private static func describe(_ connection: ConnectionSubscription, users: [String]) -> JSONValue {
        let entries = users.map { user -> JSONValue in
            ["user_id": .string(user), "tracks": describe(connection.tracks(of: user))]
        }
        return [
            "connection_id": .string(connection.connection.value), "tracks": describe(connection.tracks(of: nil)),
            "users": .array(entries),
        ]
    }

    private static func describe(_ tracks: [TrackSelector]) -> JSONValue {
        .array(tracks.map { ["kind": .string($0.kind.rawValue), "source": .string($0.source.rawValue)] })
    }

    private func subscribeMember(_ call: APICall) async throws -> JSONValue {
        let channel = try await occupiedChannel(call)
        let selection = SubscriptionSelection(
            user: try call.body.string("user_id", bytesMax: 4 * 255),
            kind: try call.body.choice("kind"),
            source: try call.body.choice("source")
        )
        let isSubscribed = try call.body.bool("subscribed") ?? true
        return try await changed(.subscribe(isSubscribed, to: selection, receiver: .user(call.user)), in: channel)
    }
}
