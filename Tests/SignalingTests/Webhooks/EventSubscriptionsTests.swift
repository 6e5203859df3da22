import Base
import JSON
import MediaTypes
import Synchronization
import TestSupport
import Testing

@testable import ChannelTypes
@testable import Room
@testable import Webhooks

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
            createdAt: 0,
            url: "http://host",
            channel: channel,
            users: users,
            kinds: kinds
        )
        let kind = try #require(EventSubscriptions.Kind(rawValue: event))
        #expect(subscription.wants(kind, of: user, in: Self.lobby) == isWanted)
    }

    @Test func `a subscription of another node begins and ends here, too`() async throws {
        let seconds = Mutex<Int64>(0)
        let clock = RoomClock {
            RoomTime(instant: Instant(nanoseconds: 0), unixNanoseconds: seconds.withLock { $0 } * 1_000_000_000)
        }
        let told = Mutex<[(id: String, text: String?)]>([])
        let nodes = (0..<2).map { index in
            EventSubscriptions(
                transport: PostedEvents(),
                counters: WebhookCounters(),
                logger: SignalingBench.quiet,
                makeID: { "\(index)" },
                clock: clock,
                onChange: { id, text in told.withLock { $0.append((id, text)) } }
            )
        }
        /// Tells all nodes what was told last.
        func tell() async throws {
            let (id, text) = try #require(told.withLock { $0.last })
            for node in nodes { await node.take(text, of: id) }
        }
        let later = try #require(
            await nodes[1].subscribe(url: "http://b", channel: Self.lobby, users: ["c"], kinds: [.publish])
        )
        try await tell()
        seconds.withLock { $0 += 1 }
        _ = try #require(await nodes[0].subscribe(url: "http://a", channel: nil, users: [], kinds: [.publishDone]))
        try await tell()
        let all = await nodes[0].all
        #expect(all.map(\.url) == ["http://b", "http://a"])
        #expect(await nodes[1].all == all)
        #expect(await nodes[0].unsubscribe(later.id))
        try await tell()
        #expect(await nodes[1].all.map(\.url) == ["http://a"])
        #expect(told.withLock { $0.count } == 3, "what a node takes it does not tell")
        let text = #"{"id":"x","createdAt":0,"url":"ftp://host","users":[],"kinds":[]}"#
        for (text, id) in [(text, "x"), ("{", "y"), ("", "z")] { await nodes[0].take(text, of: id) }
        await nodes[0].take(nil, of: "unknown")
        #expect(await nodes[0].all.count == 1)
    }

    @Test func `a publisher's life is posted in order, with an id each and the cause of its end`() async throws {
        let transport = PostedEvents()
        let subscriptions = EventSubscriptions(
            transport: transport,
            counters: WebhookCounters(),
            logger: SignalingBench.quiet
        )
        let subscription = await subscriptions.subscribe(
            url: "http://host/events",
            channel: nil,
            users: [],
            kinds: EventSubscriptions.Kind.allCases
        )
        let session = RoomFixtures.session()
        let report = RoomFixtures.report()
        await subscriptions.take(.sessionCreated(session, unixNanoseconds: 0))
        await subscriptions.take(.connectionCreated(report))
        await subscriptions.take(.publishingBegan(report))
        await subscriptions.take(.firstFrameReceived(RoomFixtures.report(milliseconds: 77)))
        await subscriptions.take(.flowChanged(report))
        await subscriptions.take(.connectionUpdated(report))
        await subscriptions.take(.connectionDestroyed(report, .kicked))
        await subscriptions.take(.sessionDestroyed(session, unixNanoseconds: 0))
        let run = Task { await subscriptions.run() }
        let posts = await transport.first(8)
        run.cancel()
        await run.value
        #expect(
            posts.compactMap { $0.body["event"]?.string } == [
                "channel.opened", "member.joined", "publish", "track.first_frame", "track.changed", "publish_done",
                "member.left", "channel.closed",
            ]
        )
        #expect(Set(posts.compactMap { $0.body["id"]?.string }).count == 8)
        #expect(posts[3].body["elapsed"] == 77 && posts[4].body["audio"] == false && posts[4].body["video"] == false)
        for post in posts {
            #expect(post.url == "http://host/events" && post.body["channel"] == "lobby")
            #expect(post.body["subscription_id"]?.string == subscription?.id)
        }
        #expect(posts[5].body["reason"] == "KICKED" && posts[5].body["user_id"] == "c")
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
            _ = await subscriptions.subscribe(url: "http://host/\(kinds[0])", channel: nil, users: [], kinds: kinds)
        }
        var connection = RoomFixtures.connection()
        connection.quality = LinkQuality(uplink: .good, downlink: .veryBad)
        let report = ConnectionReport(
            connection: connection,
            duration: .zero,
            counts: ChannelCounts(),
            unixNanoseconds: 0
        )
        await subscriptions.take(.qualityChanged(report))
        #expect(await subscriptions.load == (2, 1))
        let run = Task { await subscriptions.run() }
        let post = try #require(await transport.first(1).first)
        #expect(post.body["event"] == "member.network_quality" && post.body["user_id"] == "c")
        #expect(post.body["uplink"] == 2 && post.body["downlink"] == 5)
        try await eventually("the event was delivered") {
            await counters[EventSubscriptions.webhookName].successful > 0
        }
        #expect(await subscriptions.load == (2, 0))
        run.cancel()
        await run.value
    }

    @Test func `a deleted subscription gets no more events`() async throws {
        let subscriptions = EventSubscriptions(
            transport: PostedEvents(),
            counters: WebhookCounters(),
            logger: SignalingBench.quiet
        )
        let one = try #require(
            await subscriptions.subscribe(url: "http://h", channel: nil, users: [], kinds: [.publish])
        )
        #expect(await subscriptions.unsubscribe(one.id))
        #expect(await subscriptions.all.isEmpty)
        #expect(await !subscriptions.unsubscribe(one.id))
    }
}
