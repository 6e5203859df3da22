package import Base
package import ChannelTypes
package import Cluster
internal import MediaTypes
package import TestSupport

/// Nodes with a ``LinkTable`` each, over a network in virtual time that delays, cuts and loses.
package struct LinkWorld {
    package struct Node {
        package var table: LinkTable
        package let hello: LinkHello
        package internal(set) var isRunning = true
        /// Stands still until then.
        var frozenUntil: Instant?
        /// The connections by their number here.
        package internal(set) var connections: [LinkTable.ConnectionID: UInt64] = [:]
        var connectionNext: UInt64 = 1
        package internal(set) var up: [NodeID: LinkHello] = [:]
        package internal(set) var dead: [NodeInstance] = []
        var wanted: Set<NodeID> = []
        /// The wires whose other end said hello.
        var greeted: Set<UInt64> = []
    }
    /// What the links of a node tell its owner.
    package enum News {
        case up(LinkHello)
        case down(NodeID)
        case dead(NodeInstance, mayReturn: Bool)
        case message([UInt8], from: NodeID)
        /// Each 100 ms, unless the node stands still.
        case tick
    }
    package typealias Owner = (_ world: inout LinkWorld, _ news: News, _ node: NodeID) -> Void
    private enum Event {
        case accept(wire: UInt64, from: NodeID, to: NodeID)
        case dialFailed(NodeID, by: NodeID)
        /// A connection without a hello is closed.
        case helloTimeout(wire: UInt64, to: NodeID, by: NodeID)
        case frame(LinkFrame, wire: UInt64, to: NodeID)
        case closed(wire: UInt64, at: NodeID, LinkGoodbye?)
    }
    private struct Way: Hashable {
        let from: NodeID
        let to: NodeID
    }

    package private(set) var now = Instant(nanoseconds: 0)
    package private(set) var nodes: [NodeID: Node] = [:]
    package var generator: SeededGenerator
    /// What no run of a node may do, as sentences.
    package private(set) var faults: [String] = []
    /// The most frames that were under way from one node to another.
    package private(set) var waitingMax = 0
    private var waiting: [Way: Int] = [:]
    /// What owners have to be told, the oldest first.
    private var news: [(News, NodeID)] = []
    private var events: [(at: Instant, number: UInt64, event: Event)] = []
    private var eventNext: UInt64 = 0
    private var wireNext: UInt64 = 1
    private var wires: [UInt64: (dialer: NodeID, listener: NodeID)] = [:]
    private var cut: Set<Way> = []
    /// What TCP sends again when its way is not cut any more.
    private var held: [(event: Event, way: Way)] = []
    private var arrivals: [Way: Instant] = [:]
    private var incarnations: [NodeID: UInt32] = [:]

    package init(_ names: [String] = [], seed: UInt64 = 1) {
        generator = SeededGenerator(seed: seed)
        for name in names { start(NodeID(rawValue: name)!) }
    }

    // MARK: What happens

    /// Starts the next run of a node, and tells all of all.
    package mutating func start(_ id: NodeID) {
        let number = (incarnations[id] ?? UInt32(incarnations.count) * 1_000) + 1
        incarnations[id] = number
        start(NodeInstance(node: id, incarnation: NodeIncarnation(rawValue: number)!))
        tellAddresses()
    }

    package mutating func start(_ instance: NodeInstance) {
        let hello = LinkHello(
            cluster: ClusterName(rawValue: "t")!,
            instance: instance,
            media: instance.incarnation
        )
        nodes[instance.node] = Node(table: LinkTable(own: hello, at: now), hello: hello)
    }

    /// Tells a node the instances of others.
    package mutating func setAddresses(_ known: [NodeInstance], at id: NodeID) {
        let addresses = known.map { (instance: $0, address: $0.node.rawValue) }
        perform(nodes[id]?.table.setAddresses(addresses, at: now) ?? [], at: id)
    }

    private mutating func tellAddresses() {
        let known = nodes.values.map { (instance: $0.hello.instance, address: $0.hello.instance.node.rawValue) }
        for id in nodes.keys.sorted() {
            let actions = nodes[id]!.table.setAddresses(known.filter { $0.instance.node != id }, at: now)
            perform(actions, at: id)
        }
    }

    package mutating func want(_ one: NodeID, _ other: NodeID) {
        guard nodes[one]!.wanted.insert(other).inserted else { return }
        perform(nodes[one]!.table.want(other, at: now), at: one)
    }

    package mutating func release(_ one: NodeID, _ other: NodeID) {
        guard nodes[one]?.wanted.remove(other) != nil else { return }
        nodes[one]?.table.release(other)
    }

    /// Sends a message about channels.
    /// - Returns: `false` without a link.
    @discardableResult
    package mutating func send(_ message: [UInt8], from id: NodeID, to other: NodeID) -> Bool {
        guard let connection = nodes[id]?.table.connection(of: other), let wire = nodes[id]?.connections[connection]
        else { return false }
        send(.channel(message), wire, from: id)
        return true
    }

    /// Every connection of a process that ends is reset.
    package mutating func kill(_ id: NodeID, goodbye: LinkGoodbye? = nil) {
        nodes[id]!.isRunning = false
        for wire in nodes[id]!.connections.values.sorted() { close(wire, by: id, goodbye) }
        nodes[id]!.connections = [:]
        nodes[id]!.up = [:]
        news.removeAll { $0.1 == id }
    }

    package mutating func freeze(_ id: NodeID, for interval: Interval) { nodes[id]!.frozenUntil = now + interval }

    /// Holds everything up that is on its way from one node to another.
    package mutating func cut(_ from: NodeID, _ to: NodeID) { cut.insert(Way(from: from, to: to)) }
    package mutating func heal() {
        cut = []
        let events = held
        held = []
        for (event, way) in events { schedule(event, way) }
    }
    package mutating func isolate(_ group: Set<NodeID>) {
        for one in nodes.keys {
            for other in nodes.keys where group.contains(one) != group.contains(other) { cut(one, other) }
        }
    }

    // MARK: Time

    package mutating func advance(by interval: Interval, _ owner: Owner = { _, _, _ in }) {
        let end = now + interval
        while now < end {
            let next = now + .milliseconds(20)
            while let index = events.indices.filter({ events[$0].at <= next }).min(by: {
                (events[$0].at, events[$0].number) < (events[$1].at, events[$1].number)
            }) {
                let event = events.remove(at: index)
                now = max(now, event.at)
                perform(event.event, event.number)
                tell(owner)
            }
            now = next
            guard now.nanoseconds / 20_000_000 % 5 == 0 else { continue }
            for id in nodes.keys.sorted() where isAwake(id) {
                perform(nodes[id]!.table.tick(at: now), at: id)
                news.append((.tick, id))
                tell(owner)
            }
        }
    }

    private mutating func tell(_ owner: Owner) {
        while !news.isEmpty {
            let (item, id) = news.removeFirst()
            owner(&self, item, id)
        }
    }

    package func isAwake(_ id: NodeID) -> Bool {
        guard let node = nodes[id], node.isRunning else { return false }
        return node.frozenUntil.map { $0 <= now } ?? true
    }

    private mutating func schedule(_ event: Event, _ way: Way, delay: Interval? = nil) {
        let latency = delay ?? .milliseconds(Int.random(in: 1...40, using: &generator))
        let at = max(now + latency, arrivals[way] ?? now)
        arrivals[way] = at
        events.append((at, eventNext, event))
        eventNext += 1
    }

    private mutating func perform(_ event: Event, _ number: UInt64) {
        let receiver: NodeID =
            switch event {
            case .accept(_, _, let to), .frame(_, _, let to): to
            case .dialFailed(_, let by), .helloTimeout(_, _, let by): by
            case .closed(_, let at, _): at
            }
        // A process that stands still takes everything when it goes on. A handshake takes both of its ends.
        var until = nodes[receiver]?.frozenUntil
        if case .accept(_, let dialer, _) = event {
            until = [until, nodes[dialer]?.frozenUntil].compactMap(\.self).max()
        }
        if let until, until > now {
            // With its number, so that what one connection brings keeps its order however often the process stands still.
            events.append((until, number, event))
            return
        }
        if case .frame(_, let wire, let to) = event, let from = sender(wire, to: to) {
            waiting[Way(from: from, to: to)]? -= 1
        }
        switch event {
        case .accept(let wire, let from, let to):
            guard isAwake(to) else { return schedule(.dialFailed(to, by: from), Way(from: to, to: from)) }
            wires[wire] = (from, to)
            open(wire, at: to)
            send(.hello(nodes[from]!.hello), wire, from: from)
        case .dialFailed(let to, let by): if isAwake(by) { nodes[by]!.table.dialFailed(to, at: now) }
        case .helloTimeout(let wire, let to, let by):
            guard isAwake(by), let id = nodes[by]!.connections.first(where: { $0.value == wire })?.key,
                nodes[by]!.greeted.contains(wire) == false
            else { return }
            nodes[by]!.connections[id] = nil
            close(wire, by: by)
            nodes[by]!.table.dialFailed(to, at: now)
        case .frame(let frame, let wire, let to): received(frame, wire, at: to)
        case .closed(let wire, let at, let goodbye):
            guard isAwake(at), let id = nodes[at]!.connections.first(where: { $0.value == wire })?.key else { return }
            nodes[at]!.connections[id] = nil
            if let ends = wires[wire], ends.dialer == at, !nodes[at]!.greeted.contains(wire) {
                nodes[at]!.table.dialFailed(ends.listener, at: now)
            }
            perform(nodes[at]!.table.disconnected(id, goodbye: goodbye, at: now), at: at)
        }
    }

    private mutating func open(_ wire: UInt64, at id: NodeID) {
        let connection = LinkTable.ConnectionID(rawValue: nodes[id]!.connectionNext)
        nodes[id]!.connectionNext += 1
        nodes[id]!.connections[connection] = wire
    }

    private mutating func received(_ frame: LinkFrame, _ wire: UInt64, at id: NodeID) {
        guard isAwake(id), let ends = wires[wire] else { return }
        guard let connection = nodes[id]!.connections.first(where: { $0.value == wire })?.key else { return }
        switch frame {
        case .hello(let hello):
            let isDialer = ends.dialer == id
            nodes[id]!.greeted.insert(wire)
            if !isDialer { send(.hello(nodes[id]!.hello), wire, from: id) }
            let actions = nodes[id]!.table.connected(connection, to: hello, isDialedHere: isDialer, at: now)
            perform(actions, at: id)
        case .ping(let number):
            nodes[id]!.table.heard(connection, at: now)
            send(.pong(number), wire, from: id)
        case .pong(let number):
            nodes[id]!.table.heard(connection, at: now)
            nodes[id]!.table.pong(number, over: connection, at: now)
        case .request(let number, let request):
            nodes[id]!.table.heard(connection, at: now)
            let instance = NodeInstance(String(decoding: request.body, as: UTF8.self))!
            send(
                .response(number, [nodes[id]!.table.canReach(instance, at: now) ? 1 : 0] + request.body),
                wire,
                from: id
            )
        case .response(_, let body):
            nodes[id]!.table.heard(connection, at: now)
            let instance = NodeInstance(String(decoding: body!.dropFirst(), as: UTF8.self))!
            nodes[id]!.table.witnessed(instance, isHeard: body!.first == 1, at: now)
        case .channel(let message):
            nodes[id]!.table.heard(connection, at: now)
            guard let other = nodes[id]!.table.node(of: connection) else { return }
            news.append((.message(message, from: other), id))
        case .unused:
            nodes[id]!.table.heard(connection, at: now)
            perform(nodes[id]!.table.unused(connection, at: now), at: id)
        case .goodbye, .relay, .unknown: nodes[id]!.table.heard(connection, at: now)
        }
    }

    private mutating func send(_ frame: LinkFrame, _ wire: UInt64, from id: NodeID) {
        guard let ends = wires[wire] else { return }
        let other = ends.dialer == id ? ends.listener : ends.dialer
        let way = Way(from: id, to: other)
        waiting[way, default: 0] += 1
        waitingMax = max(waitingMax, waiting[way] ?? 0)
        transmit(.frame(frame, wire: wire, to: other), way)
    }

    private func sender(_ wire: UInt64, to id: NodeID) -> NodeID? {
        wires[wire].map { $0.dialer == id ? $0.listener : $0.dialer }
    }

    private mutating func close(_ wire: UInt64, by id: NodeID, _ goodbye: LinkGoodbye? = nil) {
        guard let ends = wires[wire] else { return }
        let other = ends.dialer == id ? ends.listener : ends.dialer
        transmit(.closed(wire: wire, at: other, goodbye), Way(from: id, to: other))
    }

    private mutating func transmit(_ event: Event, _ way: Way) {
        if cut.contains(way) { held.append((event, way)) } else { schedule(event, way) }
    }

    private mutating func perform(_ actions: [LinkTable.Action], at id: NodeID) {
        for action in actions {
            switch action {
            case .dial(let other, _):
                let (there, back) = (Way(from: id, to: other), Way(from: other, to: id))
                if cut.contains(there) || cut.contains(back) || nodes[other] == nil {
                    schedule(.dialFailed(other, by: id), there, delay: .seconds(2))
                } else {
                    let wire = wireNext
                    wireNext += 1
                    open(wire, at: id)
                    wires[wire] = (id, other)
                    schedule(.accept(wire: wire, from: id, to: other), there)
                    events.append((now + .seconds(5), eventNext, .helloTimeout(wire: wire, to: other, by: id)))
                    eventNext += 1
                }
            case .close(let connection, let reason):
                guard let wire = nodes[id]!.connections.removeValue(forKey: connection) else { continue }
                close(wire, by: id, reason == .unused ? .unused : nil)
            case .ping(let connection, let number):
                if let wire = nodes[id]!.connections[connection] { send(.ping(number), wire, from: id) }
            case .tellUnused(let connection):
                if let wire = nodes[id]!.connections[connection] { send(.unused, wire, from: id) }
            case .up(let hello, _):
                if nodes[id]!.up[hello.instance.node] != nil { faults.append("a link comes up once: \(id)") }
                nodes[id]!.up[hello.instance.node] = hello
                news.append((.up(hello), id))
            case .down(let other):
                if nodes[id]!.up[other] == nil { faults.append("only a link that is up goes down: \(id)") }
                nodes[id]!.up[other] = nil
                news.append((.down(other), id))
            case .dead(let instance):
                nodes[id]!.dead.append(instance)
                news.append((.dead(instance, mayReturn: false), id))
            case .givenUp(let instance):
                nodes[id]!.dead.append(instance)
                news.append((.dead(instance, mayReturn: true), id))
            case .ask(let witness, let instance):
                guard let connection = nodes[id]!.table.connection(of: witness),
                    let wire = nodes[id]!.connections[connection]
                else { continue }
                let request = NodeRequest(kind: .canReach, body: Array(instance.description.utf8))
                send(.request(0, request), wire, from: id)
            }
        }
    }
}
