import Ayame
import ChannelTypes
import Cluster
import Room

/// The cluster as rooms of the 1:1 relay use it.
struct ClusterCalls: CallCluster {
    let cluster: ClusterNode

    /// A newcomer waits so long at most for a node's answer, and before that for a link to the node.
    private static let answerTimeout = Duration.milliseconds(300)
    private static let linkTimeout = Duration.milliseconds(500)

    var own: NodeID { cluster.configuration.node }

    func candidates(for room: ChannelName) async -> CallCandidates {
        let nodes = await cluster.relayCandidates(for: room)
        return CallCandidates(open: nodes.open, closed: nodes.closed)
    }

    func ask(_ question: [UInt8], of node: NodeID) async -> [UInt8]? {
        let request = LinkRequest(kind: .callRoom, body: question)
        return try? await cluster.ask(
            request,
            of: node,
            within: Self.answerTimeout,
            patience: Self.linkTimeout
        )
    }

    func want(_ node: NodeID) { cluster.want(node) }
    func release(_ node: NodeID) { cluster.release(node) }
    func send(_ message: [UInt8], to node: NodeID) -> Bool { cluster.sendCallMessage(message, to: node) }
}

extension CallObserver {
    /// Passes on what other nodes say.
    init(_ calls: AyameCalls) {
        self.init(received: { calls.received($0, from: $1) }, lost: { calls.lost($0) })
    }
}
