import Base
import ChannelTypes
import Logging
import MediaTypes
import NIOCore
import NIOEmbedded
import Synchronization
import TestSupport
import Testing

@testable import Cluster

/// Real links on this machine, and what a listener has to bear.
@Suite(.timeLimit(.minutes(10))) struct ControlLinksTests {
    // MARK: Versions

    @Test(arguments: [(1...1, 1...2), (1...2, 1...1), (1...2, 2...3)])
    func `nodes with a common version have a link, and what only one knows is ignored`(
        _ versions: ClosedRange<Int>,
        _ others: ClosedRange<Int>
    ) async throws {
        let (a, b) = (try await LinkPeer("a", 1, versions: versions), try await LinkPeer("b", 2, versions: others))
        a.knows([b])
        try await eventually("the nodes are linked") { a.isLinked(to: b) && b.isLinked(to: a) }
        let common = min(versions.upperBound, others.upperBound)
        #expect(a.hello.version(with: b.hello) == common)
        #expect(a.links.send([1, 2], to: b.hello.instance.node))
        try await eventually("b has the message") { b.received == [[1, 2]] }
        #expect(a.links.sendCallMessage([3], to: b.hello.instance.node))
        try await eventually("b has the relayed message") { b.relayed == [[3]] }
        #expect(b.received.count == 1)
        await #expect(throws: NodeRequestError.refused) {
            try await a.links.ask(
                NodeRequest(kind: .unknown, body: [9]),
                of: b.hello.instance.node,
                within: .seconds(600)
            )
        }
        #expect(b.links.counters.unknown == 1 && b.links.counters.malformed == 0)
        let answer = try await a.links.ask(
            NodeRequest(kind: .export, body: [7]),
            of: b.hello.instance.node,
            within: .seconds(600)
        )
        #expect(answer == [7])
        for peer in [a, b] { #expect(peer.links.counters.incompatible == 0 && peer.links.counters.linksDown == 0) }
        for peer in [a, b] { await peer.links.stop() }
    }

    @Test func `a node of a later version may say more, in frames and in its hello`() async throws {
        let node = try await LinkPeer("a", 1)
        let link = try await RawLink(node.port, security: LinkPeer.security)
        let text = #"{"cluster":"t","later":{"x":[1]},"node":"b:2","media":2,"min":1,"max":2}"#
        link.send(LengthPrefix.prepend(to: [1] + Array(text.utf8)))
        try await eventually("the link is up") { node.upCount == 1 && link.frames.contains(.hello(node.hello)) }
        link.send(LengthPrefix.prepend(to: [99, 1, 2, 3]))
        link.send(LengthPrefix.prepend(to: [5, 0, 0, 0, 7, 200, 1]))
        link.send(.channel([4]))
        link.send(.ping(5))
        try await eventually("the ping and the question are answered") {
            link.frames.contains(.pong(5)) && link.frames.contains(.response(7, nil))
        }
        #expect(node.received == [[4]])
        #expect(node.links.counters.unknown == 2 && node.links.counters.malformed == 0)
        #expect(!link.isClosed)
        await node.links.stop()
    }

    @Test func `nodes without a common version refuse each other, say so, and do not dial again at once`() async throws
    {
        let (a, b) = (try await LinkPeer("a", 1), try await LinkPeer("b", 2, versions: 2...2))
        a.knows([b])
        b.knows([a])
        // Each may have dialed before it knew.
        try await eventually("each node has refused the other") {
            a.links.counters.incompatible >= 1 && b.links.counters.incompatible >= 1
        }
        let before = a.links.counters.incompatible
        #expect(before <= 2)
        a.pass(.seconds(31))
        try await eventually("a has dialed again") { a.links.counters.incompatible > before }
        #expect(a.links.counters.incompatible == before + 1)
        for peer in [a, b] {
            #expect(peer.links.counters.linksUp == 0 && peer.links.counters.malformed == 0)
            // A refusal is counted before it is logged.
            let lines = { peer.lines(with: "version of the link protocol was refused") }
            try await eventually("each refusal is in the log") { lines().count == peer.links.counters.incompatible }
            #expect(lines().allSatisfy { $0.hasPrefix("warning") })
            await peer.links.stop()
        }
    }

    // MARK: Secrets

    private static let others = LinkSecurity(secrets: [String(repeating: "x", count: 32)])!

    @Test func `a node whose secret is refused says so once, and dials again after thirty seconds`() async throws {
        let (a, b) = (try await LinkPeer("a", 1), try await LinkPeer("b", 2, security: Self.others))
        a.knows([b])
        let lines = { (peer: LinkPeer, other: LinkPeer) -> [String] in
            let field = #""node": \#(other.hello.instance.node)"#
            return peer.lines(with: "refuses this one's --cluster-secret").filter { $0.contains(field) }
        }
        try await eventually("the line is in the log") { lines(a, b).count == 1 }
        #expect(lines(a, b).allSatisfy { $0.hasPrefix("error") })
        try await eventually("the link counts as refused") { a.linkState(to: b) == .refused }
        try await eventually("the connection has ended") { b.links.counters.strangers == 1 }
        a.pass(.seconds(31))
        try await eventually("a has dialed again") { b.links.counters.strangers == 2 }
        try await eventually("the connection has ended") { a.links.counters.strangers == 2 }
        #expect(lines(a, b).count == 1 && a.linkState(to: b) == .refused)
        // The node that was dialed learns from the store who it was, and its membership says so.
        #expect(b.linkState(to: a) == nil)
        b.links.setOtherSecrets([a.hello.instance.node])
        try await eventually("the link counts as refused on the other side, too") { b.linkState(to: a) == .refused }
        #expect(lines(b, a).isEmpty)
        for peer in [a, b] {
            #expect(peer.links.counters.linksUp == 0)
            await peer.links.stop()
        }
    }

    @Test func `a link that comes about in spite of what the store tells is up`() async throws {
        let (a, b) = (try await LinkPeer("a", 1), try await LinkPeer("b", 2))
        a.links.setOtherSecrets([b.hello.instance.node])
        try await eventually("the link counts as refused") { a.linkState(to: b) == .refused }
        a.knows([b])
        try await eventually("the nodes are linked") { a.isLinked(to: b) && b.isLinked(to: a) }
        try await eventually("the link counts as up") { a.linkState(to: b) == .up }
        for peer in [a, b] { await peer.links.stop() }
    }

    // MARK: Two runs of a node

    @Test func `a run that returns with a later incarnation takes the node's link back`() async throws {
        let a = try await LinkPeer("a", 1)
        let (earlier, later) = (try await LinkPeer("b", 5), try await LinkPeer("b", 12))
        later.knows([a])
        try await eventually("the later run has the link") { a.isLinked(to: later) }
        let returned = NodeInstance(node: earlier.hello.instance.node, incarnation: NodeIncarnation(rawValue: 13)!)
        earlier.links.setInstance(returned)
        earlier.knows([a])
        try await eventually("the earlier run has the link") {
            a.state.content.withLock { $0.up[returned.node]?.instance == returned }
        }
        try await eventually("it knows that") { earlier.isLinked(to: a) }
        for peer in [a, earlier, later] { await peer.links.stop() }
    }

    // MARK: Hostile connections

    @Test func `the link of a node of which too many messages about rooms wait is closed, which both nodes see`()
        async throws
    {
        let (a, b) = (try await LinkPeer("a", 1), try await LinkPeer("b", 2))
        a.knows([b])
        try await eventually("the nodes are linked") { a.isLinked(to: b) && b.isLinked(to: a) }
        b.state.content.withLock { $0.relayedMax = 1 }
        for number in [3, 4] as [UInt8] { #expect(a.links.sendCallMessage([number], to: b.hello.instance.node)) }
        try await eventually("both nodes have lost the link") { !a.isLinked(to: b) && !b.isLinked(to: a) }
        #expect(b.relayed == [[3], [4]] && b.links.counters.overflows == 1 && a.links.counters.overflows == 0)
        for peer in [a, b] { await peer.links.stop() }
    }

    @Test func `garbage, another secret and a replayed connection get no link`() async throws {
        let node = try await LinkPeer("a", 1)
        let honest = try await RawLink(node.port, security: LinkPeer.security)
        honest.send(.hello(LinkPeer.hello("b", 2)))
        try await eventually("the link is up") { node.upCount == 1 }
        honest.close()
        try await eventually("the link is down") { node.links.counters.linksDown == 1 }
        let other = LinkSecurity(secrets: [String(repeating: "x", count: 32)])
        let inputs: [(security: LinkSecurity?, bytes: [UInt8])] = [
            (nil, Array("GET / HTTP/1.1\r\n\r\n".utf8)), (nil, [UInt8](repeating: 0xFF, count: 10_000)),
            (nil, honest.sent), (nil, LinkFrame.hello(LinkPeer.hello("b", 2)).encoded()),
            (other, LinkFrame.hello(LinkPeer.hello("b", 2)).encoded()),
        ]
        for (number, input) in inputs.enumerated() {
            let link = try await RawLink(node.port, security: input.security)
            link.send(input.bytes)
            try await eventually("the connection is counted and closed") {
                node.links.counters.strangers == UInt64(number + 1) && link.isClosed
            }
        }
        #expect(node.upCount == 1 && node.links.counters.malformed == 0)
        // The clock stands still, so the number of lines is limited.
        let lines = { node.lines(with: "connection without a hello ended") }
        try await eventually("each connection is in the log") { lines().count == inputs.count }
        #expect(lines().allSatisfy { $0.hasPrefix("debug") && $0.contains("127.0.0.1") })
        for _ in 0..<10 {
            let before = node.links.counters.strangers
            let link = try await RawLink(node.port, security: nil)
            link.close()
            try await eventually("the connection is counted") { node.links.counters.strangers > before }
        }
        try await eventually("ten lines are in the log") { lines().count == 10 }
        await node.links.stop()
        #expect(lines().count == 10)
    }

    static let hello = LinkFrame.hello(LinkPeer.hello("b", 2)).encoded()
    static let flaws: [(String, [UInt8])] = [
        ("a hello that is too long", [0, 0, 0x10, 1, 1]), ("no hello first", LinkFrame.ping(1).encoded()),
        ("an unknown frame first", LinkFrame.unknown(99).encoded()),
        ("no hello in a hello", [0, 0, 0, 3, 1, 123, 125]),
        ("a second hello", hello + hello), ("a frame that is too long", hello + [0x01, 0, 0, 1]),
        ("an empty frame", hello + [0, 0, 0, 0]), ("half a number", hello + [0, 0, 0, 2, 2, 1]),
    ]

    @Test(arguments: flaws)
    func `what is no frame ends the connection and is counted`(name: String, bytes: [UInt8]) async throws {
        let node = try await LinkPeer("a", 1)
        let link = try await RawLink(node.port, security: LinkPeer.security)
        link.send(bytes)
        try await eventually("the connection is closed") { link.isClosed }
        #expect(node.links.counters.malformed == 1)
        try await eventually("the refusal is in the log") {
            node.lines(with: "link refused").contains { $0.contains("127.0.0.1") }
        }
        await node.links.stop()
    }

    @Test func `a node whose links end so three times in ten seconds is refused for thirty`() async throws {
        let node = try await LinkPeer("a", 1)
        for number in 1...3 {
            let link = try await RawLink(node.port, security: LinkPeer.security)
            link.send(Self.hello + [0, 0, 0, 0])
            try await eventually("the link is down") {
                link.isClosed && node.links.counters.linksDown == UInt64(number)
            }
            node.pass(.seconds(3))
        }
        #expect(node.links.counters.barred == 1 && node.lines(with: "three times in ten seconds").count == 1)
        let refused = try await RawLink(node.port, security: LinkPeer.security)
        refused.send(Self.hello)
        try await eventually("the connection is closed") { refused.isClosed }
        #expect(refused.frames.last == .goodbye(.refused))
        let other = try await RawLink(node.port, security: LinkPeer.security)
        other.send(.hello(LinkPeer.hello("c", 3)))
        try await eventually("four links were up") { node.upCount == 4 }
        node.pass(.seconds(31))
        let later = try await RawLink(node.port, security: LinkPeer.security)
        later.send(Self.hello)
        try await eventually("five links were up") { node.upCount == 5 }
        await node.links.stop()
    }

    @Test func `connections without a hello are few for each address, and bar no node at theirs`() async throws {
        let node = try await LinkPeer("a", 1)
        var open: [RawLink] = []
        for _ in 0..<LinkStrangers.networkMax { open.append(try await RawLink(node.port, security: nil)) }
        let link = try await RawLink(node.port, security: LinkPeer.security)
        link.send(Self.hello)
        try await eventually("a node at the same address has a link") { node.upCount == 1 }
        try await eventually("one connection is closed") { open.count(where: \.isClosed) == 1 }
        #expect(node.links.counters.crowded == 1)
        let other = try await RawLink(node.port, security: LinkPeer.security, from: "127.0.0.2")
        other.send(.hello(LinkPeer.hello("c", 3)))
        try await eventually("a node at another address has a link") { node.upCount == 2 }
        #expect(node.links.counters.crowded == 1)
        await node.links.stop()
    }

    @Test func `connections without a hello of many addresses make room for newer ones`() async throws {
        let node = try await LinkPeer("a", 1)
        var open: [RawLink] = []
        for number in 0..<LinkStrangers.connectionsMax {
            let address = "127.0.1.\(1 + number / LinkStrangers.networkMax)"
            open.append(try await RawLink(node.port, security: nil, from: address))
        }
        #expect(open.allSatisfy { !$0.isClosed })
        let link = try await RawLink(node.port, security: LinkPeer.security)
        link.send(Self.hello)
        try await eventually("the link is up") { node.upCount == 1 }
        try await eventually("the oldest connection is closed") { open[0].isClosed }
        #expect(open[1...].allSatisfy { !$0.isClosed } && node.links.counters.crowded == 1)
        await node.links.stop()
    }

    @Test(arguments: [0, 3, 40]) func `half a hello is waited for five seconds`(_ count: Int) throws {
        let channel = EmbeddedChannel()
        var isClosed = false
        let owner = LinkHandler.Owner(
            connected: { _, _ in },
            received: { _ in },
            heard: {},
            refused: { _ in },
            closed: { isClosed = true }
        )
        try channel.pipeline.syncOperations.addHandler(LinkHandler(owner, helloTimeout: .seconds(5)))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.writeInbound(ByteBuffer(bytes: Self.hello.prefix(count)))
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(4_999))
        #expect(!isClosed)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(isClosed)
    }

    @Test func `half a frame is heard, and taken when its rest arrives`() throws {
        let channel = EmbeddedChannel()
        var frames: [LinkFrame] = []
        var heard = 0
        let owner = LinkHandler.Owner(
            connected: { _, _ in },
            received: { frames.append($0) },
            heard: { heard += 1 },
            refused: { _ in },
            closed: {}
        )
        try channel.pipeline.syncOperations.addHandler(LinkHandler(owner, helloTimeout: .seconds(5)))
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let frame = LinkFrame.channel([UInt8](repeating: 7, count: 100_000))
        let bytes = frame.encoded()
        try channel.writeInbound(ByteBuffer(bytes: Self.hello))
        #expect(heard == 0, "the hello tells of itself")
        try channel.writeInbound(ByteBuffer(bytes: bytes.prefix(5)))
        try channel.writeInbound(ByteBuffer(bytes: bytes.dropFirst(5).dropLast()))
        channel.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(frames.isEmpty && heard == 2)
        try channel.writeInbound(ByteBuffer(bytes: [7]))
        #expect(frames == [frame] && heard == 3)
        _ = try channel.finish()
    }
}
