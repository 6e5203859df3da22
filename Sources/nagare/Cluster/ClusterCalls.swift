import Ayame
import Cluster
import Room

/// The cluster as rooms of the 1:1 relay use it.
struct ClusterCalls: CallCluster {
    let cluster: ClusterNode

    /// A newcomer waits so long at most for a node's answer, and before that for a link to the node.
    private static let answerTimeout = Duration.milliseconds(300)
    private static let linkTimeout = Duration.milliseconds(500)

    var own: CallNode { CallNode(cluster.configuration.node) }

    func candidates(for room: ChannelName) async -> CallCandidates {
        guard let room = RoomName(rawValue: room.value) else { return CallCandidates(open: [own]) }
        let nodes = await cluster.relayCandidates(for: room)
        return CallCandidates(open: nodes.open.map(CallNode.init), closed: nodes.closed.map(CallNode.init))
    }

    func ask(_ question: [UInt8], of node: CallNode) async -> [UInt8]? {
        guard let node = NodeID(node) else { return nil }
        let request = LinkRequest(kind: .callRoom, body: question)
        return try? await cluster.ask(
            request,
            of: node,
            within: Self.answerTimeout,
            patience: Self.linkTimeout
        )
    }

    func want(_ node: CallNode) {
        if let node = NodeID(node) { cluster.want(node) }
    }

    func release(_ node: CallNode) {
        if let node = NodeID(node) { cluster.release(node) }
    }

    func send(_ message: [UInt8], to node: CallNode) -> Bool {
        guard let node = NodeID(node) else { return false }
        return cluster.sendCallMessage(message, to: node)
    }
}

extension CallObserver {
    /// Passes on what other nodes say.
    init(_ calls: AyameCalls) {
        self.init(
            received: { calls.received($0, from: CallNode($1)) },
            lost: { calls.lost(CallNode($0)) }
        )
    }
}

extension CallNode {
    fileprivate init(_ node: NodeID) { self.init(rawValue: node.rawValue) }
}

extension NodeID {
    fileprivate init?(_ node: CallNode) { self.init(rawValue: node.rawValue) }
}
