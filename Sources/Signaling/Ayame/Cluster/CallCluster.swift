package import ChannelTypes
package import Room

/// The other nodes of a cluster, as rooms of the 1:1 relay use them.
///
/// A node that is reached again after its link was lost may have forgotten everything, so each loss is told to
/// ``AyameCalls/lost(_:)``. Only ``candidates(for:)`` and ``ask(_:of:)`` may wait, and no method calls back.
package protocol CallCluster: Sendable {
    var own: NodeID { get }

    /// Nodes with the same view of the cluster have the same ones for a room.
    func candidates(for room: ChannelName) async -> CallCandidates

    /// Asks a node, which answers with ``AyameCalls/answer(_:)``.
    /// - Returns: `nil` without an answer in a short time.
    func ask(_ question: [UInt8], of node: NodeID) async -> [UInt8]?

    /// Keeps a link to a node from now on. Each call is undone by one of ``release(_:)``.
    func want(_ node: NodeID)
    func release(_ node: NodeID)

    /// Sends a message after those before it. The node takes it with ``AyameCalls/received(_:from:)``.
    /// - Returns: `false` without a link.
    @discardableResult
    func send(_ message: [UInt8], to node: NodeID) -> Bool
}

/// The nodes that may have a room of the 1:1 relay, this one perhaps among them.
package struct CallCandidates: Hashable, Sendable {
    /// Where a new room may begin, the best first.
    package var open: [NodeID]
    /// Those that take no new room, but may have this one.
    package var closed: [NodeID]

    package init(open: [NodeID], closed: [NodeID] = []) {
        self.open = open
        self.closed = closed
    }

    var all: [NodeID] { open + closed }
}
