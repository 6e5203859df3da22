import Access
import ChannelTypes
import JSON
import MediaTypes
import Room
import RoomTestSupport
import Testing

/// Layers that are requested by a name: Sora's r0 to r2, or q, h and f as publishers name them. A request is by number, so that it
/// means the same whatever the sender calls its layers.
@Suite(.timeLimit(.minutes(1))) struct RequestedRIDTests {
    @Test func `both lists of names stand for the same three layers, and none for no video`() {
        let layers: [String: LayerChoice] = [
            "none": .nothing, "r0": .level(0), "r1": .level(1), "r2": .level(2), "q": .level(0), "h": .level(1),
            "f": .level(2),
        ]
        #expect(RequestedRID.allCases.count == layers.count)
        for (name, layer) in layers { #expect(RequestedRID(rawValue: name)?.layer == layer, "\(name)") }
        for name in ["", "Q", "r3", "r", "l", "full", "0"] { #expect(RequestedRID(rawValue: name) == nil) }
    }

    /// The layers of a sender, and the rank of each number among them.
    struct Sender: Sendable {
        let rids: [String]
        let ranks: [Int]
    }

    static let senders = [
        Sender(rids: ["r0", "r1", "r2"], ranks: [0, 1, 2]), Sender(rids: ["q", "h", "f"], ranks: [0, 1, 2]),
        // The order of the description says nothing.
        Sender(rids: ["f", "h", "q"], ranks: [0, 1, 2]),
        // Without the layer of a number its neighbour below plays, and the lowest one for a lower number.
        Sender(rids: ["q", "f"], ranks: [0, 0, 1]), Sender(rids: ["h", "f"], ranks: [0, 0, 1]),
        Sender(rids: ["q", "h"], ranks: [0, 1, 1]), Sender(rids: ["r1", "r2"], ranks: [0, 0, 1]),
        // Of other names the order is unknown, and the number is the rank.
        Sender(rids: ["low", "mid", "high"], ranks: [0, 1, 2]), Sender(rids: ["q", "r1", "f"], ranks: [0, 1, 2]),
    ]

    @Test(arguments: senders)
    func `a requested layer is the one of its number among those that the sender has`(sender: Sender) async throws {
        let bench = OperationBench()
        let publisher = try await bench.join("lobby", .sendonly, rids: sender.rids)
        let viewer = try await bench.join("lobby", .recvonly)
        let slot = try await bench.see(publisher, by: viewer, in: "x")
        for (name, number) in [("r0", 0), ("r2", 2), ("q", 0), ("f", 2), ("h", 1), ("r1", 1)] {
            let answer = await bench.perform(
                "RequestSimulcastRid",
                ["channel_id": "lobby", "receiver_connection_id": viewer.name, "rid": .string(name)]
            )
            #expect(answer.status == 200)
            await bench.directory.settle()
            let preference = await bench.plane.preferences[slot]
            #expect(preference?.cap == .level(sender.ranks[number]), "\(name) of \(sender.rids)")
        }
        await bench.directory.shutdown()
    }

    @Test func `a request for one sender changes that one's layer, for its receiver alone`() async throws {
        let bench = OperationBench()
        let senders = [
            try await bench.join("lobby", .sendonly, rids: ["q", "h", "f"]),
            try await bench.join("lobby", .sendonly, rids: ["r0", "r1", "r2"]),
        ]
        let viewers = [try await bench.join("lobby", .recvonly), try await bench.join("lobby", .recvonly)]
        var slots: [[TrackID]] = []
        for viewer in viewers {
            slots.append([
                try await bench.see(senders[0], by: viewer, in: "x"),
                try await bench.see(senders[1], by: viewer, in: "y"),
            ])
        }
        let caps = {
            await bench.directory.settle()
            let preferences = await bench.plane.preferences
            return slots.map { $0.map { preferences[$0]?.cap } }
        }
        #expect(await caps() == [[.richest, .richest], [.richest, .richest]])
        let request = { (sender: OperationBench.Member?, rid: String) in
            var arguments: [String: JSONValue] = [
                "channel_id": "lobby", "receiver_connection_id": viewers[0].name, "rid": .string(rid),
            ]
            arguments["sender_connection_id"] = sender?.name
            return await bench.perform("RequestSimulcastRid", arguments)
        }
        #expect(await request(senders[1], "h").status == 200)
        #expect(await caps() == [[.richest, .level(1)], [.richest, .richest]])
        #expect(await request(senders[0], "r0").status == 200)
        #expect(await caps() == [[.level(0), .level(1)], [.richest, .richest]])
        // One for all is not for those that have their own.
        #expect(await request(nil, "f").status == 200)
        #expect(await caps() == [[.level(0), .level(1)], [.richest, .richest]])
        #expect(await request(viewers[1], "f").error == "CONNECTION-NOT-FOUND")
        #expect(await request(senders[0], "l").error == "INVALID-PARAMETER")
        #expect(await caps() == [[.level(0), .level(1)], [.richest, .richest]])
        await bench.directory.shutdown()
    }
}
