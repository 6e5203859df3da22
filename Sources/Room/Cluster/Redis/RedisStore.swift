import Base
package import Logging
package import MediaTypes
internal import NIOCore
internal import NIOSSL

/// The store on a server of the Redis protocol (Redis 6.2 or Valkey 7.2 and later), over one pipelined connection.
///
/// Only ``enlist(_:)`` and ``beat(_:)`` open the connection, so nothing else waits for it. The cluster's keys must not be
/// evicted (`maxmemory-policy noeviction`), and its user needs the keys `ng:{CLUSTER*` only.
package actor RedisStore: ClusterStore {
    private let scriptDeadline: TimeAmount
    private let heartbeatDeadline: TimeAmount
    private let connector: RedisConnector
    private let keys: StoreKeys
    private let signer: RecordSigner
    private let incidents: StoreIncidents
    private let logger: Logger
    private var connection: RedisConnection?
    private var isConnecting = false
    private var isClosed = false
    private var health = StoreHealth()
    private let start = ContinuousClock.now

    /// - Parameters:
    ///   - signer: signs the node's record, and verifies those of the others.
    ///   - certificateAuthority: a PEM file with the authorities of `rediss`; `nil` for the system's.
    ///   - scriptDeadline: how long the answer to a request other than a heartbeat may take.
    ///   - heartbeatDeadline: how long the answer to a heartbeat may take.
    ///   - incidents: counts the times that the store went down.
    /// - Throws: ``RedisEndpointError`` when the file is unusable.
    package init(
        _ endpoint: RedisEndpoint,
        cluster: ClusterName,
        signer: RecordSigner,
        certificateAuthority: String? = nil,
        scriptDeadline: Duration = .milliseconds(150),
        heartbeatDeadline: Duration = .seconds(1),
        incidents: StoreIncidents = StoreIncidents(),
        logger: Logger
    ) throws(RedisEndpointError) {
        var tls: NIOSSLContext?
        if endpoint.usesTLS {
            var configuration = TLSConfiguration.makeClientConfiguration()
            if let certificateAuthority { configuration.trustRoots = .file(certificateAuthority) }
            guard let context = try? NIOSSLContext(configuration: configuration) else {
                throw RedisEndpointError(description: "The certificates of the store's authorities cannot be read.")
            }
            tls = context
        }
        self.scriptDeadline = TimeAmount(scriptDeadline)
        self.heartbeatDeadline = TimeAmount(heartbeatDeadline)
        connector = RedisConnector(endpoint: endpoint, tls: tls)
        keys = StoreKeys(cluster: cluster)
        self.signer = signer
        self.incidents = incidents
        self.logger = logger
    }

    /// Whether requests other than heartbeats are sent.
    package var isUp: Bool { health.isUp }

    /// Ends the connection. Requests fail from then on.
    package func close() {
        isClosed = true
        connection?.close()
        connection = nil
    }

    package func enlist(_ request: RegisterNode) async throws(StoreError) -> NodeIncarnation {
        try await perform(request, isHeartbeat: true)
    }

    package func beat(_ request: Heartbeat) async throws(StoreError) -> HeartbeatAnswer {
        try await perform(SignedBeat(beat: request, cluster: keys.cluster, signer: signer), isHeartbeat: true)
    }

    package func attach(_ request: Attach) async throws(StoreError) -> RoomEntry { try await perform(request) }
    package func detach(_ request: Detach) async throws(StoreError) -> Bool { try await perform(request) }

    package func sweep(_ request: Sweep) async throws(StoreError) -> Int {
        var removed = 0
        for part in request.parts(keys) { removed += try await perform(part) }
        return removed
    }

    // MARK: Requests

    private var now: Instant {
        let elapsed = start.duration(to: .now).components
        return Instant(nanoseconds: elapsed.seconds &* 1_000_000_000 &+ elapsed.attoseconds / 1_000_000_000)
    }

    private func perform<Request: StoreRequest>(
        _ request: Request,
        isHeartbeat: Bool = false
    ) async throws(StoreError) -> Request.Answer {
        let random = Double.random(in: 0..<1)
        guard !isClosed, health.admits(isHeartbeat: isHeartbeat, random: random, at: now) else { throw .unavailable }
        do throws(StoreError) {
            let connection = try await connection(opens: isHeartbeat)
            let sent = now
            let reply = try await run(request.call(keys), connection, isHeartbeat)
            let answer = try request.answer(reply)
            note(health.succeeded(isHeartbeat: isHeartbeat, after: now - sent), nil)
            return answer
        } catch {
            if error.isFailure(ofHeartbeat: isHeartbeat) { note(health.failed(), error) }
            switch error {
            // Another server may be the primary now.
            case .down: drop()
            // The kernel takes a quarter of an hour to give up a connection whose packets are lost.
            case .timedOut where isHeartbeat: drop()
            default: break
            }
            throw error
        }
    }

    private func run(
        _ call: StoreCall,
        _ connection: RedisConnection,
        _ isHeartbeat: Bool
    ) async throws(StoreError) -> RESPValue {
        let deadline = isHeartbeat ? heartbeatDeadline : scriptDeadline
        var reply = try await connection.send(call.evalSHA, isHeartbeat: isHeartbeat, within: deadline)
        if reply.errorCode == "NOSCRIPT" {
            reply = try await connection.send(call.eval, isHeartbeat: isHeartbeat, within: deadline)
        }
        if let code = reply.errorCode { throw StoreError(errorCode: code) }
        return reply
    }

    private func connection(opens: Bool) async throws(StoreError) -> RedisConnection {
        if let connection, connection.isOpen { return connection }
        guard opens else { throw .unavailable }
        guard !isConnecting else { throw .busy }
        isConnecting = true
        defer { isConnecting = false }
        let opened = try await connector.connect()
        guard !isClosed else {
            opened.close()
            throw .unavailable
        }
        connection = opened
        return opened
    }

    private func drop() {
        connection?.close()
        connection = nil
    }

    private func note(_ change: StoreHealth.Change?, _ error: StoreError?) {
        switch change {
        case .wentDown:
            drop()
            let error = error ?? .unavailable
            let incident = StoreIncident(error)
            incidents.note(incident)
            logger.warning(
                "the cluster's store does not answer: calls and known rooms go on",
                metadata: [
                    "store": "\(connector.endpoint)", "case": "\(incident.rawValue)", "error": "\(error)",
                ]
            )
        case .cameUp: logger.notice("the cluster's store answers", metadata: ["store": "\(connector.endpoint)"])
        case nil: break
        }
    }
}
