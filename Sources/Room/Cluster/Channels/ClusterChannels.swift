import Base
package import ChannelData
package import ChannelTypes
package import Logging
package import MediaTypes
internal import NIOCore
package import Room
import Synchronization

/// The links of a node, as its channels use them. No call waits or calls back.
package protocol ChannelLinks: Sendable {
    /// Keeps a link to a node from now on, as soon as its address is known.
    func want(_ node: NodeID)
    /// The link is not needed any more.
    func release(_ node: NodeID)
    /// Sends a message after those before it.
    /// - Returns: `false` without a link or room in its queue.
    func send(_ message: [UInt8], to node: NodeID) -> Bool
}

/// The directory of a cluster, as channels use it.
package protocol HostingDirectory: Sendable {
    /// Tells the store that this node has a channel; `nil` when the store does not answer in time. It is told later then.
    func attach(_ room: ChannelName, session: RoomSession) async -> RoomEntry?
    /// This node does not have a channel any more. Does nothing when it was attached with another session since.
    func detach(_ room: ChannelName, session: RoomSession) async
    /// Asks the nodes that may know, while there is no store, who has the channel.
    func hostingNodes(of channel: ChannelName) async -> Set<NodeID>
}

/// Connects the channels of a node with those of the other nodes.
///
/// It may be called on any thread. Messages of one node reach a channel in their order.
package final class ClusterChannels: ChannelCluster {
    private struct State {
        var replicas: ChannelReplicas
        var directory: ChannelDirectory?
        /// Those who wait until the other nodes have told of a channel.
        var waiting: [ChannelName: [AsyncStream<Void>.Continuation]] = [:]
        /// Of nodes with messages that wait or are being taken.
        var inboxes: [NodeID: Inbox] = [:]
        var counters = ClusterChannelsCounters()

        /// Whether a channel has taken the news of every other node that has it.
        func isComplete(_ channel: ChannelName) -> Bool {
            replicas.isComplete(channel) && !inboxes.values.contains { $0.lacksNews(of: channel) }
        }
    }
    private struct Delivery {
        enum Content {
            case message(ChannelMessage)
            case data(RemoteMessage, ChannelName)
            case lost(ChannelName)
        }
        let content: Content
        let node: NodeIncarnation
        /// The length of the message.
        let bytes: Int

        /// The channel that the node tells all of.
        var toldChannel: ChannelName? {
            guard case .message(.news(let channel, .all)) = content else { return nil }
            return channel
        }
    }
    /// The messages of one node that wait for its channels, in their order.
    private struct Inbox {
        private var deliveries = CircularBuffer<Delivery>()
        private var count = 0
        private var bytes = 0
        /// The channels of which all news waits or is being taken, with how often.
        private var told: [ChannelName: Int] = [:]
        /// The channels that lack a message, which found the inbox full.
        private var missed: Set<ChannelName> = []

        func lacksNews(of channel: ChannelName) -> Bool { told[channel] != nil || missed.contains(channel) }

        /// Adds a delivery. That members are lost always has room: nothing tells of it again.
        /// - Returns: `false` when the inbox is full.
        mutating func add(_ delivery: Delivery) -> Bool {
            let isFull = count >= ClusterChannels.inboxMax || bytes + delivery.bytes > ClusterChannels.inboxBytesMax
            switch delivery.content {
            case .lost: break
            case .data: if isFull { return false }
            case .message(let message):
                guard isFull else { break }
                if case .news(let channel, _) = message { missed.insert(channel) }
                return false
            }
            count += 1
            bytes += delivery.bytes
            if let channel = delivery.toldChannel { told[channel, default: 0] += 1 }
            deliveries.append(delivery)
            return true
        }

        /// The next delivery, to be followed by ``taken(_:)``.
        mutating func next() -> Delivery? { deliveries.popFirst() }

        /// A channel has taken a delivery.
        /// - Returns: the channels that have to be told again, when there is room for it.
        mutating func taken(_ delivery: Delivery) -> Set<ChannelName> {
            count -= 1
            bytes -= delivery.bytes
            if let channel = delivery.toldChannel {
                let rest = (told[channel] ?? 1) - 1
                told[channel] = rest > 0 ? rest : nil
            }
            guard count <= ClusterChannels.inboxMax / 2, bytes <= ClusterChannels.inboxBytesMax / 2 else { return [] }
            defer { missed = [] }
            return missed
        }
    }

    /// Messages of one node that may wait for its channels, and their bytes.
    private static let inboxMax = 65_536
    private static let inboxBytesMax = 64 << 20
    /// How many channels there may be for each one that may have members here. The others are being looked up, or end.
    private static let channelsFactor = 2
    /// A newcomer waits at most so long for the other nodes' news of its channel.
    package static let openTimeoutDefault = Duration.milliseconds(300)

    private let state: Mutex<State>
    private let links: any ChannelLinks
    private let hosting: any HostingDirectory
    private let clock: RoomClock
    private let openTimeout: Duration
    private let logger: Logger

    /// - Parameters:
    ///   - openTimeout: how long a newcomer waits at most for the other nodes' news of its channel.
    ///   - logger: logs which commands other nodes refused.
    package init(
        own: NodeID,
        links: any ChannelLinks,
        hosting: any HostingDirectory,
        clock: RoomClock = .system,
        openTimeout: Duration = openTimeoutDefault,
        logger: Logger
    ) {
        state = Mutex(State(replicas: ChannelReplicas(own: own)))
        self.links = links
        self.hosting = hosting
        self.clock = clock
        self.openTimeout = openTimeout
        self.logger = logger
    }

    /// Sets the node's channels, before anything else is called.
    package func attach(_ directory: ChannelDirectory) { state.withLock { $0.directory = directory } }

    package var counters: ClusterChannelsCounters { state.withLock { $0.counters } }
    package var channelCount: Int { state.withLock { $0.replicas.channelCount } }
    /// Whether channels have taken all messages.
    var isSettled: Bool { state.withLock { $0.inboxes.isEmpty } }
    /// The number of channels of this node that so many nodes have, this one included.
    package var channelsByNodeCount: [Int: Int] { state.withLock { $0.replicas.channelsByNodeCount } }

    // MARK: - ChannelCluster

    package func open(_ channel: ChannelName, _ session: ChannelSession) async -> ChannelSession? {
        guard let own = RoomSession(session), mayOpen(channel) else { return nil }
        let actions = change { $0.open(channel, own, at: clock.instant) }
        if actions.contains(.attach(channel, own)) {
            if let entry = await hosting.attach(channel, session: own) {
                found(channel, entry)
            } else {
                let nodes = await hosting.hostingNodes(of: channel)
                change { $0.found(channel, session: nil, nodes: nodes, at: clock.instant) }
            }
        }
        await awaitNews(of: channel)
        return state.withLock { $0.replicas.sessionElsewhere(of: channel) }
    }

    /// Whether there is room for a channel. Whoever asks for one is not authorized yet.
    private func mayOpen(_ channel: ChannelName) -> Bool {
        guard let directory = state.withLock({ $0.directory }) else { return true }
        let max = directory.limits.channelsMax.multipliedReportingOverflow(by: Self.channelsFactor)
        return state.withLock { state in
            if max.overflow || state.replicas.channelCount < max.partialValue { return true }
            guard !state.replicas.has(channel) else { return true }
            state.counters.refused &+= 1
            return false
        }
    }

    package func close(_ channel: ChannelName, ended: ChannelSession?) {
        change { $0.close(channel, ended: ended, at: clock.instant) }
    }

    package func send(_ news: ChannelUpdate, of channel: ChannelName, to node: NodeIncarnation?) {
        let bytes = ChannelMessage.news(channel, news).encoded()
        state.withLock { state in
            let receivers = node.map { state.replicas.node(of: $0).map { [$0] } ?? [] }
            for receiver in receivers ?? state.replicas.receivers(of: channel) { send(bytes, to: receiver, &state) }
        }
    }

    package func send(_ message: RemoteMessage, of channel: ChannelName, to nodes: Set<NodeIncarnation>) {
        let header = ChannelMessage.data(channel, sender: message.sender, label: message.label, isText: message.isText)
        let bytes = header.encoded(with: message.bytes)
        state.withLock { state in
            for node in nodes {
                guard let receiver = state.replicas.node(of: node) else { continue }
                send(bytes, to: receiver, &state)
            }
        }
    }

    package func send(_ command: ChannelCommand, of channel: ChannelName, to node: NodeIncarnation) {
        send(.command(channel, command), to: node)
    }

    package func refuse(
        _ command: ChannelCommand,
        of channel: ChannelName,
        to node: NodeIncarnation,
        because error: RoomError
    ) {
        send(.refused(channel, command: command.name, reason: "\(error)"), to: node)
    }

    private func send(_ message: ChannelMessage, to node: NodeIncarnation) {
        state.withLock { state in
            guard let receiver = state.replicas.node(of: node) else { return }
            send(message, to: receiver, &state)
        }
    }

    private func send(_ message: ChannelMessage, to node: NodeID, _ state: inout State) {
        if case .refused = message { state.counters.commandsRefused &+= 1 }
        send(message.encoded(), to: node, &state)
    }

    private func send(_ bytes: [UInt8], to node: NodeID, _ state: inout State) {
        if links.send(bytes, to: node) {
            state.counters.sent &+= 1
        } else {
            // The link is cut then, and everything is told again with the next one.
            state.counters.unsent &+= 1
        }
    }

    // MARK: - The directory

    /// The store told of a channel of this node, perhaps long after it was asked.
    package func found(_ channel: ChannelName, _ entry: RoomEntry) {
        change { replicas in
            replicas.found(
                channel,
                session: entry.session,
                nodes: entry.nodes.keys,
                at: clock.instant
            )
        }
    }

    /// The channels of this node, for a directory that has to be told of them again.
    package var sessions: [ChannelName: RoomSession] { state.withLock { $0.replicas.sessions } }

    /// The nodes that are known to have a channel.
    package func hostingNodes(of channel: ChannelName) -> [NodeID] {
        state.withLock { $0.replicas.hostingNodes(of: channel) }
    }

    // MARK: - Links

    /// - Parameter media: the incarnation in the locations of the node's members.
    package func linkUp(_ node: NodeID, media: NodeIncarnation) { change { $0.linkUp(node, media: media) } }

    package func linkDown(_ node: NodeID) {
        change { replicas in
            replicas.linkDown(node, at: clock.instant)
            return []
        }
    }

    /// The node stops, or a later run of it was seen.
    package func left(_ node: NodeID) { change { $0.left(node) } }

    /// Nobody hears the node, which may be only cut off.
    package func gaveUp(_ node: NodeID) { change { $0.gaveUp(node) } }

    /// The store has not heard of the node for a while.
    package func absent(_ node: NodeID) { change { $0.absent(node) } }

    /// The channels of this node that another one has.
    package func channels(of node: NodeID) -> [ChannelName] { state.withLock { $0.replicas.channels(of: node) } }

    /// Takes a message of a node; those of one node in their order.
    package func received(_ bytes: [UInt8], from node: NodeID) {
        guard let (message, attachment, isWhole) = ChannelMessage.decode(bytes) else {
            state.withLock { $0.counters.malformed &+= 1 }
            return
        }
        if case .refused(let channel, let command, let reason) = message {
            logger.notice(
                "another node refused its part of a command",
                metadata: [
                    "channel": "\(channel)", "node": "\(node)", "command": "\(command.prefix(64))",
                    "reason": "\(reason.prefix(256))",
                ]
            )
        }
        state.withLock { state in
            state.counters.received &+= 1
            if !isWhole { state.counters.malformed &+= 1 }
            if case .refused = message { state.counters.refusals &+= 1 }
            let (actions, isForChannel) = state.replicas.received(message, from: node, at: clock.instant)
            if isForChannel, let media = state.replicas.media(of: node) {
                var content = Delivery.Content.message(message)
                if case .data(let channel, let sender, let label, let isText) = message {
                    let relayed = RemoteMessage(sender: sender, label: label, isText: isText, bytes: attachment)
                    content = .data(relayed, channel)
                }
                deliver(Delivery(content: content, node: media, bytes: bytes.count), from: node, &state)
            }
            perform(actions, &state)
            if let channel = message.channel { resumeWaiting(for: channel, &state) }
        }
    }

    // MARK: - Time

    /// To be called about once a second.
    package func tick() { change { $0.handleDeadlines(at: clock.instant) } }

    /// Ends the delivery to channels.
    package func shutdown() {
        state.withLock { state in
            state.inboxes = [:]
            for waiting in state.waiting.values.joined() { waiting.finish() }
            state.waiting = [:]
        }
    }

    // MARK: - Actions

    @discardableResult
    private func change(
        _ event: (inout ChannelReplicas) -> [ChannelReplicas.Action]
    ) -> [ChannelReplicas.Action] {
        state.withLock { state in
            let actions = event(&state.replicas)
            perform(actions, &state)
            for channel in state.waiting.keys { resumeWaiting(for: channel, &state) }
            return actions
        }
    }

    /// Under the lock, so that messages leave in the order of what they are about.
    private func perform(_ actions: [ChannelReplicas.Action], _ state: inout State) {
        for action in actions {
            switch action {
            case .want(let node): links.want(node)
            case .release(let node): links.release(node)
            case .send(let message, let node): send(message, to: node, &state)
            case .tellAll(let channel, let node):
                guard let directory = state.directory, let media = state.replicas.media(of: node) else { continue }
                Task { _ = await directory.tell(media, of: channel) }
            case .lost(let channel, let media, let node):
                deliver(Delivery(content: .lost(channel), node: media, bytes: 0), from: node, &state)
            case .attach: break
            case .detach(let channel, let session):
                Task { await hosting.detach(channel, session: session) }
            }
        }
    }

    private func deliver(_ delivery: Delivery, from node: NodeID, _ state: inout State) {
        guard let directory = state.directory else { return }
        let isIdle = state.inboxes[node] == nil
        if !state.inboxes[node, default: Inbox()].add(delivery) { state.counters.overflows &+= 1 }
        if isIdle { Task { await deliverAll(of: node, to: directory) } }
    }

    /// Delivers what waits of a node, until nothing does.
    private func deliverAll(of node: NodeID, to directory: ChannelDirectory) async {
        while let delivery = next(of: node) {
            await Self.deliver(delivery, to: directory)
            state.withLock { state in
                for channel in state.inboxes[node]?.taken(delivery) ?? [] {
                    send(ChannelMessage.want(channel).encoded(), to: node, &state)
                }
                if let channel = delivery.toldChannel { resumeWaiting(for: channel, &state) }
            }
        }
    }

    private func next(of node: NodeID) -> Delivery? {
        state.withLock { state in
            let delivery = state.inboxes[node]?.next()
            if delivery == nil { state.inboxes[node] = nil }
            return delivery
        }
    }

    private static func deliver(_ delivery: Delivery, to directory: ChannelDirectory) async {
        switch delivery.content {
        case .message(.news(let channel, let news)): await directory.received(news, of: channel, from: delivery.node)
        case .message(.command(let channel, let command)):
            await directory.received(command, of: channel, from: delivery.node)
        case .message: break
        case .data(let message, let channel): await directory.received(message, of: channel, from: delivery.node)
        case .lost(let channel): await directory.lost(delivery.node, of: channel)
        }
    }

    // MARK: - Newcomers that wait

    /// Returns when all other nodes of a channel have told of it, or after the timeout.
    private func awaitNews(of channel: ChannelName) async {
        let (news, continuation) = AsyncStream.makeStream(of: Void.self)
        let isComplete = state.withLock { state in
            guard !state.isComplete(channel) else { return true }
            state.waiting[channel, default: []].append(continuation)
            return false
        }
        guard !isComplete else { return }
        let timeout = Task {
            try? await Task.sleep(for: openTimeout)
            continuation.finish()
        }
        for await _ in news {}
        timeout.cancel()
    }

    private func resumeWaiting(for channel: ChannelName, _ state: inout State) {
        guard state.waiting[channel] != nil, state.isComplete(channel) else { return }
        for waiting in state.waiting.removeValue(forKey: channel) ?? [] { waiting.finish() }
    }
}

/// What a node's channels told other nodes and were told, since the start.
package struct ClusterChannelsCounters: Hashable, Sendable {
    package var sent: UInt64 = 0
    /// Messages without a link, or without room in its queue.
    package var unsent: UInt64 = 0
    package var received: UInt64 = 0
    package var malformed: UInt64 = 0
    /// Messages that a channel did not take in time. After news the channel is told all again; other messages are lost.
    package var overflows: UInt64 = 0
    /// Channels that are not shared with other nodes, because there are as many as may be.
    package var refused: UInt64 = 0
    /// Commands of other nodes that this one refused.
    package var commandsRefused: UInt64 = 0
    /// Commands of this node that other nodes refused.
    package var refusals: UInt64 = 0
}

extension RoomClock {
    fileprivate var instant: Instant { now().instant }
}
