import ChannelTypes
import JSON
import RoomTestSupport
import Testing

@testable import Room
@testable import Web
@testable import Webhooks

@Suite struct ReportQueueTests {
    private let transport = PostedEvents()
    private let counters = WebhookCounters()
    private let webhooks: Webhooks
    private let subscriptions: EventSubscriptions

    init() {
        var configuration = WebhookConfiguration()
        configuration.eventURL = "http://webhook"
        webhooks = Webhooks(
            configuration,
            transport: transport,
            node: NodeIdentity(),
            counters: counters,
            logger: SignalingBench.quiet
        )
        subscriptions = EventSubscriptions(transport: transport, counters: counters, logger: SignalingBench.quiet)
    }

    private func queue(waiting: Int = 100) -> ReportQueue {
        var limits = WebhookLimits()
        limits.waitingMax = waiting
        return ReportQueue(webhooks, subscriptions, limits: limits)
    }

    private static func report(_ channel: String, minutes: Int64 = 0) -> ConnectionReport {
        RoomFixtures.report(channel: channel, minutes: minutes, role: .recvonly, hasPublished: false)
    }

    /// What the webhook and the subscriptions post of the reports that wait.
    private func posts(of queue: ReportQueue, _ count: Int) async -> [(url: String, body: JSONValue)] {
        let handing = Task { await queue.run() }
        handing.cancel()
        await handing.value
        let (webhooks, subscriptions) = (webhooks, subscriptions)
        let runs = [
            Task { await webhooks.run(ChannelDirectory(planes: [FakeMediaPlane()])) },
            Task { await subscriptions.run() },
        ]
        let posts = await transport.first(count)
        for run in runs {
            run.cancel()
            await run.value
        }
        return posts
    }

    @Test func `the reports of a channel reach webhooks and subscriptions in order, the last ones at the end`() async {
        _ = await subscriptions.subscribe(
            url: "http://subscription",
            channel: nil,
            users: [],
            kinds: [.memberJoined, .memberLeft]
        )
        let queue = queue()
        for channel in ["lobby", "hall"] {
            queue.add(.connectionCreated(Self.report(channel)))
            queue.add(.connectionUpdated(Self.report(channel, minutes: 1)))
            queue.add(.connectionDestroyed(Self.report(channel, minutes: 2), .kicked), media: ["freezes": 2])
        }
        let posts = await posts(of: queue, 10)
        for channel in ["lobby", "hall"] {
            let events = posts.map(\.body).filter { $0["channel_id"]?.string == channel }
            #expect(
                events.map { $0["type"] } == ["connection.created", "connection.updated", "connection.destroyed"]
            )
            #expect(events.last?["data"]?["media"] == ["freezes": 2])
            let others = posts.filter { $0.url == "http://subscription" && $0.body["channel"]?.string == channel }
            #expect(others.map { $0.body["event"] } == ["member.joined", "member.left"])
        }
    }

    @Test func `a full queue drops the reports of the channel that has the most, and counts them`() async {
        let queue = queue(waiting: 5)
        for minutes in 0..<8 { queue.add(.connectionDestroyed(Self.report("lobby", minutes: Int64(minutes)), .left)) }
        queue.add(.connectionDestroyed(Self.report("hall"), .left))
        let bodies = await posts(of: queue, 5).map(\.body)
        #expect(bodies.filter { $0["channel_id"] == "lobby" }.map { $0["data"]?["minutes"] } == [4, 5, 6, 7])
        #expect(bodies.count { $0["channel_id"] == "hall" } == 1)
        #expect(await counters["event"].drops == [.channelShare: 4])
        #expect(await counters["subscription"].dropped == 0, "there is none")
    }
}
