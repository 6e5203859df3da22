import Access
import Base
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import MediaTypes
import NIOCore
import Room
import RoomTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Telemetry
@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct JoinTraceTests {
    /// Decides as it is told, and keeps the context that requests to an operator's server would carry.
    private final class Gate: Authorizer {
        private let decision: AccessDecision
        let contexts = Mutex<[TraceContext?]>([])

        init(_ decision: AccessDecision = .allowed(Grants())) { self.decision = decision }

        func authorize(
            _ action: AuthorizedAction,
            _ credential: Credential?,
            from network: ClientNetwork
        ) async -> Authorization { .allowed }
        func admit(_ request: AccessRequest) async -> AccessDecision {
            contexts.withLock { $0.append(TraceContext.current) }
            return decision
        }
    }

    /// Takes its time for each token, as one that waits for its key does.
    private struct SlowVerifier: Authorizer {
        static let delay = Interval.milliseconds(20)

        func verify(_ token: String) async -> Credential {
            let start = DeadlineTimer.now
            try? await eventually("the delay has passed") { DeadlineTimer.now - start >= Self.delay }
            return Credential(token: token)
        }
        func authorize(
            _ action: AuthorizedAction,
            _ credential: Credential?,
            from network: ClientNetwork
        ) async -> Authorization { .allowed }
        func admit(_ request: AccessRequest) async -> AccessDecision { .allowed(Grants()) }
    }

    /// A clock that tests move.
    private final class Clock: Sendable {
        private let seconds = Mutex<Int>(1_000)
        func pass(_ seconds: Int) { self.seconds.withLock { $0 += seconds } }
        var clock: RoomClock {
            RoomClock { [self] in
                let now = seconds.withLock { $0 }
                return RoomTime(
                    instant: Instant(nanoseconds: 0) + .seconds(now),
                    unixNanoseconds: Int64(now) * 1_000_000_000
                )
            }
        }
    }

    private static let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    private static func tracer(capacity: Int = 100) -> Tracer {
        Tracer(queue: SpanQueue(capacity: capacity), sampleRatio: 1)
    }

    private static func publish(
        _ http: HTTPTester,
        traceparent: String?,
        token: String? = nil
    ) async throws -> TestResponse {
        var headers: HTTPFields = [.contentType: "application/sdp"]
        headers[.authorization] = token.map { "Bearer \($0)" }
        headers[HTTPField.Name("traceparent")!] = traceparent
        let body = ByteBuffer(string: Offers.publish)
        return try await http.client.execute(uri: "/whip/lobby", method: .post, headers: headers, body: body)
    }

    private static let setup = PeerSetup(
        firstCheck: .milliseconds(1),
        iceConnected: .milliseconds(2),
        dtlsConnected: .milliseconds(3),
        firstPacketReceived: .milliseconds(4),
        firstFrameReceived: .milliseconds(5)
    )

    @Test func `a WHIP join is one trace with its phases, part of the client's trace`() async throws {
        let tracer = Self.tracer()
        let gate = Gate()
        let bench = try SignalingBench(authorizer: gate, traces: JoinTracer(tracer))
        try await bench.test { http in
            #expect(try await Self.publish(http, traceparent: Self.parent).status == .created)
            #expect(tracer.queue.first(100).isEmpty, "the join is under way")
            await bench.report(.setupAdvanced(PeerSetup(iceConnected: .milliseconds(2))), .connected(over: .udp))
            #expect(tracer.queue.first(100).isEmpty, "its first frame is awaited")
            await bench.report(.setupAdvanced(Self.setup))
            let spans = tracer.queue.first(100)
            let root = try #require(spans.first)
            #expect(root.name == "join" && root.parent?.text == "00f067aa0ba902b7" && root.error == nil)
            #expect(root.attributes["nagare.channel"] == .string("lobby"))
            #expect(root.attributes["nagare.protocol"] == .string("whip"))
            #expect(root.attributes["nagare.connection.id"] != nil && root.attributes["session.id"] != nil)
            let names = Set(spans.dropFirst().map(\.name))
            #expect(
                names == [
                    "authorization", "reservation", "negotiation", "first_check", "ice", "dtls",
                    "first_packet_received", "first_frame_received", "POST /whip/{channel}",
                ]
            )
            for span in spans.dropFirst() {
                #expect(span.parent == root.context.span && span.start >= root.start && span.end <= root.end)
            }
            #expect(spans.allSatisfy { $0.context.trace.text == "4bf92f3577b34da6a3ce929d0e0e4736" })
            #expect(Set(spans.map(\.context.span)).count == spans.count)
            let request = try #require(spans.first { $0.name == "POST /whip/{channel}" })
            #expect(request.attributes["http.response.status_code"] == .integer(201) && request.error == nil)
            let authorization = try #require(spans.first { $0.name == "authorization" })
            #expect(gate.contexts.withLock { $0 } == [authorization.context])
        }
    }

    @Test func `the check of the token is part of the authorization`() async throws {
        let tracer = Self.tracer()
        let setups = Mutex<[ConnectionSetup]>([])
        let bench = try SignalingBench(authorizer: SlowVerifier(), traces: JoinTracer(tracer)) { event in
            guard case .report(.connectionCreated(let report)) = event else { return }
            setups.withLock { $0.append(report.connection.setup) }
        }
        try await bench.test { http in
            let response = try await Self.publish(http, traceparent: nil, token: "t")
            #expect(response.status == .created)
            await bench.report(.connected(over: .udp), .setupAdvanced(Self.setup))
            let authorization = try #require(tracer.queue.first(100).first { $0.name == "authorization" })
            #expect(authorization.end - authorization.start >= SlowVerifier.delay.nanoseconds)
            let phase = try #require(setups.withLock { $0.first?.authorization })
            #expect(phase >= SlowVerifier.delay)
        }
    }

    @Test func `a refused WHIP join is a trace with the reason`() async throws {
        let tracer = Self.tracer()
        let gate = Gate(.denied(reason: "Not today."))
        let bench = try SignalingBench(authorizer: gate, traces: JoinTracer(tracer))
        try await bench.test { http in
            let response = try await Self.publish(http, traceparent: nil)
            #expect(response.status == .unauthorized)
        }
        let spans = tracer.queue.first(100)
        #expect(spans.map(\.name) == ["join", "authorization", "POST /whip/{channel}"])
        #expect(spans.first?.error == "Not today." && spans.first?.parent == nil)
        #expect(spans.first?.attributes["error.type"] == .string("401") && spans.last?.error == "Not today.")
        #expect(spans.last?.attributes["http.response.status_code"] == .integer(401))
    }

    @Test func `a join that its client does not sample, a probe, and a node without traces make none`() async throws {
        let tracer = Self.tracer()
        let gate = Gate()
        let bench = try SignalingBench(authorizer: gate, traces: JoinTracer(tracer))
        try await bench.test { http in
            let unsampled = Self.parent.dropLast(2) + "00"
            let joined = try await Self.publish(http, traceparent: String(unsampled))
            let probe = try await http.send(.get, "/whip/lobby")
            #expect(joined.status == .created && probe.status == .noContent)
        }
        let plain = try SignalingBench(authorizer: gate)
        try await plain.test { http in
            let response = try await Self.publish(http, traceparent: Self.parent)
            #expect(response.status == .created)
        }
        await bench.directory.shutdown()
        #expect(tracer.queue.first(100).isEmpty && tracer.counts.dropped.isEmpty)
        #expect(gate.contexts.withLock { $0 } == [nil, nil])
    }

    @Test func `a join that fails after its answer has the reason of the rooms`() async throws {
        let tracer = Self.tracer()
        let bench = try SignalingBench(traces: JoinTracer(tracer))
        try await bench.test { http in
            let opened = try OpenSession(await Self.publish(http, traceparent: nil))
            await bench.report(.setupAdvanced(PeerSetup(firstCheck: .milliseconds(1))), .closed(.setupTimedOut))
            let spans = tracer.queue.first(100)
            #expect(spans.first?.error == "TRANSPORT-SETUP-TIMED-OUT")
            #expect(spans.first?.attributes["nagare.connection.id"] == .string(opened.participant))
            #expect(spans.contains { $0.name == "first_check" } && !spans.contains { $0.name == "ice" })
        }
    }

    @Test func `a connected member without a frame ends its trace after a while, and a silent join fails`() async throws
    {
        let clock = Clock()
        let tracer = Self.tracer()
        let joins = JoinTracer(tracer, clock: clock.clock)
        let bench = try SignalingBench(traces: joins)
        try await bench.test { http in
            _ = try OpenSession(await Self.publish(http, traceparent: nil))
            await bench.report(.connected(over: .udp))
            clock.pass(9)
            joins.sweep()
            #expect(tracer.queue.first(100).isEmpty)
            clock.pass(1)
            joins.sweep()
            #expect(tracer.queue.first(100).first?.name == "join" && tracer.queue.first(100).first?.error == nil)
            tracer.queue.exported(100)
            _ = try OpenSession(await http.post("/whep/lobby", Offers.watch))
            clock.pass(180)
            joins.sweep()
            #expect(tracer.queue.first(100).first?.error == "No media came up in time.")
        }
    }

    @Test func `a Sora join is one trace with its phases, part of the client's trace`() async throws {
        let tracer = Self.tracer()
        let gate = Gate()
        try await withLiveServer(authorizer: gate, traces: JoinTracer(tracer)) { bench, port, _ in
            try await withWebSocket(to: port, traceparent: Self.parent) { client, input in
                try await client.send(SoraBench.connect(.sendonly))
                let offer = try await input.message("offer")
                let mids = offer["mid"]?.object?.values.compactMap(\.string) ?? []
                let sdp = SDPAnswer.make(to: try #require(offer["sdp"]?.string), own: mids)
                try await client.send(JSONValue.object(["type": "answer", "sdp": .string(sdp)]).text)
                try await eventually("the plane has the peer") { await !bench.plane.peers.isEmpty }
                #expect(tracer.queue.first(100).isEmpty, "the join is under way")
                await bench.report(.connected(over: .udp))
                _ = try await input.event("connection.created")
                await bench.report(.setupAdvanced(Self.setup))
                try await eventually("the trace is complete") { !tracer.queue.first(100).isEmpty }
            }
        }
        let spans = tracer.queue.first(100)
        let root = try #require(spans.first)
        #expect(root.name == "join" && root.parent?.text == "00f067aa0ba902b7" && root.error == nil)
        #expect(root.attributes["nagare.protocol"] == .string("sora"))
        #expect(root.attributes["nagare.role"] == .string("sendonly"))
        #expect(
            spans.dropFirst().map(\.name) == [
                "authorization", "reservation", "negotiation", "first_check", "ice", "dtls", "first_packet_received",
                "first_frame_received", "connect",
            ]
        )
        for span in spans.dropFirst() {
            #expect(span.parent == root.context.span && span.start >= root.start && span.end <= root.end)
            #expect(span.error == nil)
        }
        #expect(gate.contexts.withLock { $0 } == [spans.first { $0.name == "authorization" }?.context])
    }

    @Test func `a refused Sora join is a trace with the reason`() async throws {
        let tracer = Self.tracer()
        let gate = Gate(.denied(reason: "Not today."))
        try await withLiveServer(authorizer: gate, traces: JoinTracer(tracer)) { _, port, _ in
            _ = try await withWebSocket(to: port) { client, input in
                try await client.send(SoraBench.connect())
                return try await input.close()
            }
        }
        let spans = tracer.queue.first(100)
        #expect(spans.map(\.name) == ["join", "authorization", "connect"])
        #expect(spans.first?.attributes["nagare.protocol"] == .string("sora"))
        #expect(spans.first?.error?.contains("Not today.") == true)
        #expect(gate.contexts.withLock { $0 } == [spans.dropFirst().first?.context])
    }
}
