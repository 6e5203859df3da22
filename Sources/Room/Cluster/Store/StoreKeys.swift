import Base
import ChannelTypes

/// The keys of a cluster in the store. The hash tags in braces keep the keys of a script in one hash slot.
struct StoreKeys: Hashable, Sendable {
    let cluster: ClusterName

    private var nodes: String { "ng:{\(cluster)}" }
    /// A hash: `gen` the generation, `inc` the last incarnation, `rev` the last change, `beat` the time of the last
    /// heartbeat of any node, `grace` the time before which nobody is absent.
    var meta: String { nodes + ":meta" }
    /// A hash: the incarnation and record of each node.
    var node: String { nodes + ":node" }
    /// A sorted set: the time of each node's last heartbeat.
    var seen: String { nodes + ":seen" }
    /// A sorted set: the number of each node's last change.
    var changes: String { nodes + ":chg" }

    /// A hash: `s` the session, `c` the time of creation, `r` the last rank, `n:` with a node's name its incarnation and rank, and
    /// `e` and `a` for nodes of earlier versions.
    func room(_ name: ChannelName) -> String { "\(tag(name)):room:\(name)" }

    /// The prefix of a room's key. There are 256, so that the rooms are spread over the store's nodes.
    func tag(_ name: ChannelName) -> String {
        let bytes = Array(name.value.utf8)
        let byte = unsafe CRC32.checksum(bytes.span.bytes) & 0xFF
        return "ng:{\(cluster):\(byte < 16 ? "0" : "")\(String(byte, radix: 16))}"
    }
}
