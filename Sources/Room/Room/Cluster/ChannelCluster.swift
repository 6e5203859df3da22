package import ChannelData
package import ChannelTypes
package import MediaTypes

/// The other nodes of a cluster, as the rooms of a node use them. No call waits for a node that does not answer.
package protocol ChannelCluster: Sendable {
    /// The node is about to have a channel.
    ///
    /// Nodes that have it tell the node of their members from then on, with ``ChannelUpdate/all(_:_:_:labels:others:)`` first, as this node
    /// does by ``ChannelDirectory/tell(_:of:)``.
    /// - Parameter session: what the channel's session is unless another node has one.
    /// - Returns: the session of the other nodes; `nil` when they are not known to have one.
    func open(_ channel: ChannelName, _ session: ChannelSession) async -> ChannelSession?

    /// The node has neither members nor listeners of a channel any more.
    /// - Parameter ended: the channel's session when it has ended, at all nodes. The next one is another one.
    func close(_ channel: ChannelName, ended: ChannelSession?)

    /// Tells every other node that has the channel, or only one node, in the order of the calls.
    func send(_ news: ChannelUpdate, of channel: ChannelName, to node: NodeIncarnation?)

    /// Sends a message of a participant to the participants of other nodes. It may be lost.
    func send(_ message: RemoteMessage, of channel: ChannelName, to nodes: Set<NodeIncarnation>)

    /// Has one node perform a command on its participants.
    func send(_ command: ChannelCommand, of channel: ChannelName, to node: NodeIncarnation)

    /// Tells a node that its command is refused. Both nodes count it.
    func refuse(_ command: ChannelCommand, of channel: ChannelName, to node: NodeIncarnation, because error: RoomError)
}

extension ChannelDirectory {
    /// Performs a call about a channel that perhaps only other nodes have. Their members are known here meanwhile.
    package func withRemoteParticipants<Result: Sendable>(
        of channel: ChannelName,
        _ call: () async throws -> Result
    ) async rethrows -> Result {
        guard cluster != nil, node.actor(of: channel) == nil else { return try await call() }
        var actor = actor(of: channel)
        while await !actor.beginLookUp() { actor = self.actor(of: channel) }
        do {
            let result = try await call()
            await actor.endLookUp()
            return result
        } catch {
            await actor.endLookUp()
            throw error
        }
    }

    /// The members of a channel by their nodes, those of other nodes too.
    package func memberCounts(of channel: ChannelName) async -> [NodeIncarnation: Int] {
        await withRemoteParticipants(of: channel) { await node.actor(of: channel)?.memberCounts ?? [:] }
    }

    /// A node told of a channel. News of a channel that this node does not have is ignored.
    /// - Parameter node: the node that told it. What it says of members of other nodes is ignored.
    package func received(_ news: ChannelUpdate, of channel: ChannelName, from node: NodeIncarnation) async {
        await self.node.actor(of: channel)?.received(news, from: node)
    }

    /// A node sent a message of one of its participants. One of an unknown participant is dropped.
    package func received(_ message: RemoteMessage, of channel: ChannelName, from node: NodeIncarnation) async {
        await self.node.actor(of: channel)?.received(message, from: node)
    }

    /// A node has this one perform its part of a command. The node is told when that is refused.
    package func received(_ command: ChannelCommand, of channel: ChannelName, from node: NodeIncarnation) async {
        guard let actor = self.node.actor(of: channel) else {
            cluster?.refuse(command, of: channel, to: node, because: .channelUnknown)
            return
        }
        await actor.perform(command, for: node)
    }

    /// Tells a node all that this one has of a channel, in its place among the other news.
    /// - Returns: `false` when this node does not have the channel.
    package func tell(_ node: NodeIncarnation, of channel: ChannelName) async -> Bool {
        await self.node.actor(of: channel)?.tell(node) ?? false
    }

    /// A node does not have a channel any more, or is gone: its members leave.
    package func lost(_ node: NodeIncarnation, of channel: ChannelName) async {
        await self.node.actor(of: channel)?.lost(node)
    }
}
