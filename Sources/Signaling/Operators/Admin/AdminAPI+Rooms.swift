import Access
import Base
import ChannelTypes
import JSON
import MediaTypes
import Room
import Web

// Spotlight, forwarding filters, sessions and the node's mode.

extension AdminAPI {
    func focusSpotlight(_ fields: JSONFields, isFixed: Bool) async throws -> JSONValue {
        let connection = try await connection(fields)
        try await perform(.focus(connection.member.id, isFixed: isFixed), connection)
        return fields.echo("channel_id", "connection_id")
    }

    func unfocusSpotlight(_ fields: JSONFields) async throws -> JSONValue {
        let connection = try await connection(fields)
        try await perform(.unfocus(connection.member.id), connection)
        return fields.echo("channel_id", "connection_id")
    }

    func changeSpotlightNumber(_ fields: JSONFields) async throws -> JSONValue {
        let channel = try fields.channel()
        guard let number = try fields.integer("spotlight_number", Spotlight.numbers) else {
            throw JSONShapeError("\"spotlight_number\" is missing.")
        }
        try await perform(.setSpotlightNumber(number), in: channel)
        return fields.echo("channel_id", "spotlight_number")
    }

    func requestSpotlightRID(_ fields: JSONFields) async throws -> JSONValue {
        let receiver = try await connection(fields, "recv_connection_id")
        let sender = try fields.optionalConnection("send_connection_id")
        let layers = SpotlightLayers(
            focus: try fields.rid("spotlight_focus_rid").layer,
            unfocus: try fields.rid("spotlight_unfocus_rid").layer
        )
        try await perform(.requestSpotlightLayers(layers, receiver: receiver.member.id, sender: sender), receiver)
        return fields.echo(
            "channel_id",
            "recv_connection_id",
            "send_connection_id",
            "spotlight_focus_rid",
            "spotlight_unfocus_rid"
        )
    }

    func resetSpotlightRID(_ fields: JSONFields) async throws -> JSONValue {
        let receiver = try await connection(fields, "recv_connection_id")
        let sender = try fields.optionalConnection("send_connection_id")
        try await perform(.requestSpotlightLayers(nil, receiver: receiver.member.id, sender: sender), receiver)
        return fields.echo("channel_id", "recv_connection_id", "send_connection_id")
    }

    /// Performs several ``requestSpotlightRID(_:)`` operations, with one result each. A failure does not stop the others.
    func batchRequestSpotlightRID(_ fields: JSONFields) async throws -> JSONValue {
        guard let items = try fields.objects("item_list", countMax: 1_000) else {
            throw JSONShapeError("\"item_list\" is missing.")
        }
        var answers: [JSONValue] = []
        for item in items {
            // Members beside the list apply to all items.
            let members = item.merging(fields.members.filter { $0.key != "item_list" }) { own, _ in own }
            let answer = await answer(
                target: "Sora_20211215.RequestSpotlightRid",
                body: JSONValue.object(members).bytes
            )
            answers.append(answer.body)
        }
        return .array(answers)
    }

    // MARK: Forwarding filters

    func listFilters(_ fields: JSONFields) async throws -> JSONValue {
        let channel = try fields.channel()
        if fields.value("connection_id") != nil {
            let connection = try await connection(fields)
            let filters = try await directory.filters(of: .participant(connection.member.id), in: channel)
            return .array(filters.map { .object($0.json) })
        }
        return .array(try await directory.filters(of: .channel, in: channel).map { .object($0.json) })
    }

    /// A given version must equal the filter's version. The filter gets a new version.
    func updateFilter(_ fields: JSONFields, isChannel: Bool) async throws -> JSONValue {
        let (channel, scope) = try await scope(fields, isChannel: isChannel)
        var filter = try ForwardingFilter(fields.members)
        let expected = filter.version
        filter.version = makeVersion()
        try await perform(.updateFilter(filter, scope: scope, expected: expected), in: channel)
        return Self.answer(filter, fields)
    }

    func createFilter(_ fields: JSONFields, isChannel: Bool) async throws -> JSONValue {
        let (channel, scope) = try await scope(fields, isChannel: isChannel)
        var filter = try ForwardingFilter(fields.members)
        filter.version = filter.version ?? makeVersion()
        try await perform(.createFilter(filter, scope: scope), in: channel)
        return Self.answer(filter, fields)
    }

    func deleteFilter(_ fields: JSONFields, isChannel: Bool) async throws -> JSONValue {
        let (channel, scope) = try await scope(fields, isChannel: isChannel)
        let name = try fields.string("name") ?? ForwardingFilter.nameDefault
        let expected = try fields.string("version")
        try await perform(.deleteFilter(name: name, scope: scope, expected: expected), in: channel)
        return fields.echo("channel_id", "connection_id", "name")
    }

    private func scope(
        _ fields: JSONFields,
        isChannel: Bool
    ) async throws -> (channel: ChannelName, scope: FilterScope) {
        guard isChannel else {
            let connection = try await connection(fields)
            return (connection.channel, .participant(connection.member.id))
        }
        return (try fields.channel(), .channel)
    }

    private static func answer(_ filter: ForwardingFilter, _ fields: JSONFields) -> JSONValue {
        let names = (fields.echo("channel_id", "connection_id").object ?? [:])
        return .object(filter.json.merging(names) { own, _ in own })
    }

    private func makeVersion() -> String {
        var generator = SystemRandomNumberGenerator()
        return ChannelSessionID(using: &generator).value
    }

    // MARK: Sessions

    func getSession(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, id) = (try fields.channel(), try fields.session())
        guard let session = await directory.channelSession(of: channel), session.id == id else {
            throw RoomError.sessionUnknown
        }
        return await describe(session)
    }

    /// All sessions, or the session of one channel.
    func listSessions(_ fields: JSONFields) async throws -> JSONValue {
        let channel = fields.value("channel_id") == nil ? nil : try fields.channel()
        var list: [JSONValue] = []
        for session in await directory.channelSessions where channel == nil || session.channel == channel {
            list.append(await describe(session))
        }
        return .array(list)
    }

    private func describe(_ session: ChannelSession) async -> JSONValue {
        let counts = await directory.counts(of: session.channel)
        return [
            "channel_id": .string(session.channel.value),
            "session_id": .string(session.id.value),
            "created_time": .integer(session.createdAt / 1_000_000_000),
            "created_timestamp": .string(Timestamp.text(unixNanoseconds: session.createdAt)),
            "channel_connections": .integer(counts.connections),
            "channel_sendrecv_connections": .integer(counts.sendrecv),
            "channel_sendonly_connections": .integer(counts.sendonly),
            "channel_recvonly_connections": .integer(counts.recvonly),
        ]
    }

    // MARK: The node's mode

    /// Sets the mode. A mode that admits more than a draining node does is refused, because it would not be in force.
    func changeMode(_ fields: JSONFields) async throws -> JSONValue {
        guard let mode: APIMode = try fields.choice("mode") else { throw JSONShapeError("\"mode\" is missing.") }
        guard await directory.setMode(mode.mode) else {
            throw APIFailure(
                409,
                "NODE-DRAINING",
                "The node drains and admits less than this mode; take the drain back first, with nagare undrain."
            )
        }
        return ["mode": .string(mode.rawValue)]
    }

    /// The mode in force: of the set one and that of a drain the one that admits less.
    func getMode(_ fields: JSONFields) async throws -> JSONValue {
        ["mode": .string(APIMode(await directory.modeInForce).rawValue)]
    }

    /// The nodes of the cluster as this node knows them, itself first.
    func listClusterNodes() throws(APIFailure) -> JSONValue {
        guard let status = operators.cluster?.status else {
            throw APIFailure(400, "NOT-IN-CLUSTER", "This node is in no cluster: start it with --cluster-store.")
        }
        return .array(
            ([status.own] + status.others.filter { !$0.isIgnored }).enumerated().map { index, node in
                var document: [String: JSONValue] = [
                    "node_name": .string(node.name), "cluster_node_name": .string(node.name),
                    "epoch": .integer(node.incarnation.rawValue),
                    "mode": .string((node.state == .ready ? APIMode.normal : .blockNewConnections).rawValue),
                    "sora_version": .string(node.version), "connected": .bool(index == 0 || node.link == .up),
                    "temporary_node": .bool(false),
                ]
                document["cluster_signaling_url"] = node.address.map { .string("\($0.webSocketURL)/signaling") }
                return .object(document)
            }
        )
    }
}

/// The node's mode under its API name.
private enum APIMode: String, CaseIterable {
    case normal
    case blockNewSessions = "block_new_session"
    case blockNewConnections = "block_new_connection"

    init(_ mode: NodeMode) {
        switch mode {
        case .normal: self = .normal
        case .blockNewSessions: self = .blockNewSessions
        case .blockNewConnections: self = .blockNewConnections
        }
    }

    var mode: NodeMode {
        switch self {
        case .normal: .normal
        case .blockNewSessions: .blockNewSessions
        case .blockNewConnections: .blockNewConnections
        }
    }
}
