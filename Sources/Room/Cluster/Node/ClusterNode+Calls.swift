package import ChannelTypes
package import Room

// What rooms of the 1:1 relay need of a node's membership and links. Their messages belong to signaling.

extension ClusterNode {
    /// The nodes where a new room of the relay may begin, the best first, and those that may have it although they take no new
    /// rooms. Nodes with the same view name the same ones.
    package func relayCandidates(for room: ChannelName) async -> (open: [NodeID], closed: [NodeID]) {
        let open = await membership.placement.nodes(for: room).map(\.node)
        let all = await membership.placementWithClosed.nodes(for: room).map(\.node)
        return (open, all.filter { !open.contains($0) })
    }

    /// Keeps a link to a node from now on. Each call is undone by one of ``release(_:)``.
    package func want(_ node: NodeID) { links.want(node) }

    /// The link is not needed for the relay any more.
    package func release(_ node: NodeID) { links.release(node) }

    /// Sends a message about a room of the relay after those before it. It does not wait.
    /// - Returns: `false` without a link or room in its queue.
    package func sendCallMessage(_ message: [UInt8], to node: NodeID) -> Bool {
        links.sendCallMessage(message, to: node)
    }
}

/// Takes what other nodes say of rooms of the 1:1 relay. It is called on one thread in the order of what happened, and must not
/// block.
package struct CallObserver: Sendable {
    /// Takes a message, and returns whether it was understood.
    let received: @Sendable (_ message: [UInt8], _ from: NodeID) -> Bool
    /// The link to a node is lost. What was sent over it may not have arrived.
    let lost: @Sendable (NodeID) -> Void

    package init(
        received: @escaping @Sendable (_ message: [UInt8], _ from: NodeID) -> Bool,
        lost: @escaping @Sendable (NodeID) -> Void
    ) {
        self.received = received
        self.lost = lost
    }
}
