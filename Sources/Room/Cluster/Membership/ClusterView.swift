package import ChannelTypes
internal import MediaTypes
import Room

/// The other nodes of a cluster, as the store told of them.
package struct ClusterView: Hashable, Sendable {
    package struct Member: Hashable, Sendable {
        package var instance: NodeInstance
        package var record: NodeRecord
        /// The store has had no heartbeat of the node for ``StoreTimes/absentAfterMS``. It gets no new rooms; its calls are
        /// not affected.
        package var isAbsent = false
        /// Of the record in the store.
        package var signature = RecordSignature.valid

        package init(
            instance: NodeInstance,
            record: NodeRecord,
            isAbsent: Bool = false,
            signature: RecordSignature = .valid
        ) {
            self.instance = instance
            self.record = record
            self.isAbsent = isAbsent
            self.signature = signature
        }
    }

    /// The most nodes that are kept. Those told of later are ignored.
    package static let nodesMax = 2_048
    /// The most nodes whose records are not accepted that are kept.
    package static let ignoredMax = 64

    package private(set) var members: [NodeID: Member] = [:]
    /// Nodes that the store tells of and whose records are not accepted. They are shown to operators, and nothing that their
    /// records say has an effect.
    package private(set) var ignored: [NodeID: Member] = [:]

    package init() {}

    package subscript(_ node: NodeID) -> Member? { members[node] }

    /// Takes what the store tells of a node. A lower incarnation than the known one is out of date and ignored.
    /// - Returns: whether the view is another one now.
    mutating func take(_ change: HeartbeatAnswer.Change) -> Bool {
        let node = change.instance.node
        let known = members[node]
        if let known {
            guard known.instance.incarnation.rawValue <= change.instance.incarnation.rawValue else { return false }
        } else {
            guard members.count < Self.nodesMax else { return false }
        }
        let member = Member(
            instance: change.instance,
            record: change.record,
            isAbsent: known?.instance == change.instance && known?.isAbsent == true,
            signature: change.signature
        )
        members[node] = member
        let wasIgnored = ignored.removeValue(forKey: node) != nil
        return wasIgnored || member != known
    }

    /// Notes a node whose record is not accepted. What is known of a node of this name stays.
    /// - Returns: whether the view is another one now.
    mutating func ignore(_ change: HeartbeatAnswer.Change) -> Bool {
        let node = change.instance.node
        let known = ignored[node]
        guard known != nil || ignored.count < Self.ignoredMax else { return false }
        let member = Member(instance: change.instance, record: change.record, signature: change.signature)
        ignored[node] = member
        return member != known
    }

    /// Forgets a record that was not accepted.
    /// - Returns: whether the view is another one now.
    mutating func stopIgnoring(_ node: NodeID) -> Bool { ignored.removeValue(forKey: node) != nil }

    /// Makes exactly these nodes absent, and those whose place in the store a later run has whose record is not accepted: the store
    /// does not hear the known run any more. Of the nodes that are ignored, the absent ones are forgotten.
    /// - Parameter forgotten: nodes that the store does not tell of any more. They stay absent, and say nothing of a run that is
    ///   ignored.
    /// - Returns: whether the view is another one now.
    mutating func setAbsent(_ absent: Set<NodeID>, forgotten: Set<NodeID> = []) -> Bool {
        let present = ignored.filter { !absent.contains($0.key) }
        var isChanged = present.count < ignored.count
        ignored = present
        for (node, member) in members {
            let later = present[node].map { $0.instance.incarnation.rawValue > member.instance.incarnation.rawValue }
            let isAbsent = absent.contains(node) || forgotten.contains(node) || later == true
            guard member.isAbsent != isAbsent else { continue }
            members[node]?.isAbsent.toggle()
            isChanged = true
        }
        return isChanged
    }

    /// Replaces the view by a complete list of the store. Incarnations may fall: whoever runs under a higher one would have
    /// replaced the list's.
    /// - Returns: whether the view is another one now.
    mutating func replace(by list: ClusterView) -> Bool {
        guard list != self else { return false }
        self = list
        return true
    }

    /// The nodes whose records another secret signed, as far as the store tells.
    var otherSecrets: Set<NodeID> { Set(ignored.filter { $0.value.signature == .invalid }.keys) }

    /// The nodes that take new rooms, in the order of their names.
    package var ready: [Member] {
        members.values.filter { $0.record.state == .ready && !$0.isAbsent }
            .sorted { $0.instance.node < $1.instance.node }
    }
}
