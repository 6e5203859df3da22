import ChannelTypes
import Foundation
import Logging
import MediaTypes
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import Cluster

/// A real server whose content is set back, which is what a clock that is set forward looks like.
final class ServedStore: TestedStore {
    private struct Clock {
        /// How far the tests' clock is ahead of the server's.
        var aheadMS: Int64 = 0
        var keptAheadMS: Int64 = 0
    }
    private let clock = Mutex(Clock())
    let server: RedisServer
    let store: RedisStore
    let incidents = StoreIncidents()
    private let connection: RedisConnection

    /// - Parameter deadline: of scripts and heartbeats.
    init(deadline: Duration = .seconds(30)) async throws {
        server = try await RedisServer()
        store = try RedisStoreTests.store(
            "redis://127.0.0.1:\(server.port)",
            deadline: deadline,
            incidents: incidents
        )
        connection = try await RedisConnection.open(server.address, tls: nil)
        // Opens the connection, without a trace.
        _ = try await store.enlist(RegisterNode(node: Given.node("first"), candidate: Given.generation(9)))
        try await wipe()
    }

    func enlist(_ request: RegisterNode) async throws(StoreError) -> NodeIncarnation { try await store.enlist(request) }
    func beat(_ request: Heartbeat) async throws(StoreError) -> HeartbeatAnswer {
        let ahead = clock.withLock(\.aheadMS)
        var request = request
        request.answeredMS -= ahead
        var answer = try await store.beat(request)
        answer.timeMS += ahead
        answer.graceMS += ahead
        return answer
    }
    func attach(_ request: Attach) async throws(StoreError) -> RoomEntry { try await store.attach(request) }
    func detach(_ request: Detach) async throws(StoreError) -> Bool { try await store.detach(request) }
    func sweep(_ request: Sweep) async throws(StoreError) -> Int { try await store.sweep(request) }

    private func run(_ words: String...) async throws {
        let reply = try await connection.send(RESPCommand(words.map { Array($0.utf8) }), within: .seconds(10))
        #expect(reply.errorCode == nil, "\(reply)")
    }

    func advance(milliseconds: Int) async throws {
        clock.withLock { $0.aheadMS += Int64(milliseconds) }
        try await setBack(milliseconds: milliseconds)
    }

    private func setBack(milliseconds: Int) async throws {
        guard milliseconds > 0 else { return }
        let script = """
            redis.call('HINCRBY', 'ng:{c}:meta', 'beat', -ARGV[1])
            redis.call('HINCRBY', 'ng:{c}:meta', 'grace', -ARGV[1])
            for _, id in ipairs(redis.call('ZRANGE', 'ng:{c}:seen', 0, -1)) do
                redis.call('ZINCRBY', 'ng:{c}:seen', -ARGV[1], id)
            end
            return 1
            """
        try await run("EVAL", script, "0", "\(milliseconds)")
    }

    func keep() async throws {
        clock.withLock { $0.keptAheadMS = $0.aheadMS }
        let script = """
            for _, k in ipairs(redis.call('KEYS', 'ng:*')) do redis.call('COPY', k, 'kept:' .. k) end
            return 1
            """
        try await run("EVAL", script, "0")
    }

    func restore() async throws {
        let script = """
            for _, k in ipairs(redis.call('KEYS', 'ng:*')) do redis.call('DEL', k) end
            for _, k in ipairs(redis.call('KEYS', 'kept:*')) do redis.call('COPY', k, string.sub(k, 6)) end
            return 1
            """
        try await run("EVAL", script, "0")
        try await setBack(milliseconds: clock.withLock { Int($0.aheadMS - $0.keptAheadMS) })
    }

    func wipe() async throws { try await run("FLUSHALL") }
}

/// On a server of their own, one after the other, and in a process of their own: the server's clock goes on while a test waits for a
/// thread.
@Suite(.serialized, .timeLimit(.minutes(5))) struct RedisStoreTests {
    /// - Parameter deadline: of scripts and heartbeats. A busy machine is no reason to fail.
    static func store(
        _ url: String,
        secret: String = "0123456789abcdef0123456789abcdef",
        certificateAuthority: String? = nil,
        deadline: Duration = .seconds(30),
        incidents: StoreIncidents = StoreIncidents()
    ) throws -> RedisStore {
        try RedisStore(
            RedisEndpoint(url),
            cluster: try #require(ClusterName(rawValue: "c")),
            signer: RecordSigner(secrets: [secret]),
            certificateAuthority: certificateAuthority,
            scriptDeadline: deadline,
            heartbeatDeadline: deadline,
            incidents: incidents,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    private static func beat(_ number: UInt32 = 7) throws -> Heartbeat {
        try Given.beat(Given.instance("a", number), Given.record("x"))
    }

    private static func failure(_ body: () async throws -> Void) async -> StoreError? {
        do {
            try await body()
            return nil
        } catch { return error as? StoreError }
    }

    @Test(arguments: StoreCase.allCases)
    func `a real server does what a store has to do`(name: StoreCase) async throws {
        try await name.run(ServedStore())
    }

    @Test func `a server that forgot the scripts is given them again`() async throws {
        let served = try await ServedStore()
        _ = try await served.beat(Self.beat())
        let connection = try await RedisConnection.open(served.server.address, tls: nil)
        _ = try await connection.send(RESPCommand("SCRIPT", "FLUSH"), within: .seconds(10))
        #expect(try await served.beat(Self.beat()).isKnown)
        connection.close()
    }

    @Test func `records that others write into the server are told as not signed`() async throws {
        let served = try await ServedStore()
        let first = try await served.beat(Self.beat())
        #expect(first.changes.map(\.signature) == [.valid])
        let other = try Self.store(
            "redis://127.0.0.1:\(served.server.port)",
            secret: String(repeating: "x", count: 32)
        )
        _ = try await other.beat(Given.beat(Given.instance("b", 8), Given.record("y")))
        let connection = try await RedisConnection.open(served.server.address, tls: nil)
        // Whoever writes to the server makes up a node, and gives another node the record of this one.
        let script = """
            redis.call('HSET', 'ng:{c}:node', 'c', '9 {"s":"ready","k":"evil:1","u":"https://evil.example"}')
            redis.call('HSET', 'ng:{c}:node', 'd', redis.call('HGET', 'ng:{c}:node', 'a'))
            redis.call('ZADD', 'ng:{c}:chg', 100, 'c', 101, 'd')
            redis.call('HSET', 'ng:{c}:meta', 'rev', 101)
            return 1
            """
        let reply = try await connection.send(RESPCommand("EVAL", script, "0"), within: .seconds(10))
        #expect(reply.errorCode == nil, "\(reply)")
        let told = try await served.beat(Given.beat(Given.instance("a", 7), nil, after: first)).changes
        #expect(told.map(\.instance.node.rawValue) == ["b", "c", "d"])
        #expect(told.map(\.signature) == [.invalid, .missing, .invalid])
        connection.close()
    }

    @Test func `nodes of earlier versions find an epoch and an anchor`() async throws {
        let served = try await ServedStore()
        let room = try Given.room("r")
        for node in ["a", "b"] {
            _ = try await served.attach(
                Attach(room: room, instance: Given.instance(node, 7), session: Given.session("S"))
            )
        }
        let connection = try await RedisConnection.open(served.server.address, tls: nil)
        let key = StoreKeys(cluster: try #require(ClusterName(rawValue: "c"))).room(room)
        let reply = try await connection.send(RESPCommand("HMGET", key, "e", "a"), within: .seconds(10))
        #expect(reply.array?.map(\.text) == ["1", "a:7"])
        connection.close()
    }

    @Test func `many scripts are under way at a time`() async throws {
        let served = try await ServedStore()
        let session = try Given.session("S")
        let rooms = try (0..<200).map { try Given.room("room-\($0)") }
        let attaches = try rooms.map { try Attach(room: $0, instance: Given.instance("a", 7), session: session) }
        // So that each is found, and none is slow.
        _ = try await served.attach(attaches[0])
        let found = try await withThrowingTaskGroup(of: RoomEntry?.self) { group in
            for attach in attaches { group.addTask { try? await served.attach(attach) } }
            return try await group.reduce(into: [RoomEntry]()) { if let entry = $1 { $0.append(entry) } }
        }
        let node = try Given.node("a")
        #expect(!found.isEmpty && found.allSatisfy { $0.session == session && Set($0.nodes.keys) == [node] })
    }

    @Test func `a user and a password open the store, and wrong ones do not`() async throws {
        let users = ["--user", "nagare", "on", ">p:ss", "~ng:{c*", "+@all", "--user", "default", "on", ">other"]
        let server = try await RedisServer(users)
        let good = try Self.store("redis://nagare:p%3Ass@127.0.0.1:\(server.port)/2")
        #expect(try await good.beat(Self.beat()).isKnown)
        let bad = try Self.store("redis://nagare:wrong@127.0.0.1:\(server.port)")
        #expect(await Self.failure { _ = try await bad.beat(Self.beat()) } == .refused("WRONGPASS"))
        let none = try Self.store("redis://127.0.0.1:\(server.port)")
        // A node's first request. Redis refuses the longer ones of a stranger as a protocol error.
        let enlist = try RegisterNode(node: Given.node("a"), candidate: Given.generation(1))
        #expect(await Self.failure { _ = try await none.enlist(enlist) } == .refused("NOAUTH"))
    }

    @Test func `TLS needs a certificate of a known authority`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (chain, key) = (folder.appendingPathComponent("c.pem"), folder.appendingPathComponent("k.pem"))
        try TestCertificate.chain.write(to: chain, atomically: true, encoding: .utf8)
        try TestCertificate.key.write(to: key, atomically: true, encoding: .utf8)
        let files = ["--tls-cert-file", chain.path, "--tls-key-file", key.path, "--tls-ca-cert-file", chain.path]
        let server = try await RedisServer(files + ["--tls-auth-clients", "no"], isTLS: true)
        let trusting = try Self.store("rediss://localhost:\(server.port)", certificateAuthority: chain.path)
        #expect(try await trusting.beat(Self.beat()).isKnown)
        let strict = try Self.store("rediss://localhost:\(server.port)")
        #expect(await Self.failure { _ = try await strict.beat(Self.beat()) } == .unavailable)
        let plain = try Self.store("redis://127.0.0.1:\(server.port)")
        #expect(await Self.failure { _ = try await plain.beat(Self.beat()) } != nil)
    }

    @Test func `Sentinels name the primary, and a replica refuses to write`() async throws {
        let primary = try await RedisServer()
        let replica = try await RedisServer(["--replicaof", "127.0.0.1 \(primary.port)"])
        let sentinel = try await RedisServer(sentinelOf: primary)
        let store = try Self.store("redis+sentinel://127.0.0.1:1,127.0.0.1:\(sentinel.port)/main")
        #expect(try await store.beat(Self.beat()).isKnown)
        let unknown = try Self.store("redis+sentinel://127.0.0.1:\(sentinel.port)/other")
        #expect(await Self.failure { _ = try await unknown.beat(Self.beat()) } == .unavailable)
        let direct = try Self.store("redis://127.0.0.1:\(replica.port)")
        let refusals: [StoreError] = [.down("READONLY"), .down("LOADING"), .down("MASTERDOWN")]
        let refusal = try #require(await Self.failure { _ = try await direct.beat(Self.beat()) })
        #expect(refusals.contains(refusal), "\(refusal)")
    }

    @Test func `a full store is down and comes back`() async throws {
        let served = try await ServedStore()
        let connection = try await RedisConnection.open(served.server.address, tls: nil)
        func limit(_ bytes: String) async throws {
            _ = try await connection.send(RESPCommand("CONFIG", "SET", "maxmemory", bytes), within: .seconds(10))
        }
        try await limit("1")
        for _ in 0..<3 { #expect(await Self.failure { _ = try await served.beat(Self.beat()) } == .down("OOM")) }
        #expect(await !served.store.isUp)
        #expect(StoreIncident.allCases.map(served.incidents.count(of:)) == [0, 0, 1, 0, 0, 0, 0], "full, once")
        let detach = try Detach(room: Given.room("r"), instance: Given.instance("a", 7))
        #expect(await Self.failure { _ = try await served.detach(detach) } == .unavailable)
        try await limit("0")
        // The first probe goes at once, and a slow one needs more.
        try await eventually("the store is up") {
            _ = try? await served.beat(Self.beat())
            return await served.store.isUp
        }
        connection.close()
    }

    @Test func `a store that hangs costs a script its deadline, and no more once it is known`() async throws {
        let served = try await ServedStore(deadline: .milliseconds(300))
        let attach = try Attach(room: Given.room("r"), instance: Given.instance("a", 7), session: Given.session("S"))
        served.server.send(SIGSTOP)
        for _ in 0..<3 { #expect(await Self.failure { _ = try await served.attach(attach) } == .timedOut) }
        #expect(await Self.failure { _ = try await served.attach(attach) } == .unavailable)
        #expect(StoreIncident.allCases.map(served.incidents.count(of:)) == [0, 1, 0, 0, 0, 0, 0], "slow, once")
        served.server.send(SIGCONT)
        try await eventually("the store is up") {
            _ = try? await served.beat(Self.beat())
            return await served.store.isUp
        }
        #expect(try await Set(served.attach(attach).nodes.keys) == [Given.node("a")])
    }

    @Test func `a connection that goes silent is replaced`() async throws {
        let accepted = Atomic(0)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                accepted.add(1, ordering: .relaxed)
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listener.localAddress?.port)
        let store = try Self.store("redis://127.0.0.1:\(port)", deadline: .milliseconds(50))
        for _ in 0..<3 { #expect(await Self.failure { _ = try await store.beat(Self.beat()) } == .timedOut) }
        #expect(await !store.isUp)
        try await eventually("the store has connected three times") { accepted.load(ordering: .relaxed) >= 3 }
        try await listener.close()
    }
}
