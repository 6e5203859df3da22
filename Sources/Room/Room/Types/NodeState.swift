/// Where a node is between its start and its end.
public enum NodeState: String, CaseIterable, Hashable, Sendable {
    /// Its listeners are not up.
    case starting
    /// It takes new rooms and clients.
    case ready
    /// It takes no new rooms, and later no new clients. It can become ready again.
    case draining
    /// It shuts down.
    case stopping
}
