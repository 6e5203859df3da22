import ChannelTypes
import HTTPTypes
import History
import JSON
import MediaTypes

// The history of connections: how their media was, and why they ended.

extension OperatorsAPI {
    private static let levelSchema = APISchema.integer(0...Int64(LinkQuality.Level.disconnected.rawValue))
    private static let shareSchema = APISchema.share
    private static let millisecondsSchema = APISchema.integer(0...secondsMax)
    private static let countSchema = APISchema.integer(0...Int64.max)

    private static let summaryProperties = [
        APIProperty("connection_id", .string(26...26), required: true, "The connection's ID."),
        APIProperty("channel", .string(1...255), required: true, "The channel's name."),
        APIProperty("session_id", .string(26...26), required: true, "The channel's lifetime that it was part of."),
        APIProperty("user_id", .string(0...255), required: true, "The client ID of the user."),
        APIProperty("display_name", .string(0...1_024), "A name for people."),
        APIProperty("bundle_id", .string(0...255), required: true, "The connections of one bundle belong together."),
        APIProperty("role", .choice(Role.allCases.map(\.rawValue)), required: true, "What it might send and receive."),
        APIProperty("node", .string(0...255), required: true, "The name of the node that had it."),
        APIProperty(
            "signaling",
            .choice(ClientAgent.Signaling.allCases.map(\.rawValue)),
            required: true,
            "The protocol by which it joined."
        ),
        APIProperty("client", .string(0...1_024), "The client's name for itself."),
        APIProperty("environment", .string(0...4_096), "What the client tells of its platform."),
        APIProperty(
            "outcome",
            .choice(ConnectionOutcome.allCases.map(\.rawValue)),
            required: true,
            "live while it lasts; failed when its media never connected."
        ),
        APIProperty("created_at", millisecondsSchema, required: true, "When it joined, in milliseconds since 1970."),
        APIProperty("connected_at", millisecondsSchema, "When its media was connected, in milliseconds since 1970."),
        APIProperty("setup_ms", countSchema, "The time between the two, in milliseconds."),
        APIProperty("ended_at", millisecondsSchema, "When it ended, in milliseconds since 1970."),
        APIProperty("duration_s", countSchema, required: true, "How long it was connected, in seconds."),
        APIProperty("reason", .string(0...255), "Why it ended, as in the event connection.destroyed."),
        APIProperty("protocol", .string(1...16), "udp or tcp: what its media went over at first."),
        APIProperty("remote_address", .string(1...255), "The address and port of the client's media."),
        APIProperty("received_bytes", countSchema, required: true, "Media that arrived from the client."),
        APIProperty("sent_bytes", countSchema, required: true, "Media that was sent to the client."),
        APIProperty(
            "received_loss",
            shareSchema,
            required: true,
            "The share of its packets that did not arrive, 0 to 1, repaired ones included."
        ),
        APIProperty(
            "sent_loss",
            shareSchema,
            required: true,
            "The share of packets to it that did not arrive, 0 to 1, by its reports."
        ),
        APIProperty("round_trip_ms", countSchema, required: true, "The longest; 0 without one."),
        APIProperty(
            "worst_uplink",
            levelSchema,
            required: true,
            "1 for excellent to 6 for disconnected, 0 if unknown."
        ),
        APIProperty("worst_downlink", levelSchema, required: true, "The same of the other direction."),
        APIProperty("freezes", countSchema, required: true, "Freezes of video that the client reported."),
        APIProperty(
            "without_picture_ms",
            countSchema,
            required: true,
            "How long it had no moving picture: freezes that it reported, and intervals in which none of its videos was sent."
        ),
        APIProperty(
            "setup",
            setupSchema,
            "The phases of its first set-up; absent of one that an earlier version stored."
        ),
    ]

    private static let setupSchema = APISchema.object([
        APIProperty(
            "phases",
            .array(
                .object([
                    APIProperty(
                        "phase",
                        .choice(ConnectionSetup.Phase.allCases.map(\.rawValue)),
                        required: true,
                        "Which one."
                    ),
                    APIProperty("start_ms", countSchema, required: true, "Its begin, since the request."),
                    APIProperty("duration_ms", countSchema, required: true, "How long it took."),
                ]),
                0...ConnectionSetup.Phase.allCases.count,
                isUnique: false
            ),
            required: true,
            "Those that are over. A phase that never ended is not there."
        ),
        APIProperty("finding", .string(1...1_024), "Where the set-up stopped; absent for a complete one."),
    ])

    private static let eventSchema = APISchema.object([
        APIProperty("at", millisecondsSchema, required: true, "In milliseconds since 1970."),
        APIProperty(
            "event",
            .choice(["connected", "interrupted", "resumed", "ended", "failed", "role_changed", "path_changed"]),
            required: true,
            "What happened."
        ),
        APIProperty("detail", .string(0...1_024), "The reason, the new role, or the new path."),
    ])

    private static func column(_ name: String, _ item: APISchema, _ text: String) -> APIProperty {
        let counts = 0...QualityTimeline.countMax
        return APIProperty(name, .array(item, counts, isUnique: false), required: true, text)
    }

    private static let timelineSchema = APISchema.object([
        APIProperty("interval_s", countSchema, required: true, "The present interval between samples, in seconds."),
        column("at_s", countSchema, "The end of each interval, in seconds since the connection was up."),
        column("received_bps", countSchema, "What arrived from the client, in bit/s."),
        column("sent_bps", countSchema, "What was sent to the client, in bit/s."),
        column("demand_bps", countSchema, "What would have been sent to it over a good network, in bit/s."),
        column("received_loss", shareSchema, "The share of the client's packets that did not arrive, 0 to 1."),
        column("sent_loss", shareSchema, "The share of packets to the client that did not arrive, 0 to 1."),
        column("round_trip_ms", countSchema, "0 before it is measured."),
        column("jitter_ms", countSchema, "The greatest of all streams."),
        column("videos", countSchema, "Videos that the client was to be sent."),
        column("reduced", countSchema, "How many of them in lower layers than wanted."),
        column("paused", countSchema, "How many of them not at all."),
        column("freezes", countSchema, "Freezes that the client reported."),
        column("frozen_ms", countSchema, "Their length together."),
        column("uplink", levelSchema, "The quality from the client: 1 for excellent to 6, 0 if unknown."),
        column("downlink", levelSchema, "The quality to the client."),
        column(
            "limit",
            .choice(SendingStatistics.Limit.allCases.map(\.rawValue)),
            "What kept the node from sending more: demand when all that is wanted is sent."
        ),
    ])

    static let connectionOperations = [
        APIOperation(
            id: "listConnections",
            method: .get,
            path: APIOperation.path("/v1/connections"),
            summary: "The connections of this node, the latest first, also those that ended or failed.",
            query: [
                APIProperty("channel", .string(1...255), "Of this channel only."),
                APIProperty("user", .string(1...255), "Of this user only."),
                APIProperty("outcome", .choice(ConnectionOutcome.allCases.map(\.rawValue)), "With this outcome only."),
            ] + Page<Never>.query,
            answer: .object([
                APIProperty(
                    "connections",
                    .array(.object(summaryProperties), 0...Page<Never>.countMax, isUnique: false),
                    required: true,
                    "A page."
                ),
                APIProperty(
                    "hours",
                    countSchema,
                    required: true,
                    "For how many hours ended ones are kept; 0 where they are not."
                ),
                APIProperty("node", .string(0...255), required: true, "The name of this node."),
                Page<Never>.next,
            ])
        ) { try await $0.listConnections($1) },
        APIOperation(
            id: "getConnection",
            method: .get,
            path: APIOperation.path("/v1/connections/{connection}"),
            summary: "One connection with what happened to it and how its media was over time.",
            answer: .object(
                summaryProperties + [
                    APIProperty(
                        "events",
                        .array(eventSchema, 0...1_000, isUnique: false),
                        required: true,
                        "What happened, in its order."
                    ),
                    APIProperty("events_dropped", countSchema, required: true, "Events beyond the first of them."),
                    APIProperty("timeline", timelineSchema, required: true, "Samples of the media."),
                ]
            ),
            problems: [.connectionUnknown]
        ) { try await $0.getConnection($1) },
    ]

    private func listConnections(_ call: APICall) async throws -> JSONValue {
        var query = ConnectionHistory.Query(limit: call.limit)
        if let name = call.query["channel"]?.string {
            // A name that no channel can have is one of a channel without connections.
            guard let channel = ChannelName(name) else { return connectionList(nil) }
            query.channel = channel
        }
        query.user = call.query["user"]?.string
        query.outcome = call.query["outcome"]?.string.flatMap(ConnectionOutcome.init)
        query.after = call.after
        return connectionList(await history?.page(query))
    }

    private func connectionList(_ page: ConnectionHistory.Page?) -> JSONValue {
        var answer: [String: JSONValue] = [
            "connections": .array(page?.connections ?? []), "hours": .integer(history?.hours ?? 0),
            "node": .string(name),
        ]
        answer["next"] = page?.next.map { .string($0) }
        return .object(answer)
    }

    private func getConnection(_ call: APICall) async throws -> JSONValue {
        guard let history else {
            throw Problem(.connectionUnknown, "This node keeps no history of connections: set --history-hours.")
        }
        guard let connection = await history.connection(call.path[.connection] ?? "") else {
            let hours = history.hours == 1 ? "an hour" : "\(history.hours) hours"
            throw Problem(
                .connectionUnknown,
                "This node knows no such connection: it ended more than \(hours) ago, or was at another node."
            )
        }
        return connection
    }
}
