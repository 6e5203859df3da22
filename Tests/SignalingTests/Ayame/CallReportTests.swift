import ChannelTypes
import JSON
import Room
import RoomTestSupport
import Synchronization
import Testing

@testable import Ayame
@testable import Operators
@testable import Signaling
@testable import Web
@testable import Webhooks

/// Keeps the reports of the relay.
final class KeptCallReports: Sendable {
    private let reports = Mutex<[CallReport]>([])
    var all: [CallReport] { reports.withLock { $0 } }
    func add(_ report: CallReport) { reports.withLock { $0.append(report) } }
    /// In short.
    var words: [String] {
        all.map { report in
            switch report.event {
            case .opened: "opened"
            case .joined(let member): "joined \(member.user)"
            case .left(let member, let reason): "left \(member.user) \(reason)"
            case .closed: "closed"
            }
        }
    }
}

/// The reports of direct calls, and the events that are made of them.
@Suite struct CallReportTests {
    private let kept = KeptCallReports()
    private let calls: AyameCalls

    init() {
        calls = AyameCalls { [kept] in kept.add($0) }
    }

    private func join(
        _ user: String,
        _ name: String = "call",
        media: CallMedia = .direct,
        registration: String = ""
    ) async throws {
        let fields = try JSONFields(JSONValue(parsing: #"{"roomId":"call"\#(registration)}"#))
        let member = AyameRooms.Member(
            connectionID: ParticipantID.random().value,
            identity: AyameRooms.Identity(try AyameRegistration(fields)),
            isStandalone: false,
            user: user,
            app: nil,
            registeredAt: 0,
            origin: .here { _ in }
        )
        _ = await calls.join(try #require(ChannelName(name)), member, media: media)
    }

    private func connectionID(of user: String) throws -> String {
        try #require(kept.all.compactMap(\.member).last { $0.user == user }?.connectionID)
    }

    @Test func `a call is reported from its first registration to its end`() async throws {
        try await join("alice")
        try await join("bob")
        try await join("carol")
        let room = try #require(ChannelName("call"))
        await calls.leave(room, try connectionID(of: "bob"), reason: "PONG-TIMEOUT")
        #expect(
            kept.words == ["opened", "joined alice", "joined bob", "left alice BYE", "left bob PONG-TIMEOUT", "closed"]
        )
        await calls.leave(room, try connectionID(of: "alice"))
        #expect(kept.words.count == 6)
        #expect(Set(kept.all.map(\.session)).count == 1 && kept.all.allSatisfy { $0.room == room })
        try await join("alice")
        #expect(Set(kept.all.map(\.session)).count == 2, "a new room")
        await calls.leave(room, try connectionID(of: "alice"))
        #expect(kept.words.suffix(2) == ["left alice LEFT", "closed"])
    }

    @Test func `the ends by operators and by the same client have their reasons`() async throws {
        let room = try #require(ChannelName("call"))
        try await join("alice", registration: #","clientId":"a","signalingKey":"k""#)
        try await join("bob")
        try await join("alice", registration: #","clientId":"a","signalingKey":"k""#)
        #expect(
            kept.words.dropFirst(3) == ["left alice REPLACED", "left bob BYE", "closed", "opened", "joined alice"]
        )
        try await join("bob")
        _ = await calls.end(by: .kicked("bob", from: room))
        #expect(kept.words.suffix(3) == ["left alice BYE", "left bob KICKED", "closed"])
    }

    @Test func `a call whose media passes the node has only the reports of its channel`() async throws {
        try await join("alice", media: .server)
        try await join("bob")
        await calls.leave(try #require(ChannelName("call")), "nobody")
        _ = await calls.end(by: .terminated(try #require(ChannelName("call"))))
        #expect(await calls.rooms.count == 0 && kept.all.isEmpty)
    }

    @Test func `subscriptions get the events of calls, marked as those of the relay`() async throws {
        let transport = PostedEvents()
        let subscriptions = EventSubscriptions(
            transport: transport,
            counters: WebhookCounters(),
            logger: SignalingBench.quiet
        )
        let room = try #require(ChannelName("call"))
        _ = await subscriptions.subscribe(
            url: "http://host/events",
            channel: room,
            users: [],
            kinds: EventSubscriptions.Kind.allCases
        )
        try await join("alice")
        try await join("bob", "other")
        await calls.leave(room, try connectionID(of: "alice"))
        for report in kept.all { await subscriptions.take(report) }
        let run = Task { await subscriptions.run() }
        let posts = await transport.first(4).map(\.body)
        run.cancel()
        await run.value
        #expect(
            posts.map { $0["event"]?.string } == ["channel.opened", "member.joined", "member.left", "channel.closed"]
        )
        #expect(posts.allSatisfy { $0["relay"] == true && $0["channel"] == "call" && $0["id"]?.string != nil })
        #expect(posts.map { $0["reason"]?.string } == [nil, nil, "LEFT", nil])
        let id = try connectionID(of: "alice")
        #expect(posts.map { $0["user_id"]?.string } == [nil, "alice", "alice", nil])
        #expect(posts.map { $0["connection_id"]?.string } == [nil, id, id, nil])
    }

    @Test func `the event webhook gets the events of calls`() async throws {
        let transport = PostedEvents()
        var configuration = WebhookConfiguration()
        configuration.eventURL = "http://events"
        let webhooks = Webhooks(
            configuration,
            transport: transport,
            node: NodeIdentity(name: "n", label: "l", version: "v"),
            counters: WebhookCounters(),
            logger: SignalingBench.quiet
        )
        try await join("alice")
        await calls.leave(try #require(ChannelName("call")), try connectionID(of: "alice"), reason: "TOKEN-EXPIRED")
        for report in kept.all { await webhooks.take(report) }
        let run = Task { await webhooks.run(ChannelDirectory(planes: [FakeMediaPlane()])) }
        let posts = await transport.first(4).map(\.body)
        run.cancel()
        await run.value
        #expect(
            posts.map { $0["type"]?.string } == ["channel.opened", "member.joined", "member.left", "channel.closed"]
        )
        #expect(posts.allSatisfy { $0["relay"] == true && $0["channel_id"] == "call" && $0["node_name"] == "n" })
        #expect(posts[2]["client_id"] == "alice" && posts[2]["data"] == ["reason": "TOKEN-EXPIRED"])
        #expect(Set(posts.compactMap { $0["session_id"]?.string }).count == 1)
        #expect(Set(posts.compactMap { $0["id"]?.string }).count == 4)
    }
}
