import MediaTypes
import Room
import RoomTestSupport
import TestSupport
import Testing
import Wire

@testable import Cluster

@Suite(.timeLimit(.minutes(30)))
struct ClusterRoomsTests {
    private static let channel = ChannelName("lobby")!

    private func join(
        _ role: Role,
        at node: TestNodes.Node,
        as client: String? = nil
    ) async throws(RoomError) -> Rooms.Reservation {
        var request = JoinRequest(channel: Self.channel, role: role, following: .currentPublisher)
        request.clientID = client
        return try await node.rooms.reserve(request)
    }

    /// Waits until something holds, which other threads bring about; at most until the suite's time limit.
    private func wait(until condition: () async -> Bool) async {
        while await !condition() { await Task.yield() }
    }

    private func count(at node: TestNodes.Node) async -> Int {
        await node.rooms.joinContext(of: Self.channel).members
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
        await wait { await count(at: a) == 2 }
        #expect(nodes.attaches == 2)
    }

    @Test func `a channel that nobody uses leaves the directory after a while`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        let (first, second) = (try await join(.sendonly, at: a), try await join(.recvonly, at: b))
        await wait { await count(at: a) == 2 }
        await a.rooms.cancel(first)
        await wait { await count(at: b) == 1 }
        #expect(nodes.rooms.count == 1)
        let again = try await join(.sendonly, at: a)
        #expect(again.channelSession == second.channelSession)
        #expect(nodes.attaches == 2, "the channel was not given up yet")
        await wait { await count(at: b) == 2 }
        await wait { await count(at: a) == 2 }
    }

    @Test func `without the store, nodes ask each other`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        nodes.setStore(isUp: false)
        let first = try await join(.sendonly, at: a)
        let second = try await join(.recvonly, at: b)
        await wait {
            await a.rooms.channelSession(of: Self.channel) == b.rooms.channelSession(of: Self.channel)
        }
        #expect(first.participant != second.participant)
        await wait {
            let counts = (await count(at: a), await count(at: b))
            return counts == (2, 2)
        }
    }

    @Test func `what two nodes changed while their link was cut is one afterwards`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        let first = try await join(.sendonly, at: a)
        _ = try await join(.recvonly, at: b)
        await wait { await count(at: a) == 2 }
        nodes.cut(a, b)
        await a.rooms.cancel(first)
        _ = try await join(.recvonly, at: a)
        _ = try await join(.recvonly, at: a)
        #expect(await count(at: b) == 2, "kept for a while")
        nodes.heal(a, b)
        await wait { await count(at: b) == 3 }
        await wait { await count(at: a) == 3 }
    }

    @Test func `the members of nodes that gave each other up return with the next link`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        _ = try await join(.sendonly, at: a)
        _ = try await join(.recvonly, at: b)
        await wait { await count(at: a) == 2 }
        nodes.cut(a, b)
        a.cluster.gaveUp(b.id)
        b.cluster.gaveUp(a.id)
        await wait {
            let counts = (await count(at: a), await count(at: b))
            return counts == (1, 1)
        }
        // One of the two hears from the store that the other one is absent.
        a.cluster.absent(b.id)
        nodes.heal(a, b)
        await wait {
            let counts = (await count(at: a), await count(at: b))
            return counts == (2, 2)
        }
    }

    @Test func `the members of a node that stopped leave at once`() async throws {
        let nodes = TestNodes()
        let (a, b) = (nodes.add("a", 1), nodes.add("b", 2))
        _ = try await join(.sendonly, at: a)
        _ = try await join(.recvonly, at: b)
        await wait { await count(at: a) == 2 }
        nodes.cut(a, b)
        a.cluster.left(b.id)
        await wait { await count(at: a) == 1 }
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

    @Test func `a message is decoded as it was encoded`() throws {
        var generator = SeededGenerator(seed: 1)
        let id = ParticipantID(using: &generator)
        let messages: [(ChannelMessage, [UInt8])] = [
            (.gone(Self.channel), []), (.want(Self.channel), []), (.keep([Self.channel]), []),
            (.request(Self.channel, .end(id, .kicked)), []),
            (.news(Self.channel, .labels(["#a"])), []),
            (.data(Self.channel, sender: id, label: "#a", isText: true), [1, 2, 3]),
        ]
        for (message, attachment) in messages {
            let decoded = try #require(ChannelMessage.decode(message.encoded(with: attachment)))
            #expect(decoded.message == message && decoded.attachment == attachment)
        }
    }
}
