package import ChannelTypes
package import MediaTypes

/// The other nodes of a cluster, as everything uses them but channels, which use a ``ChannelCluster``.
///
/// A node that is reached again after its link was lost may have forgotten everything: each loss is told to those who sent it
/// messages about rooms of the 1:1 relay. No method calls back.
package protocol OtherNodes: Sendable {
    /// This node.
    var nodeID: NodeID { get }
    /// The run of this node, which the URLs of its sessions name.
    var incarnation: NodeIncarnation { get }
    /// All nodes as known here.
    var status: ClusterStatus { get }

    /// Where a newcomer of a channel should connect instead of here; `nil` to stay. It does not wait for a node or a store
    /// that does not answer.
    /// - Parameter directory: that of this node.
    func redirect(
        for channel: ChannelName,
        because reason: RedirectReason,
        in directory: ChannelDirectory
    ) async -> NodeAddress?

    /// Asks the node of a location. It takes as long as the kind of the question allows at most.
    func ask(_ request: NodeRequest, of node: NodeIncarnation) async throws(NodeRequestError) -> [UInt8]
    /// Asks a node.
    func ask(_ request: NodeRequest, of node: NodeID) async throws(NodeRequestError) -> [UInt8]

    // MARK: Rooms of the 1:1 relay

    /// Nodes with the same view of the cluster have the same ones for a room.
    func candidates(for room: ChannelName) async -> RoomCandidates

    /// Keeps a link to a node from now on. Each call is undone by one of ``release(_:)``.
    func want(_ node: NodeID)
    func release(_ node: NodeID)

    /// Sends a message about a room after those before it. It does not wait.
    /// - Returns: `false` without a link or room in its queue.
    @discardableResult
    func sendCallMessage(_ message: [UInt8], to node: NodeID) -> Bool
}

/// What became of another node's message about a room of the 1:1 relay.
package enum CallMessageReception: Hashable, Sendable {
    case taken
    /// It was not understood.
    case malformed
    /// As much waits of the node as may. The link to it is to be closed, so that both nodes know that messages are lost.
    case overflow
}

/// Why a newcomer may have to connect to another node.
package enum RedirectReason: Hashable, Sendable {
    /// It asked this node. A channel of few members is best on one node.
    case newcomer
    /// This node refuses the newcomer, because it drains or because of its mode.
    case draining
    /// More clients join this node at once than it can serve in time.
    case overloaded
}

/// The nodes that may have a room of the 1:1 relay, this one perhaps among them.
package struct RoomCandidates: Hashable, Sendable {
    /// Where a new room may begin, the best first.
    package var open: [NodeID]
    /// Those that take no new room, but may have this one.
    package var closed: [NodeID]

    package init(open: [NodeID], closed: [NodeID] = []) {
        self.open = open
        self.closed = closed
    }

    package var all: [NodeID] { open + closed }
}
