import Base
import ChannelTypes
import JSON
import MediaTypes
import Metrics
import Room
import RoomTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Web
@testable import Webhooks

/// A server whose answers are scripted: the first attempt gets the first answer, and the last one stays.
private final class Script: WebhookTransport {
    private let state: Mutex<(answers: [Result<String, WebhookFailure>], told: [JSONValue], headers: [String: String])>

    init(_ answers: [Result<String, WebhookFailure>]) { state = Mutex((answers, [], [:])) }

    /// Of the latest request.
    var headers: [String: String] { state.withLock { $0.headers } }

    var told: [JSONValue] { state.withLock { $0.told } }

    func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure) -> [UInt8] {
        let answer = state.withLock { state in
            state.told.append((try? JSONValue(parsing: body)) ?? .null)
            state.headers = Dictionary(headers) { $1 }
            return state.answers.count > 1 ? state.answers.removeFirst() : state.answers[0]
        }
        return Array(try answer.get().utf8)
    }
}

@Suite(.timeLimit(.minutes(10)))
struct WebhookDeliveryTests {
    private static func webhooks(
        _ transport: any WebhookTransport,
        _ counters: WebhookCounters,
        waiting: Int = 100,
        sleeps: Sleeps = Sleeps()
    ) -> Webhooks {
        var configuration = WebhookConfiguration()
        configuration.eventURL = "http://events"
        configuration.sessionURL = "http://sessions"
        configuration.limits.waitingMax = waiting
        configuration.limits.attemptsMax = 3
        let ids = Atomic(0)
        return Webhooks(
            configuration,
            transport: transport,
            node: NodeIdentity(name: "n", label: "l", version: "v"),
            counters: counters,
            logger: SignalingBench.quiet,
            makeID: { "id-\(ids.wrappingAdd(1, ordering: .relaxed).newValue)" },
            sleep: { sleeps.add($0) }
        )
    }

    @Test func `without a webhook no body is made`() async {
        let count = Atomic(0)
        let webhooks = Webhooks(
            WebhookConfiguration(),
            transport: Script([.success("")]),
            node: NodeIdentity(),
            counters: WebhookCounters(),
            logger: SignalingBench.quiet,
            makeID: { "\(count.add(1, ordering: .relaxed).newValue)" }
        )
        await webhooks.take(.connectionCreated(Self.report()))
        await webhooks.take(.sessionCreated(RoomFixtures.session(), unixNanoseconds: 0))
        #expect(count.load(ordering: .relaxed) == 0)
    }

    /// The waits that were asked for; none is kept to.
    final class Sleeps: Sendable {
        private let all = Mutex<[Duration]>([])
        var asked: [Duration] { all.withLock { $0 } }
        func add(_ duration: Duration) { all.withLock { $0.append(duration) } }
    }

    static func report(_ channel: String = "lobby", minutes: Int64 = 0) -> ConnectionReport {
        RoomFixtures.report(channel: channel, minutes: minutes)
    }

    /// Runs the webhooks until every event was delivered or dropped.
    /// - Parameter directory: the channels that answers configure.
    private static func finish(_ webhooks: Webhooks, _ directory: ChannelDirectory? = nil) async throws {
        let directory = directory ?? ChannelDirectory(planes: [FakeMediaPlane()])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await webhooks.run(directory) }
            try await eventually("no event waits") { await webhooks.waitingCounts.values.allSatisfy { $0 == 0 } }
            group.cancelAll()
        }
    }

    @Test func `events are delivered in a channel's order with all members`() async throws {
        let script = Script([.success("")])
        let counters = WebhookCounters()
        let webhooks = Self.webhooks(script, counters)
        await webhooks.take(.connectionCreated(Self.report()))
        await webhooks.take(.publishingBegan(Self.report()))
        await webhooks.take(.connectionUpdated(Self.report(minutes: 1)))
        await webhooks.take(
            .connectionDestroyed(Self.report(minutes: 2), .disconnectedByOperator),
            media: ["sent_loss": 0.25]
        )
        try await Self.finish(webhooks)
        let told = script.told
        #expect(
            told.map { $0["type"] } == [
                "connection.created", "publish", "connection.updated", "publish_done", "connection.destroyed",
            ]
        )
        #expect(told.map { $0["id"] } == ["id-1", "id-2", "id-3", "id-4", "id-5"])
        #expect(told.map { $0["data"]?["minutes"] } == [0, 0, 1, 2, 2])
        let last = try #require(told.last)
        #expect(last["data"]?["reason"] == "DISCONNECTED-API" && last["data"]?["media"] == ["sent_loss": 0.25])
        #expect(told.dropLast().allSatisfy { $0["data"]?["media"] == nil })
        #expect(last["channel_id"] == "lobby" && last["role"] == "sendonly" && last["client_id"] == "c")
        #expect(last["node_name"] == "n" && last["label"] == "l" && last["version"] == "v")
        #expect(last["event_metadata"] == ["k": 1])
        #expect(last["timestamp"]?.string?.hasSuffix("Z") == true)
        #expect(last["data"]?["channel_connections"] == 1)
        #expect(last["data"]?["audio"] == [:] && last["data"]?["video"] == false)
        #expect(await counters["event"].successful == 5)
        #expect(await counters["session"].successful == 0)
    }

    @Test func `what clients report reaches the statistics webhook`() async throws {
        let script = Script([.success("")])
        var configuration = WebhookConfiguration()
        configuration.statisticsURL = "http://stats"
        let webhook = StatisticsWebhook(
            configuration,
            transport: script,
            node: NodeIdentity(name: "n", label: "l", version: "v"),
            counters: WebhookCounters(),
            logger: SignalingBench.quiet
        )
        let bench = OperationBench()
        let channel = try #require(ChannelName("lobby"))
        let member = try await bench.join("lobby", .sendonly, client: "c")
        let statistics = ClientStatistics {
            webhook.take(StatisticsWebhook.Report($0, of: $1, in: $2, unixNanoseconds: $3))
        }
        let gone = try #require(ParticipantID("00000000000000000000000001"))
        for (id, reports) in [
            (gone, .array([["type": "codec"]])), (member.id, .array([7])),
            (member.id, .array([["type": "inbound-rtp"]])),
        ] as [(ParticipantID, JSONValue)] {
            statistics.record(id, channel: channel, reports: reports, unixNanoseconds: 1_000_000_000)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [directory = bench.directory] in await webhook.run(directory) }
            try await eventually("a report is there") { !script.told.isEmpty }
            group.cancelAll()
        }
        let told = try #require(script.told.first)
        #expect(script.told.count == 1, "of a member that is there, and in the form of statistics")
        #expect(told["type"] == "connection.user-agent" && told["stats"] == .array([["type": "inbound-rtp"]]))
        #expect(told["client_id"] == "c" && told["connection_id"] == .string(member.id.value))
        #expect(told["multistream"] == true && told["simulcast"] == false && told["node_name"] == "n")
        #expect(script.headers["x-sora-stats-exporter-type"] == "connection.user-agent")
        #expect(script.headers["sora-connection-id"] == member.id.value)
    }

    @Test func `each request is timed, also one that fails`() async throws {
        let script = Script([.failure(.notJSON), .success("")])
        let clock = Atomic(Int64(0))
        let counters = WebhookCounters(
            now: { Instant(nanoseconds: clock.add(20_000_000, ordering: .relaxed).newValue) }
        )
        let webhooks = Self.webhooks(script, counters)
        await webhooks.take(.connectionUpdated(Self.report()))
        try await Self.finish(webhooks)
        #expect(await counters["event"].durations.count == 2)
        #expect(await counters["event"].durations.sumNanoseconds == 40_000_000)
        #expect(await counters["session"].durations.count == 0)
    }

    @Test func `the event webhook learns of publishing and of interruptions`() async throws {
        let script = Script([.success("")])
        let webhooks = Self.webhooks(script, WebhookCounters())
        await webhooks.take(.connectionCreated(RoomFixtures.report(hasPublished: false)))
        await webhooks.take(.roleChanged(RoomFixtures.report(hasPublished: false), by: .member))
        await webhooks.take(.publishingBegan(Self.report()))
        await webhooks.take(.firstFrameReceived(RoomFixtures.report(milliseconds: 250)))
        await webhooks.take(.flowChanged(Self.report()))
        await webhooks.take(.connectionInterrupted(Self.report()))
        await webhooks.take(.connectionResumed(Self.report()))
        await webhooks.take(.qualityChanged(Self.report()))
        await webhooks.take(.roleChanged(RoomFixtures.report(role: .recvonly), by: .operator))
        await webhooks.take(.connectionDestroyed(RoomFixtures.report(role: .recvonly, hasPublished: false), .left))
        await webhooks.take(.connectionDestroyed(Self.report(), .transport(.consentExpired)))
        try await Self.finish(webhooks)
        let events = script.told.map { [$0["type"]?.string, $0["data"]?["reason"]?.string] }
        #expect(
            events == [
                ["connection.created", nil], ["publish", nil], ["track.first_frame", nil], ["track.changed", nil],
                ["member.interrupted", nil], ["member.resumed", nil],
                ["publish_done", "became-audience"], ["connection.destroyed", "LEFT"],
                ["publish_done", "TRANSPORT-CONSENT-EXPIRED"], ["connection.destroyed", "TRANSPORT-CONSENT-EXPIRED"],
            ]
        )
        #expect(script.told[2]["data"]?["elapsed"] == 250)
        #expect(script.told[3]["data"]?["flow"] == ["audio": false, "video": false])
        #expect(Set(script.told.compactMap { $0["id"]?.string }).count == events.count)
        #expect(script.told.allSatisfy { $0["channel_id"] == "lobby" && $0["client_id"] == "c" })
    }

    @Test func `a failed event is retried with the same id, and counted once when it is dropped`() async throws {
        let script = Script([.failure(.timeout), .failure(.status(500)), .success(""), .failure(.timeout)])
        let counters = WebhookCounters()
        let sleeps = Sleeps()
        let webhooks = Self.webhooks(script, counters, sleeps: sleeps)
        await webhooks.take(.connectionCreated(RoomFixtures.report(role: .recvonly)))
        try await Self.finish(webhooks)
        #expect(script.told.map { $0["id"] } == ["id-1", "id-1", "id-1"])
        #expect(sleeps.asked == [.seconds(1), .seconds(2)])
        #expect(await counters["event"].successful == 1)
        #expect(await counters["event"].retried == 2)
        await webhooks.take(.connectionDestroyed(RoomFixtures.report(role: .recvonly, hasPublished: false), .left))
        try await Self.finish(webhooks)
        #expect(await counters["event"].failed == 1)
    }

    @Test func `without a reachable server the queue stays bounded and nothing blocks`() async {
        let counters = WebhookCounters()
        let webhooks = Self.webhooks(Script([.success("")]), counters, waiting: 5)
        for _ in 0..<8 { await webhooks.take(.connectionCreated(RoomFixtures.report(role: .recvonly))) }
        #expect(await webhooks.waitingCounts["event"] == 5)
        #expect(await counters["event"].dropped == 3)
    }

    @Test func `the session webhook's answer applies, and an invalid answer changes nothing`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            _ = try await http.publish()
            await bench.report(.connected(over: .tcp))
            let lobby = try #require(ChannelName("lobby"))
            let session = try #require(await bench.directory.channelSession(of: lobby))
            let script = Script([
                .success("[]"), .success(#"{"forwarding_filters":[{"rules":[]}]}"#),
                .success(#"{"spotlight_number":99}"#),
            ])
            let webhooks = Self.webhooks(script, WebhookCounters())
            for _ in 0..<3 { await webhooks.take(.sessionCreated(session, unixNanoseconds: 0)) }
            await webhooks.take(.sessionDestroyed(session, unixNanoseconds: 0))
            try await Self.finish(webhooks, bench.directory)
            #expect(try await bench.directory.filters(of: .channel, in: lobby).map(\.name) == ["default"])
            #expect(script.told.last?["type"] == "session.destroyed")
            #expect(script.told.last?["session_id"] == .string(session.id.value))
        }
    }

    @Test func `a session that ended with an earlier run is told as vanished, when it was last seen`() async throws {
        var generator = SeededGenerator(seed: 7)
        let session = ChannelSession(
            id: ChannelSessionID(using: &generator),
            channel: try #require(ChannelName("lobby")),
            createdAt: 1_000_000_000
        )
        let bench = try SignalingBench()
        let script = Script([.success("")])
        let webhooks = Self.webhooks(script, WebhookCounters())
        await webhooks.vanished(session, unixNanoseconds: 61_000_000_000)
        try await Self.finish(webhooks, bench.directory)
        #expect(script.told.count == 1)
        let told = try #require(script.told.first)
        #expect(told["type"] == "session.vanished" && told["channel_id"] == "lobby")
        #expect(told["session_id"] == .string(session.id.value) && told["created_time"] == 1)
        #expect(told["timestamp"]?.string?.hasPrefix("1970-01-01T00:01:01") == true)
    }
}
