import Base
import MediaTypes
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import ChannelTypes
@testable import Cluster
@testable import Room

@Suite(.timeLimit(.minutes(10)))
struct ClusterChannelsTests {
    private static let channel = ChannelName("lobby")!

    private func join(
        _ role: Role,
        at node: TestNodes.Node,
        as client: String? = nil,
        in channel: ChannelName = channel
    ) async throws(RoomError) -> ChannelDirectory.Reservation {
        var request = JoinRequest(channel: channel, role: role, following: .currentPublisher)
        request.clientID = client
        return try await node.rooms.reserve(request)
    }

    /// A client that looks at the channel first, as all signaling does, and is connected then.
    private func stay(_ role: Role, at node: TestNodes.Node) async throws -> ChannelDirectory.Reservation {
        let prospect = await node.rooms.joinContext(of: Self.channel)
        let reservation = try await join(role, at: node)
        #expect(reservation.channelSession == prospect.session)
        _ = try await node.rooms.activate(
            reservation,
            remote: RemoteTransport(
                credentials: ICECredentials(usernameFragment: "remote", password: String(repeating: "p", count: 22))!,
                fingerprints: [Fingerprint(algorithm: .sha256, digest: Array(repeating: 1, count: 32))!],
                localRole: .server
            ),
            firstMediaKind: .video,
            mids: []
        )
        await node.plane.report(.connected(over: .udp), from: reservation.peer)
        await node.rooms.takeEvents()
        return reservation
    }

    private func count(at node: TestNodes.Node, in channel: ChannelName = channel) async -> Int {
        await node.rooms.joinContext(of: channel).members
    }

    /// A message of a node about a channel, with as many bytes in all.
    private func message(from node: TestNodes.Node, bytes: Int) -> [UInt8] {
        var generator = SeededGenerator(seed: 1)
        let header = ChannelMessage.data(
            Self.channel,
            sender: ParticipantID(using: &generator),
            label: "#a",
            isText: false
        )
        .encoded()
        return header + [UInt8](repeating: 0, count: bytes - header.count)
    }

    @Test func `a newcomer knows the members of other nodes and their session before it joins`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        let first = try await join(.sendonly, at: a)
        let context = await b.rooms.joinContext(of: Self.channel)
        #expect(context.session == first.channelSession)
        #expect(context.members == 1)
        let second = try await join(.recvonly, at: b)
        #expect(second.channelSession == first.channelSession)
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
        #expect(nodes.attaches == 2)
    }

    @Test func `a channel that nobody uses leaves the directory after a while`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        let (first, second) = (try await join(.sendonly, at: a), try await join(.recvonly, at: b))
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
        await a.rooms.cancel(first)
        try await eventually("b counts 1 member") { await count(at: b) == 1 }
        #expect(nodes.rooms.count == 1)
        let again = try await join(.sendonly, at: a)
        #expect(again.channelSession == second.channelSession)
        #expect(nodes.attaches == 2, "the channel was not given up yet")
        try await eventually("b counts 2 members") { await count(at: b) == 2 }
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
    }

    @Test func `a session is reported once when its node looked at the channel before`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        let first = try await stay(.sendonly, at: a)
        #expect(nodes.attaches == 1, "the look-up is known")
        let second = try await stay(.recvonly, at: b)
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
        #expect(a.reports.all == ["created \(first.channelSession)"] && b.reports.all == [])
        await a.rooms.end(first.participant, reason: .left)
        try await eventually("b counts 1 member") { await count(at: b) == 1 }
        await b.rooms.end(second.participant, reason: .left)
        #expect(b.reports.all == ["destroyed \(first.channelSession)"])
    }

    @Test(arguments: [false, true])
    func `a channel that is joined again at once has a new session`(_ isWatched: Bool) async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        if isWatched { _ = try await b.rooms.listen(to: Self.channel) }
        var sessions: [ChannelSessionID] = []
        for _ in 0..<3 {
            let publisher = try await stay(.sendonly, at: a)
            sessions.append(publisher.channelSession)
            if isWatched { try await eventually("b counts 1 member") { await count(at: b) == 1 } }
            await a.rooms.end(publisher.participant, reason: .left)
            if isWatched { try await eventually("b counts 0 members") { await count(at: b) == 0 } }
        }
        #expect(Set(sessions).count == 3)
        #expect(a.reports.all == sessions.flatMap { ["created \($0)", "destroyed \($0)"] })
        if !isWatched { try await eventually("the directory is empty") { nodes.rooms.isEmpty } }
    }

    @Test func `a newcomer does not wait for a node that only looked at the channel`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        let prospect = await a.rooms.joinContext(of: Self.channel)
        // Both take the session that the directory lists: they begin at the same time.
        #expect(await b.rooms.joinContext(of: Self.channel).session == prospect.session)
        let first = try await join(.sendonly, at: b)
        let second = try await join(.sendonly, at: a)
        #expect(first.channelSession == prospect.session && second.channelSession == prospect.session)
        #expect(nodes.attaches == 2)
    }

    @Test func `without the store, nodes ask each other`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        nodes.setStore(isUp: false)
        let first = try await join(.sendonly, at: a)
        let second = try await join(.recvonly, at: b)
        try await eventually("both nodes have the same session") {
            await a.rooms.channelSession(of: Self.channel) == b.rooms.channelSession(of: Self.channel)
        }
        #expect(first.participant != second.participant)
        try await eventually("a counts 2 and b counts 2") {
            let counts = (await count(at: a), await count(at: b))
            return counts == (2, 2)
        }
    }

    @Test func `what two nodes changed while their link was cut is one afterwards`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        let first = try await join(.sendonly, at: a)
        _ = try await join(.recvonly, at: b)
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
        nodes.cut(a, b)
        await a.rooms.cancel(first)
        _ = try await join(.recvonly, at: a)
        _ = try await join(.recvonly, at: a)
        #expect(await count(at: b) == 2, "kept for a while")
        nodes.heal(a, b)
        try await eventually("b counts 3 members") { await count(at: b) == 3 }
        try await eventually("a counts 3 members") { await count(at: a) == 3 }
    }

    @Test func `the members of nodes that gave each other up return with the next link`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        _ = try await join(.sendonly, at: a)
        _ = try await join(.recvonly, at: b)
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
        nodes.cut(a, b)
        a.cluster.gaveUp(b.id)
        b.cluster.gaveUp(a.id)
        try await eventually("a counts 1 and b counts 1") {
            let counts = (await count(at: a), await count(at: b))
            return counts == (1, 1)
        }
        // One of the two hears from the store that the other one is absent.
        a.cluster.absent(b.id)
        nodes.heal(a, b)
        try await eventually("a counts 2 and b counts 2") {
            let counts = (await count(at: a), await count(at: b))
            return counts == (2, 2)
        }
    }

    @Test func `a command that a node refuses is counted at both`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        let member = try await join(.sendonly, at: a)
        _ = try await join(.recvonly, at: b)
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
        // Its own members are not b's.
        let command = ChannelCommand.requestKeyFrames(of: member.participant)
        a.cluster.send(command, of: Self.channel, to: b.media)
        a.cluster.send(command, of: try #require(ChannelName("elsewhere")), to: b.media)
        try await eventually("a has both refusals") { a.cluster.counters.refusals == 2 }
        #expect(b.cluster.counters.commandsRefused == 2 && a.cluster.counters.commandsRefused == 0)
    }

    @Test func `the members of a node that stopped leave at once`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        _ = try await join(.sendonly, at: a)
        _ = try await join(.recvonly, at: b)
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
        nodes.cut(a, b)
        a.cluster.left(b.id)
        try await eventually("a counts 1 member") { await count(at: a) == 1 }
    }

    @Test func `the members of a node that stopped leave after what the node told before`() async throws {
        let nodes = TestNodes()
        let loop = HeldLoop()
        let (a, b) = (nodes.add("a", 1, loops: [loop]), nodes.add("b", 2))
        _ = try await join(.sendonly, at: a)
        _ = try await join(.recvonly, at: b)
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
        let received = a.cluster.counters.received
        loop.hold()
        for _ in 0..<3 { _ = try await join(.recvonly, at: b) }
        try await eventually("a has received the messages") { a.cluster.counters.received >= received + 3 }
        nodes.cut(a, b)
        a.cluster.left(b.id)
        loop.release()
        try await eventually("a has nothing to take") { a.cluster.isSettled }
        #expect(await count(at: a) == 1)
    }

    @Test func `a newcomer waits until its channel has taken the other nodes' news`() async throws {
        let nodes = TestNodes()
        let loops = [HeldLoop(), HeldLoop()]
        let (a, b) = (nodes.add("a", 1, loops: loops), nodes.add("b", 2))
        let names = (0..<100).compactMap { ChannelName("channel-\($0)") }
        let busy = try #require(names.first { ControlExecutors.index(of: $0, count: 2) == 0 })
        let other = try #require(names.first { ControlExecutors.index(of: $0, count: 2) == 1 })
        _ = try await join(.sendonly, at: a, in: busy)
        for channel in [busy, other] { _ = try await join(.recvonly, at: b, in: channel) }
        try await eventually("a counts 2 members") { await count(at: a, in: busy) == 2 }
        try await eventually("a has nothing to take") { a.cluster.isSettled }
        var received = a.cluster.counters.received
        loops[0].hold()
        _ = try await join(.recvonly, at: b, in: busy)
        try await eventually("a has received the message") { a.cluster.counters.received > received }
        received = a.cluster.counters.received
        async let members = count(at: a, in: other)
        try await eventually("a has received the message") { a.cluster.counters.received > received }
        loops[0].release()
        #expect(await members == 1)
    }

    @Test func `what found the inbox of its node full is told again`() async throws {
        let nodes = TestNodes()
        let loop = HeldLoop()
        let (a, b) = (nodes.add("a", 1, loops: [loop]), nodes.add("b", 2))
        _ = try await join(.sendonly, at: a)
        _ = try await join(.recvonly, at: b)
        try await eventually("a counts 2 members") { await count(at: a) == 2 }
        try await eventually("a has nothing to take") { a.cluster.isSettled }
        let received = a.cluster.counters.received
        loop.hold()
        for _ in 0..<4 { a.cluster.received(message(from: b, bytes: 16 << 20), from: b.id) }
        _ = try await join(.recvonly, at: b)
        try await eventually("a has received the messages") { a.cluster.counters.received > received + 4 }
        #expect(a.cluster.counters.overflows >= 1)
        loop.release()
        try await eventually("a counts 3 members") { await count(at: a) == 3 }
    }

    @Test func `as many channels are looked up as may be`() async throws {
        let nodes = TestNodes()
        let a = nodes.add("a", 1, limits: RoomLimits(channelsMax: 2))
        for number in 0..<6 {
            let channel = try #require(ChannelName("channel-\(number)"))
            #expect(await count(at: a, in: channel) == 0)
        }
        #expect(a.cluster.channelCount == 4 && nodes.attaches == 4 && a.cluster.counters.refused == 2)
    }

    @Test func `a node that only others wanted is not released for the channels`() throws {
        let (own, other) = (NodeID(rawValue: "a")!, NodeID(rawValue: "b")!)
        var replicas = ChannelReplicas(own: own)
        _ = replicas.linkUp(other, media: try #require(NodeIncarnation(rawValue: 2)))
        #expect(replicas.left(other).isEmpty)
    }

    @Test func `a store that names nodes without end fills no memory, and made-up ones are forgotten`() throws {
        let now = Instant(nanoseconds: 0)
        var replicas = ChannelReplicas(own: NodeID(rawValue: "a")!)
        let channels = try (0..<3).map { try #require(ChannelName("channel-\($0)")) }
        let session = try #require(RoomSession(rawValue: "s"))
        for (number, channel) in channels.enumerated() {
            _ = replicas.open(channel, session, at: now)
            let names = (0..<500).compactMap { NodeID(rawValue: "made-up-\(number)-\($0)") }
            _ = replicas.found(channel, session: session, nodes: names, at: now)
        }
        let named = channels.map { replicas.hostingNodes(of: $0).count - 1 }
        #expect(named == [500, 500, ChannelReplicas.neighboursMax - 1_000])
        var generator = SeededGenerator(seed: 1)
        let ended = ChannelSession(id: ChannelSessionID(using: &generator), channel: channels[0], createdAt: 1)
        _ = replicas.close(channels[0], ended: ended, at: now)
        let other = try #require(NodeID(rawValue: "b"))
        let actions = replicas.found(channels[1], session: nil, nodes: [other], at: now)
        #expect(actions == [.want(other)])
    }

    @Test func `bytes that are no message are counted and do nothing`() async throws {
        let nodes = TestNodes()
        let a = nodes.add("a", 1)
        let junk: [[UInt8]] = [
            [], [0, 0, 0], [0, 0, 0, 9, 1], [0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 2] + Array("{}".utf8),
            [0, 0, 0, 11] + Array("{\"news\":{}}".utf8),
        ]
        for bytes in junk { a.cluster.received(bytes, from: NodeID(rawValue: "b")!) }
        #expect(a.cluster.counters.malformed == UInt64(junk.count))
    }
}
