import ChannelTypes
import HTTPTypes
import JSON
import Room
import Webhooks

// Subscriptions to events.

extension OperatorsAPI {
    private static let kinds = APISchema.array(
        .choice(EventSubscriptions.Kind.allCases.map(\.rawValue)),
        1...EventSubscriptions.Kind.allCases.count,
        isUnique: true
    )
    private static func url(_ description: String) -> APIProperty {
        APIProperty("url", .string(1...EventSubscriptions.urlBytesMax), required: true, description)
    }
    private static let properties = [
        APIProperty("channel", .string(1...255), "Events of this channel only."),
        APIProperty(
            "users",
            .array(.string(1...255), 1...EventSubscriptions.usersMax, isUnique: true),
            "Events of these users of the channel only."
        ),
        APIProperty("events", kinds, "These events only."),
    ]
    private static let schema = APISchema.object(
        [
            APIProperty("id", .string(1...64), required: true, "The subscription's ID, also in each event."),
            url("Events are posted here. It has no query for the role read, because a query may have secrets."),
        ] + properties
    )

    static let subscriptionOperations = [
        APIOperation(
            id: "listSubscriptions",
            method: .get,
            path: APIOperation.path("/v1/subscriptions"),
            summary: "The subscriptions to events, the oldest first.",
            answer: .object([
                APIProperty(
                    "subscriptions",
                    .array(schema, 0...EventSubscriptions.countMax, isUnique: false),
                    required: true,
                    "All of them."
                )
            ])
        ) { api, call in
            ["subscriptions": .array((await api.subscriptions?.all ?? []).map { describe($0, to: call.role) })]
        },
        APIOperation(
            id: "subscribe",
            method: .post,
            path: APIOperation.path("/v1/subscriptions"),
            summary: "Subscribes a server to events. It may get an event twice, with the same id.",
            body: .object([url("Events are posted here.")] + properties),
            isBodyRequired: true,
            status: 201,
            answer: schema,
            problems: [.refusedValue, .subscriptionsFull]
        ) { try await $0.subscribe($1) },
        APIOperation(
            id: "unsubscribe",
            method: .delete,
            path: APIOperation.path("/v1/subscriptions/{subscription}"),
            summary: "Ends a subscription.",
            status: 204,
            problems: [.subscriptionUnknown]
        ) { api, call in
            guard await api.subscriptions?.unsubscribe(call.path[.subscription] ?? "") == true else {
                throw Problem(.subscriptionUnknown, "There is no such subscription; GET /v1/subscriptions lists all.")
            }
            return nil
        },
    ]

    private func subscribe(_ call: APICall) async throws -> JSONValue {
        let url = call.body.value("url")?.string ?? ""
        guard EventSubscriptions.isURL(url) else {
            throw Problem(.refusedValue, "\"url\" must be an http or https URL with a host and without credentials.")
        }
        var channel: ChannelName?
        if let name = call.body.value("channel")?.string {
            channel = ChannelName(name)
            guard channel != nil else { throw Problem(.refusedValue, "\"channel\" \(ChannelName.rule).") }
        }
        let users = call.body.value("users")?.array?.compactMap(\.string) ?? []
        guard users.isEmpty || channel != nil else {
            throw Problem(.refusedValue, "\"users\" needs \"channel\": name the channel of these users.")
        }
        let kinds = call.body.value("events")?.array?.compactMap { $0.string.flatMap(EventSubscriptions.Kind.init) }
        let subscription = await subscriptions?.subscribe(
            url: url,
            channel: channel,
            users: users,
            kinds: kinds ?? EventSubscriptions.Kind.allCases
        )
        guard let subscription else {
            throw Problem(
                .subscriptionsFull,
                "The node has \(EventSubscriptions.countMax) subscriptions, which is the limit; delete one."
            )
        }
        return Self.describe(subscription, to: call.role)
    }

    private static func describe(_ subscription: EventSubscriptions.Subscription, to role: OperatorRole) -> JSONValue {
        let url = role.permits(.operate) ? subscription.url : EventSubscriptions.withoutQuery(subscription.url)
        var members: [String: JSONValue] = [
            "id": .string(subscription.id), "url": .string(url),
            "events": .array(subscription.kinds.map { .string($0.rawValue) }),
        ]
        members["channel"] = subscription.channel.map { .string($0.value) }
        if !subscription.users.isEmpty { members["users"] = .array(subscription.users.map { .string($0) }) }
        return .object(members)
    }
}
