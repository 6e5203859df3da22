internal import NIOCore
internal import NIOSSL

/// Finds the server that takes writes, and opens a connection to it.
struct RedisConnector: Sendable {
    private static let commandDeadline = TimeAmount.milliseconds(300)

    let endpoint: RedisEndpoint
    /// `nil` without TLS.
    let tls: NIOSSLContext?

    /// - Throws: ``StoreError/unavailable`` or ``StoreError/timedOut`` when there is no such server,
    ///   ``StoreError/refused(_:)`` when it refuses the credentials or the database.
    func connect() async throws(StoreError) -> RedisConnection {
        guard case .sentinels(let sentinels, let master) = endpoint.location else {
            guard case .server(let host) = endpoint.location else { throw .unavailable }
            return try await connect(to: host, isPrimary: false)
        }
        var failure = StoreError.unavailable
        for host in await primaries(sentinels, master) {
            do throws(StoreError) {
                return try await connect(to: host, isPrimary: true)
            } catch { failure = error }
        }
        throw failure
    }

    /// - Parameter isPrimary: whether the server has to say that it is one. Sentinels may be behind.
    private func connect(to host: HostPort, isPrimary: Bool) async throws(StoreError) -> RedisConnection {
        let connection = try await RedisConnection.open(host, tls: tls)
        do throws(StoreError) {
            if let password = endpoint.password {
                let words = ["AUTH"] + (endpoint.user.map { [$0] } ?? []) + [password.secret]
                try await check(RESPCommand(words.map { Array($0.utf8) }), connection)
            }
            if endpoint.database != 0 { try await check(RESPCommand("SELECT", "\(endpoint.database)"), connection) }
            if isPrimary {
                let role = try await connection.send(RESPCommand("ROLE"), within: Self.commandDeadline)
                guard role.array?.first?.text == "master" else { throw .unavailable }
            }
            return connection
        } catch {
            connection.close()
            throw error
        }
    }

    private func check(_ command: RESPCommand, _ connection: RedisConnection) async throws(StoreError) {
        let reply = try await connection.send(command, within: Self.commandDeadline)
        if let code = reply.errorCode { throw StoreError(errorCode: code) }
    }

    /// The servers that the Sentinels name as primary, the one named most often first.
    private func primaries(_ sentinels: [HostPort], _ master: String) async -> [HostPort] {
        var votes: [HostPort: Int] = [:]
        await withTaskGroup(of: HostPort?.self) { group in
            for sentinel in sentinels { group.addTask { await ask(sentinel, master) } }
            for await host in group { if let host { votes[host, default: 0] += 1 } }
        }
        return votes.sorted { ($1.value, $0.key.description) < ($0.value, $1.key.description) }.map(\.key)
    }

    private func ask(_ sentinel: HostPort, _ master: String) async -> HostPort? {
        guard let connection = try? await RedisConnection.open(sentinel, tls: tls) else { return nil }
        defer { connection.close() }
        let question = RESPCommand("SENTINEL", "get-master-addr-by-name", master)
        guard let fields = try? await connection.send(question, within: Self.commandDeadline).array, fields.count == 2,
            let name = fields[0].text, let port = fields[1].number.flatMap({ Int(exactly: $0) })
        else { return nil }
        return HostPort(host: name, port: port)
    }
}

extension StoreError {
    /// What the first word of an error reply means.
    init(errorCode: String) {
        switch errorCode {
        case "OOM", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "MISCONF", "NOREPLICAS": self = .down(errorCode)
        default: self = .refused(errorCode)
        }
    }

    /// Whether it counts against the store's health. A store that refuses heartbeats is of no use, but one script may be refused
    /// for reasons of its own.
    func isFailure(ofHeartbeat isHeartbeat: Bool) -> Bool {
        switch self {
        case .unavailable, .timedOut, .down, .malformed: true
        case .refused: isHeartbeat
        case .busy: false
        }
    }
}
