import Access
import Base
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import MediaTypes
import NIOCore
import Room
import RoomTestSupport
import Testing

@testable import Signaling
@testable import Sora
@testable import Web

@Suite(.timeLimit(.minutes(10)))
struct RedirectionTests {
    @Test(arguments: [
        ("/whip/lobby", "/whip/lobby?redirected=1"), ("/whep/lobby?height=90", "/whep/lobby?height=90&redirected=1"),
        ("/whip/a%20b?auth_key=1-x", "/whip/a%20b?auth_key=1-x&redirected=1"),
    ])
    func `a newcomer over WHIP or WHEP is sent to the other node once`(path: String, target: String) async throws {
        let cluster = FakeOtherNodes()
        cluster.change { $0.redirects = [.newcomer: FakeOtherNodes.address] }
        try await SignalingBench(cluster: cluster).test { http in
            let offer = path.hasPrefix("/whip") ? Offers.publish : Offers.watch
            let response = try await http.post(path, offer)
            #expect(response.status == .temporaryRedirect && response.body.readableBytes == 0)
            #expect(response.headers[.location] == "https://b.example:8443\(target)")
            #expect(response.headers[.accessControlExposeHeaders]?.contains("Location") == true)
            #expect(try await http.post(target, offer).status == .created)
            #expect(cluster.asked == [.newcomer])
            #expect(try await http.send(.get, path).status == .noContent, "only newcomers are sent")
        }
    }

    @Test func `a client without a token is not sent anywhere`() async throws {
        let cluster = FakeOtherNodes()
        cluster.change { $0.redirects = [.newcomer: FakeOtherNodes.address] }
        let authorizer = try #require(StaticTokenAuthorizer(token: "0123456789abcdef"))
        try await SignalingBench(authorizer: authorizer, cluster: cluster).test { http in
            let refused = try await http.post("/whip/lobby", Offers.publish)
            #expect(refused.status == .unauthorized)
            #expect(try await http.post("/whip/lobby", Offers.publish, token: "0123456789abcdef").status.code == 307)
        }
    }

    @Test func `a draining node sends newcomers elsewhere, and refuses them without another node`() async throws {
        let cluster = FakeOtherNodes()
        let bench = try SignalingBench(cluster: cluster)
        try await bench.test { http in
            _ = try await http.publish()
            bench.directory.setDrainStage(.newChannels)
            cluster.change { $0.redirects = [.draining: FakeOtherNodes.address] }
            #expect(try await http.post("/whip/other", Offers.publish).status == .temporaryRedirect)
            #expect(try await http.post("/whep/lobby", Offers.watch).status == .created)
            bench.directory.setDrainStage(.newcomers)
            #expect(try await http.post("/whep/lobby", Offers.watch).status == .temporaryRedirect)
            let refused = try await http.post("/whep/lobby?redirected=1", Offers.watch)
            #expect(refused.status == .serviceUnavailable && refused.headers[.retryAfter] == "5")
            cluster.change { $0.redirects = [:] }
            #expect(try await http.post("/whep/lobby", Offers.watch).status == .serviceUnavailable)
            bench.directory.setDrainStage(.none)
            await bench.directory.setMode(.blockNewSessions)
            #expect(try await http.post("/whip/other", Offers.publish).status == .serviceUnavailable)
            #expect(cluster.asked == [.newcomer, .draining, .newcomer, .draining, .draining, .draining])
        }
    }

    @Test func `more newcomers than the node serves are asked to return apart`() async throws {
        let clock = TestClock()
        let bench = try SignalingBench(cluster: FakeOtherNodes(), now: { clock.now })
        let burst = Int(JoinLimiter.perLoop * JoinLimiter.share)
        try await bench.test { http in
            for _ in 0..<burst {
                _ = try await http.watch()
                #expect(try await http.post("/whep/lobby", "none").status == .badRequest, "no newcomer")
            }
            let refused = try await http.post("/whep/lobby", Offers.watch)
            #expect(refused.status == .serviceUnavailable)
            #expect((1...5).contains(try #require(refused.headers[.retryAfter].flatMap { Int($0) })))
            bench.directory.setDrainStage(.newcomers)
            let draining = try await http.post("/whep/lobby", Offers.watch)
            #expect(draining.text.contains("about to stop"), "the rooms say why")
            bench.directory.setDrainStage(.none)
            clock.advance(seconds: 1)
            _ = try await http.watch()
        }
        #expect(bench.statistics.counts.refusals[.joinRate] == 1)
    }

    // MARK: Sora

    @Test func `a Sora client is sent to the other node, and stays when it comes from one`() async throws {
        let cluster = FakeOtherNodes()
        cluster.change { $0.redirects = [.newcomer: FakeOtherNodes.address] }
        try await withLiveServer(cluster: cluster) { _, port, _ in
            try await withWebSocket(to: port) { client, input in
                try await client.send(SoraBench.connect())
                let message = try await input.message("redirect")
                #expect(message == ["type": "redirect", "location": "wss://b.example:8443/signaling"])
                #expect(try await input.close() == WebSocketClose(1000, "REDIRECTED"))
            }
            try await withWebSocket(to: port) { client, input in
                try await client.send(SoraBench.connect(.sendrecv, #""redirect":true"#))
                _ = try await input.message("offer")
            }
        }
        #expect(cluster.asked == [.newcomer])
    }

    @Test func `a Sora client is sent to the other node while too many join, else closed`() async throws {
        let clock = TestClock()
        let now: @Sendable () -> Instant = { clock.now }
        let cluster = FakeOtherNodes()
        try await withLiveServer(cluster: cluster, now: now) { bench, port, _ in
            try await bench.test { http in
                for _ in 0..<Int(JoinLimiter.perLoop * JoinLimiter.share) { _ = try await http.watch() }
            }
            try await withWebSocket(to: port) { client, input in
                try await client.send(SoraBench.connect())
                #expect(try await input.close() == WebSocketClose(1013, "TRY-AGAIN-LATER"))
            }
            cluster.change { $0.redirects = [.overloaded: FakeOtherNodes.address] }
            try await withWebSocket(to: port) { client, input in
                try await client.send(SoraBench.connect())
                #expect(try await input.message("redirect")["location"] == "wss://b.example:8443/signaling")
            }
            try await withWebSocket(to: port) { client, input in
                try await client.send(SoraBench.connect(.sendrecv, #""redirect":true"#))
                #expect(try await input.close() == WebSocketClose(1013, "TRY-AGAIN-LATER"))
            }
        }
    }

    @Test func `an overloaded node closes with a code to try again later`() throws {
        var bench = SoraBench()
        bench.receive(SoraBench.connect())
        bench.take(bench.state.overloaded())
        #expect(bench.close == .overloaded && bench.left == .rejected("TRY-AGAIN-LATER"))
        bench.take(bench.state.redirected(to: FakeOtherNodes.address))
        #expect(bench.sent.isEmpty, "it has ended")
    }

    @Test(
        arguments: [
            ("https://b.example:8443", "wss://b.example:8443"), ("http://[::1]:80/", "ws://[::1]:80"),
            ("ftp://b", nil), ("https://", nil), ("https://b/c", nil), ("https://b?c", nil), ("https://a b", nil),
            ("https://:1", nil), ("https://\(String(repeating: "x", count: 250))", nil), ("", nil),
            ("https://u@b", nil), ("https://b\r\nX: y", nil),
        ] as [(String, String?)]
    )
    func `an address has a scheme, a host and a port`(text: String, webSocket: String?) {
        #expect(NodeAddress(text)?.webSocketURL == webSocket)
    }

    @Test func `the page may connect to the other nodes`() async throws {
        try await SignalingBench(cluster: FakeOtherNodes()).test { http in
            let policy = try await http.send(.get, "/").headers[.contentSecurityPolicy]
            #expect(policy?.contains("connect-src 'self' wss://b.example:8443;") == true)
        }
    }
}
