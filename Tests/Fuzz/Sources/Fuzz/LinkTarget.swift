import Base
import MediaTypes

@testable import ChannelTypes
@testable import Cluster
@testable import Room

/// The bytes of several control connections between nodes, as nodes with the cluster's secret may send them: cut into frames,
/// and acted upon by the table of links.
func fuzzLink(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    let run = LinkRun()
    while !input.isAtEnd { run.step(&input) }
    run.finish()
}

private final class LinkRun {
    private struct Connection {
        let id: LinkTable.ConnectionID
        let isDialedHere: Bool
        var reader = LinkFrameReader()
        var hasHello = false
        var goodbye: LinkGoodbye?
    }

    static let own = hello("own", 1)
    private static let places = 4
    private var table: LinkTable
    private var connections: [Connection?] = Array(repeating: nil, count: places)
    private var connectionNext: UInt64 = 1
    private var up: Set<NodeID> = []
    private var now = Instant(nanoseconds: 1_000_000_000)

    init() {
        table = LinkTable(own: Self.own, at: now)
        let others = [Self.hello("a", 2), Self.hello("b", 3)]
        perform(table.setAddresses(others.map { ($0.instance, "h:1") }, at: now))
        for other in others { perform(table.want(other.instance.node, at: now)) }
    }

    static func hello(_ name: String, _ number: UInt32) -> LinkHello {
        guard let cluster = ClusterName(rawValue: "c"), let node = NodeID(rawValue: name),
            let incarnation = NodeIncarnation(rawValue: number)
        else { fatalError("no hello") }
        let instance = NodeInstance(node: node, incarnation: incarnation)
        return LinkHello(cluster: cluster, instance: instance, media: incarnation)
    }

    func step(_ input: inout FuzzInput) {
        let place = input.choice(Self.places)
        switch input.choice(8) {
        case 0: close(place)
        case 1:
            now += .milliseconds(Int(input.uint16()))
            perform(table.tick(at: now))
            require(table.status(at: now).count <= LinkTable.linksMax, "links have a limit")
        case 2:
            open(place, isDialedHere: input.flag())
            fallthrough
        default: receive(input.chunk(), at: place)
        }
    }

    private func open(_ place: Int, isDialedHere: Bool) {
        close(place)
        connections[place] = Connection(
            id: LinkTable.ConnectionID(rawValue: connectionNext),
            isDialedHere: isDialedHere
        )
        connectionNext += 1
    }

    private func receive(_ bytes: [UInt8], at place: Int) {
        if connections[place] == nil { open(place, isDialedHere: false) }
        connections[place]?.reader.feed(bytes)
        do throws(LinkFrameError) {
            while let frame = try connections[place]?.reader.next() {
                check(frame)
                guard take(frame, at: place) else { return }
            }
        } catch { return end(place, isFlawed: true) }
        guard let connection = connections[place] else { return }
        require(connection.reader.bytesWaiting <= connection.reader.bytesMax + 4, "a frame's bytes have a limit")
    }

    /// A frame that was read is written as it was, but for what is left out of it.
    private func check(_ frame: LinkFrame) {
        var reader = LinkFrameReader(bytesMax: LinkFrame.bytesMax)
        reader.feed(frame.encoded())
        require((try? reader.next()) == frame && reader.bytesWaiting == 0, "a frame is read as it was written")
    }

    /// Returns whether the connection goes on.
    private func take(_ frame: LinkFrame, at place: Int) -> Bool {
        guard let connection = connections[place] else { return false }
        if case .hello(let hello) = frame {
            guard !connection.hasHello else {
                end(place, isFlawed: true)
                return false
            }
            connections[place]?.hasHello = true
            connections[place]?.reader.bytesMax = LinkFrame.bytesMax
            perform(table.connected(connection.id, to: hello, isDialedHere: connection.isDialedHere, at: now))
            return connections[place] != nil
        }
        guard connection.hasHello else {
            end(place, isFlawed: true)
            return false
        }
        table.heard(connection.id, at: now)
        switch frame {
        case .pong(let number): table.pong(number, over: connection.id, at: now)
        case .request(_, let request):
            if let instance = NodeInstance(String(decoding: request.body.prefix(128), as: UTF8.self)) {
                _ = table.canReach(instance, at: now)
                table.witnessed(instance, isHeard: request.kind == .canReach, at: now)
            }
        case .goodbye(let reason): connections[place]?.goodbye = reason
        case .unused: perform(table.unused(connection.id, at: now))
        case .hello, .ping, .channel, .response, .relay, .unknown: break
        }
        return true
    }

    private func close(_ place: Int) { end(place, isFlawed: false) }

    private func end(_ place: Int, isFlawed: Bool) {
        guard let connection = connections[place] else { return }
        connections[place] = nil
        if isFlawed { _ = table.flawed(connection.id, at: now) }
        perform(table.disconnected(connection.id, goodbye: connection.goodbye, at: now))
    }

    private func perform(_ actions: [LinkTable.Action]) {
        for action in actions {
            switch action {
            case .dial(let node, _): table.dialFailed(node, at: now)
            case .close(let id, _):
                for place in connections.indices where connections[place]?.id == id { connections[place] = nil }
            case .up(let hello, let id):
                let node = hello.instance.node
                require(up.insert(node).inserted, "a link comes up once")
                require(table.node(of: id) == node && table.connection(of: node) == id, "a link has one connection")
                require(hello.cluster == Self.own.cluster && node != Self.own.instance.node, "strangers get no link")
            case .down(let node): require(up.remove(node) != nil, "only a link that is up goes down")
            case .ping(let id, _), .tellUnused(let id): require(table.node(of: id) != nil, "only a link gets pings")
            case .dead, .givenUp, .ask: break
            }
        }
    }

    func finish() {
        for place in connections.indices { close(place) }
        require(up.isEmpty, "no link stays without its connection")
    }
}

func seedsLink() -> [(name: String, bytes: [UInt8])] {
    var later = LinkRun.hello("a", 2)
    later.versions = 2...2
    let calm: [LinkFrame] = [
        .hello(LinkRun.hello("a", 2)), .ping(1), .pong(1), .channel([0, 0, 0, 2, 123, 125]),
        .request(7, NodeRequest(kind: .canReach, body: Array("b:3".utf8))), .response(7, [1]), .response(8, nil),
        .unknown(99), .goodbye(.stopping),
    ]
    let meetings: [LinkFrame] = [
        .hello(LinkRun.hello("a", 2)), .hello(LinkRun.hello("a", 2)), .hello(LinkRun.hello("a", 9)), .hello(later),
        .hello(LinkRun.hello("own", 4)), .hello(LinkRun.hello("b", 2)), .ping(1),
    ]
    return [
        (
            "calm",
            SeedWriter.make { writer in
                for frame in calm {
                    writer.byte(0)
                    writer.byte(3)
                    writer.chunk(frame.encoded())
                }
            }
        ),
        (
            "meetings",
            SeedWriter.make { writer in
                for (number, frame) in meetings.enumerated() {
                    writer.byte(number)
                    writer.byte(2)
                    writer.byte(number / 2)
                    writer.chunk(frame.encoded())
                    writer.byte(0)
                    writer.byte(1)
                    writer.uint16(700 * number)
                }
            }
        ),
        (
            "flaws",
            SeedWriter.make { writer in
                for _ in 0..<4 {
                    writer.byte(1)
                    writer.byte(2)
                    writer.byte(0)
                    writer.chunk(LinkFrame.hello(LinkRun.hello("a", 2)).encoded() + [0, 0, 0, 0])
                }
            }
        ),
    ]
}
