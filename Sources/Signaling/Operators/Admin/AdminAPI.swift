package import Access
package import Ayame
import ChannelTypes
package import History
import JSON
import Logging
package import Room
package import Web
package import Webhooks

/// The admin API, compatible with Sora's: `POST /` with the operation in the header `x-sora-target`, and arguments and result
/// as JSON.
///
/// The date before an operation's name is ignored: there is one version of each operation.
package struct AdminAPI: Sendable {
    /// The totals of all media loops since the node started.
    package struct MediaTotals: Hashable, Sendable {
        package var packetsReceived: UInt64 = 0
        package var bytesReceived: UInt64 = 0
        package var packetsSent: UInt64 = 0
        package var bytesSent: UInt64 = 0
        /// SCTP packets, and the bytes in messages of data channels.
        package var data = Traffic()
        /// To and from other nodes, of all of them together; `nil` outside of a cluster.
        package var otherNodes: Traffic?

        package init() {}
    }

    /// Packets and bytes in both directions.
    package struct Traffic: Hashable, Sendable {
        package var packetsReceived: UInt64
        package var bytesReceived: UInt64
        package var packetsSent: UInt64
        package var bytesSent: UInt64

        package init(
            packetsReceived: UInt64 = 0,
            bytesReceived: UInt64 = 0,
            packetsSent: UInt64 = 0,
            bytesSent: UInt64 = 0
        ) {
            self.packetsReceived = packetsReceived
            self.bytesReceived = bytesReceived
            self.packetsSent = packetsSent
            self.bytesSent = bytesSent
        }

        package mutating func add(_ other: Self) {
            packetsReceived &+= other.packetsReceived
            bytesReceived &+= other.bytesReceived
            packetsSent &+= other.packetsSent
            bytesSent &+= other.bytesSent
        }
    }

    let directory: ChannelDirectory
    let statistics: SignalingStatistics
    let clientStatistics: ClientStatistics
    let webhooks: WebhookCounters
    let node: NodeIdentity
    /// Of the operators' API.
    let operators: OperatorsAPI
    let media: @Sendable () async -> MediaTotals

    /// - Parameters:
    ///   - keys: Sign tokens and URLs that operators ask for; evaluated at each use, because a reload changes them.
    ///   - subscriptions: Post events to the servers that operators subscribe.
    ///   - relayCalls: The registrations of the 1:1 relay.
    ///   - reload: Reads the node's files again.
    ///   - drain: The node's drain; `nil` for one that nothing advances.
    ///   - cluster: The other nodes; `nil` outside of a cluster.
    ///   - history: The connections of the last hours; `nil` where they are not kept.
    package init(
        directory: ChannelDirectory,
        statistics: SignalingStatistics,
        clientStatistics: ClientStatistics,
        webhooks: WebhookCounters = WebhookCounters(),
        node: NodeIdentity = NodeIdentity(),
        keys: @escaping @autoclosure @Sendable () -> AccessKeys = AccessKeys(),
        subscriptions: EventSubscriptions? = nil,
        relayCalls: AyameCalls = AyameCalls(),
        reload: @escaping ReloadAction = { () throws(ReloadFailure) in ReloadReport() },
        drain: NodeDrain? = nil,
        cluster: (any OtherNodes)? = nil,
        history: ConnectionHistory? = nil,
        media: @escaping @Sendable () async -> MediaTotals = { MediaTotals() }
    ) {
        self.directory = directory
        self.statistics = statistics
        self.clientStatistics = clientStatistics
        self.webhooks = webhooks
        self.node = node
        operators = OperatorsAPI(
            directory: directory,
            relayCalls: relayCalls,
            currentKeys: keys,
            subscriptions: subscriptions,
            drain: drain
                ?? NodeDrain(
                    directory: directory,
                    relayCalls: relayCalls,
                    logger: Logger(label: "nagare", factory: { _ in SwiftLogNoOpLogHandler() })
                ),
            history: history,
            name: node.name,
            cluster: cluster,
            reload: reload
        )
        self.media = media
    }

    typealias Operation = @Sendable (AdminAPI, JSONFields) async throws -> JSONValue

    static let operations: [String: Operation] = [
        "DisconnectChannel": { try await $0.disconnectChannel($1) },
        "DisconnectChannelByRole": { try await $0.disconnectChannelByRole($1) },
        "DisconnectClient": { try await $0.disconnectClient($1) },
        "DisconnectConnection": { try await $0.disconnectConnection($1) },
        "PushChannel": { try await $0.pushChannel($1) },
        "PushChannelByRole": { try await $0.pushChannelByRole($1) },
        "PushClient": { try await $0.pushClient($1) },
        "PushConnection": { try await $0.pushConnection($1) },
        "ListConnections": { try await $0.listConnections($1) },
        "ListChannelConnections": { try await $0.listChannelConnections($1) },
        "ListChannelClients": { try await $0.listChannelClients($1) },
        "GetStatsConnection": { try await $0.getStatsConnection($1) },
        "GetStatsClient": { try await $0.getStatsClient($1) },
        "GetStatsAllConnections": { try await $0.getStatsAllConnections($1) },
        "GetStatsReport": { try await $0.getStatsReport($1) },
        "ListRtcStats": { try await $0.listRTCStats($1) },
        "ListChannelRtcStats": { try await $0.listChannelRTCStats($1) },
        "GetRtcStats": { try await $0.getRTCStats($1) },
        "FocusSpotlight": { try await $0.focusSpotlight($1, isFixed: false) },
        "FocusSpotlightFixed": { try await $0.focusSpotlight($1, isFixed: true) },
        "UnfocusSpotlight": { try await $0.unfocusSpotlight($1) },
        "ChangeSpotlightNumber": { try await $0.changeSpotlightNumber($1) },
        "RequestSpotlightRid": { try await $0.requestSpotlightRID($1) },
        "ResetSpotlightRid": { try await $0.resetSpotlightRID($1) },
        "BatchRequestSpotlightRid": { try await $0.batchRequestSpotlightRID($1) },
        "RequestSimulcastRid": { try await $0.requestSimulcastRID($1) },
        "RequestVideoHeight": { try await $0.requestVideoHeight($1) },
        "LimitConnection": { try await $0.limitConnection($1) },
        "ExtendConnection": { try await $0.extendConnection($1) },
        "RequestKeyFrame": { try await $0.requestKeyFrame($1) },
        "ListForwardingFilters": { try await $0.listFilters($1) },
        "CreateChannelForwardingFilter": { try await $0.createFilter($1, isChannel: true) },
        "UpdateChannelForwardingFilter": { try await $0.updateFilter($1, isChannel: true) },
        "DeleteChannelForwardingFilter": { try await $0.deleteFilter($1, isChannel: true) },
        "CreateConnectionForwardingFilter": { try await $0.createFilter($1, isChannel: false) },
        "UpdateConnectionForwardingFilter": { try await $0.updateFilter($1, isChannel: false) },
        "DeleteConnectionForwardingFilter": { try await $0.deleteFilter($1, isChannel: false) },
        "TerminateSession": { try await $0.terminateSession($1) },
        "GetSession": { try await $0.getSession($1) },
        "ListSessions": { try await $0.listSessions($1) },
        "ChangeMode": { try await $0.changeMode($1) },
        "GetMode": { try await $0.getMode($1) },
        "ListClusterNodes": { api, _ in try api.listClusterNodes() },
    ]

    /// The operations of Sora's API that the node does not support, with the missing feature.
    static let unsupported: [String: String] = [
        "StartRecording": "recording", "StopRecording": "recording", "GetRecording": "recording",
        "StartAudioStreaming": "audio streaming", "StopAudioStreaming": "audio streaming",
        "SubscribeAudioStreamingResultPush": "audio streaming",
        "UnsubscribeAudioStreamingResultPush": "audio streaming",
        "GetLicense": "licences", "UpdateLicense": "licences",
        "RegisterClusterNode": "list of nodes to change: they join a cluster at their start",
        "PurgeClusterNode": "list of nodes to change: they leave a cluster by themselves",
    ]

    /// Performs one operation.
    /// - Parameters:
    ///   - target: The header, such as `Sora_20151104.DisconnectChannel`.
    ///   - body: A JSON object; an empty body counts as an empty object.
    func answer(target: String?, body: [UInt8]) async -> (status: Int, body: JSONValue) {
        do {
            let operation = try Self.operation(target)
            let isBlank = body.allSatisfy { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
            guard let value = isBlank ? .object([:]) : try? JSONValue(parsing: body) else {
                throw APIFailure(400, "INVALID-JSON", "The body is not JSON.")
            }
            let fields = try JSONFields(value)
            guard let channel = value["channel_id"]?.string.flatMap({ ChannelName($0) }) else {
                return (200, try await operation(self, fields))
            }
            return (200, try await directory.withRemoteParticipants(of: channel) { try await operation(self, fields) })
        } catch {
            let failure = Self.failure(error)
            return (failure.status, failure.json)
        }
    }

    private static func failure(_ error: any Error) -> APIFailure {
        switch error {
        case let failure as APIFailure: failure
        case let error as JSONShapeError: APIFailure(error)
        case let error as RoomError: APIFailure(error)
        default: APIFailure(500, "INTERNAL-ERROR", "The node failed to perform this operation.")
        }
    }

    private static func operation(_ target: String?) throws(APIFailure) -> Operation {
        guard let target else {
            throw APIFailure(400, "MISSING-TARGET", "Name the operation in the header x-sora-target.")
        }
        let parts = target.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let date = parts[0].dropFirst(5)
        guard parts.count == 2, parts[0].lowercased().hasPrefix("sora_"), date.utf8.count == 8,
            date.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else {
            throw APIFailure(400, "INVALID-TARGET", "Write x-sora-target as Sora_20151104.DisconnectChannel.")
        }
        let name = String(parts[1])
        if let operation = operations[name] { return operation }
        if let what = unsupported[name] {
            throw APIFailure(400, "UNSUPPORTED-OPERATION", "\(name) is not supported: the node has no \(what).")
        }
        throw APIFailure(400, "UNKNOWN-OPERATION", "There is no operation of this name; check x-sora-target.")
    }
}

// MARK: - Arguments

extension JSONFields {
    func channel(_ name: String = "channel_id") throws -> ChannelName {
        guard let channel = ChannelName(try requiredString(name)) else {
            throw JSONShapeError("\"\(name)\" \(ChannelName.rule).")
        }
        return channel
    }

    /// An invalid ID counts as an unknown connection.
    func connection(_ name: String = "connection_id") throws -> ParticipantID {
        guard let id = ParticipantID(try requiredString(name)) else { throw APIFailure.connectionUnknown }
        return id
    }

    func optionalConnection(_ name: String) throws -> ParticipantID? {
        guard let text = try string(name) else { return nil }
        guard let id = ParticipantID(text) else { throw APIFailure.connectionUnknown }
        return id
    }

    func role() throws -> Role {
        guard let role: Role = try choice("role") else { throw JSONShapeError("\"role\" is missing.") }
        return role
    }

    func rid(_ name: String) throws -> RequestedRID {
        guard let rid: RequestedRID = try choice(name) else { throw JSONShapeError("\"\(name)\" is missing.") }
        return rid
    }

    /// The given members of the request, which most operations return.
    func echo(_ names: String...) -> JSONValue {
        .object(members.filter { names.contains($0.key) })
    }
}
