package import Base
package import MediaTypes

/// A cluster as one of its nodes knows it, for operators.
package struct ClusterStatus: Hashable, Sendable {
    /// One node.
    package struct Node: Hashable, Sendable {
        /// The same after a restart.
        package var name: String
        /// The run of the node.
        package var incarnation: NodeIncarnation
        package var state: NodeState
        /// Where clients reach it, as it said itself; `nil` when it did not.
        package var address: NodeAddress?
        package var region = ""
        package var zone = ""
        /// The program's version.
        package var version = ""
        /// In per cent of what the node can carry.
        package var load = 0
        package var members = 0
        package var rooms = 0
        /// Whether the store has had no heartbeat of the node for a while. It gets no new rooms.
        package var isAbsent = false
        /// Whether this node ignores it, because the cluster's secret did not sign its record in the store.
        package var isIgnored = false
        /// The link to it; `nil` without one, because nothing needs one.
        package var link: LinkState?
        /// Of the link; `nil` before it is measured.
        package var roundTrip: Interval?

        package init(name: String, incarnation: NodeIncarnation, state: NodeState) {
            self.name = name
            self.incarnation = incarnation
            self.state = state
        }
    }

    /// The directory that the nodes share.
    package enum StoreState: String, CaseIterable, Hashable, Sendable {
        /// The cluster runs without one.
        case none
        case up
        case down
    }

    /// The cluster's name.
    package var name: String
    /// This node.
    package var own: Node
    /// The others, in the order of their names, those that are ignored last.
    package var others: [Node]
    package var store: StoreState
    /// The number of rooms that this node shares with so many nodes, itself included.
    package var roomsByNodeCount: [Int: Int] = [:]

    package init(name: String, own: Node, others: [Node], store: StoreState) {
        self.name = name
        self.own = own
        self.others = others
        self.store = store
    }

    /// The names of all nodes.
    package var names: [NodeIncarnation: String] {
        Dictionary(([own] + others).map { ($0.incarnation, $0.name) }) { first, _ in first }
    }

    /// Whether a run of a node is one of the cluster's.
    package func knows(_ incarnation: NodeIncarnation) -> Bool {
        others.contains { $0.incarnation == incarnation && !$0.isIgnored }
    }

    /// Where clients reach a node; `nil` for an unknown one, and until it has said so over a link.
    package func address(of incarnation: NodeIncarnation) -> NodeAddress? {
        others.first { $0.incarnation == incarnation }?.address
    }
}
