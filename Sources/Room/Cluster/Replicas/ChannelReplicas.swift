package import Base
package import ChannelTypes
package import MediaTypes
import Room

/// Which nodes have which of this node's channels, and what has to be told to whom.
///
/// Without I/O and clock. The owner performs the actions in their order. A node is told all of a channel when this node
/// learns that it has the channel, and again with every new link; only news is told between.
package struct ChannelReplicas: Sendable {
    package enum Action: Hashable, Sendable {
        /// A link to the node is needed, or not any more.
        case want(NodeID)
        case release(NodeID)
        /// The channel's actor has to tell the node all that this node has.
        case tellAll(ChannelName, NodeID)
        case send(ChannelMessage, NodeID)
        /// The members of the node's run leave the channel, after what the node told before.
        case lost(ChannelName, NodeIncarnation, NodeID)
        case attach(ChannelName, RoomSession)
        /// The session is the one that the channel was attached with.
        case detach(ChannelName, RoomSession)
    }

    /// A channel of this node.
    private struct Channel: Sendable {
        /// What the directory was told.
        let session: RoomSession
        /// What the directory answered.
        var listed: RoomSession?
        /// What other nodes told of since this one began to have the channel.
        var told: ChannelSession?
        /// The last session that ended. The directory may still list it.
        var ended: ChannelSession?
        /// The other nodes that have it.
        var nodes: Set<NodeID> = []
        /// When it leaves the directory, after its last member left.
        var closesAt: Instant?
    }

    /// Another node with which a channel is shared.
    private struct Neighbour: Sendable {
        /// Its run and what its members' locations carry; `nil` before the first link.
        var media: NodeIncarnation?
        var isWanted = false
        var isUp = false
        var channels: Set<ChannelName> = []
        /// Since when there is no link.
        var downSince: Instant?
        /// Its members have left because it was not heard. They return with a link to the same run.
        var isGivenUp = false
        /// Channels that it told this node to keep in mind.
        var kept: Set<ChannelName> = []
    }

    /// A channel that this node does not use stays in the directory for so long: a look-up is often followed by a join, and
    /// clients come and go while others stay at other nodes.
    package static let closeDelay = Interval.seconds(5)
    /// The members of a node without a link are kept for so long.
    package static let lossDelay = Interval.seconds(30)
    /// Channels that a node may ask others to keep in mind.
    package static let keptMax = 100_000
    /// The most nodes that channels are shared with, which takes a link to each. The store may name any number.
    package static let neighboursMax = LinkTable.linksMax

    private let own: NodeID
    private var channels: [ChannelName: Channel] = [:]
    private var neighbours: [NodeID: Neighbour] = [:]
    private var nodeOfMedia: [NodeIncarnation: NodeID] = [:]

    package init(own: NodeID) { self.own = own }

    package var channelCount: Int { channels.count }
    package var channelsByNodeCount: [Int: Int] {
        channels.values.reduce(into: [:]) { $0[$1.nodes.count + 1, default: 0] += 1 }
    }
    /// The channels that this node has, and their sessions.
    package var sessions: [ChannelName: RoomSession] { channels.mapValues(\.session) }

    /// Whether this node has a channel, or had it a moment ago.
    package func has(_ channel: ChannelName) -> Bool { channels[channel] != nil }

    // MARK: Channels of this node

    /// This node begins to have a channel, or has it again.
    package mutating func open(_ channel: ChannelName, _ session: RoomSession, at now: Instant) -> [Action] {
        guard channels[channel] == nil else {
            channels[channel]?.closesAt = nil
            channels[channel]?.told = nil
            return receivers(of: channel).flatMap { [.send(.want(channel), $0), .tellAll(channel, $0)] }
        }
        channels[channel] = Channel(session: session)
        return [.attach(channel, session)]
    }

    /// The session of a channel at other nodes; `nil` when they are not known to have one.
    ///
    /// What the nodes tell holds. Before they have a session, or when they do not answer, it is the one that the directory
    /// lists, so that nodes that begin at the same time begin the same one. The directory lists a session as long as any node
    /// has the channel: one that is not younger than one that has ended, has ended too.
    package func sessionElsewhere(of channel: ChannelName) -> ChannelSession? {
        guard let state = channels[channel] else { return nil }
        if let told = state.told { return told }
        guard !state.nodes.isEmpty, let listed = state.listed?.session(of: channel), listed.id != state.ended?.id,
            state.ended?.precedes(listed) ?? true
        else { return nil }
        return listed
    }

    /// Whether every other node of the channel has told of it. Nobody waits for a node whose link is lost.
    package func isComplete(_ channel: ChannelName) -> Bool {
        channels[channel]?.nodes.allSatisfy { node in
            let neighbour = neighbours[node]
            return neighbour?.channels.contains(channel) == true || neighbour?.downSince != nil
                || neighbour?.isGivenUp == true
        } ?? true
    }

    /// The store, or other nodes in its place, told which nodes have a channel.
    package mutating func found(
        _ channel: ChannelName,
        session: RoomSession?,
        nodes: some Sequence<NodeID>,
        at now: Instant
    ) -> [Action] {
        guard channels[channel] != nil else { return [] }
        if let session { channels[channel]?.listed = session }
        return nodes.filter { $0 != own }.sorted().flatMap { add($0, to: channel) }
    }

    private mutating func add(_ node: NodeID, to channel: ChannelName) -> [Action] {
        guard neighbours[node] != nil || neighbours.count < Self.neighboursMax,
            channels[channel]?.nodes.insert(node).inserted == true
        else { return [] }
        let isWanted = neighbours[node]?.isWanted == true
        neighbours[node, default: Neighbour()].isWanted = true
        return (isWanted ? [] : [.want(node)]) + (neighbours[node]?.isUp == true ? [.tellAll(channel, node)] : [])
    }

    /// The last member and listener of a channel left.
    ///
    /// - Parameter ended: the session if it has ended at all nodes. The channel leaves the directory at once then, which would
    ///   list it for the next members.
    package mutating func close(_ channel: ChannelName, ended: ChannelSession?, at now: Instant) -> [Action] {
        guard let nodes = channels[channel]?.nodes else { return [] }
        if let ended {
            note(ended, asLastOf: channel)
            return remove(channel)
        }
        channels[channel]?.closesAt = now + Self.closeDelay
        for node in nodes { neighbours[node]?.channels.remove(channel) }
        return []
    }

    private mutating func remove(_ channel: ChannelName) -> [Action] {
        guard let state = channels.removeValue(forKey: channel) else { return [] }
        var actions: [Action] = []
        for node in state.nodes.sorted() {
            actions.append(.send(.gone(channel, ended: state.ended), node))
            neighbours[node]?.channels.remove(channel)
            actions += releaseIfUnused(node)
        }
        return actions + [.detach(channel, state.session)]
    }

    // MARK: Links

    /// A link to a node is up. Nothing of an earlier link is assumed to have arrived.
    ///
    /// - Parameter media: the incarnation in the locations of its members.
    package mutating func linkUp(_ node: NodeID, media: NodeIncarnation) -> [Action] {
        var actions: [Action] = []
        if let earlier = neighbours[node]?.media, earlier != media { actions += lost(node, earlier) }
        neighbours[node, default: Neighbour()].media = media
        neighbours[node]?.isUp = true
        neighbours[node]?.downSince = nil
        neighbours[node]?.isGivenUp = false
        nodeOfMedia[media] = node
        for (channel, state) in channels.sorted(by: { $0.key.value < $1.key.value }) where state.nodes.contains(node) {
            actions.append(.tellAll(channel, node))
        }
        return actions
    }

    package mutating func linkDown(_ node: NodeID, at now: Instant) {
        guard neighbours[node]?.isUp == true else { return }
        neighbours[node]?.isUp = false
        neighbours[node]?.downSince = now
    }

    /// A node said that it stops, or a later run of it was seen.
    package mutating func left(_ node: NodeID) -> [Action] {
        guard let neighbour = neighbours.removeValue(forKey: node) else { return [] }
        for channel in channels.keys { channels[channel]?.nodes.remove(node) }
        // Others may want the link of a node that no channel wanted.
        let released: [Action] = neighbour.isWanted ? [.release(node)] : []
        guard let media = neighbour.media else { return released }
        nodeOfMedia[media] = nil
        return neighbour.channels.sorted { $0.value < $1.value }.map { .lost($0, media, node) } + released
    }

    /// Nobody hears a node: its members leave. It may be only cut off, so its channels are shared again with the next link.
    package mutating func gaveUp(_ node: NodeID) -> [Action] {
        guard let media = neighbours[node]?.media, neighbours[node]?.isUp == false else { return [] }
        neighbours[node]?.downSince = nil
        neighbours[node]?.isGivenUp = true
        return lost(node, media)
    }

    /// The store has not heard of a node for a while. One that was given up does not come back as this run.
    package mutating func absent(_ node: NodeID) -> [Action] { neighbours[node]?.isGivenUp == true ? left(node) : [] }

    private mutating func lost(_ node: NodeID, _ media: NodeIncarnation) -> [Action] {
        nodeOfMedia[media] = nil
        defer { neighbours[node]?.channels = [] }
        return (neighbours[node]?.channels ?? []).sorted { $0.value < $1.value }.map { .lost($0, media, node) }
    }

    /// The channels of this node that another one has.
    package func channels(of node: NodeID) -> [ChannelName] {
        channels.filter { $0.value.nodes.contains(node) }.keys.sorted { $0.value < $1.value }
    }

    /// The node of an incarnation.
    package func node(of media: NodeIncarnation) -> NodeID? { nodeOfMedia[media] }
    package func media(of node: NodeID) -> NodeIncarnation? { neighbours[node]?.media }

    /// The nodes that get news of a channel.
    package func receivers(of channel: ChannelName) -> [NodeID] {
        (channels[channel]?.nodes ?? []).filter { neighbours[$0]?.isUp == true }.sorted()
    }

    // MARK: Messages

    /// What a message of a node leads to, besides its delivery to the channel.
    ///
    /// - Returns: the actions, and whether the message is for the channel's actor.
    package mutating func received(
        _ message: ChannelMessage,
        from node: NodeID,
        at now: Instant
    ) -> (actions: [Action], isForChannel: Bool) {
        guard let media = neighbours[node]?.media else { return ([], false) }
        switch message {
        case .news(let channel, let news):
            guard let state = channels[channel] else { return ([.send(.gone(channel, ended: nil), node)], false) }
            guard state.closesAt == nil else {
                let isNew = !state.nodes.contains(node)
                return (add(node, to: channel) + (isNew ? [.send(unused(channel, state), node)] : []), false)
            }
            var actions: [Action] = []
            if case .all(let session, _, let register, _, _) = news {
                actions = add(node, to: channel)
                neighbours[node]?.channels.insert(channel)
                told(session, register, of: channel)
            } else if neighbours[node]?.channels.contains(channel) != true {
                // Its first news was lost, or this node began to have the channel meanwhile.
                return (add(node, to: channel) + [.send(.want(channel), node)], false)
            }
            return (actions, true)
        case .want(let channel):
            guard let state = channels[channel] else { return ([.send(.gone(channel, ended: nil), node)], false) }
            let added = add(node, to: channel)
            guard state.closesAt == nil else { return (added + [.send(unused(channel, state), node)], false) }
            return (added.contains(.tellAll(channel, node)) ? added : added + [.tellAll(channel, node)], false)
        case .gone(let channel, let ended):
            channels[channel]?.nodes.remove(node)
            if let ended { note(ended, asLastOf: channel) }
            let hadMembers = neighbours[node]?.channels.remove(channel) != nil
            return ((hadMembers ? [.lost(channel, media, node)] : []) + releaseIfUnused(node), false)
        case .command(let channel, let command) where channels[channel] == nil:
            return ([.send(.refused(channel, command: command.name, reason: "channelUnknown"), node)], false)
        case .command: return ([], true)
        case .data(let channel, _, _, _): return ([], channels[channel] != nil)
        case .refused: return ([], false)
        case .keep(let kept):
            neighbours[node]?.kept = Set(kept.prefix(Self.keptMax))
            return ([], false)
        }
    }

    private mutating func told(_ session: ChannelSession?, _ register: ChannelRegister, of channel: ChannelName) {
        if let session, channels[channel]?.told.map(session.precedes) ?? true { channels[channel]?.told = session }
        if let ended = register.endedSession { note(ended, asLastOf: channel) }
    }

    private mutating func note(_ ended: ChannelSession, asLastOf channel: ChannelName) {
        guard channels[channel]?.ended?.precedes(ended) ?? true else { return }
        channels[channel]?.ended = ended
    }

    /// What this node has of a channel that it does not use, so that nobody waits for it.
    private func unused(_ channel: ChannelName, _ state: Channel) -> ChannelMessage {
        .news(channel, .all(nil, [], ChannelRegister(endedSession: state.ended), labels: []))
    }

    /// The nodes that are known to have a channel, for a node that asks while there is no store.
    package func hostingNodes(of channel: ChannelName) -> [NodeID] {
        var nodes = channels[channel]?.nodes ?? []
        if channels[channel] != nil { nodes.insert(own) }
        for (node, neighbour) in neighbours
        where neighbour.kept.contains(channel) || neighbour.channels.contains(channel) {
            nodes.insert(node)
        }
        return nodes.sorted()
    }

    private mutating func releaseIfUnused(_ node: NodeID) -> [Action] {
        guard neighbours[node]?.isWanted == true, !channels.values.contains(where: { $0.nodes.contains(node) }) else {
            return []
        }
        neighbours[node]?.isWanted = false
        // One that the store named and that never had a link.
        if neighbours[node]?.media == nil { neighbours[node] = nil }
        return [.release(node)]
    }

    // MARK: Time

    package var nextDeadline: Instant? {
        let closes = channels.values.compactMap(\.closesAt)
        let losses = neighbours.values.compactMap { $0.downSince.map { $0 + Self.lossDelay } }
        return (closes + losses).min()
    }

    package mutating func handleDeadlines(at now: Instant) -> [Action] {
        var actions: [Action] = []
        for (channel, state) in channels.sorted(by: { $0.key.value < $1.key.value }) {
            guard let closesAt = state.closesAt, closesAt <= now else { continue }
            actions += remove(channel)
        }
        for (node, neighbour) in neighbours.sorted(by: { $0.key < $1.key }) {
            guard let since = neighbour.downSince, since + Self.lossDelay <= now else { continue }
            actions += gaveUp(node)
        }
        return actions
    }
}

extension RoomSession {
    /// A channel's session as the store keeps it: its identifier, and when it began.
    package init?(_ session: ChannelSession) { self.init(rawValue: "\(session.id.value).\(session.createdAt)") }

    /// `nil` for another form.
    package func session(of channel: ChannelName) -> ChannelSession? {
        let parts = rawValue.split(separator: ".")
        guard parts.count == 2, let id = ChannelSessionID(parts[0]), let createdAt = Int64(parts[1]) else { return nil }
        return ChannelSession(id: id, channel: channel, createdAt: createdAt)
    }
}
