import Base
import ChannelTypes
import ClusterTestSupport
import MediaTypes
import TestSupport
import Testing

@testable import Cluster

@Suite(.timeLimit(.minutes(10)))
struct LinkTableTests {
    private let a = NodeID(rawValue: "a")!
    private let b = NodeID(rawValue: "b")!
    private let c = NodeID(rawValue: "c")!

    /// Three nodes, each with a link to both others.
    private func mesh(seed: UInt64 = 1) -> LinkWorld {
        var world = LinkWorld(["a", "b", "c"], seed: seed)
        for one in [a, b, c] { for other in [a, b, c] where other != one { world.want(one, other) } }
        world.advance(by: .seconds(2))
        return world
    }

    private func isWhole(_ world: LinkWorld) -> Bool {
        world.nodes.values.allSatisfy { $0.up.count == world.nodes.count - 1 }
    }

    @Test(arguments: 0..<20) func `nodes that dial each other keep one connection`(_ seed: UInt64) {
        let world = mesh(seed: seed)
        #expect(isWhole(world))
        for node in world.nodes.values { #expect(node.connections.count == 2 && node.dead.isEmpty) }
    }

    @Test func `a link that nobody needs is closed after a while, and accuses nobody`() {
        var world = mesh()
        for (one, other) in [(a, b), (b, a), (a, c)] { world.release(one, other) }
        world.advance(by: .seconds(50))
        #expect(isWhole(world), "it may be needed again soon")
        world.advance(by: .seconds(80))
        #expect(world.nodes[a]!.up[b] == nil && world.nodes[b]!.up[a] == nil)
        #expect(world.nodes[a]!.up[c] != nil && world.nodes[c]!.up[a] != nil, "the other node needs it")
        #expect(world.nodes.values.allSatisfy { $0.dead.isEmpty })
        world.want(a, b)
        world.advance(by: .seconds(1))
        #expect(isWhole(world) && world.faults.isEmpty)
        world.kill(b)
        world.advance(by: .seconds(4))
        #expect(world.nodes[a]!.dead.map(\.node) == [b], "a link that is needed again says who is dead")
    }

    @Test func `a killed node is dead within three seconds, and its next run is linked at once`() {
        var world = mesh()
        let instance = world.nodes[b]!.hello.instance
        world.kill(b)
        world.advance(by: .seconds(3))
        for node in [a, c] { #expect(world.nodes[node]!.dead == [instance]) }
        world.start(b)
        for other in [a, c] { world.want(b, other) }
        world.advance(by: .seconds(1))
        #expect(isWhole(world))
        for node in [a, c] { #expect(world.nodes[node]!.dead == [instance]) }
    }

    @Test func `a node that restarts quickly is dead once, with its earlier run`() {
        var world = mesh()
        let instance = world.nodes[b]!.hello.instance
        world.kill(b)
        world.advance(by: .milliseconds(400))
        world.start(b)
        world.advance(by: .seconds(3))
        for node in [a, c] { #expect(world.nodes[node]!.dead == [instance]) }
        for node in [a, c] { #expect(world.nodes[node]!.up[b]?.instance == world.nodes[b]!.hello.instance) }
    }

    @Test(arguments: [false, true]) func `a cut link does not make a node dead that a third one hears`(_ isOneWay: Bool)
    {
        var world = mesh()
        world.cut(a, b)
        if !isOneWay { world.cut(b, a) }
        world.advance(by: .seconds(20))
        for node in [a, b, c] { #expect(world.nodes[node]!.dead.isEmpty) }
        #expect(world.nodes[c]!.up.count == 2)
        if !isOneWay { #expect(world.nodes[a]!.up[b] == nil && world.nodes[b]!.up[a] == nil) }
        world.heal()
        world.advance(by: .seconds(5))
        #expect(isWhole(world))
    }

    @Test func `both sides of a split give each other up, and are linked again within five seconds of its end`() {
        var world = mesh()
        world.isolate([b])
        world.advance(by: .seconds(8))
        #expect(world.nodes[a]!.dead.map(\.node) == [b])
        #expect(Set(world.nodes[b]!.dead.map(\.node)) == [a, c])
        #expect(world.nodes[a]!.up[c] != nil)
        world.heal()
        world.advance(by: .seconds(5))
        #expect(isWhole(world))
    }

    @Test func `a node that stood still accuses nobody when it goes on`() {
        var world = mesh()
        world.freeze(b, for: .seconds(10))
        world.advance(by: .seconds(9))
        for node in [a, c] { #expect(world.nodes[node]!.dead.map(\.node) == [b]) }
        world.advance(by: .seconds(6))
        #expect(world.nodes[b]!.dead.isEmpty)
        #expect(isWhole(world))
    }

    /// It reads what came meanwhile only after its first tick.
    @Test(arguments: [false, true]) func `a node that stood still waits a second before it accuses`(_ isLost: Bool) {
        var table = LinkTable(own: hello("a", 1), at: now)
        _ = table.connected(id(1), to: hello("b", 5), isDialedHere: false, at: now)
        if isLost { _ = table.disconnected(id(1), at: now) }
        _ = table.tick(at: now)
        let accusation: LinkTable.Action = isLost ? .givenUp(hello("b", 5).instance) : .close(id(1), .silent)
        let tenths = (100...120).filter { table.tick(at: now + .milliseconds(100 * $0)).contains(accusation) }
        #expect(tenths == [110])
    }

    /// In tenths of a second: when the witness says that it hears the node, and when the node is given up.
    @Test(arguments: [(nil, [20]), (19, [])] as [(Int?, [Int])])
    func `a witness has half a second to answer before a node is given up`(answer: Int?, end: [Int]) {
        var table = LinkTable(own: hello("a", 1), at: now)
        let lost = hello("b", 5)
        _ = table.connected(id(1), to: lost, isDialedHere: false, at: now)
        _ = table.connected(id(2), to: hello("c", 9), isDialedHere: false, at: now)
        _ = table.disconnected(id(1), at: now)
        var (questions, ends): ([Int], [Int]) = ([], [])
        for tenth in 1...25 {
            let time = now + .milliseconds(100 * tenth)
            table.heard(id(2), at: time)
            if tenth == answer { table.witnessed(lost.instance, isHeard: true, at: time) }
            let actions = table.tick(at: time)
            if actions.contains(.ask(c, about: lost.instance)) { questions.append(tenth) }
            if actions.contains(.givenUp(lost.instance)) { ends.append(tenth) }
        }
        #expect(questions == [15] && ends == end)
    }

    @Test func `a link is silent for three seconds before it is closed`() {
        var world = mesh()
        world.freeze(b, for: .milliseconds(2_500))
        world.advance(by: .seconds(5))
        for node in [a, b, c] { #expect(world.nodes[node]!.dead.isEmpty) }
        #expect(isWhole(world))
    }

    @Test func `a stranger, another cluster and a second node of the same name are refused`() {
        var table = LinkTable(own: hello("a", 1), at: now)
        var other = hello("b", 2)
        other.cluster = ClusterName(rawValue: "other")!
        #expect(table.connected(id(1), to: other, isDialedHere: false, at: now) == [.close(id(1), .incompatible)])
        other = hello("b", 2)
        other.versions = 7...8
        #expect(table.connected(id(2), to: other, isDialedHere: false, at: now) == [.close(id(2), .incompatible)])
        #expect(table.connected(id(3), to: hello("a", 3), isDialedHere: false, at: now) == [.close(id(3), .ownName)])
        #expect(table.connected(id(4), to: hello("b", 1), isDialedHere: false, at: now) == [.close(id(4), .ownName)])
        #expect(table.connected(id(5), to: hello("b", 2), isDialedHere: false, at: now) == [.up(hello("b", 2), id(5))])
        #expect(table.connected(id(6), to: hello("c", 2), isDialedHere: false, at: now) == [.close(id(6), .ownName)])
    }

    @Test func `an earlier run does not replace a later one`() {
        var table = LinkTable(own: hello("a", 1), at: now)
        _ = table.connected(id(1), to: hello("b", 5), isDialedHere: false, at: now)
        #expect(table.connected(id(2), to: hello("b", 4), isDialedHere: false, at: now) == [.close(id(2), .replaced)])
        let later = table.connected(id(3), to: hello("b", 6), isDialedHere: false, at: now)
        #expect(
            later == [
                .close(id(1), .replaced), .down(b), .dead(hello("b", 5).instance), .up(hello("b", 6), id(3)),
            ]
        )
        // The end of the first connection is no news.
        #expect(table.disconnected(id(1), at: now).isEmpty)
    }

    @Test func `a node that says that it stops is gone at once`() {
        var table = LinkTable(own: hello("a", 1), at: now)
        _ = table.connected(id(1), to: hello("b", 5), isDialedHere: false, at: now)
        let actions = table.disconnected(id(1), goodbye: .stopping, at: now)
        #expect(actions == [.down(b), .dead(hello("b", 5).instance)])
        #expect(table.tick(at: now + .seconds(10)).isEmpty)
    }

    /// When the table dials in the next 40 s, in seconds from `now`.
    private func dials(_ table: inout LinkTable) -> [Double] {
        (0...400).filter { step in
            let time = now + .milliseconds(100 * step)
            let dials = table.tick(at: time).contains { if case .dial = $0 { true } else { false } }
            if dials { table.dialFailed(b, at: time) }
            return dials
        }.map { Double($0) / 10 }
    }

    private func dialing() -> LinkTable {
        var table = LinkTable(own: hello("a", 1), at: now)
        _ = table.setAddresses([(hello("b", 5).instance, "b:1")], at: now)
        #expect(table.want(b, at: now) == [.dial(b, address: "b:1")])
        return table
    }

    @Test(arguments: [true, false]) func `a node without a common version is not dialed for thirty seconds`(
        _ isDialedHere: Bool
    ) {
        var table = dialing()
        var later = hello("b", 5)
        later.versions = 2...2
        #expect(
            table.connected(id(1), to: later, isDialedHere: isDialedHere, at: now) == [.close(id(1), .incompatible)]
        )
        if !isDialedHere { table.dialFailed(b, at: now) }
        #expect(dials(&table).first == 30)
        // Another build under the same name is tried at once.
        let actions = table.setAddresses([(hello("b", 6).instance, "b:1")], at: now + .seconds(41))
        #expect(actions == [.dial(b, address: "b:1")])
    }

    @Test(arguments: [LinkGoodbye.incompatible, .refused]) func `a node that refuses this one is left alone`(
        _ goodbye: LinkGoodbye
    ) {
        var table = dialing()
        _ = table.connected(id(1), to: hello("b", 5), isDialedHere: true, at: now)
        #expect(table.disconnected(id(1), goodbye: goodbye, at: now) == [.down(b)])
        #expect(dials(&table).first == 30)
    }

    @Test func `a node that refuses the secret is left alone, and counts as refused until something changes`() {
        var table = dialing()
        #expect(table.status(at: now)[b]?.state == .connecting)
        #expect(table.dialRefused(b, at: now) && table.status(at: now)[b]?.state == .refused)
        #expect(table.dialRefused(b, at: now + .seconds(1)) == false, "it is said once")
        #expect(dials(&table).first == 31)
        #expect(table.status(at: now)[b]?.state == .connecting, "it did not answer at all")
        _ = table.dialRefused(b, at: now + .seconds(50))
        // The next run of the node may have the right secret, so it is dialed at once.
        let actions = table.setAddresses([(hello("b", 6).instance, "b:1")], at: now + .seconds(51))
        #expect(actions == [.dial(b, address: "b:1")] && table.status(at: now)[b]?.state == .connecting)
        _ = table.connected(id(1), to: hello("b", 6), isDialedHere: true, at: now + .seconds(52))
        #expect(table.status(at: now + .seconds(52))[b]?.state == .up)
    }

    @Test func `what the store tells of secrets is shown, and separates no nodes`() {
        var table = LinkTable(own: hello("a", 1), at: now)
        _ = table.setAddresses([(hello("b", 5).instance, "b:1"), (hello("c", 6).instance, "c:1")], at: now)
        _ = table.connected(id(1), to: hello("c", 6), isDialedHere: false, at: now)
        table.setOtherSecrets([b, c])
        #expect(table.status(at: now).mapValues(\.state) == [b: .refused, c: .up], "a link proves more")
        #expect(table.want(b, at: now) == [.dial(b, address: "b:1")])
        #expect(table.dialRefused(b, at: now) == false, "the store said so before")
        table.setOtherSecrets([])
        #expect(table.status(at: now)[b]?.state == .refused)
        table.dialFailed(b, at: now)
        #expect(table.status(at: now)[b]?.state == .connecting)
        #expect(table.dialRefused(b, at: now) == true, "it is new again")
        #expect(table.status(at: now)[b]?.state == .refused)
        table.release(b)
        #expect(table.status(at: now)[b] == nil, "nobody needs the link")
    }

    @Test func `a provisional incarnation tells no order, and what was said with it may be of any run`() {
        let provisional = hello("b", NodeIncarnation.assignedMax + 1)
        #expect(!provisional.instance.incarnation.isAssigned)
        for (linked, newcomer) in [(provisional, hello("b", 4)), (hello("b", 4), provisional)] {
            var table = LinkTable(own: hello("a", 1), at: now)
            _ = table.connected(id(1), to: linked, isDialedHere: false, at: now)
            let actions = table.connected(id(2), to: newcomer, isDialedHere: false, at: now)
            #expect(actions == [.close(id(1), .replaced), .down(b), .dead(linked.instance), .up(newcomer, id(2))])
        }
        let run = hello("b", 4).instance
        #expect(provisional.mayBeOf(run) && hello("b", 4).mayBeOf(run))
        #expect(!hello("b", 3).mayBeOf(run) && !hello("c", NodeIncarnation.assignedMax + 1).mayBeOf(run))
    }

    @Test func `a run that returns with a later incarnation is preferred to the run that had the name meanwhile`() {
        var own = LinkTable(own: hello("b", 5), at: now)
        var other = LinkTable(own: hello("a", 1), at: now)
        _ = other.connected(id(1), to: hello("b", 12), isDialedHere: false, at: now)
        #expect(other.connected(id(2), to: own.own, isDialedHere: false, at: now) == [.close(id(2), .replaced)])
        own.setInstance(hello("b", 13).instance)
        #expect(own.own.media == hello("b", 5).media, "its members' identifiers stay")
        let actions = other.connected(id(3), to: own.own, isDialedHere: false, at: now)
        #expect(
            actions == [
                .close(id(1), .replaced), .down(b), .dead(hello("b", 12).instance), .up(own.own, id(3)),
            ]
        )
        #expect(other.connected(id(4), to: hello("b", 12), isDialedHere: false, at: now) == [.close(id(4), .replaced)])
    }

    @Test func `links that do not last are dialed with growing pauses`() {
        var table = dialing()
        _ = table.connected(id(1), to: hello("b", 5), isDialedHere: true, at: now)
        #expect(table.disconnected(id(1), at: now) == [.down(b)])
        #expect(dials(&table).prefix(5) == [0.1, 0.3, 0.7, 1.5, 3.5])
        _ = table.connected(id(2), to: hello("b", 5), isDialedHere: true, at: now + .seconds(50))
        let actions = table.disconnected(id(2), at: now + .seconds(60))
        #expect(actions == [.down(b), .dial(b, address: "b:1")], "a link that lasted is dialed at once")
    }

    @Test func `a node is refused after three flaws in ten seconds, and not after three in twenty`() {
        for (pause, isRefused) in [(4, true), (9, false)] {
            var table = LinkTable(own: hello("a", 1), at: now)
            var time = now
            for number in 1...3 {
                _ = table.connected(id(UInt64(number)), to: hello("b", 5), isDialedHere: false, at: time)
                #expect(table.flawed(id(UInt64(number)), at: time) == (isRefused && number == 3))
                _ = table.disconnected(id(UInt64(number)), at: time)
                time += .seconds(pause)
            }
            let actions = table.connected(id(4), to: hello("b", 5), isDialedHere: false, at: time)
            #expect(actions.contains(.close(id(4), .flawed)) == isRefused)
            let other = table.connected(id(5), to: hello("c", 9), isDialedHere: false, at: time)
            #expect(other == [.up(hello("c", 9), id(5))])
        }
    }

    @Test func `what is noted of other nodes has a limit and ends`() {
        var bars = LinkBackoff()
        for number in 0..<LinkBackoff.nodesMax + 100 { bars.hold(NodeID(rawValue: "n\(number)")!, at: now) }
        #expect(bars.count == LinkBackoff.nodesMax)
        _ = bars.noteFlaw(NodeID(rawValue: "n0")!, at: now + .seconds(25))
        bars.expire(at: now + .seconds(30))
        #expect(bars.count == 1)
        bars.expire(at: now + .seconds(35))
        #expect(bars.count == 0)
    }

    @Test func `what an unknown connection says does nothing`() {
        var table = LinkTable(own: hello("a", 1), at: now)
        table.heard(id(9), at: now)
        table.pong(1, over: id(9), at: now)
        table.witnessed(hello("b", 1).instance, isHeard: true, at: now)
        #expect(table.disconnected(id(9), at: now).isEmpty)
        table.dialFailed(b, at: now)
        table.release(b)
        #expect(table.status(at: now).isEmpty)
    }

    @Test func `a node that hears a large frame lets its sender hear something too`() {
        var table = LinkTable(own: hello("a", 1), at: now)
        _ = table.connected(id(1), to: hello("b", 2), isDialedHere: false, at: now)
        var pings = 0
        for tenths in 1...30 {
            let time = now + .milliseconds(100 * tenths)
            table.heard(id(1), at: time)
            for case .ping in table.tick(at: time) { pings += 1 }
        }
        #expect(pings == 6)
    }

    private let now = Instant(nanoseconds: 1_000)
    private func id(_ number: UInt64) -> LinkTable.ConnectionID { LinkTable.ConnectionID(rawValue: number) }
    private func hello(_ name: String, _ number: UInt32) -> LinkHello {
        let incarnation = NodeIncarnation(rawValue: number)!
        return LinkHello(
            cluster: ClusterName(rawValue: "t")!,
            instance: NodeInstance(node: NodeID(rawValue: name)!, incarnation: incarnation),
            media: incarnation
        )
    }

    /// Nodes stop, restart, stand still and lose links. Ten seconds after everything is well again each has a link to every
    /// other one, and nobody was given up that ran and was heard by somebody.
    @Test(arguments: 0..<100) func `links are whole again after faults`(_ seed: UInt64) {
        var world = LinkWorld(["a", "b", "c", "d", "e"], seed: seed)
        let ids = world.nodes.keys.sorted()
        for one in ids { for other in ids where other != one { world.want(one, other) } }
        world.advance(by: .seconds(2))
        for _ in 0..<25 {
            let one = ids.randomElement(using: &world.generator)!
            let other = ids.randomElement(using: &world.generator)!
            switch Int.random(in: 0..<7, using: &world.generator) {
            case 0: if world.nodes[one]!.isRunning { world.kill(one) }
            case 1, 2:
                guard !world.nodes[one]!.isRunning else { break }
                world.start(one)
                for peer in ids where peer != one { world.want(one, peer) }
            case 3: world.freeze(one, for: .milliseconds(Int.random(in: 100...6_000, using: &world.generator)))
            case 4, 5: if one != other { world.cut(one, other) }
            default: world.heal()
            }
            world.advance(by: .milliseconds(Int.random(in: 0...3_000, using: &world.generator)))
        }
        world.heal()
        for id in ids where !world.nodes[id]!.isRunning {
            world.start(id)
            for peer in ids where peer != id { world.want(id, peer) }
        }
        world.advance(by: .seconds(16))
        #expect(world.faults == [])
        for (id, node) in world.nodes {
            #expect(node.up.count == ids.count - 1, "\(id)")
            for (other, hello) in node.up { #expect(hello.instance == world.nodes[other]!.hello.instance) }
        }
    }
}
