import Base
import ChannelTypes
import Logging
import MediaTypes
import Room
import RoomTestSupport
import Synchronization

@testable import Cluster

/// Nodes in one process whose links are queues.
final class TestNodes: Sendable {
    struct Node {
        let id: NodeID
        let media: NodeIncarnation
        let rooms: ChannelDirectory
        let plane: FakeMediaPlane
        let cluster: ClusterChannels
        let reports: Reports
    }
    /// What a node reported of sessions.
    final class Reports: Sendable {
        private let list = Mutex<[String]>([])
        var all: [String] { list.withLock { $0 } }
        func note(_ event: ChannelDirectory.Event) {
            switch event {
            case .report(.sessionCreated(let session, _)): list.withLock { $0.append("created \(session.id)") }
            case .report(.sessionDestroyed(let session, _)): list.withLock { $0.append("destroyed \(session.id)") }
            default: break
            }
        }
    }
    private struct Way: Hashable {
        let from: NodeID
        let to: NodeID
    }
    private struct State {
        var nodes: [NodeID: Node] = [:]
        var queues: [Way: AsyncStream<[UInt8]>.Continuation] = [:]
        var wanted: Set<Way> = []
        var cut: Set<Way> = []
        var isStoreUp = true
        var entries: [ChannelName: RoomEntry] = [:]
        /// What each node attached its rooms with last.
        var sessions: [NodeID: [ChannelName: RoomSession]] = [:]
        var attaches = 0
    }
    private let state = Mutex(State())

    /// The requests that the store has got.
    var attaches: Int { state.withLock { $0.attaches } }
    var rooms: Set<ChannelName> { state.withLock { Set($0.entries.keys) } }
    func setStore(isUp: Bool) { state.withLock { $0.isStoreUp = isUp } }

    /// - Parameter loops: for the node's channels; none for the global pool.
    func add(_ name: String, _ number: UInt32, loops: [HeldLoop] = [], limits: RoomLimits = RoomLimits()) -> Node {
        let (id, media) = (NodeID(rawValue: name)!, NodeIncarnation(rawValue: number)!)
        let view = View(nodes: self, own: id, incarnation: media)
        // On a busy machine the other nodes' news may take longer than newcomers wait.
        let cluster = ClusterChannels(
            own: id,
            links: view,
            hosting: view,
            openTimeout: .seconds(1_200),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        let plane = FakeMediaPlane(MediaLocation(node: media, loop: LoopIndex(rawValue: 0)))
        let reports = Reports()
        let rooms = ChannelDirectory(
            planes: [plane],
            node: media,
            limits: limits,
            controlLoops: loops,
            cluster: cluster,
            onEvent: reports.note
        )
        cluster.attach(rooms)
        let node = Node(id: id, media: media, rooms: rooms, plane: plane, cluster: cluster, reports: reports)
        state.withLock { $0.nodes[id] = node }
        return node
    }

    private struct View: ChannelLinks, HostingDirectory {
        let nodes: TestNodes
        let own: NodeID
        let incarnation: NodeIncarnation

        func want(_ node: NodeID) {
            nodes.state.withLock { _ = $0.wanted.insert(Way(from: own, to: node)) }
            Task { [nodes, own] in nodes.connect(own, node) }
        }

        func release(_ node: NodeID) {
            nodes.state.withLock { _ = $0.wanted.remove(Way(from: own, to: node)) }
        }

        func send(_ message: [UInt8], to node: NodeID) -> Bool {
            nodes.state.withLock { state in
                guard let queue = state.queues[Way(from: own, to: node)] else { return false }
                queue.yield(message)
                return true
            }
        }

        func attach(_ room: ChannelName, session: RoomSession) async -> RoomEntry? {
            nodes.state.withLock { state in
                guard state.isStoreUp else { return nil }
                state.attaches += 1
                state.sessions[own, default: [:]][room] = session
                var entry = state.entries[room] ?? RoomEntry(session: session, nodes: [:])
                entry.nodes[own] = RoomEntry.Attachment(incarnation: incarnation, rank: entry.nodes.count + 1)
                state.entries[room] = entry
                return entry
            }
        }

        func detach(_ room: ChannelName, session: RoomSession) async {
            nodes.state.withLock { state in
                guard state.sessions[own]?[room] == session else { return }
                state.sessions[own]?[room] = nil
                state.entries[room]?.nodes[own] = nil
                if state.entries[room]?.nodes.isEmpty == true { state.entries[room] = nil }
            }
        }

        func hostingNodes(of channel: ChannelName) async -> Set<NodeID> {
            let others = nodes.state.withLock { state in
                state.nodes.values.filter { $0.id != own && !state.cut.contains(Way(from: own, to: $0.id)) }
            }
            return Set(others.flatMap { $0.cluster.hostingNodes(of: channel) })
        }
    }

    /// Makes the two ways of a link, unless the link is there or cut.
    private func connect(_ one: NodeID, _ other: NodeID) {
        let (there, back) = (Way(from: one, to: other), Way(from: other, to: one))
        let ends = state.withLock { state -> (Node, Node)? in
            guard state.queues[there] == nil, !state.cut.contains(there), let node = state.nodes[one],
                let peer = state.nodes[other]
            else { return nil }
            for way in [there, back] {
                let (stream, queue) = AsyncStream.makeStream(of: [UInt8].self)
                state.queues[way] = queue
                guard let receiver = state.nodes[way.to] else { continue }
                Task { for await message in stream { receiver.cluster.received(message, from: way.from) } }
            }
            return (node, peer)
        }
        guard let (node, peer) = ends else { return }
        node.cluster.linkUp(peer.id, media: peer.media)
        peer.cluster.linkUp(node.id, media: node.media)
    }

    /// Cuts the link of two nodes; what is under way is lost.
    func cut(_ one: Node, _ other: Node) {
        state.withLock { state in
            for way in [Way(from: one.id, to: other.id), Way(from: other.id, to: one.id)] {
                state.cut.insert(way)
                state.queues.removeValue(forKey: way)?.finish()
            }
        }
        one.cluster.linkDown(other.id)
        other.cluster.linkDown(one.id)
    }

    func heal(_ one: Node, _ other: Node) {
        let isWanted = state.withLock { state in
            let ways = [Way(from: one.id, to: other.id), Way(from: other.id, to: one.id)]
            state.cut.subtract(ways)
            return !state.wanted.isDisjoint(with: ways)
        }
        if isWanted { connect(one.id, other.id) }
    }
}
