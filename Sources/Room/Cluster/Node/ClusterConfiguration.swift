package import ChannelTypes

/// What a node needs to join a cluster.
package struct ClusterConfiguration: Sendable {
    package var cluster: ClusterName
    package var node: NodeID
    /// Where the node listens for the links of others.
    package var linkHost: String
    package var linkPort: Int
    /// `HOST:PORT` where the others reach that listener; `nil` for ``linkHost`` and ``linkPort``.
    package var linkAnnounce: String?
    package var region = ""
    package var zone = ""
    /// The address of the node's signaling for clients, such as `https://a.example.com:8080`; empty when clients are never
    /// sent here by other nodes.
    package var publicURL = ""
    package var build = ""
    /// A folder that outlives the process, for the view of the cluster; `nil` without.
    package var stateDirectory: String?
    /// Whether records of other nodes in the store need no signature, because some nodes run builds that do not sign.
    package var acceptsUnsignedRecords = false

    package init(cluster: ClusterName, node: NodeID, linkHost: String, linkPort: Int) {
        self.cluster = cluster
        self.node = node
        self.linkHost = linkHost
        self.linkPort = linkPort
    }

    /// `HOST:PORT` where the node listens for the links of others.
    package var linkListener: String { HostPort(host: linkHost, port: linkPort)?.description ?? "" }
    var linkAddress: String { linkAnnounce ?? linkListener }
}

/// What changes in a node's record while it runs.
package struct NodeMeasurements: Hashable, Sendable {
    /// 1 is as much as the node can carry.
    package var load: Double
    package var members: Int
    package var rooms: Int

    package init(load: Double, members: Int, rooms: Int) {
        self.load = load
        self.members = members
        self.rooms = rooms
    }
}
