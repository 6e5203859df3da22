import MediaTypes
import TestSupport
import Testing
import Wire

@testable import Cluster

/// Nodes with a ``LinkTable`` each, over a network in virtual time that delays, cuts and loses.
struct LinkWorld {
    struct Node {
        var table: LinkTable
        let hello: LinkHello
        var isRunning = true
        /// Stands still until then.
        var frozenUntil: Instant?
        /// The connections by their number here.
        var connections: [LinkTable.ConnectionID: UInt64] = [:]
        var connectionNext: UInt64 = 1
        var up: [NodeID: LinkHello] = [:]
        var dead: [NodeInstance] = []
        var wanted: Set<NodeID> = []
        /// The wires whose other end said hello.
        var greeted: Set<UInt64> = []
    }
    private enum Event {
        case accept(wire: UInt64, from: NodeID, to: NodeID)
        case dialFailed(NodeID, by: NodeID)
        /// A connection without a hello is closed.
        case helloTimeout(wire: UInt64, to: NodeID, by: NodeID)
        case frame(LinkFrame, wire: UInt64, to: NodeID)
        case closed(wire: UInt64, at: NodeID)
    }
    private struct Way: Hashable {
        let from: NodeID
        let to: NodeID
    }

    var now = Instant(nanoseconds: 0)
    var nodes: [NodeID: Node] = [:]
    var generator: SeededGenerator
    private var events: [(at: Instant, number: UInt64, event: Event)] = []
    private var eventNext: UInt64 = 0
    private var wireNext: UInt64 = 1
    private var wires: [UInt64: (dialer: NodeID, listener: NodeID)] = [:]
    private var cut: Set<Way> = []
    private var arrivals: [Way: Instant] = [:]
    private var incarnations: [NodeID: UInt32] = [:]

    init(_ names: [String], seed: UInt64 = 1) {
        generator = SeededGenerator(seed: seed)
        for name in names { start(NodeID(rawValue: name)!) }
    }

    // MARK: What happens

    mutating func start(_ id: NodeID) {
        let number = (incarnations[id] ?? UInt32(incarnations.count) * 1_000) + 1
        incarnations[id] = number
        let hello = LinkHello(
            cluster: ClusterName(rawValue: "t")!,
            instance: NodeInstance(node: id, incarnation: NodeIncarnation(rawValue: number)!),
            media: NodeIncarnation(rawValue: number)!
        )
        nodes[id] = Node(table: LinkTable(own: hello, at: now), hello: hello)
        tellAddresses()
    }

    mutating func tellAddresses() {
        let known = nodes.values.map { (instance: $0.hello.instance, address: $0.hello.instance.node.rawValue) }
        for id in nodes.keys.sorted() {
            let actions = nodes[id]!.table.setAddresses(known.filter { $0.instance.node != id }, at: now)
            perform(actions, at: id)
        }
    }

    mutating func want(_ one: NodeID, _ other: NodeID) {
        guard nodes[one]!.wanted.insert(other).inserted else { return }
        perform(nodes[one]!.table.want(other, at: now), at: one)
    }

    /// Every connection of a process that ends is reset.
    mutating func kill(_ id: NodeID) {
        nodes[id]!.isRunning = false
        for wire in nodes[id]!.connections.values.sorted() { close(wire, by: id, isReset: true) }
        nodes[id]!.connections = [:]
    }

    mutating func freeze(_ id: NodeID, for interval: Interval) { nodes[id]!.frozenUntil = now + interval }

    /// Loses everything on its way from one node to another.
    mutating func cut(_ from: NodeID, _ to: NodeID) { cut.insert(Way(from: from, to: to)) }
    mutating func heal() { cut = [] }
    mutating func isolate(_ group: Set<NodeID>) {
        for one in nodes.keys {
            for other in nodes.keys where group.contains(one) != group.contains(other) { cut(one, other) }
        }
    }

    // MARK: Time

    mutating func advance(by interval: Interval) {
        let end = now + interval
        while now < end {
            let next = now + .milliseconds(20)
            while let index = events.indices.filter({ events[$0].at <= next }).min(by: {
                (events[$0].at, events[$0].number) < (events[$1].at, events[$1].number)
            }) {
                let event = events.remove(at: index)
                now = max(now, event.at)
                perform(event.event)
            }
            now = next
            guard now.nanoseconds / 20_000_000 % 5 == 0 else { continue }
            for id in nodes.keys.sorted() where isAwake(id) { perform(nodes[id]!.table.tick(at: now), at: id) }
        }
    }

    private func isAwake(_ id: NodeID) -> Bool {
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

    private mutating func perform(_ event: Event) {
        let receiver: NodeID =
            switch event {
            case .accept(_, _, let to), .frame(_, _, let to): to
            case .dialFailed(_, let by), .helloTimeout(_, _, let by): by
            case .closed(_, let at): at
            }
        // A process that stands still takes everything when it goes on.
        if let until = nodes[receiver]?.frozenUntil, until > now {
            events.append((until, eventNext, event))
            eventNext += 1
            return
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
            nodes[by]!.table.dialFailed(to, at: now)
        case .frame(let frame, let wire, let to): received(frame, wire, at: to)
        case .closed(let wire, let at):
            guard isAwake(at), let id = nodes[at]!.connections.first(where: { $0.value == wire })?.key else { return }
            nodes[at]!.connections[id] = nil
            perform(nodes[at]!.table.disconnected(id, at: now), at: at)
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
            send(.response(number, [nodes[id]!.table.hears(instance, at: now) ? 1 : 0] + request.body), wire, from: id)
        case .response(_, let body):
            nodes[id]!.table.heard(connection, at: now)
            let instance = NodeInstance(String(decoding: body!.dropFirst(), as: UTF8.self))!
            nodes[id]!.table.witnessed(instance, isHeard: body!.first == 1, at: now)
        case .channel, .goodbye: nodes[id]!.table.heard(connection, at: now)
        }
    }

    private mutating func send(_ frame: LinkFrame, _ wire: UInt64, from id: NodeID) {
        guard let ends = wires[wire] else { return }
        let other = ends.dialer == id ? ends.listener : ends.dialer
        guard !cut.contains(Way(from: id, to: other)) else { return }
        schedule(.frame(frame, wire: wire, to: other), Way(from: id, to: other))
    }

    private mutating func close(_ wire: UInt64, by id: NodeID, isReset: Bool = false) {
        guard let ends = wires[wire] else { return }
        let other = ends.dialer == id ? ends.listener : ends.dialer
        guard !cut.contains(Way(from: id, to: other)) else { return }
        schedule(.closed(wire: wire, at: other), Way(from: id, to: other))
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
            case .close(let connection, _):
                guard let wire = nodes[id]!.connections.removeValue(forKey: connection) else { continue }
                close(wire, by: id)
            case .ping(let connection, let number):
                if let wire = nodes[id]!.connections[connection] { send(.ping(number), wire, from: id) }
            case .up(let hello, _):
                #expect(nodes[id]!.up[hello.instance.node] == nil, "a link comes up once")
                nodes[id]!.up[hello.instance.node] = hello
            case .down(let other):
                #expect(nodes[id]!.up[other] != nil, "only a link that is up goes down")
                nodes[id]!.up[other] = nil
            case .dead(let instance), .givenUp(let instance): nodes[id]!.dead.append(instance)
            case .ask(let witness, let instance):
                guard let connection = nodes[id]!.table.connection(of: witness),
                    let wire = nodes[id]!.connections[connection]
                else { continue }
                let request = LinkRequest(kind: .hears, body: Array(instance.description.utf8))
                send(.request(0, request), wire, from: id)
            }
        }
    }
}
