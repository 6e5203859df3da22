import Base
import MediaTypes
import TestSupport
import Testing

@testable import ChannelTypes
@testable import Cluster
@testable import Room

/// Nodes, each with ``ChannelReplicas``, over links with delay that are cut and heal, and a store that may be away.
///
/// What a node has of a channel is a version, which news carries. In the end each node of a channel must know the version of
/// each other node.
private struct ReplicaWorld {
    struct Node {
        var replicas: ChannelReplicas
        let media: NodeIncarnation
        /// The versions of the channels that this node has.
        var versions: [ChannelName: UInt64] = [:]
        /// What it knows of the others' versions.
        var known: [ChannelName: [NodeIncarnation: UInt64]] = [:]
        var wanted: Set<NodeID> = []
        /// What its rooms were attached with.
        var sessions: [ChannelName: RoomSession] = [:]
    }
    private enum Event {
        case message(ChannelMessage, from: NodeID, to: NodeID, link: UInt64)
        case attached(ChannelName, NodeID)
    }
    private struct Pair: Hashable {
        let ends: Set<NodeID>
        init(_ one: NodeID, _ other: NodeID) { ends = [one, other] }
    }

    var nodes: [NodeID: Node] = [:]
    var now = Instant(nanoseconds: 0)
    private var store: [ChannelName: Set<NodeID>] = [:]
    private var isStoreUp = true
    /// Attaches that wait for the store.
    private var unattached: [(ChannelName, NodeID)] = []
    private var events: [(at: Instant, number: UInt64, event: Event)] = []
    private var eventNext: UInt64 = 0
    private var links: [Pair: UInt64] = [:]
    private var linkNext: UInt64 = 1
    private var cut: Set<Pair> = []
    /// Nodes of which the store told that they are absent.
    private var absent: Set<NodeID> = []
    /// The last arrival of each way, so that messages stay in order.
    private var arrivals: [[NodeID]: Instant] = [:]
    var generator: SeededGenerator
    private(set) var messageCount = 0

    init(nodes count: Int, seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        for number in 0..<count {
            let id = NodeID(rawValue: "n\(number)")!
            let media = NodeIncarnation(rawValue: UInt32(number + 1))!
            nodes[id] = Node(replicas: ChannelReplicas(own: id), media: media)
        }
    }

    var ids: [NodeID] { nodes.keys.sorted() }

    // MARK: What happens

    mutating func change(_ channel: ChannelName, at id: NodeID) {
        guard nodes[id] != nil else { return }
        if nodes[id]?.versions[channel] == nil {
            let session = RoomSession(rawValue: "s")!
            nodes[id]?.versions[channel] = 1
            perform(nodes[id]?.replicas.open(channel, session, at: now) ?? [], of: id)
        } else {
            nodes[id]?.versions[channel]? += 1
            for other in nodes[id]?.replicas.receivers(of: channel) ?? [] {
                send(.news(channel, .register(register(channel, id))), from: id, to: other)
            }
        }
    }

    mutating func close(_ channel: ChannelName, at id: NodeID) {
        guard nodes[id]?.versions.removeValue(forKey: channel) != nil else { return }
        nodes[id]?.known[channel] = nil
        let session = ChannelSession(id: ChannelSessionID(using: &generator), channel: channel, createdAt: 0)
        let ended = Bool.random(using: &generator) ? session : nil
        perform(nodes[id]?.replicas.close(channel, ended: ended, at: now) ?? [], of: id)
    }

    mutating func cut(_ one: NodeID, _ other: NodeID) {
        cut.insert(Pair(one, other))
        guard links.removeValue(forKey: Pair(one, other)) != nil else { return }
        nodes[one]?.replicas.linkDown(other, at: now)
        nodes[other]?.replicas.linkDown(one, at: now)
        guard Bool.random(using: &generator) else { return }
        perform(nodes[one]?.replicas.gaveUp(other) ?? [], of: one)
        perform(nodes[other]?.replicas.gaveUp(one) ?? [], of: other)
        // The store tells at most one of the two that the other one is absent, which attaches its channels again later.
        guard Bool.random(using: &generator) else { return }
        perform(nodes[one]?.replicas.absent(other) ?? [], of: one)
        absent.insert(other)
    }

    mutating func heal(_ one: NodeID, _ other: NodeID) {
        cut.remove(Pair(one, other))
        connect(one, other)
        for id in [one, other] where absent.remove(id) != nil {
            for channel in nodes[id]?.versions.keys.sorted(by: { $0.value < $1.value }) ?? [] {
                schedule(.attached(channel, id))
            }
        }
    }

    mutating func setStore(isUp: Bool) {
        isStoreUp = isUp
        guard isUp else { return }
        for (channel, id) in unattached { schedule(.attached(channel, id)) }
        unattached = []
    }

    private mutating func connect(_ one: NodeID, _ other: NodeID) {
        let pair = Pair(one, other)
        guard !cut.contains(pair), links[pair] == nil,
            nodes[one]?.wanted.contains(other) == true || nodes[other]?.wanted.contains(one) == true,
            let media = nodes[one]?.media, let otherMedia = nodes[other]?.media
        else { return }
        links[pair] = linkNext
        linkNext += 1
        perform(nodes[one]?.replicas.linkUp(other, media: otherMedia) ?? [], of: one)
        perform(nodes[other]?.replicas.linkUp(one, media: media) ?? [], of: other)
    }

    // MARK: Time

    mutating func advance(by interval: Interval) {
        let end = now + interval
        while let next = events.indices.min(by: {
            (events[$0].at, events[$0].number) < (events[$1].at, events[$1].number)
        }),
            events[next].at <= end
        {
            let event = events.remove(at: next)
            now = event.at
            perform(event.event)
        }
        now = end
        for id in ids { perform(nodes[id]?.replicas.handleDeadlines(at: now) ?? [], of: id) }
    }

    private mutating func schedule(_ event: Event, way: [NodeID] = []) {
        var at = now + .milliseconds(Int.random(in: 0...40, using: &generator))
        if !way.isEmpty {
            at = max(at, arrivals[way] ?? at)
            arrivals[way] = at
        }
        events.append((at, eventNext, event))
        eventNext += 1
    }

    private mutating func send(_ message: ChannelMessage, from: NodeID, to: NodeID) {
        guard let link = links[Pair(from, to)] else { return }
        schedule(.message(message, from: from, to: to, link: link), way: [from, to])
    }

    private mutating func perform(_ event: Event) {
        switch event {
        case .message(let message, let from, let to, let link):
            guard links[Pair(from, to)] == link else { return }
            messageCount += 1
            guard let (actions, isForChannel) = nodes[to]?.replicas.received(message, from: from, at: now),
                let media = nodes[from]?.media
            else { return }
            if isForChannel, case .news(let channel, let news) = message, nodes[to]?.versions[channel] != nil {
                take(news, channel, from: media, at: to)
            }
            perform(actions, of: to)
        case .attached(let channel, let id):
            guard isStoreUp else { return unattached.append((channel, id)) }
            guard nodes[id]?.sessions[channel] != nil else { return }
            store[channel, default: []].insert(id)
            let actions = nodes[id]?.replicas.found(
                channel,
                session: nil,
                nodes: store[channel] ?? [],
                at: now
            )
            perform(actions ?? [], of: id)
        }
    }

    private mutating func take(
        _ news: ChannelUpdate,
        _ channel: ChannelName,
        from media: NodeIncarnation,
        at id: NodeID
    ) {
        switch news {
        case .all(_, _, let register, _, _), .register(let register):
            let before = nodes[id]?.known[channel]?[media] ?? 0
            if case .register = news { #expect(register.version >= before, "news of one node is in order") }
            nodes[id]?.known[channel, default: [:]][media] = register.version
        case .changed, .left, .labels: break
        }
    }

    private func register(_ channel: ChannelName, _ id: NodeID) -> ChannelRegister {
        ChannelRegister(version: nodes[id]?.versions[channel] ?? 0)
    }

    private mutating func perform(_ actions: [ChannelReplicas.Action], of id: NodeID) {
        for action in actions {
            switch action {
            case .want(let other):
                nodes[id]?.wanted.insert(other)
                connect(id, other)
            case .release(let other): nodes[id]?.wanted.remove(other)
            case .tellAll(let channel, let other):
                guard nodes[id]?.versions[channel] != nil else { continue }
                send(.news(channel, .all(nil, [], register(channel, id), labels: [])), from: id, to: other)
            case .send(let message, let other): send(message, from: id, to: other)
            case .lost(let channel, let media, _): nodes[id]?.known[channel]?[media] = nil
            case .attach(let channel, let session):
                nodes[id]?.sessions[channel] = session
                schedule(.attached(channel, id))
            case .detach(let channel, let session):
                guard nodes[id]?.sessions[channel] == session else { continue }
                nodes[id]?.sessions[channel] = nil
                store[channel]?.remove(id)
            }
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct ReplicaSimulationTests {
    /// Channels come and go at eight nodes while links are cut and the store is away. Five seconds after everything is well
    /// again each node knows what every other node has.
    @Test(arguments: 0..<200) func `the nodes of a channel know each other's members in the end`(_ seed: UInt64) {
        var world = ReplicaWorld(nodes: 8, seed: seed)
        let channels = (0..<12).map { ChannelName("c\($0)")! }
        for _ in 0..<150 {
            let channel = channels.randomElement(using: &world.generator)!
            let (one, other) = (
                world.ids.randomElement(using: &world.generator)!, world.ids.randomElement(using: &world.generator)!
            )
            switch Int.random(in: 0..<12, using: &world.generator) {
            case 0...5: world.change(channel, at: one)
            case 6, 7: world.close(channel, at: one)
            case 8: if one != other { world.cut(one, other) }
            case 9: if one != other { world.heal(one, other) }
            case 10: world.setStore(isUp: false)
            default: world.setStore(isUp: true)
            }
            world.advance(by: .milliseconds(Int.random(in: 0...900, using: &world.generator)))
        }
        world.setStore(isUp: true)
        for one in world.ids { for other in world.ids where other > one { world.heal(one, other) } }
        // The last messages take a moment.
        for _ in 0..<52 { world.advance(by: .milliseconds(100)) }
        for channel in channels {
            let holders = world.nodes.values.filter { $0.versions[channel] != nil }
            for node in holders {
                let others = holders.filter { $0.media != node.media }
                let truth = Dictionary(uniqueKeysWithValues: others.map { ($0.media, $0.versions[channel]!) })
                #expect(node.known[channel] ?? [:] == truth, "\(channel) at \(node.media)")
            }
        }
        // Each change is told to seven others at most, and each link and channel once more.
        #expect(world.messageCount < 20_000)
    }
}
