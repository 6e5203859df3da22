import Base
package import ChannelTypes
import Room

/// On which node a room begins.
///
/// A node that takes part itself is one of the candidates.
package struct Placement: Hashable, Sendable {
    /// The nodes asked for a room that only they may know, while there is no store.
    package static let askedMax = 3
    /// A node with this load in per cent takes no more rooms while another one does.
    package static let loadMax = 95

    private let candidates: [ClusterView.Member]

    /// - Parameters:
    ///   - view: the other nodes, of which those that are ready are candidates.
    ///   - own: this node, `nil` when it takes no new rooms.
    package init(_ view: ClusterView, own: ClusterView.Member?) {
        let others = view.ready.filter { $0.instance.node != own?.instance.node }
        candidates = (others + [own].compactMap(\.self)).sorted { $0.instance.node < $1.instance.node }
    }

    /// Over all nodes that may have rooms, also those that take no new ones.
    package init(withClosed view: ClusterView, own: ClusterView.Member) {
        let others = view.members.values.filter { !$0.isAbsent && $0.instance.node != own.instance.node }
        candidates = (others + [own]).sorted { $0.instance.node < $1.instance.node }
    }

    /// A node for a new room: in the region when one there has room, and of two random ones the less loaded.
    ///
    /// Two choices keep the load even although every node knows the others' loads of some seconds ago; the least loaded of
    /// all would get every room of these seconds.
    /// - Parameter isSuitable: which of the candidates to choose from.
    /// - Returns: `nil` without a candidate.
    package func node(
        region: String?,
        where isSuitable: (ClusterView.Member) -> Bool = { _ in true },
        using generator: inout some RandomNumberGenerator
    ) -> NodeInstance? {
        let suitable = candidates.filter(isSuitable)
        let open = suitable.filter { $0.record.load < Self.loadMax }
        let usable = open.isEmpty ? suitable : open
        let near = usable.filter { $0.record.region == region }
        let nodes = near.isEmpty ? usable : near
        guard let first = nodes.randomElement(using: &generator) else { return nil }
        let rest = nodes.filter { $0.instance != first.instance }
        guard let second = rest.randomElement(using: &generator) else { return first.instance }
        return Self.isLess(second.record, first.record) ? second.instance : first.instance
    }

    private static func isLess(_ left: NodeRecord, _ right: NodeRecord) -> Bool {
        (left.load, left.members) < (right.load, right.members)
    }

    /// The nodes of a room that nobody here knows, while there is no store: the first one begins the room unless one of
    /// them has it. Rendezvous hashing, so that nodes with the same view ask the same ones and one node more or less
    /// changes few rooms (Thaler, Ravishankar: "Using Name-Based Mappings to Increase Hit Rates").
    /// - Returns: at most ``askedMax``, the best first.
    package func nodes(for room: ChannelName) -> [NodeInstance] {
        let weighed = candidates.map { (weight: Self.weight(of: $0.instance.node, for: room), instance: $0.instance) }
        let best = weighed.sorted { ($0.weight, $1.instance.node) > ($1.weight, $0.instance.node) }
        return best.prefix(Self.askedMax).map(\.instance)
    }

    /// The first 64 bits of SHA-1 over the node's name, a zero and the room's name. All nodes of a cluster have to agree.
    private static func weight(of node: NodeID, for room: ChannelName) -> UInt64 {
        var hash = SHA1()
        let bytes = Array(node.rawValue.utf8) + [0] + Array(room.value.utf8)
        unsafe hash.update(bytes.span.bytes)
        let digest = hash.finalize()
        return (0..<8).reduce(0) { $0 << 8 | UInt64(digest[$1]) }
    }
}
