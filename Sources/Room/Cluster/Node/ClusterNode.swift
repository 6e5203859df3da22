import Base
package import ChannelTypes
package import Logging
package import MediaTypes
package import Room
import Synchronization

/// A node of a cluster: its membership, its links, and its rooms' part in those of other nodes.
///
/// Start it in this order: ``init(_:store:security:clock:incidents:logger:)``, from which ``media`` is known; then the
/// channels, with ``channels`` as their cluster; then ``start(_:measure:onLeft:relay:answer:)``.
package final class ClusterNode: Sendable {
    /// Answers a question that is not about channels; `nil` when it cannot.
    package typealias RequestHandler = @Sendable (NodeRequest, _ from: NodeIncarnation) async -> [UInt8]?

    private struct State {
        var view = ClusterView()
        var isStoreUp = false
        var isFenced = false
        var instance: NodeInstance
        var record = NodeRecord(state: .starting)
        var answerer: RequestHandler?
        var relay: CallObserver?
        /// Messages about rooms of the relay that were not understood.
        var relayMalformed: UInt64 = 0
        /// Nodes that are told of this node's channels while the store is away.
        var fallbackNodes: Set<NodeID> = []
        var onLeft: (@Sendable (NodeIncarnation) -> Void)?
        var mediaOfNode: [NodeID: NodeIncarnation] = [:]
        /// The nodes by the incarnations in their locations: of those with a link, and of those in the view.
        var nodeOfMedia: [NodeIncarnation: NodeID] = [:]
        var nodeOfIncarnation: [NodeIncarnation: NodeID] = [:]
        /// What nodes said of themselves over a link. It holds for the same run, and while the link is up.
        var hellos: [NodeID: LinkHello] = [:]
        var linked: Set<NodeID> = []
        /// Nodes to which a link is kept until they have said where clients reach them.
        var asked: Set<NodeID> = []
        var storeDownSeconds = 0
        var seconds: UInt64 = 0
        /// What runs until the node stops.
        var tasks: [Task<Void, Never>] = []

        /// What a node said of itself; `nil` when this run of it did not say anything yet.
        func hello(of member: ClusterView.Member) -> LinkHello? {
            let node = member.instance.node
            guard let hello = hellos[node] else { return nil }
            return hello.mayBeOf(member.instance) || linked.contains(node) ? hello : nil
        }

        /// Where clients reach a node, as it said itself.
        func publicURL(of member: ClusterView.Member) -> String? {
            hello(of: member).flatMap { $0.publicURL.isEmpty ? nil : $0.publicURL }
        }
    }

    /// Another node as operators see it.
    package struct Neighbour: Hashable, Sendable {
        package var member: ClusterView.Member
        /// The incarnation in the identifiers and locations of its members.
        package var media: NodeIncarnation
        /// `nil` while nothing needs one.
        package var link: LinkTable.Status?
        /// Where clients reach it, as it said over a link; `nil` before that, and when other nodes send it no clients.
        package var publicURL: String?
        /// Its record in the store is not accepted: see ``ClusterView/ignored``.
        package var isIgnored = false
    }

    /// The store counts as away for the rooms' directory after so long.
    private static let storeDownSecondsMin = 2
    /// How often others are told of channels while the store is away.
    private static let keepSeconds = 5
    private static let sweepSeconds: UInt64 = 3_600
    /// Nodes that are asked at once where clients reach them.
    private static let askedMax = 8

    package let configuration: ClusterConfiguration
    let membership: ClusterMembership
    private let clusterChannels: ClusterChannels
    let links: ControlLinks
    /// What all nodes of the cluster agree on.
    package let records: RecordExchange
    /// The faults of the store that this node met.
    package let storeIncidents: StoreIncidents
    /// The incarnation of this start, in the locations and identifiers of its members.
    package let media: NodeIncarnation
    private let logger: Logger
    private let state: Mutex<State>

    /// Joins the cluster, as far as the store answers: an incarnation and the other nodes, or what is known of them from an
    /// earlier run. It takes three seconds at most.
    /// - Parameter incidents: counts the faults of the store, those too that the store itself finds.
    /// - Throws: ``RecordTooLong`` when the configuration's names and addresses are too long together.
    package init(
        _ configuration: ClusterConfiguration,
        store: any ClusterStore,
        security: LinkSecurity,
        clock: RoomClock = .system,
        incidents: StoreIncidents = StoreIncidents(),
        logger: Logger
    ) async throws(RecordTooLong) {
        let (events, continuation) = AsyncStream.makeStream(
            of: ClusterMembership.Event.self,
            bufferingPolicy: .bufferingNewest(65_536)
        )
        let membership = try ClusterMembership(
            configuration,
            store: store,
            clock: clock,
            incidents: incidents,
            logger: logger
        ) { continuation.yield($0) }
        let run = Task { await membership.run() }
        await membership.settle()
        let instance = await membership.instance
        self.configuration = configuration
        self.membership = membership
        storeIncidents = incidents
        media = instance.incarnation
        var hello = LinkHello(cluster: configuration.cluster, instance: instance, media: media)
        hello.publicURL = configuration.publicURL
        links = await ControlLinks(own: hello, security: security, clock: clock, logger: logger)
        let directory = Directory()
        clusterChannels = ClusterChannels(
            own: configuration.node,
            links: links,
            hosting: directory,
            clock: clock,
            logger: logger
        )
        records = RecordExchange(own: configuration.node, clock: clock) { await directory.ask($0, of: $1) }
        self.logger = logger
        state = Mutex(State(instance: instance))
        directory.node.current = Weak(self)
        let follow = Task { [weak self] in
            for await event in events { await self?.take(event) }
        }
        state.withLock { $0.tasks = [run, follow] }
        await take(.viewChanged(membership.view))
    }

    /// What channels use.
    package var channels: any ChannelCluster { clusterChannels }

    // MARK: Life

    /// Opens the link listener and begins to work with the other nodes.
    /// - Parameters:
    ///   - directory: made with ``channels``.
    ///   - measure: called about once a second.
    ///   - onLeft: a run of a node is gone, by its incarnation in locations.
    ///   - relay: takes what other nodes say of rooms of the 1:1 relay; `nil` to count it only.
    ///   - answer: answers questions of other nodes.
    /// - Throws: the system's error when the listener's address cannot be used.
    package func start(
        _ directory: ChannelDirectory,
        measure: @escaping @Sendable () async -> NodeMeasurements,
        onLeft: @escaping @Sendable (NodeIncarnation) -> Void,
        relay: CallObserver? = nil,
        answer: @escaping RequestHandler
    ) async throws {
        clusterChannels.attach(directory)
        state.withLock {
            $0.answerer = answer
            $0.onLeft = onLeft
            $0.relay = relay
        }
        let port = try await links.start(host: configuration.linkHost, port: configuration.linkPort, delegate: self)
        logger.info("link listener", metadata: ["address": "\(configuration.linkAddress)", "port": "\(port)"])
        let ticks = Task { [weak self] in
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                guard let self else { return }
                await tick(await measure())
                directory.setReplaced(isFenced)
            }
        }
        state.withLock { $0.tasks.append(ticks) }
    }

    /// Sets whether records of other nodes in the store need no signature.
    package func setAcceptsUnsignedRecords(_ accepts: Bool) async {
        await membership.setAcceptsUnsignedRecords(accepts)
    }

    /// Sets whether the node takes new rooms, for the other nodes.
    package func setState(_ state: NodeState) async { await membership.setState(state) }

    /// Tells the others that the node stops. Its rooms have ended before.
    package func stop() async {
        await membership.leaveStore()
        clusterChannels.shutdown()
        await links.stop()
        for task in state.withLock({ $0.tasks }) { task.cancel() }
    }

    private func tick(_ measurements: NodeMeasurements) async {
        await membership.measured(measurements)
        clusterChannels.tick()
        let isStoreUp = await membership.isStoreUp
        let (instance, record) = (await membership.instance, await membership.record)
        let isFenced = await membership.isFenced
        let (downSeconds, seconds) = state.withLock { state in
            state.isStoreUp = isStoreUp
            state.isFenced = isFenced
            state.instance = instance
            state.record = record
            state.storeDownSeconds = isStoreUp ? 0 : state.storeDownSeconds + 1
            state.seconds &+= 1
            return (state.storeDownSeconds, state.seconds)
        }
        if downSeconds >= Self.storeDownSecondsMin {
            if (downSeconds - Self.storeDownSecondsMin) % Self.keepSeconds == 0 { await tellKeepers() }
        } else {
            releaseKeepers()
        }
        if seconds % Self.sweepSeconds == 0 { await sweepAbsent() }
        askForAddresses()
        await records.tick(state.withLock { $0.view.members.filter { !$0.value.isAbsent }.keys.sorted() })
    }

    /// Keeps links to a few nodes that take clients of others and have not said yet where clients reach them. A client is sent
    /// only where a node itself said, and cannot wait for a link.
    private func askForAddresses() {
        let (asked, answered) = state.withLock { state in
            let silent = state.view.members.values.filter { member in
                !member.isAbsent && !member.record.publicURL.isEmpty && state.hello(of: member) == nil
            }
            let next = Set(silent.map(\.instance.node).shuffled().prefix(Self.askedMax))
            defer { state.asked = next }
            return (next.subtracting(state.asked), state.asked.subtracting(next))
        }
        for node in asked { links.want(node) }
        for node in answered { links.release(node) }
    }

    /// Where clients reach a node, as it said itself over a link; `nil` when this run of it did not.
    func publicURL(of member: ClusterView.Member) -> String? { state.withLock { $0.publicURL(of: member) } }

    private func sweepAbsent() async {
        let gone = state.withLock { state in
            state.view.members.filter(\.value.isAbsent).mapValues(\.instance.incarnation)
        }
        if !gone.isEmpty { await membership.sweep(gone) }
    }

    private func take(_ event: ClusterMembership.Event) async {
        switch event {
        case .viewChanged(let view):
            let known = view.members.values.map { ($0.instance.incarnation, $0.instance.node) }
            let nodeOfIncarnation = Dictionary(known, uniquingKeysWith: { min($0, $1) })
            state.withLock { state in
                state.view = view
                state.nodeOfIncarnation = nodeOfIncarnation
                state.hellos = state.hellos.filter { view[$0.key] != nil || state.linked.contains($0.key) }
            }
            for (node, member) in view.members where member.isAbsent {
                let before = clusterChannels.channels(of: node)
                clusterChannels.absent(node)
                await awaitReturn(of: node, with: before)
            }
            links.setAddresses(view.members.values.map { ($0.instance, $0.record.linkAddress) })
            // A record under this node's own name says nothing of a link.
            links.setOtherSecrets(view.otherSecrets.subtracting([configuration.node]))
        case .found(let channel, let entry): clusterChannels.found(channel, entry)
        case .returned(let instance): links.setInstance(instance)
        }
    }

    /// Has channels told again when an absent node returns that is not among their nodes any more.
    private func awaitReturn(of node: NodeID, with channels: [ChannelName]) async {
        let left = Set(channels).subtracting(clusterChannels.channels(of: node))
        if !left.isEmpty { await membership.attachLater(left, whenReturned: node) }
    }

    // MARK: Without the store

    /// Tells the nodes that others ask of this node's channels.
    private func tellKeepers() async {
        let placement = await membership.placement
        var channels: [NodeID: [ChannelName]] = [:]
        for channel in clusterChannels.sessions.keys {
            for node in placement.nodes(for: channel) where node.node != configuration.node {
                channels[node.node, default: []].append(channel)
            }
        }
        let fallbackNodes = Set(channels.keys)
        let added = state.withLock { state in
            let added = fallbackNodes.subtracting(state.fallbackNodes)
            state.fallbackNodes.formUnion(fallbackNodes)
            return added
        }
        for node in added { links.want(node) }
        for (node, kept) in channels { _ = links.send(ChannelMessage.keep(kept).encoded(), to: node) }
    }

    private func releaseKeepers() {
        let fallbackNodes = state.withLock { state in
            defer { state.fallbackNodes = [] }
            return state.fallbackNodes
        }
        for node in fallbackNodes { links.release(node) }
    }

    fileprivate func hostingNodes(of channel: ChannelName) async -> Set<NodeID> {
        let asked = await membership.placement.nodes(for: channel).map(\.node).filter { $0 != configuration.node }
        let request = NodeRequest(kind: .hostingNodes, body: Array(channel.value.utf8))
        return await withTaskGroup(of: Set<NodeID>.self) { group in
            for node in asked {
                group.addTask { [self] in await hostingNodes(request, node) }
            }
            return await group.reduce(into: []) { $0.formUnion($1) }
        }
    }

    private func hostingNodes(_ request: NodeRequest, _ node: NodeID) async -> Set<NodeID> {
        guard let answer = try? await ask(request, of: node) else { return [] }
        let names = String(decoding: answer, as: UTF8.self).split(separator: "\n")
        return Set(names.prefix(ClusterView.nodesMax).compactMap { NodeID(rawValue: String($0)) })
    }

    // MARK: Other nodes

    /// Asks the node of a location. Without a link to it, one is opened.
    package func ask(_ request: NodeRequest, of media: NodeIncarnation) async throws(NodeRequestError) -> [UInt8] {
        guard let node = node(of: media) else {
            links.count(.noNode)
            throw .noNode
        }
        return try await ask(request, of: node)
    }

    /// Asks a node. Without a link to it, one is opened.
    package func ask(_ request: NodeRequest, of node: NodeID) async throws(NodeRequestError) -> [UInt8] {
        try await ask(request, of: node, within: request.kind.answerTimeout, patience: request.kind.linkTimeout)
    }

    private func node(of media: NodeIncarnation) -> NodeID? {
        state.withLock { $0.nodeOfMedia[media] ?? $0.nodeOfIncarnation[media] }
    }

    /// - Parameter patience: how long a link is awaited, before the time of the question begins.
    func ask(
        _ request: NodeRequest,
        of node: NodeID,
        within duration: Duration,
        patience: Duration
    ) async throws(NodeRequestError) -> [UInt8] {
        links.want(node)
        defer { links.release(node) }
        let end = ContinuousClock.now + patience
        while true {
            do throws(NodeRequestError) {
                let answer = try await links.ask(request, of: node, within: duration)
                links.count(nil)
                return answer
            } catch {
                let mayAskAgain = error == .noLink && .now < end
                guard mayAskAgain, (try? await Task.sleep(for: .milliseconds(20))) != nil else {
                    links.count(error)
                    throw error
                }
            }
        }
    }

    /// What the node of a location tells of itself, as far as the store told it.
    func member(of media: NodeIncarnation) -> ClusterView.Member? {
        guard let node = node(of: media) else { return nil }
        return state.withLock { $0.view[node] }
    }

    /// Where a newcomer that should not stay on this node may go: what another node said itself.
    /// - Parameter isSuitable: which of the nodes that take new rooms to choose from.
    func publicURLOfOther(region: String, where isSuitable: (NodeRecord) -> Bool) -> String? {
        var generator = SystemRandomNumberGenerator()
        let (view, urls) = state.withLock { state in
            (state.view, state.view.members.compactMapValues { state.publicURL(of: $0) })
        }
        let placement = Placement(view, own: nil)
        let node = placement.node(
            region: region,
            where: { urls[$0.instance.node] != nil && isSuitable($0.record) },
            using: &generator
        )
        return node.flatMap { urls[$0.node] }
    }

    /// The number of channels of this node that so many nodes have, this one included.
    package var channelsByNodeCount: [Int: Int] { clusterChannels.channelsByNodeCount }

    package var own: ClusterView.Member {
        state.withLock { ClusterView.Member(instance: $0.instance, record: $0.record) }
    }
    package var isStoreUp: Bool { state.withLock { $0.isStoreUp } }
    /// Whether a later start with this node's name is in the cluster, and is there.
    package var isFenced: Bool { state.withLock { $0.isFenced } }
    package var linkCounters: LinkCounters { links.counters }
    package var roomCounters: ClusterChannelsCounters {
        var counters = clusterChannels.counters
        counters.malformed &+= state.withLock { $0.relayMalformed }
        return counters
    }
    package var channelCount: Int { clusterChannels.channelCount }

    package var neighbours: [Neighbour] {
        let status = links.status
        return state.withLock { state in
            // A name of a node that is ignored may also be that of one that is not.
            let members = state.view.members.values.sorted { $0.instance.node < $1.instance.node }
            let ignored = state.view.ignored.values.sorted { $0.instance.node < $1.instance.node }
            var neighbours = members.map { member in
                let node = member.instance.node
                let media = state.mediaOfNode[node] ?? member.instance.incarnation
                let url = state.publicURL(of: member)
                return Neighbour(member: member, media: media, link: status[node], publicURL: url)
            }
            neighbours += ignored.map { member in
                let link = state.view[member.instance.node] == nil ? status[member.instance.node] : nil
                return Neighbour(member: member, media: member.instance.incarnation, link: link, isIgnored: true)
            }
            return neighbours
        }
    }
}

// MARK: - Links

extension ClusterNode: LinkDelegate {
    package func linkUp(_ node: NodeID, hello: LinkHello) {
        state.withLock { state in
            if let earlier = state.mediaOfNode.updateValue(hello.media, forKey: node) {
                state.nodeOfMedia[earlier] = nil
            }
            state.nodeOfMedia[hello.media] = node
            state.hellos[node] = hello
            state.linked.insert(node)
        }
        clusterChannels.linkUp(node, media: hello.media)
    }

    package func linkDown(_ node: NodeID) {
        clusterChannels.linkDown(node)
        let relay = state.withLock { state in
            state.linked.remove(node)
            return state.relay
        }
        relay?.lost(node)
    }

    package func linkDead(_ instance: NodeInstance, mayReturn: Bool) {
        let node = instance.node
        let (media, onLeft, isAbsent) = state.withLock { state in
            let media = state.mediaOfNode.removeValue(forKey: node)
            if let media { state.nodeOfMedia[media] = nil }
            if !mayReturn { state.hellos[node] = nil }
            return (media, state.onLeft, state.view[node]?.isAbsent == true)
        }
        if mayReturn, !isAbsent {
            clusterChannels.gaveUp(node)
        } else {
            let before = mayReturn ? clusterChannels.channels(of: node) : []
            clusterChannels.left(node)
            if !before.isEmpty { Task { await awaitReturn(of: node, with: before) } }
        }
        if let media { onLeft?(media) }
    }

    package func received(_ message: [UInt8], from node: NodeID) { clusterChannels.received(message, from: node) }

    package func receivedCallMessage(_ message: [UInt8], from node: NodeID) -> Bool {
        let reception = state.withLock { $0.relay }?.received(message, node) ?? .malformed
        if reception == .malformed { state.withLock { $0.relayMalformed &+= 1 } }
        return reception != .overflow
    }

    package func answer(_ request: NodeRequest, from node: NodeID) async -> [UInt8]? {
        if request.kind == .records { return await records.answer(request.body) }
        if request.kind == .hostingNodes {
            guard let channel = ChannelName(String(decoding: request.body, as: UTF8.self)) else { return nil }
            return Array(clusterChannels.hostingNodes(of: channel).map(\.rawValue).joined(separator: "\n").utf8)
        }
        let (answerer, media) = state.withLock { ($0.answerer, $0.mediaOfNode[node]) }
        guard let answerer, let media else { return nil }
        return await answerer(request, media)
    }
}

// MARK: - The directory

/// The directory of a node's rooms. It exists before the node is complete.
private final class Directory: HostingDirectory {
    let node = Replaceable<Weak?>(nil)

    func attach(_ room: ChannelName, session: RoomSession) async -> RoomEntry? {
        await node.current?.node?.attach(room, session: session)
    }

    func detach(_ room: ChannelName, session: RoomSession) async {
        await node.current?.node?.detach(room, session: session)
    }

    func hostingNodes(of channel: ChannelName) async -> Set<NodeID> {
        await node.current?.node?.hostingNodes(of: channel) ?? []
    }

    func ask(_ request: NodeRequest, of other: NodeID) async -> [UInt8]? {
        await node.current?.node?.askOfRecords(request, of: other)
    }
}

private struct Weak: Sendable {
    weak let node: ClusterNode?
    init(_ node: ClusterNode) { self.node = node }
}

extension ClusterNode {
    fileprivate func attach(_ room: ChannelName, session: RoomSession) async -> RoomEntry? {
        await membership.attach(room, session: session)
    }

    fileprivate func detach(_ room: ChannelName, session: RoomSession) async {
        await membership.detach(room, session: session)
    }

    fileprivate func askOfRecords(_ request: NodeRequest, of node: NodeID) async -> [UInt8]? {
        try? await ask(request, of: node)
    }
}
