import Logging
import MediaTypes
import Room
import RoomTestSupport
import TestSupport
import Testing

@testable import Cluster

/// Whole nodes with real links on this machine, and a store that says what the test wants.
@Suite(.timeLimit(.minutes(10))) struct ClusterNodeTests {
    private struct Node {
        let cluster: ClusterNode
        /// The node's channels end with it.
        let rooms: Rooms
    }

    private static func start(_ name: String, _ store: InstantStore, publicURL: String = "") async throws -> Node {
        var configuration = ClusterConfiguration(
            cluster: try #require(ClusterName(rawValue: "c")),
            node: try Given.node(name),
            linkHost: "127.0.0.1",
            linkPort: try await RedisServer.freePort()
        )
        configuration.publicURL = publicURL
        let cluster = try await ClusterNode(
            configuration,
            store: store,
            security: LinkPeer.security,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let plane = FakeMediaPlane(MediaLocation(node: cluster.media, loop: LoopIndex(rawValue: 0)))
        let rooms = Rooms(planes: [plane], node: cluster.media, cluster: cluster.rooms)
        try await cluster.start(
            rooms,
            measure: { NodeMeasurements(load: 0, members: 0, rooms: 0) },
            onLeft: { _ in },
            answer: { _, _ in nil }
        )
        await cluster.setState(.ready)
        return Node(cluster: cluster, rooms: rooms)
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
}
