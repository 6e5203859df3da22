import Base
import ChannelTypes
import HTTPTypes
import JSON

extension OperatorsAPI {
    private static let reportSchema = APISchema.object([
        APIProperty(
            "state",
            .choice(NodeState.allCases.map(\.rawValue)),
            required: true,
            "Where the node is between its start and its end."
        ),
        APIProperty("clients", .integer(0...Int64(Int32.max)), required: true, "The clients of the node."),
        APIProperty(
            "phase",
            .choice(DrainReport.Phase.allCases.map(\.rawValue)),
            "What a draining node does: it refuses newcomers of channels that nobody is in (new_channels), refuses all "
                + "newcomers (newcomers), and has told its clients to leave (closing)."
        ),
        APIProperty("elapsed_seconds", .integer(0...Int64(Int32.max)), "Since the drain began."),
        APIProperty("remaining_seconds", .integer(0...Int64(Int32.max)), "Until the deadline."),
        APIProperty("shuts_down", .boolean, "Whether a shutdown follows. Such a drain cannot be taken back."),
    ])

    private static let seconds = APISchema.integer(0...Int64(DrainRequest.secondsMax))

    static let drainOperations = [
        APIOperation(
            id: "getDrain",
            method: .get,
            path: APIOperation.path("/v1/drain"),
            summary: "The node's state, and how far its drain is.",
            answer: reportSchema
        ) { api, _ in await api.drain.report.json },
        APIOperation(
            id: "drain",
            method: .put,
            path: APIOperation.path("/v1/drain"),
            summary:
                "Drains the node, or changes the times of its drain. New channels are refused at once, all newcomers after "
                + "admit_seconds. Clients that are left at the deadline are told to leave; the node stays.",
            body: .object([
                APIProperty(
                    "deadline_seconds",
                    seconds,
                    "How long clients may stay; \(Int(DrainRequest.deadlineDefault.seconds)) without it."
                ),
                APIProperty(
                    "admit_seconds",
                    seconds,
                    "How long newcomers are admitted to channels that have members; "
                        + "\(Int(DrainRequest.admissionDefault.seconds)) without it."
                ),
            ]),
            answer: reportSchema,
            problems: [.stopping]
        ) { try await $0.startDrain($1) },
        APIOperation(
            id: "undrain",
            method: .delete,
            path: APIOperation.path("/v1/drain"),
            summary: "Takes the drain back: the node admits newcomers again.",
            answer: reportSchema,
            problems: [.stopping]
        ) { api, _ in
            do throws(DrainFailure) { try await api.drain.cancel() } catch { throw Problem.stopping }
            return await api.drain.report.json
        },
    ]

    private func startDrain(_ call: APICall) async throws -> JSONValue {
        var request = DrainRequest(by: .operators)
        if let seconds = try call.body.integer("deadline_seconds", 0...DrainRequest.secondsMax) {
            request.deadline = .seconds(seconds)
        }
        if let seconds = try call.body.integer("admit_seconds", 0...DrainRequest.secondsMax) {
            request.admission = .seconds(seconds)
        }
        do throws(DrainFailure) { try await drain.start(request) } catch { throw Problem.stopping }
        return await drain.report.json
    }
}

extension Problem {
    fileprivate static let stopping = Problem(
        .stopping,
        "The node was told to stop, which cannot be taken back; start it again when it has ended."
    )
}

extension DrainReport {
    fileprivate var json: JSONValue {
        var members: [String: JSONValue] = [
            "state": .string(state.rawValue), "clients": .integer(clients),
        ]
        if let phase {
            members["phase"] = .string(phase.rawValue)
            members["elapsed_seconds"] = .integer(Int64(elapsed.seconds))
            members["remaining_seconds"] = .integer(Int64(remaining.seconds.rounded(.up)))
            members["shuts_down"] = .bool(isOfShutdown)
        }
        return .object(members)
    }
}
