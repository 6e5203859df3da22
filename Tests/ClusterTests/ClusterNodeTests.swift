import ChannelTypes
import Logging
import MediaTypes
import Room
import RoomTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Cluster

/// Whole nodes with real links on this machine, and a store that says what the test wants.
@Suite(.timeLimit(.minutes(10))) struct ClusterNodeTests {
    private struct Node {
        let cluster: ClusterNode
        /// The node's channels end with it.
        let rooms: ChannelDirectory
        let log: NodeLog
    }

    private final class NodeLog: Sendable {
        private let content = Mutex<[String]>([])
        func append(_ line: String) { content.withLock { $0.append(line) } }
        func lines(with text: String) -> [String] { content.withLock { $0.filter { $0.contains(text) } } }
    }

    /// The store for a node that finds the records of some others signed with another secret.
    private struct DividedStore: ClusterStore {
        let store: InstantStore
        let strangers: Set<NodeID>

        func enlist(_ request: RegisterNode) async throws(StoreError) -> NodeIncarnation {
            try await store.enlist(request)
        }
        func beat(_ request: Heartbeat) async throws(StoreError) -> HeartbeatAnswer {
            var answer = try await store.beat(request)
            for index in answer.changes.indices where strangers.contains(answer.changes[index].instance.node) {
                answer.changes[index].signature = .invalid
            }
            return answer
        }
        func attach(_ request: Attach) async throws(StoreError) -> RoomEntry { try await store.attach(request) }
        func detach(_ request: Detach) async throws(StoreError) -> Bool { try await store.detach(request) }
        func sweep(_ request: Sweep) async throws(StoreError) -> Int { try await store.sweep(request) }
    }

    private static func start(
        _ name: String,
        _ store: any ClusterStore,
        security: LinkSecurity = LinkPeer.security,
        publicURL: String = ""
    ) async throws -> Node {
        var configuration = ClusterConfiguration(
            cluster: try #require(ClusterName(rawValue: "c")),
            node: try Given.node(name),
            linkHost: "127.0.0.1",
            linkPort: try RedisServer.freePort()
        )
        configuration.publicURL = publicURL
        let log = NodeLog()
        let cluster = try await ClusterNode(
            configuration,
            store: store,
            security: security,
            logger: Logger(label: "test") { _ in LineLog { log.append($0) } }
        )
        let plane = FakeMediaPlane(MediaLocation(node: cluster.media, loop: LoopIndex(rawValue: 0)))
        let rooms = ChannelDirectory(planes: [plane], node: cluster.media, cluster: cluster.channels)
        try await cluster.start(
            rooms,
            measure: { NodeMeasurements(load: 0, members: 0, rooms: 0) },
            onLeft: { _ in },
            answer: { _, _ in nil }
        )
        await cluster.setState(.ready)
        return Node(cluster: cluster, rooms: rooms, log: log)
    }

    /// Tells the store of a run of a node.
    private static func tell(_ store: InstantStore, _ instance: NodeInstance, _ publicURL: String) async throws {
        var record = NodeRecord(state: .ready)
        record.publicURL = publicURL
        record.linkAddress = "127.0.0.1:1"
        _ = try await store.beat(Given.beat(instance, record))
    }

    @Test func `clients are sent where a node itself says, whatever the store tells`() async throws {
        let store = InstantStore(.system)
        let a = try await Self.start("a", store)
        let b = try await Self.start("b", store, publicURL: "https://b.example.com")
        let sendsTo = { a.cluster.publicURLOfOther(region: "") { _ in true } }
        try await eventually("b has said where clients reach it") { sendsTo() == "https://b.example.com" }
        // Even records that a has no reason to doubt send nobody elsewhere.
        let instance = await b.cluster.membership.instance
        try await Self.tell(store, instance, "https://elsewhere.example.com")
        try await Self.tell(store, Given.instance("c", 9_000), "https://elsewhere.example.com")
        try await eventually("a knows what the store tells") {
            let urls = a.cluster.neighbours.map(\.member.record.publicURL)
            return urls == ["https://elsewhere.example.com", "https://elsewhere.example.com"]
        }
        #expect(Set((0..<100).map { _ in sendsTo() }) == ["https://b.example.com"])
        #expect(a.cluster.neighbours.map(\.publicURL) == ["https://b.example.com", nil])
        for node in [b, a] { await node.cluster.stop() }
    }

    /// Nodes compare their records with each other, too, but seldom, and only with one at a time.
    @Test func `a node asks each of the others where clients reach it`() async throws {
        let store = InstantStore(.system)
        let a = try await Self.start("a", store)
        var others: [Node] = []
        for name in "bcdefghi" {
            others.append(try await Self.start("\(name)", store, publicURL: "https://\(name).example.com"))
        }
        try await eventually("each has said where clients reach it") {
            a.cluster.neighbours.compactMap(\.publicURL).count == others.count
        }
        for node in others + [a] { await node.cluster.stop() }
    }

    @Test func `questions are counted by what became of them`() async throws {
        let store = InstantStore(.system)
        let a = try await Self.start("a", store)
        let b = try await Self.start("b", store)
        let question = NodeRequest(kind: .connections, body: [])
        await #expect(throws: NodeRequestError.noNode) {
            try await a.cluster.ask(question, of: NodeIncarnation.standalone)
        }
        let stranger = try Given.node("z")
        await #expect(throws: NodeRequestError.noLink) {
            try await a.cluster.ask(question, of: stranger, within: .zero, patience: .zero)
        }
        // The test's nodes answer nothing about connections.
        let other = try Given.node("b")
        await #expect(throws: NodeRequestError.refused) {
            try await a.cluster.ask(question, of: other, within: .seconds(60), patience: .seconds(60))
        }
        let unanswered = a.cluster.linkCounters.unanswered
        #expect(unanswered[.noNode] == 1 && unanswered[.noLink] != nil && unanswered[.refused] != nil)
        // They compare their records by themselves.
        try await eventually("a question was answered") { a.cluster.linkCounters.answered > 0 }
        for node in [b, a] { await node.cluster.stop() }
    }

    @Test func `nodes with different secrets ignore each other, and both say so by name`() async throws {
        let store = InstantStore(.system)
        let others = try #require(LinkSecurity(secrets: [String(repeating: "x", count: 32)]))
        let a = try await Self.start("a", DividedStore(store: store, strangers: [Given.node("b")]))
        let b = try await Self.start("b", DividedStore(store: store, strangers: [Given.node("a")]), security: others)
        for (node, other) in [(a, "b"), (b, "a")] {
            try await eventually("the link to \(other) counts as refused") {
                let neighbours = node.cluster.neighbours
                return neighbours.map(\.member.instance.node.rawValue) == [other]
                    && neighbours.allSatisfy { $0.isIgnored && $0.link?.state == .refused }
            }
            let lines = { node.log.lines(with: "not signed with this node's --cluster-secret") }
            try await eventually("the log has a line") { !lines().isEmpty }
            #expect(lines().count == 1)
            #expect(lines().allSatisfy { $0.hasPrefix("error") && $0.contains(#""other-signature": \#(other)"#) })
        }
        for node in [b, a] { await node.cluster.stop() }
    }
}
