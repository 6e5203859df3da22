import Access
import AccessTestSupport
import ChannelTypes
import HTTPTypes
import Hummingbird
import JSON
import NIOCore
import NIOPosix
import RoomTestSupport
import ServiceLifecycle
import Synchronization
import Testing

@testable import Web
@testable import Webhooks

/// An operator's server on a port of its own.
struct HookServer: Sendable {
    /// Called with the number of earlier requests.
    private let answer: @Sendable (Int, Seen) async throws -> Response

    init(_ answer: @escaping @Sendable (Int, Seen) async throws -> Response) { self.answer = answer }

    struct Seen: Sendable {
        let body: JSONValue
        let bytes: [UInt8]
        let headers: HTTPFields
    }

    /// Runs the server during the body, which gets its address and the received requests.
    func run<Value: Sendable>(
        _ body: @Sendable (String, @escaping @Sendable () -> [Seen]) async throws -> Value
    ) async throws -> Value {
        let answer = answer
        let seen = Box()
        let (ports, announce) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            responder: CallbackResponder<BasicRequestContext> { request, _ in
                let buffer = try await request.body.collect(upTo: 1 << 20)
                let one = Seen(
                    body: (try? JSONValue(parsing: Array(buffer.readableBytesView))) ?? .null,
                    bytes: Array(buffer.readableBytesView),
                    headers: request.headers
                )
                let index = seen.append(one)
                return try await answer(index, one)
            },
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0), serverName: nil),
            onServerRunning: { announce.yield($0.localAddress?.port ?? 0) },
            logger: SignalingBench.quiet
        )
        let group = ServiceGroup(services: [application], gracefulShutdownSignals: [], logger: SignalingBench.quiet)
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            let value = try await body("http://127.0.0.1:\(port)/hook") { seen.all }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
            return value
        }
    }

    static func json(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
        Response(status: status, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    private final class Box: Sendable {
        private let seen = Mutex<[Seen]>([])
        var all: [Seen] { seen.withLock { $0 } }
        func append(_ one: Seen) -> Int {
            seen.withLock {
                $0.append(one)
                return $0.count - 1
            }
        }
    }
}

/// Asks a webhook of `configuration` once.
private func ask(
    _ url: String,
    timeout: Duration = .seconds(10),
    credentials: WebhookConfiguration.Credentials? = nil,
    signer: WebhookSigner? = nil,
    _ request: AccessRequest = .newcomer(nil)
) async throws -> (AccessDecision, WebhookCounters) {
    var configuration = WebhookConfiguration()
    configuration.authenticationURL = url
    configuration.timeout = timeout
    configuration.credentials = credentials
    configuration.signer = signer
    configuration.limits.responseBytesMax = 10_000
    let client = WebhookClient(configuration)
    let counters = WebhookCounters()
    let authorizer = try #require(
        WebhookAuthorizer(
            configuration,
            client: client,
            node: NodeIdentity(name: "n1", label: "L", version: "1.2"),
            counters: counters,
            logger: SignalingBench.quiet
        )
    )
    let decision = await authorizer.admit(request)
    await client.shutdown()
    return (decision, counters)
}

@Suite(.timeLimit(.minutes(10)))
struct WebhookAuthorizerTests {
    @Test func `a request is signed with the time and its body`() async throws {
        try await HookServer { _, _ in HookServer.json(#"{"allowed":true}"#) }.run { url, seen in
            let signer = try #require(WebhookSigner(secret: "0123456789abcdef0123456789abcdef"))
            _ = try await ask(url, signer: signer)
            _ = try await ask(url)
            let header = try #require(HTTPField.Name(WebhookSigner.header))
            #expect(seen().count == 2 && seen().last?.headers[header] == nil)
            let told = try #require(seen().first)
            let value = try #require(told.headers[header])
            let seconds = try #require(value.firstMatch(of: /^t=(\d+),v1=[0-9a-f]{64}$/).flatMap { Int64($0.1) })
            #expect(signer.value(of: told.bytes, at: seconds) == value)
        }
    }

    @Test func `servers of subscriptions get signatures and no credentials`() {
        var configuration = WebhookConfiguration()
        configuration.credentials = WebhookConfiguration.Credentials(user: "u", password: "p")
        configuration.signer = WebhookSigner(secret: "0123456789abcdef0123456789abcdef")
        configuration.timeout = .seconds(7)
        let subscribed = configuration.forSubscriptions
        #expect(subscribed.signer != nil && subscribed.credentials == nil)
        #expect(subscribed.timeout == .seconds(7))
    }

    @Test func `the webhook gets the client's data, and its grants apply`() async throws {
        try await HookServer { _, _ in HookServer.json(#"{"allowed":true,"client_id":"given"}"#) }.run { url, seen in
            var request = AccessRequest.newcomer(
                "t",
                counts: ChannelCounts(sendrecv: 1, sendonly: 2, recvonly: 3),
                bearer: nil
            )
            request.video.codec = "VP9"
            request.notifyMetadata = ["nick": "m"]
            let credentials = WebhookConfiguration.Credentials(user: "node", password: "p:w")
            let (decision, counters) = try await ask(url, credentials: credentials, request)
            #expect(decision.grants?.clientID == "given")
            #expect(await counters.allowed == 1)
            #expect(await counters.denied == 0)
            #expect(await counters["auth"].successful == 1)
            let told = try #require(seen().first)
            #expect(told.headers[.contentType] == "application/json")
            #expect(told.headers[.authorization] == "Basic bm9kZTpwOnc=")
            let header = try #require(HTTPField.Name("sora-connection-id"))
            #expect(told.headers[header] == request.participant.value)
            let expected: [String: JSONValue] = [
                "channel_id": "lobby", "role": "sendrecv", "connection_id": .string(request.participant.value),
                "session_id": .string(request.session.value), "client_id": .string(request.participant.value),
                "metadata": ["access_token": "t"], "signaling_notify_metadata": ["nick": "m"], "audio": true,
                "video": true, "video_codec_type": "VP9", "simulcast": false, "spotlight": false,
                "channel_connections": 6, "channel_sendrecv_connections": 1, "channel_sendonly_connections": 2,
                "channel_recvonly_connections": 3, "label": "L", "version": "1.2", "node_name": "n1",
                "sora_client": "Sora Python SDK 1",
            ]
            for (name, value) in expected { #expect(told.body[name] == value, "\(name)") }
            #expect(told.body["timestamp"]?.string?.hasSuffix("Z") == true)
        }
    }

    @Test func `the webhook gets a WHIP token as metadata.access_token`() async throws {
        try await HookServer { _, _ in HookServer.json(#"{"allowed":true}"#) }.run { url, seen in
            _ = try await ask(url, .newcomer(nil, bearer: "b"))
            #expect(seen().first?.body["metadata"] == ["access_token": "b"])
        }
    }

    @Test func `a denial has the webhook's reason`() async throws {
        try await HookServer { _, _ in HookServer.json(#"{"allowed":false,"reason":"NO-SEAT"}"#) }.run { url, _ in
            let (decision, counters) = try await ask(url)
            guard case .denied(let reason) = decision else { throw Unexpected() }
            #expect(reason == "NO-SEAT")
            #expect(await counters.denied == 1)
            #expect(await counters["auth"].successful == 1)
        }
    }

    @Test(arguments: [
        "", "{}", "[]", "nonsense", #"{"allowed":"true"}"#, #"{"allowed":true,"simulcast":1}"#,
        #"{"allowed":true,"audio_bit_rate":64}"#, #"{"allowed":true}}"#,
        #"{"allowed":true,"x":"\#(String(repeating: "x", count: 20_000))"}"#,
    ])
    func `an invalid webhook answer is a failure`(text: String) async throws {
        try await HookServer { _, _ in HookServer.json(text) }.run { url, _ in
            let (decision, counters) = try await ask(url)
            #expect(decision.isFailed)
            #expect(await counters["auth"].failed == 1)
            #expect(await counters.allowed == 0)
            #expect(await counters.denied == 0)
        }
    }

    @Test(arguments: [400, 404, 500, 503, 302])
    func `a status other than 2xx is a failure`(code: Int) async throws {
        let answer = { @Sendable (_: Int, _: HookServer.Seen) in
            var response = HookServer.json(#"{"allowed":true}"#, status: HTTPResponse.Status(code: code))
            response.headers[.location] = "/elsewhere"
            return response
        }
        try await HookServer(answer).run { url, seen in
            let decision = try await ask(url).0
            #expect(decision.isFailed)
            #expect(seen().count == 1)
        }
    }

    @Test(arguments: [nil, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"allowed\":true,"])
    func `a missing or incomplete answer is a failure after the timeout`(
        reply: String?
    ) async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Mumbler(reply: reply))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let decision = try await ask("http://127.0.0.1:\(port)/", timeout: .milliseconds(50)).0
        #expect(decision.isFailed)
        try await server.close()
    }

    @Test func `an unreachable webhook server is a failure`() async throws {
        // The port was bound a moment ago and is not any more.
        let url = try await HookServer { _, _ in HookServer.json("{}") }.run { url, _ in url }
        let decision = try await ask(url).0
        #expect(decision.isFailed)
    }

    @Test func `pending authentication requests are bounded`() async throws {
        let gate = Gate()
        var limits = WebhookLimits()
        limits.questionsMax = 2
        let counters = WebhookCounters()
        let authorizer = WebhookAuthorizer(
            url: "x",
            transport: gate,
            limits: limits,
            node: NodeIdentity(),
            counters: counters,
            logger: SignalingBench.quiet,
            now: { 0 }
        )
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<2 { group.addTask { await authorizer.admit(.newcomer(nil)).grants != nil } }
            await gate.waitForArrivals(2)
            #expect(await authorizer.admit(.newcomer(nil)).isFailed)
            #expect(await counters["auth"].dropped == 1)
            gate.open()
            for await isAllowed in group { #expect(isAllowed) }
        }
        #expect(await authorizer.admit(.newcomer(nil)).grants != nil)
    }

    @Test func `a cancelled admission is no failure of the server`() async throws {
        let counters = WebhookCounters()
        let asked = AsyncStream.makeStream(of: Void.self)
        let authorizer = WebhookAuthorizer(
            url: "x",
            transport: Patience { asked.continuation.yield() },
            node: NodeIdentity(),
            counters: counters,
            logger: SignalingBench.quiet,
            now: { 0 }
        )
        let question = Task { await authorizer.admit(.newcomer(nil)) }
        for await _ in asked.stream { break }
        question.cancel()
        #expect(await question.value.isFailed)
        #expect(await counters["auth"].failed == 0)
    }

    @Test func `the webhook decides on readers of the participant list`() async throws {
        let authorizer = WebhookAuthorizer(
            url: "x",
            transport: Gate(),
            node: NodeIdentity(),
            counters: WebhookCounters(),
            logger: SignalingBench.quiet,
            now: { 0 }
        )
        let lobby = ChannelName("lobby")!
        #expect(await authorizer.authorize(.observe(lobby), Credential(token: "t")) == .asViewer)
        #expect(await authorizer.authorize(.publish(lobby), nil) == .allowed)
        #expect(await authorizer.authorize(.control(lobby), nil) == .asOwner)
    }
}

struct Unexpected: Error {}

/// Answers whatever comes with the same bytes, and leaves the connection open.
private final class Mumbler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    private let reply: String?

    init(reply: String?) { self.reply = reply }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let reply else { return }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: reply)), promise: nil)
    }
}

/// A transport that never answers, and fails when it is cancelled.
private struct Patience: WebhookTransport {
    let isAsked: @Sendable () -> Void

    func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure) -> [UInt8] {
        isAsked()
        let (never, continuation) = AsyncStream.makeStream(of: Void.self)
        for await _ in never {}
        continuation.finish()
        throw .timeout
    }
}

/// A transport that admits all clients, once it is opened.
final class Gate: WebhookTransport {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var arrived = 0
        var observers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }
    private let state = Mutex(State())

    func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure) -> [UInt8] {
        await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                state.arrived += 1
                var ready = state.observers.filter { $0.count <= state.arrived }.map(\.continuation)
                state.observers.removeAll { $0.count <= state.arrived }
                if state.isOpen { ready.append(continuation) } else { state.waiting.append(continuation) }
                return ready
            }
            for continuation in ready { continuation.resume() }
        }
        return Array(#"{"allowed":true}"#.utf8)
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func waitForArrivals(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                guard state.arrived < count else { return true }
                state.observers.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}
