/// Where a node is between its start and its end.
package enum NodeState: String, CaseIterable, Hashable, Sendable {
    /// Its listeners are not up.
    case starting
    /// It takes new rooms and clients.
    case ready
    /// It takes no new rooms, and later no new clients. It can become ready again.
    case draining
    /// It shuts down.
    case stopping
}

/// The link between this node and another one, as operators see it.
package enum LinkState: String, CaseIterable, Hashable, Sendable {
    case connecting
    case up
    /// Nothing has arrived for a while.
    case suspect
    case down
    /// The two nodes have no common secret.
    case refused
}
