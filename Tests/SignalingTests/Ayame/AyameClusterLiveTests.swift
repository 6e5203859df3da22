import ChannelTypes
import JSON
import NIOWebSocket
import Room
import TestSupport
import Testing

@testable import Ayame
@testable import Web

/// The 1:1 relay over real sockets of two nodes.
@Suite(.timeLimit(.minutes(10)))
struct AyameClusterLiveTests {
    private static let register = #"{"type":"register","roomId":"call"}"#

    /// Two servers, the first of which has the room.
    @concurrent private static func run(
        _ body: @Sendable @concurrent (RelayNodes, (SignalingBench, Int), (SignalingBench, Int)) async throws -> Void
    ) async throws {
        let nodes = RelayNodes(open: ["a", "b"])
        try await withLiveServer(relayCluster: nodes.cluster(of: "a")) { a, aPort, _ in
            nodes.set(a.relayCalls, at: "a")
            nodes.refuse(at: "a") { [directory = a.directory] in directory.blockRefusal(of: $0, in: $1, as: .sendrecv) }
            try await withLiveServer(relayCluster: nodes.cluster(of: "b")) { b, bPort, _ in
                nodes.set(b.relayCalls, at: "b")
                nodes.refuse(at: "b") { [directory = b.directory] in
                    directory.blockRefusal(of: $0, in: $1, as: .sendrecv)
                }
                try await body(nodes, (a, aPort), (b, bPort))
            }
        }
    }

    @Test func `clients of two nodes call each other`() async throws {
        try await Self.run { nodes, a, b in
            try await withWebSocket(to: b.1, path: "/relay") { alice, aliceInput in
                var aliceInput = aliceInput
                try await alice.send(Self.register)
                #expect(try await aliceInput.message("accept")["isExistClient"] == false)
                try await withWebSocket(to: a.1, path: "/relay") { bob, bobInput in
                    try await bob.send(Self.register)
                    #expect(try await bobInput.message("accept")["isExistClient"] == true)
                    try await bob.send(#"{"type":"offer","sdp":"v=0"}"#)
                    #expect(try await aliceInput.message("offer")["sdp"] == "v=0")
                    try await alice.send(#"{"type":"answer","sdp":"v=1"}"#)
                    #expect(try await bobInput.message("answer")["sdp"] == "v=1")
                    await nodes.lose("a", "b")
                    _ = try await bobInput.message("bye")
                    #expect(try await bobInput.close()?.reason == "BYE")
                }
                _ = try await aliceInput.message("bye")
                #expect(try await aliceInput.close()?.reason == "NODE-LOST")
            }
            #expect(await a.0.relayCalls.rooms.count == 0)
            for bench in [a.0, b.0] { #expect(bench.statistics.counts.relayRegistrations == [.accepted: 1]) }
        }
    }

    @Test func `a client that leaves while the room answers does not stay in it`() async throws {
        try await Self.run { nodes, a, b in
            nodes.hold("a")
            try await withWebSocket(to: b.1, path: "/relay") { client, input in
                try await client.send(Self.register)
                try await eventually("the registration waits at a") { nodes.waiting(at: "a") > 0 }
                try await client.send(#"{"type":"bye"}"#)
                #expect(try await input.close()?.reason == "BYE")
            }
            try await eventually("two messages wait at a") { nodes.waiting(at: "a") >= 2 }
            nodes.resume("a")
            try await nodes.settle()
            #expect(await a.0.relayCalls.rooms.count == 0 && nodes.wanted == 0)
            #expect(b.0.statistics.counts.relayRegistrations.isEmpty)
        }
    }

    @Test func `texts from before and after the answer of the room arrive in their order`() async throws {
        try await Self.run { nodes, a, b in
            let alice = RelayClient("alice")
            #expect(try await alice.join(a.0.relayCalls) == .joined(.direct))
            nodes.hold("a")
            let texts = (0..<40).map { #"{"type":"offer","sdp":"\#($0)"}"# }
            try await withWebSocket(to: b.1, path: "/relay") { client, _ in
                try await client.send(Self.register)
                try await eventually("the registration waits at a") { nodes.waiting(at: "a") > 0 }
                for text in texts.prefix(20) { try await client.send(text) }
                nodes.resume("a")
                for text in texts.suffix(20) { try await client.send(text) }
                #expect(try await alice.awaits(41) == ["accept false"] + texts)
            }
        }
    }

    @Test func `a block at the room's node ends a guest, and refuses it from then on`() async throws {
        try await Self.run { nodes, a, b in
            let client = RelayClient("alice")
            #expect(try await client.join(b.0.relayCalls) == .joined(.direct))
            let ended = try await a.0.directory.block(Block(.user("alice"))).map(\.value)
            #expect(ended == [client.id])
            #expect(try await client.awaits(3) == ["accept false", AyameServerMessage.bye, "close BANNED"])
            let refused = AyameRefusal(.banned(untilUnixSeconds: nil))
            #expect(try await client.join(b.0.relayCalls) == .rejected(refused))
            try await nodes.settle()
            #expect(await a.0.relayCalls.rooms.count == 0 && nodes.wanted == 0)
        }
    }

    @Test func `operators find and end a room of another node`() async throws {
        try await Self.run { _, a, b in
            let client = RelayClient("alice")
            #expect(try await client.join(a.0.relayCalls) == .joined(.direct))
            let room = try #require(ChannelName("call"))
            #expect(await b.0.relayCalls.listing(of: room)?.registrations.map(\.connectionID) == [client.id])
            // The observers of decisions are those of the public listener.
            #expect(await b.0.directory.kick("alice", from: room).isEmpty)
            #expect(try await client.awaits(3) == ["accept false", AyameServerMessage.bye, "close KICKED"])
            try await eventually("the room is gone") { await b.0.relayCalls.listing(of: room) == nil }
        }
    }
}
