import JSON
import MediaTypes
import Synchronization
import Testing

@testable import Room
@testable import Signaling

/// Keeps what is posted, and answers at once.
final class PostedEvents: WebhookTransport {
    private let posts = Mutex<[(url: String, body: JSONValue)]>([])
    private let arrivals: AsyncStream<Void>
    private let arrive: AsyncStream<Void>.Continuation

    init() { (arrivals, arrive) = AsyncStream.makeStream() }

    func post(_ body: [UInt8], to url: String, headers: [(String, String)]) async throws(WebhookFailure) -> [UInt8] {
        posts.withLock { $0.append((url, (try? JSONValue(parsing: body)) ?? .null)) }
        arrive.yield()
        return []
    }

    /// Waits for this many posts.
    func first(_ count: Int) async -> [(url: String, body: JSONValue)] {
        for await _ in arrivals.prefix(count) {}
        return posts.withLock { $0 }
    }
}

@Suite struct EventSubscriptionsTests {
    private static let lobby = ChannelName("lobby")!

    @Test(
        arguments: [
            (nil, [], EventSubscriptions.Kind.allCases, "publish", "c", true),
            (nil, [], [.publish], "publish_done", "c", false), (lobby, [], [.publish], "publish", "c", true),
            (ChannelName("hall"), [], [.publish], "publish", "c", false),
            (lobby, ["c"], [.publish], "publish", "c", true),
            (lobby, ["d"], [.publish], "publish", "c", false),
            (lobby, ["c"], EventSubscriptions.Kind.allCases, "channel.opened", nil, false),
            (lobby, [], EventSubscriptions.Kind.allCases, "channel.opened", nil, true),
        ] as [(ChannelName?, [String], [EventSubscriptions.Kind], String, String?, Bool)]
    )
    func `a subscription gets what it asked for`(
        channel: ChannelName?,
        users: [String],
        kinds: [EventSubscriptions.Kind],
        event: String,
        user: String?,
        isWanted: Bool
    ) throws {
        let subscription = EventSubscriptions.Subscription(
            id: "1",
            url: "http://host",
            channel: channel,
            users: users,
            kinds: kinds
        )
        let kind = try #require(EventSubscriptions.Kind(rawValue: event))
        #expect(subscription.wants(kind, of: user, in: Self.lobby) == isWanted)
    }

    @Test func `a publisher's life is posted in order, with an id each and the cause of its end`() async throws {
        let transport = PostedEvents()
        let subscriptions = EventSubscriptions(
            transport: transport,
            counters: WebhookCounters(),
            logger: SignalingBench.quiet
        )
        let subscription = subscriptions.subscribe(
            url: "http://host/events",
            channel: nil,
            users: [],
            kinds: EventSubscriptions.Kind.allCases
        )
        let session = RoomFixtures.session()
        let report = RoomFixtures.report()
        subscriptions.take(.sessionCreated(session, unixNanoseconds: 0))
        subscriptions.take(.connectionCreated(report))
        subscriptions.take(.connectionUpdated(report))
        subscriptions.take(.connectionDestroyed(report, .kicked))
        subscriptions.take(.sessionDestroyed(session, unixNanoseconds: 0))
        let run = Task { await subscriptions.run() }
        let posts = await transport.first(6)
        run.cancel()
        await run.value
        #expect(
            posts.compactMap { $0.body["event"]?.string } == [
                "channel.opened", "member.joined", "publish", "publish_done", "member.left", "channel.closed",
            ]
        )
        #expect(Set(posts.compactMap { $0.body["id"]?.string }).count == 6)
        for post in posts {
            #expect(post.url == "http://host/events" && post.body["channel"] == "lobby")
            #expect(post.body["subscription_id"]?.string == subscription?.id)
        }
        #expect(posts[3].body["reason"] == "KICKED" && posts[3].body["user_id"] == "c")
    }

    @Test func `the quality of a network is posted, and what waits is counted`() async throws {
        let transport = PostedEvents()
        let counters = WebhookCounters()
        let subscriptions = EventSubscriptions(
            transport: transport,
            counters: counters,
            logger: SignalingBench.quiet
        )
        for kinds in [[EventSubscriptions.Kind.memberNetworkQuality], [.publish]] {
            _ = subscriptions.subscribe(url: "http://host/\(kinds[0])", channel: nil, users: [], kinds: kinds)
        }
        var connection = RoomFixtures.connection()
        connection.quality = LinkQuality(uplink: .good, downlink: .veryBad)
        let report = ConnectionReport(
            connection: connection,
            duration: .zero,
            counts: ChannelCounts(),
            unixNanoseconds: 0
        )
        subscriptions.take(.qualityChanged(report))
        #expect(subscriptions.load == (2, 1))
        let run = Task { await subscriptions.run() }
        let post = try #require(await transport.first(1).first)
        #expect(post.body["event"] == "member.network_quality" && post.body["user_id"] == "c")
        #expect(post.body["uplink"] == 2 && post.body["downlink"] == 5)
        while counters[EventSubscriptions.webhookName].successful == 0 { await Task.yield() }
        #expect(subscriptions.load == (2, 0))
        run.cancel()
        await run.value
    }

    @Test func `a deleted subscription gets no more events`() throws {
        let subscriptions = EventSubscriptions(
            transport: PostedEvents(),
            counters: WebhookCounters(),
            logger: SignalingBench.quiet
        )
        let one = try #require(subscriptions.subscribe(url: "http://h", channel: nil, users: [], kinds: [.publish]))
        #expect(subscriptions.unsubscribe(one.id) && subscriptions.all.isEmpty)
        #expect(!subscriptions.unsubscribe(one.id))
    }
}
