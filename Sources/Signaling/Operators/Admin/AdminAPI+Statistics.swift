import Base
import ChannelTypes
import JSON
import MediaTypes
import Room
import Web
import Webhooks

// Lists of connections, and statistics.

extension AdminAPI {
    func listConnections(_ fields: JSONFields) async throws -> JSONValue {
        .array(await describe(directory.connections(in: nil)))
    }

    func listChannelConnections(_ fields: JSONFields) async throws -> JSONValue {
        .array(await describe(directory.connections(in: try fields.channel())))
    }

    func listChannelClients(_ fields: JSONFields) async throws -> JSONValue {
        let names = ["channel_id", "client_id", "connection_id", "role", "created_time", "created_timestamp"]
        let list = await directory.connections(in: try fields.channel())
        return .array(list.map { connection in .object(connection.json.filter { names.contains($0.key) }) })
    }

    func getStatsConnection(_ fields: JSONFields) async throws -> JSONValue {
        await describe(try await connection(fields))
    }

    func getStatsClient(_ fields: JSONFields) async throws -> JSONValue {
        let (channel, client) = (try fields.channel(), try fields.requiredString("client_id"))
        let list = await directory.connections(in: channel).filter { $0.member.clientID == client }
        guard !list.isEmpty else { throw Self.clientUnknown }
        return .array(await describe(list))
    }

    func getStatsAllConnections(_ fields: JSONFields) async throws -> JSONValue {
        try await listConnections(fields)
    }

    /// The document of `GET /api/connections/{id}`; `nil` for an unknown connection.
    func document(of id: ParticipantID) async -> JSONValue? {
        guard let connection = await directory.connection(of: id) else { return nil }
        return await describe(connection)
    }

    private func describe(_ connections: [Connection]) async -> [JSONValue] {
        let others = await documentsOfOtherNodes(connections)
        lazy var names = operators.cluster?.status.names ?? [:]
        var list: [JSONValue] = []
        list.reserveCapacity(connections.count)
        for connection in connections {
            if let document = others[connection.member.id.value] {
                list.append(document)
                continue
            }
            var members = await describeHere(connection)
            if let cluster = operators.cluster, connection.node != cluster.incarnation {
                members["node_name"] = .string(names[connection.node] ?? "")
            }
            list.append(.object(members))
        }
        return list
    }

    private func describe(_ connection: Connection) async -> JSONValue { await describe([connection]).first ?? .null }

    /// The document of a connection of this node.
    func describeHere(_ connection: Connection) async -> [String: JSONValue] {
        var members = connection.json
        members.merge(node.members) { $1 }
        members["stats"] = await directory.statistics(of: connection.member.id)?.json
        return members
    }

    // MARK: Statistics of clients

    func listRTCStats(_ fields: JSONFields) async throws -> JSONValue { await reports(in: nil) }

    func listChannelRTCStats(_ fields: JSONFields) async throws -> JSONValue {
        await reports(in: try fields.channel())
    }

    func getRTCStats(_ fields: JSONFields) async throws -> JSONValue {
        let connection = try await connection(fields)
        guard let report = clientStatistics[connection.member.id] else {
            throw APIFailure(404, "RTC-STATS-NOT-FOUND", "The client has not reported any statistics yet.")
        }
        return Self.json(report, of: connection.member.id)
    }

    private func reports(in channel: ChannelName?) async -> JSONValue {
        let present = await directory.connections(in: channel)
        return .array(
            present.compactMap { connection in
                clientStatistics[connection.member.id].map { Self.json($0, of: connection.member.id) }
            }
        )
    }

    private static func json(_ report: ClientStatistics.Report, of id: ParticipantID) -> JSONValue {
        [
            "channel_id": .string(report.channel.value),
            "connection_id": .string(id.value),
            "timestamp": .string(Timestamp.text(unixNanoseconds: report.unixNanoseconds)),
            "rtc_stats": (try? JSONValue(parsing: report.text)) ?? [],
        ]
    }

    // MARK: Statistics of the node

    func getStatsReport(_ fields: JSONFields) async throws -> JSONValue {
        let counts = statistics.counts
        let media = await media()
        var members: [String: JSONValue] = [
            "version": .string(node.version),
            "total_connection_created": .integer(counts.connectionsCreated),
            "total_connection_updated": .integer(counts.connectionsUpdated),
            "total_connection_destroyed": .integer(counts.connectionsDestroyed),
            "total_successful_connections": .integer(counts.connectionsCreated),
            "total_ongoing_connections": .integer(counts.ongoing),
            "total_failed_connections": .integer(counts.connectionsFailed),
            "total_duration_sec": .integer(counts.duration.components.seconds),
            "average_duration_sec": .integer(Int(counts.durationAverage)),
            "average_setup_time_msec": .integer(Int(counts.setupTimeAverage)),
            "total_turn_udp_connections": .integer(counts.connectionsOver[.udp] ?? 0),
            "total_turn_tcp_connections": .integer(counts.connectionsOver[.tcp] ?? 0),
            "total_received_invalid_turn_tcp_packet": 0,
            "total_session_created": .integer(counts.sessionsCreated),
            "total_session_destroyed": .integer(counts.sessionsDestroyed),
            "total_received_srtp": .integer(media.packetsReceived),
            "total_received_srtp_byte_size": .integer(media.bytesReceived),
            "total_sent_srtp": .integer(media.packetsSent),
            "total_sent_srtp_byte_size": .integer(media.bytesSent),
            "total_received_sctp": .integer(media.data.packetsReceived),
            "total_received_sctp_byte_size": .integer(media.data.bytesReceived),
            "total_sent_sctp": .integer(media.data.packetsSent),
            "total_sent_sctp_byte_size": .integer(media.data.bytesSent),
            "sora_client": Self.clients(counts),
            "error": Self.errors(counts),
            "cluster_relay": .array(media.otherNodes.map { [Self.relay($0)] } ?? []),
        ]
        members.merge(await webhookCounts()) { $1 }
        return .object(members)
    }

    /// Links are counted together, so there is one entry for all other nodes.
    private static func relay(_ traffic: Traffic) -> JSONValue {
        [
            "node_name": "all other nodes",
            "total_received": .integer(traffic.packetsReceived),
            "total_received_byte_size": .integer(traffic.bytesReceived),
            "total_sent": .integer(traffic.packetsSent),
            "total_sent_byte_size": .integer(traffic.bytesSent),
        ]
    }

    private func webhookCounts() async -> [String: JSONValue] {
        let authentication = await webhooks["auth"]
        var members: [String: JSONValue] = [
            "total_auth_webhook_allowed": .integer(await webhooks.allowed),
            "total_auth_webhook_denied": .integer(await webhooks.denied),
            "total_successful_auth_webhook": .integer(authentication.successful),
            "total_failed_auth_webhook": .integer(authentication.failed + authentication.dropped),
        ]
        for name in ["session", "event", "stats"] {
            let counts = await webhooks[name]
            members["total_successful_\(name)_webhook"] = .integer(counts.successful)
            members["total_failed_\(name)_webhook"] = .integer(counts.failed)
            members["total_ignored_\(name)_webhook"] = .integer(counts.dropped)
        }
        return members
    }

    private static func clients(_ counts: SignalingStatistics.Counts) -> JSONValue {
        let table = { (clients: [SignalingStatistics.Client: UInt64]) -> JSONValue in
            let pairs = SignalingStatistics.Client.allCases.map { ($0.rawValue, JSONValue.integer(clients[$0] ?? 0)) }
            return .object(Dictionary(pairs) { $1 })
        }
        return [
            "total_successful_sora_client_type": table(counts.successfulClients),
            "total_failed_sora_client_type": table(counts.failedClients),
        ]
    }

    private static func errors(_ counts: SignalingStatistics.Counts) -> JSONValue {
        [
            "sdp_generation_error": 0,
            "signaling_error": .integer(counts.signalingErrors.values.reduce(0, +)),
        ]
    }
}
