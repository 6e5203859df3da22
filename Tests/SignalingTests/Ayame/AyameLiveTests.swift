import Access
import Hummingbird
import JSON
import NIOWebSocket
import Room
import ServiceLifecycle
import Testing

@testable import Signaling

/// The 1:1 relay over real sockets.
@Suite(.timeLimit(.minutes(30)))
struct AyameLiveTests {
    private static let register = #"{"type":"register","roomId":"call","clientId":"a","key":"secret"}"#

    /// Two clients in a room, the second of which calls.
    @concurrent private static func call(
        to port: Int,
        _ body:
            @concurrent (WebSocketTestClient, inout WebSocketTestInput, WebSocketTestClient, inout WebSocketTestInput)
            async throws -> Void
    ) async throws {
        try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
            try await alice.send(#"{"type":"register","roomId":"call"}"#)
            let first = try await aliceInput.message("accept")
            #expect(first["isExistClient"] == false && first["isExistUser"] == false)
            var input = aliceInput
            try await withWebSocket(to: port, path: "/relay") { bob, bobInput in
                try await bob.send(#"{"type":"register","roomId":"call"}"#)
                let second = try await bobInput.message("accept")
                #expect(second["isExistClient"] == true && second["isExistUser"] == true)
                #expect(second["connectionId"]?.string?.count == 26 && second["connectionId"] != first["connectionId"])
                #expect(second["iceServers"] == nil && second["authzMetadata"] == nil)
                try await body(alice, &input, bob, &bobInput)
            }
        }
    }

    @Test func `offer, answer and candidates pass unchanged, and a bye ends the call`() async throws {
        try await withLiveServer { bench, port, _ in
            try await Self.call(to: port) { alice, aliceInput, bob, bobInput in
                let offer = #"{"sdp":"v=0\r\n","type":"offer","x":{"y":[1, 2]}}"#
                try await bob.send(offer)
                let received = try #require(try await aliceInput.frame())
                #expect(String(buffer: received.unmaskedData) == offer)
                try await alice.send(#"{"type":"candidate","ice":{"candidate":"c","sdpMid":"0","sdpMLineIndex":0}}"#)
                try await alice.send(#"{"type":"answer","sdp":"v=0"}"#)
                #expect(try await bobInput.message("candidate")["ice"]?["sdpMid"] == "0", "it may overtake the answer")
                #expect(try await bobInput.message("answer")["sdp"] == "v=0")
                try await withWebSocket(to: port, path: "/relay") { carol, carolInput in
                    try await carol.send(Self.register)
                    #expect(try await carolInput.message("reject")["reason"] == "full")
                    #expect(try await carolInput.close()?.code == 1000)
                }
                try await bob.send(#"{"type":"bye"}"#)
                #expect(try await bobInput.close()?.code == 1000)
                _ = try await aliceInput.message("bye")
                #expect(try await aliceInput.close()?.code == 1000)
            }
            let counts = bench.statistics.counts
            #expect(counts.relayRegistrations == [.accepted: 2, .full: 1] && counts.relayedMessages == 3)
        }
    }

    @Test func `a node with a token rejects clients without it`() async throws {
        let authorizer = try #require(StaticTokenAuthorizer(token: "secret"))
        try await withLiveServer(authorizer: authorizer) { bench, port, _ in
            for (key, isIn) in [(#","key":"wrong""#, false), ("", false), (#","key":"secret""#, true)] {
                try await withWebSocket(to: port, path: "/relay") { client, input in
                    try await client.send(#"{"type":"register","roomId":"call"\#(key)}"#)
                    let answer = try await input.message("accept", "reject")
                    #expect((answer["type"] == "accept") == isIn, "\(key)")
                }
            }
            try await withWebSocket(to: port, path: "/relay") { client, input in
                try await client.send(
                    #"{"type":"register","roomId":"other","authnMetadata":{"access_token":"secret"}}"#
                )
                _ = try await input.message("accept")
            }
            #expect(bench.statistics.counts.relayRegistrations[.rejected] == 2)
        }
    }

    @Test func `the operator's server admits, rejects with its reason, and learns of leaves`() async throws {
        let server = HookServer { _, seen in
            let name = seen.body["clientId"]?.string ?? ""
            let answers = [
                "good": #"{"allowed":true,"iceServers":[{"urls":["stun:stun.example"]}],"authzMetadata":{"a":1}}"#,
                "bad": #"{"allowed":false,"reason":"NO-MONEY"}"#, "odd": #"{"allowed":"yes"}"#,
                "silent": #"{"allowed":false}"#,
            ]
            return Response(status: .ok, body: .init(byteBuffer: .init(string: answers[name] ?? "nonsense")))
        }
        try await server.run { url, seen in
            var ayame = AyameConfiguration()
            ayame.authenticationURL = url
            ayame.disconnectURL = url
            let client = try WebhookClient(WebhookConfiguration())
            try await withLiveServer(ayame: ayame, webhookClient: client) { _, port, _ in
                let answers = [
                    "bad": "NO-MONEY", "odd": AyameSession.internalError, "silent": AyameSession.internalError,
                    "none": AyameSession.internalError,
                ]
                for (name, reason) in answers {
                    try await withWebSocket(to: port, path: "/relay") { client, input in
                        try await client.send(#"{"type":"register","roomId":"call","clientId":"\#(name)"}"#)
                        #expect(try await input.message("reject")["reason"] == .string(reason), "\(name)")
                    }
                }
                let before = seen().count
                #expect(before == answers.count, "only a registration that was accepted is reported as ended")
                let id = try await withWebSocket(to: port, path: "/relay") { client, input in
                    try await client.send(
                        #"{"type":"register","roomId":"call","clientId":"good","key":"k","authnMetadata":[1]}"#
                    )
                    let accept = try await input.message("accept")
                    #expect(accept["iceServers"]?.array?.first?["urls"] == ["stun:stun.example"])
                    #expect(accept["authzMetadata"] == ["a": 1])
                    return accept["connectionId"]
                }
                while seen().count < before + 2 { await Task.yield() }
                let asked = seen()[before].body
                #expect(asked["roomId"] == "call" && asked["signalingKey"] == "k" && asked["authnMetadata"] == [1])
                #expect(asked["connectionId"] == id)
                let left = seen()[before + 1].body
                #expect(left == .object(["roomId": "call", "clientId": "good", "connectionId": try #require(id)]))
            }
            await client.shutdown()
        }
    }

    @Test func `a node's TURN servers go to clients`() async throws {
        var sora = SoraConfiguration()
        sora.turn = SoraConfiguration.TURN(urls: ["turn:turn.example:3478"], username: "u", credential: "p")
        try await withLiveServer(sora: sora) { _, port, _ in
            try await withWebSocket(to: port, path: "/relay") { client, input in
                try await client.send(Self.register)
                let servers = try await input.message("accept")["iceServers"]
                #expect(servers == [["urls": ["turn:turn.example:3478"], "username": "u", "credential": "p"]])
            }
        }
    }

    @Test func `a plain request to the relay's path says what to do`() async throws {
        try await withLiveServer { _, port, _ in
            try await withConnection(to: port) { client, input in
                try await client.send("GET /relay HTTP/1.1\r\nHost: a\r\n\r\n")
                let answer = await input.readToEnd()
                #expect(answer.hasPrefix("HTTP/1.1 426") && answer.contains("WebSockets only"))
            }
        }
    }

    @Test func `a shutdown closes relay clients`() async throws {
        try await withLiveServer { _, port, group in
            try await withWebSocket(to: port, path: "/relay") { client, input in
                try await client.send(Self.register)
                _ = try await input.message("accept")
                await group.triggerGracefulShutdown()
                #expect(try await input.close() == WebSocketClose(1001, "SERVER-SHUTDOWN"))
            }
        }
    }
}
