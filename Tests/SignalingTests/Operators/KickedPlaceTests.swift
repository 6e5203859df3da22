import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import MediaTypes
import NIOCore
import Room
import RoomTestSupport
import TestSupport
import Testing

@testable import Operators
@testable import Web

/// An operator's kick of a member whose place is kept, with the member and the operator on real sockets.
@Suite(.timeLimit(.minutes(10)))
struct KickedPlaceTests {
    private static func connect(_ options: String) -> String {
        SoraBench.connect(.sendrecv, #""client_id":"alice","nagare":\#(options)"#)
    }

    /// Joins, and loses the WebSocket.
    /// - Returns: the token with which the member takes its place again.
    private static func interrupted(_ bench: SignalingBench, _ port: Int) async throws -> String {
        try await withWebSocket(to: port) { client, input in
            try await client.send(Self.connect("{}"))
            let offer = try await input.message("offer")
            let own = offer["mid"]?.object?.values.compactMap(\.string) ?? []
            let sdp = SDPAnswer.make(to: try #require(offer["sdp"]?.string), own: own)
            try await client.send(JSONValue.object(["type": "answer", "sdp": .string(sdp)]).text)
            try await eventually("the plane has the peer") { await bench.plane.peers[PeerID(rawValue: 1)] != nil }
            await bench.plane.report(.connected(over: .udp), from: PeerID(rawValue: 1))
            let joined = try await input.event("channel.joined")
            return try #require(joined["resume_token"]?.string)
        }
    }

    @Test func `a member that was kicked while it was interrupted is refused when it resumes`() async throws {
        // Longer than the test on any machine.
        let limits = RoomLimits(resumeGrace: .seconds(3600))
        try await withLiveServer(limits: limits) { bench, port, _ in
            let api = AdminAPI(
                directory: bench.directory,
                statistics: SignalingStatistics(),
                clientStatistics: ClientStatistics(),
                relayCalls: bench.relayCalls
            )
            let server = AdminServer(
                host: "127.0.0.1",
                port: 0,
                api: api,
                token: nil,
                logger: SignalingBench.quiet,
                metrics: { "" },
                whyNotReady: { nil }
            )
            let token = try await Self.interrupted(bench, port)
            let room = try #require(ChannelName("room"))
            try await eventually("the member is interrupted") {
                await bench.directory.places(in: room).first?.state == .interrupted
            }
            try await server.testable.test(.live) { operators in
                let path = "/v1/channels/room/members/alice"
                let member = try await operators.execute(uri: path, method: .get)
                let connection = try JSONValue(parsing: member.text)["connections"]?.array?.first
                #expect(connection?["state"] == "interrupted")
                let kicked = try await operators.execute(uri: "\(path)/kick", method: .post)
                #expect(try JSONValue(parsing: kicked.text) == ["ended": 1])
            }
            let close = try await withWebSocket(to: port) { client, input in
                try await client.send(Self.connect(#"{"resume":"\#(token)"}"#))
                return try await input.close()
            }
            #expect(close == WebSocketClose(4490, "KICKED"))
            // A kick is no ban: the user joins again without the token.
            try await withWebSocket(to: port) { client, input in
                try await client.send(Self.connect("{}"))
                _ = try await input.message("offer")
            }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
        }
    }
}
