package import ChannelTypes

/// What a node does with its links, called on one thread in the order of what happened. No call may block.
package protocol LinkDelegate: AnyObject, Sendable {
    func linkUp(_ node: NodeID, hello: LinkHello)
    func linkDown(_ node: NodeID)
    /// A run of a node is gone, or nobody hears it: its members leave.
    /// - Parameter mayReturn: whether it was perhaps only cut off.
    func linkDead(_ instance: NodeInstance, mayReturn: Bool)
    func received(_ message: [UInt8], from node: NodeID)
    /// A message about a room of the 1:1 relay arrived.
    /// - Returns: `false` when too much of the node waits. The link is closed then.
    func receivedCallMessage(_ message: [UInt8], from node: NodeID) -> Bool
    /// Answers a question of another node; `nil` when it cannot.
    func answer(_ request: NodeRequest, from node: NodeID) async -> [UInt8]?
}

/// What links carried and refused, since the start.
package struct LinkCounters: Hashable, Sendable {
    package var framesSent: UInt64 = 0
    package var bytesSent: UInt64 = 0
    package var framesReceived: UInt64 = 0
    /// Connections that ended before both sides said hello: of strangers, or with another secret.
    package var strangers: UInt64 = 0
    /// Connections that were closed for a frame that was too long or not understood.
    package var malformed: UInt64 = 0
    /// Connections that were refused or closed because as many as may had not said hello, of one address or of all.
    package var crowded: UInt64 = 0
    /// Connections of nodes of another cluster, or without a common version.
    package var incompatible: UInt64 = 0
    /// Times that a node was refused for a while because of ``malformed``.
    package var barred: UInt64 = 0
    /// Frames and questions of kinds that this build does not know.
    package var unknown: UInt64 = 0
    /// Links that were closed because too much waited: to be sent, or of what arrived.
    package var overflows: UInt64 = 0
    package var linksUp: UInt64 = 0
    package var linksDown: UInt64 = 0
    package var nodesDead: UInt64 = 0
    /// Questions to other nodes that were answered, and the others by what kept them from an answer. Not those whether a witness
    /// can reach a node.
    package var answered: UInt64 = 0
    package var unanswered: [NodeRequestError: UInt64] = [:]
}
