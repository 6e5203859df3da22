import ChannelData
package import ChannelTypes
package import MediaTypes
package import Room
import Synchronization

/// Several nodes in one process, whose messages wait until a test delivers them. Messages of one node to another stay in
/// their order.
package final class FakeCluster: Sendable {
    fileprivate enum Message: Sendable {
        /// The receiver tells the sender all.
        case tell(ChannelName)
        case news(ChannelUpdate, ChannelName)
        case message(RemoteMessage, ChannelName)
        case command(ChannelCommand, ChannelName)
        case lost(ChannelName)
    }
    fileprivate struct Way: Hashable {
        let from: NodeIncarnation
        let to: NodeIncarnation
    }
    fileprivate struct State {
        var nodes: [NodeIncarnation: ChannelDirectory] = [:]
        var sessions: [ChannelName: ChannelSession] = [:]
        var members: [ChannelName: Set<NodeIncarnation>] = [:]
        var messages: [Way: [Message]] = [:]
        var cut: Set<Way> = []
        var refusals: [RoomError] = []
    }
    private let state = Mutex(State())

    package init() {}

    /// The cluster as one of its nodes sees it.
    package func seen(from node: NodeIncarnation) -> some ChannelCluster { View(cluster: self, node: node) }

    package func add(_ directory: ChannelDirectory, as node: NodeIncarnation) {
        state.withLock { $0.nodes[node] = directory }
    }

    private struct View: ChannelCluster {
        let cluster: FakeCluster
        let node: NodeIncarnation

        func open(_ channel: ChannelName, _ session: ChannelSession) async -> ChannelSession? {
            cluster.state.withLock { state in
                let others = state.members[channel, default: []]
                state.members[channel, default: []].insert(node)
                for other in others where other != node {
                    state.send(.tell(channel), from: other, to: node)
                    state.send(.tell(channel), from: node, to: other)
                }
                guard let known = state.sessions[channel] else {
                    state.sessions[channel] = session
                    return nil
                }
                return known
            }
        }

        func close(_ channel: ChannelName, ended: ChannelSession?) {
            cluster.state.withLock { state in
                if ended != nil { state.sessions[channel] = nil }
                state.members[channel]?.remove(node)
                for other in state.members[channel] ?? [] { state.send(.lost(channel), from: node, to: other) }
                guard state.members[channel]?.isEmpty == true else { return }
                state.members[channel] = nil
                state.sessions[channel] = nil
            }
        }

        func send(_ news: ChannelUpdate, of channel: ChannelName, to receiver: NodeIncarnation?) {
            cluster.state.withLock { state in
                for other in state.members[channel] ?? [] where other != node && other == receiver ?? other {
                    state.send(.news(news, channel), from: node, to: other)
                }
            }
        }

        func send(_ message: RemoteMessage, of channel: ChannelName, to nodes: Set<NodeIncarnation>) {
            cluster.state.withLock { state in
                for other in nodes { state.send(.message(message, channel), from: node, to: other) }
            }
        }

        func send(_ command: ChannelCommand, of channel: ChannelName, to other: NodeIncarnation) {
            cluster.state.withLock { $0.send(.command(command, channel), from: node, to: other) }
        }

        func refuse(
            _ command: ChannelCommand,
            of channel: ChannelName,
            to other: NodeIncarnation,
            because error: RoomError
        ) {
            cluster.state.withLock { $0.refusals.append(error) }
        }
    }

    /// Why nodes refused commands of others.
    package var refusals: [RoomError] { state.withLock { $0.refusals } }

    /// Loses all messages between two nodes from now on; ``heal(_:_:)`` ends it.
    package func cut(_ one: NodeIncarnation, _ other: NodeIncarnation) {
        state.withLock { $0.cut.formUnion([Way(from: one, to: other), Way(from: other, to: one)]) }
    }

    package func heal(_ one: NodeIncarnation, _ other: NodeIncarnation) {
        state.withLock { state in
            state.cut.subtract([Way(from: one, to: other), Way(from: other, to: one)])
            for (channel, nodes) in state.members where nodes.isSuperset(of: [one, other]) {
                state.send(.tell(channel), from: one, to: other)
                state.send(.tell(channel), from: other, to: one)
            }
        }
    }

    /// Each of two nodes gives the other's members up.
    package func giveUp(_ one: NodeIncarnation, _ other: NodeIncarnation) async {
        let (nodes, channels) = state.withLock { ($0.nodes, Array($0.members.keys)) }
        for channel in channels {
            await nodes[one]?.lost(other, of: channel)
            await nodes[other]?.lost(one, of: channel)
        }
    }

    /// Delivers the first message of a way that the generator chooses.
    /// - Returns: `false` when none waits.
    package func deliverOne(using generator: inout some RandomNumberGenerator) async -> Bool {
        let ways = state.withLock { $0.messages.filter { !$0.value.isEmpty }.map(\.key) }
            .sorted { ($0.from.rawValue, $0.to.rawValue) < ($1.from.rawValue, $1.to.rawValue) }
        guard let way = ways.randomElement(using: &generator) else { return false }
        let (message, receiver) = state.withLock { state in
            (state.messages[way]?.removeFirst(), state.nodes[way.to])
        }
        guard let message, let receiver else { return true }
        switch message {
        case .tell(let channel): _ = await receiver.tell(way.from, of: channel)
        case .news(let news, let channel): await receiver.received(news, of: channel, from: way.from)
        case .message(let message, let channel): await receiver.received(message, of: channel, from: way.from)
        case .command(let command, let channel): await receiver.received(command, of: channel, from: way.from)
        case .lost(let channel): await receiver.lost(way.from, of: channel)
        }
        return true
    }

    /// Delivers everything, and what follows from it.
    package func settle() async {
        var generator = SystemRandomNumberGenerator()
        let nodes = state.withLock { Array($0.nodes.values) }
        var isSettled = false
        while !isSettled {
            isSettled = true
            while await deliverOne(using: &generator) { isSettled = false }
            for directory in nodes { await directory.settle() }
        }
    }
}

extension FakeCluster.State {
    fileprivate mutating func send(_ message: FakeCluster.Message, from: NodeIncarnation, to: NodeIncarnation) {
        let way = FakeCluster.Way(from: from, to: to)
        if !cut.contains(way) { messages[way, default: []].append(message) }
    }
}
