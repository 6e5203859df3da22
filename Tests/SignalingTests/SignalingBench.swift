import Access
import Base
import ChannelTypes
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Logging
import MediaTypes
import NIOCore
import Room
import RoomTestSupport
import Testing

@testable import Ayame
@testable import Signaling
@testable import Sora
@testable import Web
@testable import Webhooks

/// The public listener's application over a fake media plane.
struct SignalingBench {
    let plane: FakeMediaPlane
    let directory: ChannelDirectory
    let application: Application<PublicResponder>
    let server: PublicServer
    let statistics = SignalingStatistics()
    let relayCalls: AyameCalls

    init(
        limits: RoomLimits = RoomLimits(),
        http: HTTPLimits = HTTPLimits(),
        authorizer: any Authorizer = OpenAuthorizer(),
        eventInterval: Duration = .zero,
        heartbeatInterval: Duration = .seconds(3600),
        sora: SoraConfiguration = SoraConfiguration(),
        proxies: ProxyConfiguration = ProxyConfiguration(),
        ayame: AyameConfiguration = AyameConfiguration(),
        webhookClient: WebhookClient? = nil,
        cluster: (any OtherNodes)? = nil,
        relayCluster: (any OtherNodes)? = nil,
        relays: (any CallTURNServers)? = nil,
        now: (@Sendable () -> Instant)? = nil,
        directory roomCluster: (any ChannelCluster)? = nil,
        traces: JoinTracer? = nil,
        logger: Logger = Self.quiet,
        onEvent: @escaping @Sendable (ChannelDirectory.Event) -> Void = { _ in },
        onCallReport: @escaping @Sendable (CallReport) -> Void = { _ in },
        onRunning: @escaping @Sendable (Int) async -> Void = { _ in }
    ) throws {
        let node = cluster?.incarnation ?? .standalone
        plane = FakeMediaPlane(MediaLocation(node: node, loop: LoopIndex(rawValue: 0)))
        let relayCalls = AyameCalls(cluster: relayCluster, relays: relays, onReport: onCallReport)
        self.relayCalls = relayCalls
        var observers = ChannelDirectory.Observers()
        observers.decision = { await relayCalls.end(by: $0).compactMap(ParticipantID.init) }
        directory = ChannelDirectory(
            planes: [plane],
            node: node,
            limits: limits,
            cluster: roomCluster,
            observers: observers
        ) { event in
            if case .report(let report) = event { traces?.take(report) }
            onEvent(event)
        }
        server = PublicServer(
            configuration: SignalingConfiguration(
                port: 0,
                limits: http,
                proxies: proxies,
                heartbeatInterval: heartbeatInterval,
                eventInterval: eventInterval,
                sora: sora,
                ayame: ayame
            ),
            directory: directory,
            authorizer: authorizer,
            cluster: cluster,
            now: now,
            relayCalls: relayCalls,
            webhookClient: webhookClient,
            signalingStatistics: statistics,
            traces: traces,
            logger: logger,
            onRunning: onRunning
        )
        application = server.testable
    }

    static var quiet: Logger { Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }) }

    func test<Value: Sendable>(_ body: @Sendable (HTTPTester) async throws -> Value) async throws -> Value {
        try await application.test(.router) { client in try await body(HTTPTester(client: client)) }
    }

    func expectNothingLeft(_ location: SourceLocation = #_sourceLocation) async {
        await directory.settle()
        #expect(await directory.isEmpty, sourceLocation: location)
        #expect(await plane.peers.isEmpty, sourceLocation: location)
    }
}

/// Short forms of the requests that clients make.
struct HTTPTester: Sendable {
    let client: any TestClientProtocol

    func send(
        _ method: HTTPRequest.Method,
        _ path: String,
        type: String? = nil,
        token: String? = nil,
        ifMatch: String? = nil,
        body: String? = nil
    ) async throws -> TestResponse {
        var headers = HTTPFields()
        headers[.contentType] = type
        headers[.authorization] = token.map { "Bearer \($0)" }
        headers[.ifMatch] = ifMatch
        let body = body.map { ByteBuffer(string: $0) }
        return try await client.execute(uri: path, method: method, headers: headers, body: body)
    }

    func post(_ path: String, _ offer: String, token: String? = nil) async throws -> TestResponse {
        try await send(.post, path, type: "application/sdp", token: token, body: offer)
    }

    func patch(_ session: OpenSession, ifMatch: String?, _ body: String) async throws -> TestResponse {
        try await send(.patch, session.path, type: "application/trickle-ice-sdpfrag", ifMatch: ifMatch, body: body)
    }

    func publish(_ path: String = "/whip/lobby", _ offer: String = Offers.publish) async throws -> OpenSession {
        try OpenSession(await post(path, offer))
    }

    func watch(_ path: String = "/whep/lobby", _ offer: String = Offers.watch) async throws -> OpenSession {
        try OpenSession(await post(path, offer))
    }
}

/// A client's session, from a 201 response.
struct OpenSession: Sendable {
    let path: String
    let tag: String
    let participant: String
    let answer: String

    init(_ response: TestResponse) throws {
        try #require(response.status == .created, "\(String(buffer: response.body))")
        path = try #require(response.headers[.location])
        tag = try #require(response.headers[.eTag])
        participant = try #require(response.headers[.participant])
        answer = String(buffer: response.body)
    }
}

extension TestResponse {
    var text: String { String(buffer: body) }
}

extension SignalingBench {
    /// Reports events of the first peer, as its media loop would.
    func report(_ events: PeerEvent...) async {
        for event in events { await plane.report(event, from: PeerID(rawValue: 1)) }
        await directory.takeEvents()
    }
}
