import Access
import ChannelTypes
import Foundation
import Hummingbird
import JSON
import MediaTypes
import NIOWebSocket
import Room
import RoomTestSupport
import ServiceLifecycle
import TestSupport
import Testing
import Wire

@testable import Ayame
@testable import Sora
@testable import Web
@testable import Webhooks

/// The 1:1 relay over real sockets.
@Suite(.timeLimit(.minutes(10)))
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

    @Test(
        arguments: [
            (#"{"type":"bye"}"#, "LEFT"), ("nonsense", "INVALID-JSON"), (nil, "LEFT"),
        ] as [(String?, String)]
    )
    func `a direct call is reported, with the reason of its end`(last: String?, reason: String) async throws {
        let kept = KeptCallReports()
        try await withLiveServer(onCallReport: kept.add) { _, port, _ in
            try await Self.call(to: port) { _, aliceInput, bob, _ in
                if let last { try await bob.send(last) } else { try await bob.send(.connectionClose, []) }
                _ = try await aliceInput.message("bye")
            }
        }
        let events = kept.all.map(\.event)
        #expect(events.count == 6 && events.first == .opened && events.last == .closed)
        #expect(kept.all.compactMap(\.reason) == ["BYE", reason])
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

    @Test func `a draining node rejects clients in its second phase`() async throws {
        try await withLiveServer { bench, port, _ in
            for (stage, isIn) in [(DrainStage.newChannels, true), (.newcomers, false), (.none, true)] {
                bench.directory.setDrainStage(stage)
                try await withWebSocket(to: port, path: "/relay") { client, input in
                    try await client.send(#"{"type":"register","roomId":"\#(stage)"}"#)
                    let answer = try await input.message("accept", "reject")
                    #expect((answer["type"] == "accept") == isIn, "\(stage)")
                    #expect((answer["reason"] == "SERVER-SHUTDOWN") == !isIn, "\(stage)")
                }
            }
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
            let client = WebhookClient(WebhookConfiguration())
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
                try await eventually("the registration and its end were reported") { seen().count >= before + 2 }
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

    // MARK: Blocks and expiry

    @Test func `a banned user is rejected, and a ban ends its registration`() async throws {
        try await withLiveServer { bench, port, _ in
            try await Self.call(to: port) { alice, aliceInput, _, bobInput in
                let hall = try #require(ChannelName("call"))
                #expect(try await bench.directory.block(Block(.user("nobody"))).isEmpty)
                #expect(try await bench.directory.block(Block(.stream(hall))).count == 2)
                _ = try await aliceInput.message("bye")
                #expect(try await aliceInput.close() == WebSocketClose(1000, "STREAM-BLOCKED"))
                #expect(try await bobInput.close() == WebSocketClose(1000, "STREAM-BLOCKED"))
                try await withWebSocket(to: port, path: "/relay") { carol, carolInput in
                    try await carol.send(Self.register)
                    #expect(try await carolInput.message("reject")["reason"] == "STREAM-BLOCKED")
                }
                await bench.directory.liftBlock(of: .stream(hall))
            }
            try await withWebSocket(to: port, path: "/relay") { carol, carolInput in
                try await carol.send(Self.register)
                _ = try await carolInput.message("accept")
                #expect(try await bench.directory.block(Block(.user("a"))).count == 1)
                #expect(try await carolInput.close() == WebSocketClose(1000, "BANNED"))
            }
            try await withWebSocket(to: port, path: "/relay") { carol, carolInput in
                try await carol.send(Self.register)
                #expect(try await carolInput.message("reject")["reason"] == "BANNED")
            }
        }
    }

    @Test func `a kick ends a direct call for both, and the user may register again`() async throws {
        try await withLiveServer { bench, port, _ in
            let hall = try #require(ChannelName("call"))
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                try await alice.send(Self.register)
                _ = try await aliceInput.message("accept")
                try await withWebSocket(to: port, path: "/relay") { bob, bobInput in
                    try await bob.send(#"{"type":"register","roomId":"call","clientId":"b"}"#)
                    let id = try #require(try await bobInput.message("accept")["connectionId"]?.string)
                    #expect(await bench.directory.kick("b", from: hall).map(\.value) == [id])
                    _ = try await bobInput.message("bye")
                    #expect(try await bobInput.close() == WebSocketClose(1000, "KICKED"))
                }
                _ = try await aliceInput.message("bye")
                #expect(try await aliceInput.close() == WebSocketClose(1000, "BYE"))
            }
            try await withWebSocket(to: port, path: "/relay") { bob, bobInput in
                try await bob.send(#"{"type":"register","roomId":"call","clientId":"b"}"#)
                #expect(try await bobInput.message("accept")["isExistUser"] == false)
                #expect(await bench.directory.terminate(hall).count == 1)
                _ = try await bobInput.message("bye")
                #expect(try await bobInput.close() == WebSocketClose(1000, "CHANNEL-TERMINATED"))
            }
        }
    }

    /// Admits everybody as a client of the app that the key is.
    private struct AppAuthorizer: Authorizer {
        func authorize(
            _ action: AuthorizedAction,
            _ credential: Credential?,
            from network: ClientNetwork
        ) async -> Authorization { .allowed }
        func admit(_ request: AccessRequest) async -> AccessDecision {
            var grants = Grants()
            grants.app = request.presentedToken
            return .allowed(grants)
        }
    }

    @Test func `a client of another app is rejected from a room, and from that of an app's channel`() async throws {
        try await withLiveServer(authorizer: AppAuthorizer()) { bench, port, _ in
            let attempt = { @Sendable (key: String, room: String) in
                try await withWebSocket(to: port, path: "/relay") { client, input in
                    try await client.send(#"{"type":"register","roomId":"\#(room)","key":"\#(key)"}"#)
                    return try await input.message("accept", "reject")["reason"]?.string
                }
            }
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                try await alice.send(#"{"type":"register","roomId":"call","key":"one"}"#)
                _ = try await aliceInput.message("accept")
                #expect(try await attempt("two", "call") == "CHANNEL-OF-OTHER-APP")
                #expect(await bench.relayCalls.listing(of: try #require(ChannelName("call")))?.app == "one")
            }
            var request = JoinRequest(channel: try #require(ChannelName("hall")), role: .recvonly)
            request.app = "one"
            _ = try await bench.directory.reserve(request)
            #expect(try await attempt("two", "hall") == "CHANNEL-OF-OTHER-APP")
            #expect(try await attempt("one", "hall") == nil)
        }
    }

    /// Admits everybody under the name that the key is. The permission of `late` has expired.
    private struct NamingAuthorizer: Authorizer {
        func authorize(
            _ action: AuthorizedAction,
            _ credential: Credential?,
            from network: ClientNetwork
        ) async -> Authorization { .allowed }
        func admit(_ request: AccessRequest) async -> AccessDecision {
            var grants = Grants()
            grants.clientID = request.presentedToken
            let isLate = request.presentedToken == "late"
            grants.permissions.expiry = AccessExpiry(unixSeconds: isLate ? 1 : 9_000_000_000)
            return .allowed(grants)
        }
    }

    @Test func `an expired token ends the registration, and a ban is by the name that a token has`() async throws {
        try await withLiveServer(authorizer: NamingAuthorizer()) { bench, port, _ in
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                try await alice.send(#"{"type":"register","roomId":"call","clientId":"x","key":"alice"}"#)
                _ = try await aliceInput.message("accept")
                try await withWebSocket(to: port, path: "/relay") { bob, bobInput in
                    try await bob.send(#"{"type":"register","roomId":"call","clientId":"y","key":"late"}"#)
                    _ = try await bobInput.message("accept")
                    _ = try await bobInput.message("bye")
                    #expect(try await bobInput.close() == WebSocketClose(1000, "TOKEN-EXPIRED"))
                }
                _ = try await aliceInput.message("bye")
                #expect(try await aliceInput.close() == WebSocketClose(1000, "BYE"))
            }
            try await bench.directory.block(Block(.user("alice")))
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                try await alice.send(#"{"type":"register","roomId":"call","clientId":"x","key":"alice"}"#)
                #expect(try await aliceInput.message("reject")["reason"] == "BANNED")
            }
        }
    }

    /// Admits everybody until the time that the key is, in seconds since 1970, and renews for the same clients.
    private struct TimeAuthorizer: Authorizer {
        func authorize(
            _ action: AuthorizedAction,
            _ credential: Credential?,
            from network: ClientNetwork
        ) async -> Authorization { .allowed }
        func admit(_ request: AccessRequest) async -> AccessDecision { decision(request.presentedToken) }
        func refresh(_ request: RefreshRequest) async -> AccessDecision {
            guard request.user == UserIdentity("u", .authorized) else { return .denied(reason: "another user") }
            return decision(request.credential?.token ?? request.metadata?["access_token"]?.string)
        }
        private func decision(_ token: String?) -> AccessDecision {
            guard let end = token.flatMap({ Int64($0) }) else { return .denied(reason: "no time") }
            var grants = Grants()
            grants.clientID = "u"
            grants.permissions.expiry = AccessExpiry(unixSeconds: end)
            return .allowed(grants)
        }
    }

    @Test func `a new token extends a registration, which is warned before and after`() async throws {
        try await withLiveServer(authorizer: TimeAuthorizer()) { bench, port, _ in
            let soon = bench.directory.unixSeconds + 20
            try await withWebSocket(to: port, path: "/relay") { client, input in
                try await client.send(#"{"type":"register","roomId":"call","key":"\#(soon)","refresh":true}"#)
                _ = try await input.message("accept")
                #expect(try await input.message("expiring")["expiresAt"]?.integer == Int(soon))
                for (key, reason) in [("x", "no time"), ("\(soon)", "later"), ("5", "later")] {
                    try await client.send(#"{"type":"refresh","signalingKey":"\#(key)"}"#)
                    let refused = try await input.message("refreshed")
                    #expect(
                        refused["expiresAt"] == nil && refused["reason"]?.string?.contains(reason) == true,
                        "\(key)"
                    )
                }
                try await client.send(#"{"type":"refresh","authnMetadata":{"access_token":"\#(soon + 5)"}}"#)
                #expect(try await input.message("refreshed")["expiresAt"]?.integer == Int(soon) + 5)
                #expect(try await input.message("expiring")["expiresAt"]?.integer == Int(soon) + 5)
            }
        }
    }

    @Test func `the operator's server ends a registration when it likes, and is asked again before`() async throws {
        let server = HookServer { _, seen in
            let seconds: Int64 = seen.body["refresh"] == true ? 3_600 : 25
            let expiry = Int64(Date().timeIntervalSince1970) + seconds
            let end = seen.body["signalingKey"] == "never" ? "" : #","expiresAt":\#(expiry)"#
            return Response(status: .ok, body: .init(byteBuffer: .init(string: #"{"allowed":true\#(end)}"#)))
        }
        try await server.run { url, seen in
            var ayame = AyameConfiguration()
            ayame.authenticationURL = url
            let client = WebhookClient(WebhookConfiguration())
            try await withLiveServer(ayame: ayame, webhookClient: client) { _, port, _ in
                try await withWebSocket(to: port, path: "/relay") { client, input in
                    try await client.send(#"{"type":"register","roomId":"call","key":"k"}"#)
                    _ = try await input.message("accept")
                    try await eventually("the server is asked again") { seen().count == 2 }
                    #expect(seen()[1].body["refresh"] == true && seen()[1].body["signalingKey"] == "k")
                    // The permission ends an hour later, so a token with an earlier end is none.
                    try await eventually("the answer is in force") {
                        try await client.send(#"{"type":"refresh","signalingKey":"k"}"#)
                        return try await input.message("refreshed")["reason"]?.string?.contains("later") == true
                    }
                    try await client.send(#"{"type":"refresh","signalingKey":"never"}"#)
                    #expect(try await input.message("refreshed")["expiresAt"]?.isNull == true)
                }
            }
            await client.shutdown()
        }
    }

    // MARK: Media through the node

    /// Registers, offers and returns the answer.
    @concurrent private static func offer(
        _ client: WebSocketTestClient,
        _ input: inout WebSocketTestInput,
        _ members: String = "",
        direction: String = "sendrecv"
    ) async throws -> String {
        try await client.send(#"{"type":"register","roomId":"call"\#(members)}"#)
        let accept = try await input.message("accept")
        #expect(accept["media"] == "server" && accept["isExistClient"] == true && accept["isExistUser"] == true)
        try await client.send(
            JSONValue.object(["type": "offer", "sdp": .string(Offers.chromium(direction))]).text
        )
        try await client.send(#"{"type":"candidate","ice":{"candidate":"c","sdpMid":"0","sdpMLineIndex":0}}"#)
        return try #require(try await input.message("answer")["sdp"]?.string)
    }

    @Test func `the node answers both members, and each gets what the other sends`() async throws {
        var ayame = AyameConfiguration()
        ayame.media = .server
        try await withLiveServer(ayame: ayame) { bench, port, _ in
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                let answer = try await Self.offer(alice, &aliceInput)
                #expect(answer.contains("a=sendrecv") && answer.contains("a=ice-lite"))
                await bench.plane.report(.connected(over: .udp), from: PeerID(rawValue: 1))
                try await withWebSocket(to: port, path: "/relay") { bob, bobInput in
                    _ = try await Self.offer(bob, &bobInput)
                    await bench.plane.report(.connected(over: .udp), from: PeerID(rawValue: 2))
                    let (first, second) = (PeerID(rawValue: 1), PeerID(rawValue: 2))
                    try await eventually("both members get both tracks") { await bench.plane.sources.count >= 4 }
                    for mid in ["0", "1"].compactMap(MID.init) {
                        let sources = await bench.plane.sources
                        #expect(sources[TrackID(peer: first, mid: mid)]?.track == TrackID(peer: second, mid: mid))
                        #expect(sources[TrackID(peer: second, mid: mid)]?.track == TrackID(peer: first, mid: mid))
                    }
                    #expect(await bench.plane.peers.count == 2)
                    try await withWebSocket(to: port, path: "/relay") { carol, carolInput in
                        try await carol.send(Self.register)
                        #expect(try await carolInput.message("reject")["reason"] == "full")
                    }
                    try await bob.send(#"{"type":"bye"}"#)
                    #expect(try await bobInput.close()?.code == 1000)
                }
                _ = try await aliceInput.message("bye")
                #expect(try await aliceInput.close() == WebSocketClose(1000, "BYE"))
                try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
            }
        }
    }

    @Test func `an ICE restart and a change of directions are answered in place, and the other's media goes on`()
        async throws
    {
        var ayame = AyameConfiguration()
        ayame.media = .server
        try await withLiveServer(ayame: ayame) { bench, port, _ in
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                let first = try await Self.offer(alice, &aliceInput, #","clientId":"a""#)
                await bench.plane.report(.connected(over: .udp), from: PeerID(rawValue: 1))
                try await withWebSocket(to: port, path: "/relay") { bob, bobInput in
                    _ = try await Self.offer(bob, &bobInput)
                    await bench.plane.report(.connected(over: .udp), from: PeerID(rawValue: 2))
                    try await eventually("both members get both tracks") { await bench.plane.sources.count >= 4 }
                    let (connects, before) = (await bench.plane.connectCount, await bench.plane.peers)

                    let restart = Offers.chromium("sendrecv").replacing("EsAw", with: "NeWw")
                    let second = try await Self.offerAgain(alice, &aliceInput, restart)
                    let after = await bench.plane.peers
                    let (old, new) = (before[PeerID(rawValue: 1)], after[PeerID(rawValue: 1)])
                    #expect(new?.remote.credentials.usernameFragment == "NeWw" && new?.send == old?.send)
                    let fragment = try #require(new?.localCredentials.usernameFragment)
                    #expect(second.contains(fragment) && !first.contains(fragment))
                    let (other, untouched) = (before[PeerID(rawValue: 2)], after[PeerID(rawValue: 2)])
                    #expect(untouched?.localCredentials == other?.localCredentials && untouched?.send == other?.send)
                    #expect(await bench.plane.connectCount == connects, "nobody's media was connected anew")

                    let alone = restart.replacing("a=sendrecv", with: "a=sendonly")
                    #expect(try await Self.offerAgain(alice, &aliceInput, alone).contains("a=recvonly"))
                    try await eventually("one member's tracks are played") { await bench.plane.sources.count <= 2 }
                    #expect(await bench.plane.sources.keys.allSatisfy { $0.peer == PeerID(rawValue: 2) })
                    #expect(try await Self.offerAgain(alice, &aliceInput, restart).contains("a=sendrecv"))
                    try await eventually("both members get both tracks") { await bench.plane.sources.count >= 4 }

                    let quiet = restart.replacing("a=sendrecv", with: "a=recvonly")
                    _ = try await Self.offerAgain(alice, &aliceInput, quiet)
                    let hall = try #require(ChannelName("call"))
                    let muted = await bench.directory.connections(in: hall).first { $0.member.clientID == "a" }?.muted
                    #expect(muted == [.audio, .video])
                    #expect(await bench.plane.removed.isEmpty)
                }
            }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
        }
    }

    /// Offers in a call that was answered, and returns the answer.
    @concurrent private static func offerAgain(
        _ client: WebSocketTestClient,
        _ input: inout WebSocketTestInput,
        _ sdp: String
    ) async throws -> String {
        try await client.send(JSONValue.object(["type": "offer", "sdp": .string(sdp)]).text)
        return try #require(try await input.message("answer")["sdp"]?.string)
    }

    @Test func `a further offer that needs another transport ends the call with the reason`() async throws {
        var ayame = AyameConfiguration()
        ayame.media = .server
        try await withLiveServer(ayame: ayame) { bench, port, _ in
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                _ = try await Self.offer(alice, &aliceInput)
                let sdp = Offers.chromium("sendrecv").replacing("sha-256 7B:8B", with: "sha-256 8B:7B")
                try await alice.send(JSONValue.object(["type": "offer", "sdp": .string(sdp)]).text)
                let reason = try #require(try await aliceInput.message("reject")["reason"]?.string)
                #expect(reason.contains("register again"))
                #expect(try await aliceInput.close() == WebSocketClose(1000, "REJECTED"))
            }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
        }
    }

    @Test func `a client can ask for media through the node, and operators can end it`() async throws {
        try await withLiveServer { bench, port, _ in
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                _ = try await Self.offer(alice, &aliceInput, #","clientId":"a","media":"server""#)
                await bench.directory.kick("a", from: try #require(ChannelName("call")))
                _ = try await aliceInput.message("bye")
                #expect(try await aliceInput.close() == WebSocketClose(1000, "KICKED"))
            }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
        }
    }

    @Test func `a client whose socket ends takes its media with it, and an offer that cannot be answered is rejected`()
        async throws
    {
        var ayame = AyameConfiguration()
        ayame.media = .server
        try await withLiveServer(ayame: ayame) { bench, port, _ in
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                _ = try await Self.offer(alice, &aliceInput)
            }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                try await alice.send(#"{"type":"register","roomId":"call"}"#)
                _ = try await aliceInput.message("accept")
                try await alice.send(#"{"type":"offer","sdp":"nonsense"}"#)
                #expect(try await aliceInput.message("reject")["reason"]?.string?.isEmpty == false)
                #expect(try await aliceInput.close() == WebSocketClose(1000, "REJECTED"))
            }
            #expect(await bench.directory.isEmpty)
        }
    }

    @Test func `a standalone client's place lasts as long as its media`() async throws {
        var ayame = AyameConfiguration()
        ayame.media = .server
        try await withLiveServer(ayame: ayame) { bench, port, _ in
            try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                _ = try await Self.offer(alice, &aliceInput, #","standalone":true"#)
                await bench.plane.report(.connected(over: .udp), from: PeerID(rawValue: 1))
                try await alice.send(#"{"type":"connected"}"#)
                #expect(try await aliceInput.close() == WebSocketClose(1000, "CONNECTED"))
            }
            try await withWebSocket(to: port, path: "/relay") { bob, bobInput in
                _ = try await Self.offer(bob, &bobInput)
                try await withWebSocket(to: port, path: "/relay") { carol, carolInput in
                    try await carol.send(Self.register)
                    #expect(try await carolInput.message("reject")["reason"] == "full")
                }
                #expect(await bench.plane.peers.count == 2)
                await bench.plane.report(.closed(.consentExpired), from: PeerID(rawValue: 1))
                _ = try await bobInput.message("bye")
            }
            try await eventually("nobody is left in the rooms") { await bench.directory.isEmpty }
        }
    }

    @Test func `the operator's server decides on the path of the media`() async throws {
        let server = HookServer { _, seen in
            let media = seen.body["clientId"] == "b" ? "direct" : "server"
            let answer = #"{"allowed":true,"media":"\#(media)"}"#
            return Response(status: .ok, body: .init(byteBuffer: .init(string: answer)))
        }
        try await server.run { url, _ in
            var ayame = AyameConfiguration()
            ayame.authenticationURL = url
            let client = WebhookClient(WebhookConfiguration())
            try await withLiveServer(ayame: ayame, webhookClient: client) { _, port, _ in
                try await withWebSocket(to: port, path: "/relay") { alice, aliceInput in
                    _ = try await Self.offer(alice, &aliceInput)
                    try await withWebSocket(to: port, path: "/relay") { bob, bobInput in
                        try await bob.send(#"{"type":"register","roomId":"call","clientId":"b"}"#)
                        #expect(try await bobInput.message("reject")["reason"] == "OTHER-MEDIA")
                    }
                }
            }
            await client.shutdown()
        }
    }
}
