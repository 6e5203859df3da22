import Access
import Base
import ChannelTypes
import HTTPTypes
import History
import Hummingbird
import HummingbirdTesting
import JSON
import Logging
import NIOCore
import Room
import RoomTestSupport
import Synchronization
import Testing

@testable import Ayame
@testable import Operators
@testable import Web
@testable import Webhooks

/// A clock that only tests move.
final class TestClock: Sendable {
    private let instant = Mutex(Instant(nanoseconds: 0))
    var now: Instant { instant.withLock { $0 } }
    func advance(seconds: Int) { instant.withLock { $0 += .seconds(seconds) } }
}

/// An operators' listener over a node that requires signed tokens.
struct OperatorsBench {
    static let token = "0123456789abcdef"
    static let readToken = "fedcba9876543210"
    static let jwtSecret = "0123456789abcdef0123456789abcdef"

    let bench: SignalingBench
    let admin: AdminAPI
    let drain: NodeDrain
    /// Of the drain.
    let clock: TestClock
    /// The public listener.
    let clients: HTTPTester
    private let http: any TestClientProtocol

    static func run(
        host: String = "127.0.0.1",
        token: String? = OperatorsBench.token,
        readToken: String? = nil,
        keys: AccessKeys? = nil,
        limits: RoomLimits = RoomLimits(),
        cluster: (any OtherNodes)? = nil,
        relayCluster: (any OtherNodes)? = nil,
        history: ConnectionHistory? = nil,
        reload: @escaping ReloadAction = { () throws(ReloadFailure) in ReloadReport() },
        logger: Logger = SignalingBench.quiet,
        _ body: @Sendable @escaping (OperatorsBench) async throws -> Void
    ) async throws {
        let keys = try keys ?? allKeys()
        let authorizer: any Authorizer =
            keys.isEmpty ? OpenAuthorizer() : SignatureAuthorizer(keys: keys, logger: SignalingBench.quiet)
        let bench = try SignalingBench(limits: limits, authorizer: authorizer, relayCluster: relayCluster)
        let clock = TestClock()
        let drain = NodeDrain(
            directory: bench.directory,
            relayCalls: bench.relayCalls,
            logger: SignalingBench.quiet,
            now: { clock.now }
        )
        let admin = AdminAPI(
            directory: bench.directory,
            statistics: SignalingStatistics(),
            clientStatistics: ClientStatistics(),
            keys: keys,
            subscriptions: EventSubscriptions(
                transport: PostedEvents(),
                counters: WebhookCounters(),
                logger: SignalingBench.quiet
            ),
            relayCalls: bench.relayCalls,
            reload: reload,
            drain: drain,
            cluster: cluster,
            history: history
        )
        let server = AdminServer(
            host: host,
            port: 0,
            api: admin,
            token: token,
            readToken: readToken,
            logger: logger,
            metrics: { "" },
            whyNotReady: { nil }
        )
        try await bench.test { clients in
            try await server.testable.test(.router) { client in
                try await body(
                    OperatorsBench(
                        bench: bench,
                        admin: admin,
                        drain: drain,
                        clock: clock,
                        clients: clients,
                        http: client
                    )
                )
            }
        }
    }

    static func allKeys() throws -> AccessKeys {
        AccessKeys(
            jwt: [try JWTKey(.hs256, id: "k1", text: jwtSecret)],
            apps: AppKeys([try AppKey(appID: "live", key: "0123456789abcdef")]),
            urls: URLKeys(["testkey"])
        )
    }

    /// Sends a request with the operators' token.
    func send(
        _ method: HTTPRequest.Method,
        _ path: String,
        _ body: JSONValue? = nil,
        token: String? = OperatorsBench.token,
        type: String? = "application/json",
        origin: String? = nil,
        accept: String? = nil
    ) async throws -> TestResponse {
        var headers = HTTPFields()
        headers[.authorization] = token.map { "Bearer \($0)" }
        headers[.origin] = origin
        headers[.accept] = accept
        if body != nil { headers[.contentType] = type }
        return try await http.execute(
            uri: path,
            method: method,
            headers: headers,
            body: body.map { ByteBuffer(bytes: $0.bytes) }
        )
    }

    /// Sends an operation of Sora's API.
    func command(_ target: String, _ body: JSONValue? = nil, token: String?) async throws -> TestResponse {
        var headers = HTTPFields()
        headers[.authorization] = token.map { "Bearer \($0)" }
        headers[.soraTarget] = target
        return try await http.execute(
            uri: "/",
            method: .post,
            headers: headers,
            body: body.map { ByteBuffer(bytes: $0.bytes) }
        )
    }

    /// The answer of an operation that succeeds. It must follow the operation's schema.
    @discardableResult
    func call(_ method: HTTPRequest.Method, _ path: String, _ body: JSONValue? = nil) async throws -> JSONValue {
        let response = try await send(method, path, body)
        let target = RequestTarget(path)
        let operation = try OperatorsAPI.operation(method, Array(target.segments.dropFirst())).operation
        try #require(Int(response.status.code) == operation.status, "\(method) \(path): \(response.text)")
        guard let schema = operation.answer else {
            #expect(response.text.isEmpty)
            return .null
        }
        let answer = try JSONValue(parsing: response.text)
        try schema.check(answer, "the answer of \(operation.id)", isAnswer: true)
        return answer
    }

    /// The kind of problem that a request gets.
    func problem(_ response: TestResponse) throws -> Problem.Kind {
        #expect(response.headers[.contentType] == "application/problem+json", "\(response.text)")
        let document = try JSONValue(parsing: response.text)
        let kind = try #require(Problem.Kind.allCases.first { $0.uri == document["type"]?.string }, "\(response.text)")
        #expect(document["status"]?.integer == kind.status && Int(response.status.code) == kind.status)
        #expect(document["title"]?.string == kind.title && document["detail"]?.string?.isEmpty == false)
        #expect(document["code"]?.integer == kind.code.map { Int($0.rawValue) })
        return kind
    }

    /// A publisher of `lobby` with this client ID.
    func publish(as user: String) async throws -> OpenSession {
        try OpenSession(await clients.post("/whip/lobby", Offers.publish, token: try await token(of: user)))
    }

    /// A token for `lobby` with this client ID.
    func token(of user: String) async throws -> String {
        let answer = try await call(
            .post,
            "/v1/tokens",
            ["kind": "jwt", "channel": "lobby", "role": "sendrecv", "client_id": .string(user)]
        )
        return try #require(answer["token"]?.string)
    }
}
