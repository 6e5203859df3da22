import Cluster
import Room
import Signaling

/// The cluster as rooms of the 1:1 relay use it.
struct ClusterRelay: RelayCluster {
    let cluster: ClusterNode

    /// A newcomer waits so long at most for a node's answer, and before that for a link to the node.
    private static let answerTimeout = Duration.milliseconds(300)
    private static let linkPatience = Duration.milliseconds(500)

    var own: RelayNode { RelayNode(cluster.configuration.node) }

    func candidates(for room: ChannelName) async -> RelayCandidates {
        guard let room = RoomName(rawValue: room.value) else { return RelayCandidates(open: [own]) }
        let nodes = await cluster.relayCandidates(for: room)
        return RelayCandidates(open: nodes.open.map(RelayNode.init), closed: nodes.closed.map(RelayNode.init))
    }

    func ask(_ question: [UInt8], of node: RelayNode) async -> [UInt8]? {
        guard let node = NodeID(node) else { return nil }
        let request = LinkRequest(kind: .relayRoom, body: question)
        return try? await cluster.ask(
            request,
            of: node,
            within: Self.answerTimeout,
            patience: Self.linkPatience
        )
    }

    func want(_ node: RelayNode) {
        if let node = NodeID(node) { cluster.want(node) }
    }

    func release(_ node: RelayNode) {
        if let node = NodeID(node) { cluster.release(node) }
    }

    func send(_ message: [UInt8], to node: RelayNode) -> Bool {
        guard let node = NodeID(node) else { return false }
        return cluster.sendRelay(message, to: node)
    }
}

extension RelayObserver {
    /// Passes on what other nodes say.
    init(_ calls: AyameCalls) {
        self.init(
            received: { calls.received($0, from: RelayNode($1)) },
            lost: { calls.lost(RelayNode($0)) }
        )
    }
}

extension RelayNode {
    fileprivate init(_ node: NodeID) { self.init(rawValue: node.rawValue) }
}

extension NodeID {
    fileprivate init?(_ node: RelayNode) { self.init(rawValue: node.rawValue) }
}
