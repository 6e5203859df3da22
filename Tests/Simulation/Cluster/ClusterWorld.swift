import Base
import Cluster
import ClusterTestSupport
import MediaTypes
import TestSupport

@testable import ChannelTypes
@testable import Room

/// A whole cluster in virtual time: nodes with membership, links, and the members of their channels; the network between
/// them; and their store. Every run is repeatable from its seed.
///
/// Without the questions that nodes ask each other about channels while the store is away: a channel that begins then is
/// shared when the store is back.
final class ClusterWorld {
    private(set) var links: LinkWorld
    var store: MemoryStore
    /// The runs that have not ended.
    private(set) var nodes: [NodeID: ClusterNodeModel] = [:]
    /// Nodes that do not reach the store.
    var withoutStore: Set<NodeID> = []
    var generator: SeededGenerator
    /// Sentences about what may not happen.
    private(set) var faults: [String] = []
    /// What all runs reported, the ended ones too.
    private(set) var endedReports: [RoomReport] = []
    /// Messages by their number on the wire, with the run that sent them.
    private var messages: [UInt64: (message: ChannelMessage, from: NodeIncarnation)] = [:]
    private var messageNext: UInt64 = 0
    private var savedViews: [NodeID: SavedView] = [:]
    /// Since when a pair of nodes has nothing in its way.
    private var wellSince: [Set<NodeID>: Instant] = [:]
    private var cuts: [(NodeID, NodeID)] = []
    private var frozenUntil: [NodeID: Instant] = [:]
    /// Whom each node saw in its channels at the last check.
    private var seen: [NodeID: [ChannelName: Set<ParticipantID>]] = [:]
    /// The latest run of each node that another one had a link to.
    private var latest: [NodeID: [NodeID: NodeInstance]] = [:]

    init(_ names: [String], seed: UInt64) throws {
        links = LinkWorld(seed: seed)
        store = MemoryStore(seed: seed &+ 1)
        generator = SeededGenerator(seed: seed &+ 2)
        for name in names { try start(NodeID(rawValue: name)!) }
    }

    var now: Instant { links.now }
    private var roomTime: RoomTime {
        RoomTime(instant: now, unixNanoseconds: 1_700_000_000_000_000_000 + now.nanoseconds)
    }
    var running: [NodeID] { nodes.keys.sorted() }
    var reports: [RoomReport] { endedReports + running.flatMap { nodes[$0]?.reports ?? [] } }
    var waitingMax: Int { links.waitingMax }
    var allFaults: [String] { faults + links.faults }

    // MARK: Faults

    func start(_ id: NodeID) throws {
        guard nodes[id] == nil else { return }
        nodes[id] = try ClusterNodeModel(id, saved: savedViews[id], seed: generator.next(), at: now)
        unsettle(id)
    }

    /// Ends a node without a word, as a crash does.
    func kill(_ id: NodeID) {
        guard let node = nodes.removeValue(forKey: id) else { return }
        savedViews[id] = node.membership.savedView
        endedReports += node.reports
        if node.media != nil { links.kill(id) }
        seen[id] = nil
        latest[id] = nil
        frozenUntil[id] = nil
        unsettle(id)
    }

    func isStandingStill(_ id: NodeID) -> Bool { frozenUntil[id].map { now < $0 } ?? false }

    func freeze(_ id: NodeID, for interval: Interval) {
        guard nodes[id]?.media != nil else { return }
        links.freeze(id, for: interval)
        frozenUntil[id] = now + interval
        // The other one may stand still for longer.
        for other in nodes.keys where wellSince[[id, other]] != nil {
            wellSince[[id, other]] = max(now + interval, frozenUntil[other] ?? now)
        }
    }

    func cut(_ one: NodeID, _ other: NodeID, isOneWay: Bool = false) {
        cuts.append((one, other))
        links.cut(one, other)
        if !isOneWay { links.cut(other, one) }
        wellSince[[one, other]] = nil
    }

    func heal() {
        links.heal()
        for (one, other) in cuts {
            wellSince[[one, other]] = max(now, frozenUntil[one] ?? now, frozenUntil[other] ?? now)
        }
        cuts = []
    }

    private func unsettle(_ id: NodeID) {
        for other in nodes.keys where other != id {
            let isCut = cuts.contains { Set([$0.0, $0.1]) == [id, other] }
            wellSince[[id, other]] = isCut ? nil : max(now, frozenUntil[other] ?? now)
        }
    }

    // MARK: Members

    @discardableResult
    func join(_ channel: ChannelName, at id: NodeID, _ role: Role) throws -> ParticipantID? {
        guard let node = nodes[id], node.media != nil, links.isAwake(id) else { return nil }
        let (member, actions) = try node.join(channel, role, using: &generator, at: roomTime)
        try perform(actions, of: node, &links)
        return member
    }

    func leave(_ member: ParticipantID, at id: NodeID) throws {
        guard let node = nodes[id], links.isAwake(id) else { return }
        try perform(try node.leave(member, at: roomTime), of: node, &links)
    }

    // MARK: Time

    func advance(by interval: Interval) throws {
        let end = now + interval
        var failure: (any Error)?
        while now < end {
            for node in nodes.values.sorted(by: { $0.id < $1.id }) where node.media == nil { try begin(node) }
            links.advance(by: .milliseconds(100)) { links, news, id in
                guard let node = nodes[id], failure == nil else { return }
                do { try take(news, node, &links) } catch { failure = error }
            }
            if let failure { throw failure }
            if now.nanoseconds / 100_000_000 % 5 == 0 { checkPresence() }
        }
    }

    /// A node that has not started yet asks the store for its incarnation.
    private func begin(_ node: ClusterNodeModel) throws {
        try tickMembership(node, &links)
        guard node.membership.isSettled(at: now) else { return }
        node.settle()
        links.start(node.membership.instance)
        tellAddresses(node, &links)
    }

    private func tellAddresses(_ node: ClusterNodeModel, _ links: inout LinkWorld) {
        guard node.media != nil else { return }
        links.setAddresses(node.membership.view.members.values.map(\.instance), at: node.id)
    }

    private func take(_ news: LinkWorld.News, _ node: ClusterNodeModel, _ links: inout LinkWorld) throws {
        let now = links.now
        switch news {
        case .up(let hello):
            noteRun(hello.instance, at: node.id)
            try perform(node.change { $0.linkUp(hello.instance.node, media: hello.media) }, of: node, &links)
        case .down(let other):
            _ = node.change { replicas in
                replicas.linkDown(other, at: now)
                return []
            }
        case .dead(let instance, let mayReturn):
            let isAbsent = node.membership.view[instance.node]?.isAbsent == true
            let before = node.replicas.channels(of: instance.node)
            let actions = node.change { replicas in
                mayReturn && !isAbsent ? replicas.gaveUp(instance.node) : replicas.left(instance.node)
            }
            try perform(actions, of: node, &links)
            if mayReturn { awaitReturn(of: instance.node, with: before, at: node, now) }
        case .message(let bytes, let from): try deliver(bytes, from: from, to: node, &links)
        case .tick:
            try tickMembership(node, &links)
            node.ticks += 1
            guard node.ticks % 10 == 0 else { return }
            try perform(node.change { $0.handleDeadlines(at: now) }, of: node, &links)
            try node.endDepartureWaits(at: roomTime(links))
            try perform(node.closeUnused(at: roomTime(links)), of: node, &links)
        }
    }

    // MARK: The store

    private func reachesStore(_ node: ClusterNodeModel) -> Bool { !withoutStore.contains(node.id) }

    private func tickMembership(_ node: ClusterNodeModel, _ links: inout LinkWorld) throws {
        let now = links.now
        while let index = node.answers.firstIndex(where: { $0.at <= now }) {
            try take(node.answers.remove(at: index).answer, node, &links)
        }
        if let request = node.membership.nextRequest(at: now) { send(request, node, now) }
        for room in node.membership.nextRooms(at: now) {
            guard let session = node.sessions[room] else { continue }
            attach(room, session, node, now)
        }
    }

    private func send(_ request: Membership.Request, _ node: ClusterNodeModel, _ now: Instant) {
        let late = now + .seconds(1)
        switch request {
        case .enlist(let request):
            let reply = reachesStore(node) ? store.enlist(request, at: now) : nil
            let isLate = reply.map { $0.at > late } ?? true
            let result = isLate ? .failure(.timedOut) : reply?.result
            node.answers.append((isLate ? late : reply?.at ?? late, .enlistment(result ?? .failure(.timedOut))))
        case .beat(let request):
            let reply = reachesStore(node) ? store.beat(request, at: now) : nil
            let isLate = reply.map { $0.at > late } ?? true
            let result = isLate ? .failure(.timedOut) : reply?.result
            node.answers.append((isLate ? late : reply?.at ?? late, .beat(result ?? .failure(.timedOut))))
        }
    }

    private func attach(_ room: ChannelName, _ session: RoomSession, _ node: ClusterNodeModel, _ now: Instant) {
        let membership = node.membership
        guard membership.instance.incarnation.isAssigned, !membership.isFenced, membership.isStoreUp else {
            return node.membership.attachLater([room], at: now)
        }
        let request = Attach(room: room, instance: membership.instance, session: session)
        let late = now + .milliseconds(150)
        guard let reply = reachesStore(node) ? store.attach(request, at: now) : nil, reply.at <= late else {
            return node.answers.append((late, .attached(room, .failure(.timedOut))))
        }
        node.answers.append((reply.at, .attached(room, reply.result)))
    }

    private func take(_ answer: ClusterNodeModel.Answer, _ node: ClusterNodeModel, _ links: inout LinkWorld) throws {
        let now = links.now
        switch answer {
        case .enlistment(let result):
            try handle(node.membership.receivedEnlistment(result, at: now), node, &links)
        case .beat(let result): try handle(node.membership.receivedBeat(result, at: now), node, &links)
        case .attached(let room, .failure):
            if node.sessions[room] != nil { node.membership.attachLater([room], at: now) }
        case .attached(let room, .success(let entry)):
            guard node.sessions[room] != nil else { return detach(room, node, now) }
            node.membership.attached(room, at: now)
            let present = node.membership.present(in: entry).nodes
            for id in entry.nodes.keys.sorted() where present[id] == nil {
                node.membership.attachLater([room], whenReturned: id, at: now)
            }
            let actions = node.change { replicas in
                replicas.found(room, session: entry.session, nodes: present.keys, at: now)
            }
            try perform(actions, of: node, &links)
        }
    }

    private func awaitReturn(
        of id: NodeID,
        with channels: [ChannelName],
        at node: ClusterNodeModel,
        _ now: Instant
    ) {
        let left = Set(channels).subtracting(node.replicas.channels(of: id))
        if !left.isEmpty { node.membership.attachLater(left, whenReturned: id, at: now) }
    }

    private func detach(_ room: ChannelName, _ node: ClusterNodeModel, _ now: Instant) {
        guard node.membership.instance.incarnation.isAssigned, node.membership.isStoreUp, reachesStore(node) else {
            return
        }
        _ = store.detach(Detach(room: room, instance: node.membership.instance), at: now)
    }

    private func handle(_ events: [Membership.Event], _ node: ClusterNodeModel, _ links: inout LinkWorld) throws {
        for event in events {
            switch event {
            case .enlisted, .storeChanged, .storeReturned:
                node.membership.attachLater(node.sessions.keys.sorted { $0.value < $1.value }, at: links.now)
            case .viewChanged:
                let members = node.membership.view.members.sorted { $0.key < $1.key }
                for (id, member) in members where member.isAbsent {
                    let before = node.replicas.channels(of: id)
                    try perform(node.change { $0.absent(id) }, of: node, &links)
                    awaitReturn(of: id, with: before, at: node, links.now)
                }
                tellAddresses(node, &links)
            case .fenced, .returned, .storeLost: break
            }
        }
    }

    // MARK: Actions

    private func perform(
        _ actions: [ChannelReplicas.Action],
        of node: ClusterNodeModel,
        _ links: inout LinkWorld
    ) throws {
        for action in actions {
            switch action {
            case .want(let other): links.want(node.id, other)
            case .release(let other): links.release(node.id, other)
            case .send(let message, let other): send(message, from: node, to: other, &links)
            case .tellAll(let channel, let other):
                guard let news = node.all(of: channel) else { continue }
                send(.news(channel, news), from: node, to: other, &links)
            case .lost(let channel, let media, _):
                try node.lost(media, of: channel, at: roomTime(links))
                try perform(node.closeUnused(at: roomTime(links)), of: node, &links)
            case .attach(let channel, let session):
                node.sessions[channel] = session
                attach(channel, session, node, links.now)
            case .detach(let channel, let session):
                guard node.sessions[channel] == session else { continue }
                node.sessions[channel] = nil
                node.membership.roomEnded(channel)
                detach(channel, node, links.now)
            }
        }
    }

    private func roomTime(_ links: LinkWorld) -> RoomTime {
        RoomTime(instant: links.now, unixNanoseconds: 1_700_000_000_000_000_000 + links.now.nanoseconds)
    }

    private func send(_ message: ChannelMessage, from node: ClusterNodeModel, to id: NodeID, _ links: inout LinkWorld) {
        guard let media = node.media else { return }
        var number: [UInt8] = []
        number.append(bigEndian: messageNext)
        guard links.send(number, from: node.id, to: id) else { return }
        messages[messageNext] = (message, media)
        messageNext += 1
    }

    private func deliver(_ bytes: [UInt8], from id: NodeID, to node: ClusterNodeModel, _ links: inout LinkWorld) throws
    {
        let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let (message, sender) = messages.removeValue(forKey: number) else {
            return faults.append("a message arrives once: \(number) from \(id) at \(node.id)")
        }
        guard let media = node.replicas.media(of: id) else { return }
        if media != sender { faults.append("O6: \(node.id) takes a message of \(id):\(sender) as one of \(media)") }
        let now = roomTime(links)
        var isForChannel = false
        let actions = node.change { replicas in
            let result = replicas.received(message, from: id, at: now.instant)
            isForChannel = result.isForChannel
            return result.actions
        }
        if isForChannel, case .news(let channel, let news) = message {
            try node.received(news, of: channel, from: media, at: now)
            try perform(node.closeUnused(at: now), of: node, &links)
        }
        try perform(actions, of: node, &links)
    }

    // MARK: Oracles

    /// O6: a node never goes back to an earlier run of another one.
    private func noteRun(_ instance: NodeInstance, at id: NodeID) {
        if let before = latest[id]?[instance.node], before != instance, before.incarnation.isAssigned,
            instance.incarnation.isAssigned, before.incarnation.rawValue > instance.incarnation.rawValue
        {
            faults.append("O6: \(id) links with \(instance) after \(before)")
        }
        latest[id, default: [:]][instance.node] = instance
    }

    /// O7: nobody vanishes at a node that has heard its node for five seconds.
    private func checkPresence() {
        for (id, node) in nodes where node.media != nil {
            var visible: [ChannelName: Set<ParticipantID>] = [:]
            for channel in node.channels.keys { visible[channel] = node.visible(in: channel) }
            for (channel, before) in seen[id] ?? [:] {
                guard let after = visible[channel] else { continue }
                for member in before.subtracting(after) {
                    guard let home = nodes.values.first(where: { $0.members[member] == channel }), home !== node,
                        let since = wellSince[[id, home.id]], now - since >= .seconds(5)
                    else { continue }
                    faults.append("O7: \(member) of \(home.id) vanished at \(id), \(now)")
                }
            }
            seen[id] = visible
        }
    }

    /// O4: all nodes of a channel see the same members, those that are there.
    func expectedMembers(of channel: ChannelName) -> Set<ParticipantID> {
        nodes.values.reduce(into: []) { $0.formUnion($1.ownMembers(of: channel)) }
    }
}
