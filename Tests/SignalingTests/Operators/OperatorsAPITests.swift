import Access
import Base
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import MediaTypes
import Room
import RoomTestSupport
import Testing

@testable import Operators
@testable import Web
@testable import Webhooks

@Suite struct OperatorsAPITests {
    // MARK: Channels and members

    @Test func `channels and members are listed and looked up`() async throws {
        try await OperatorsBench.run { bench in
            #expect(try await bench.call(.get, "/v1/channels") == ["channels": []])
            let session = try await bench.publish(as: "alice")
            let list = try await bench.call(.get, "/v1/channels")
            let channel = try await bench.call(.get, "/v1/channels/lobby")
            #expect(list["channels"]?.array == [channel])
            #expect(channel["channel"] == "lobby" && channel["members"] == 1 && channel["connections"] == 1)
            #expect(channel["publishers"] == 1)
            let members = try await bench.call(.get, "/v1/channels/lobby/members")
            let member = try await bench.call(.get, "/v1/channels/lobby/members/alice")
            #expect(members["members"]?.array == [member])
            let connection = try #require(member["connections"]?.array?.first)
            #expect(member["user_id"] == "alice" && connection["connection_id"]?.string == session.participant)
            #expect(connection["role"] == "sendonly" && connection["signaling"] == "whip")
        }
    }

    @Test func `a member whose connection is lost is listed while its place is kept, and a kick ends it`() async throws
    {
        try await OperatorsBench.run { bench in
            let directory = bench.bench.directory
            _ = try await bench.publish(as: "alice")
            let path = "/v1/channels/lobby/members/alice"
            let connecting = try await bench.call(.get, path)["connections"]?.array?.first
            #expect(connecting?["state"] == "connecting" && connecting?["connected"] == false)
            await bench.bench.plane.report(.connected(over: .udp), from: PeerID(rawValue: 1))
            await directory.takeEvents()
            let connected = try await bench.call(.get, path)["connections"]?.array?.first
            #expect(connected?["state"] == "connected" && connected?["connected"] == true)
            #expect(connected?["place_ends_at"] == nil)
            let before = directory.unixSeconds
            await bench.bench.plane.report(.closed(.consentExpired), from: PeerID(rawValue: 1))
            await directory.takeEvents()
            let member = try await bench.call(.get, path)
            let lost = try #require(member["connections"]?.array?.first)
            #expect(lost["state"] == "interrupted" && lost["connected"] == false)
            let end = Int64(try #require(lost["place_ends_at"]?.integer))
            // The monotonic and the real-time second change at different times.
            #expect((before + 14...directory.unixSeconds + 16).contains(end))
            #expect(try await bench.call(.get, "/v1/channels/lobby/members")["members"]?.array == [member])
            #expect(try await bench.call(.get, "/v1/channels/lobby")["members"] == 1)
            #expect(try await bench.call(.post, "\(path)/kick") == ["ended": 1])
            #expect(try bench.problem(await bench.send(.get, path)) == .channelUnknown)
        }
    }

    @Test func `a list comes in pages`() async throws {
        try await OperatorsBench.run { bench in
            for user in ["c", "a", "b", "a b/ü"] {
                try await bench.call(.put, "/v1/blocks/users/\(user == "a b/ü" ? "a%20b%2F%C3%BC" : user)", [:])
            }
            var names: [String] = []
            var path = "/v1/blocks/users?limit=3"
            for _ in 0..<2 {
                let page = try await bench.call(.get, path)
                names += page["blocks"]?.array?.compactMap { $0["name"]?.string } ?? []
                guard let next = page["next"]?.string else { break }
                #expect(names.count == 3)
                path = "/v1/blocks/users?limit=3&after=\(next)"
            }
            #expect(names == ["a", "a b/ü", "b", "c"])
        }
    }

    // MARK: Kicks, bans, blocks

    @Test func `a kicked user's session is gone, and the user may join again`() async throws {
        try await OperatorsBench.run { bench in
            let session = try await bench.publish(as: "alice")
            #expect(try await bench.call(.post, "/v1/channels/lobby/members/alice/kick") == ["ended": 1])
            let token = try await bench.token(of: "alice")
            #expect(try await bench.clients.send(.delete, session.path, token: token).status == .notFound)
            _ = try await bench.publish(as: "alice")
        }
    }

    @Test func `several users are kicked with one result each`() async throws {
        try await OperatorsBench.run { bench in
            _ = try await bench.publish(as: "alice")
            _ = try await bench.publish(as: "bob")
            let answer = try await bench.call(.post, "/v1/channels/lobby/kick", ["users": ["bob", "eve"]])
            let results = answer["results"]?.array ?? []
            #expect(results.compactMap { $0["user_id"]?.string } == ["bob", "eve"])
            #expect(results.compactMap { $0["message"]?.string } == ["Success", "Failed"])
            #expect(results.compactMap { $0["ended"]?.integer } == [1, 0])
            #expect(results.first?["code"] == 0 && results.last?["code"] != 0)
            #expect(try await bench.call(.get, "/v1/channels/lobby")["members"] == 1)
        }
    }

    @Test func `a terminated channel has nobody left`() async throws {
        try await OperatorsBench.run { bench in
            _ = try await bench.publish(as: "alice")
            #expect(try await bench.call(.delete, "/v1/channels/lobby") == ["ended": 1])
            #expect(try bench.problem(await bench.send(.get, "/v1/channels/lobby")) == .channelUnknown)
            #expect(try bench.problem(await bench.send(.delete, "/v1/channels/lobby")) == .channelUnknown)
            await bench.bench.expectNothingLeft()
        }
    }

    @Test(arguments: [
        ("/v1/channels/lobby/bans/alice", "/v1/channels/lobby/bans", "bans"),
        ("/v1/blocks/users/alice", "/v1/blocks/users", "blocks"),
        ("/v1/blocks/streams/lobby", "/v1/blocks/streams", "blocks"),
    ])
    func `a ban or block ends whom it refuses, until it is lifted`(path: String, list: String, name: String)
        async throws
    {
        try await OperatorsBench.run { bench in
            _ = try await bench.publish(as: "alice")
            #expect(try bench.problem(await bench.send(.get, path)) == .blockUnknown)
            let before = bench.bench.directory.unixSeconds
            let answer = try await bench.call(.put, path, ["seconds": 100])
            let until = try #require(answer["until"]?.integer)
            let after = bench.bench.directory.unixSeconds
            #expect(answer["ended"] == 1 && (before + 100...after + 100).contains(Int64(until)))
            let block = try await bench.call(.get, path)
            #expect(block["until"]?.integer == until)
            #expect(try await bench.call(.get, list)[name]?.array == [block])

            let refused = try await bench.clients.post(
                "/whip/lobby",
                Offers.publish,
                token: try await bench.token(of: "alice")
            )
            #expect(refused.status == .forbidden)
            let code = try JSONValue(parsing: refused.text)["code"]?.integer
            let kind: RefusalKind = path.hasSuffix("streams/lobby") ? .streamBlocked : .banned
            #expect(code == Int(kind.code.rawValue))

            #expect(try await bench.call(.put, path)["until"] == .null, "without an end")
            try await bench.call(.delete, path)
            #expect(try bench.problem(await bench.send(.delete, path)) == .blockUnknown)
            _ = try await bench.publish(as: "alice")
        }
    }

    @Test func `a blocked stream still has viewers`() async throws {
        try await OperatorsBench.run { bench in
            try await bench.call(.put, "/v1/blocks/streams/lobby")
            let token = try await bench.token(of: "bob")
            #expect(try await bench.clients.post("/whep/lobby", Offers.watch, token: token).status == .created)
        }
    }

    // MARK: Roles and mutes

    @Test func `a member's role and mute change`() async throws {
        try await OperatorsBench.run { bench in
            _ = try await bench.publish(as: "alice")
            let path = "/v1/channels/lobby/members/alice"
            #expect(try await bench.call(.post, "\(path)/mute", ["muted": true]) == ["changed": 1])
            let muted = try await bench.call(.get, path)["connections"]?.array?.first
            #expect(muted?["muted"] == ["audio", "video"] && muted?["network"] == ["uplink": 0, "downlink": 0])
            #expect(try await bench.call(.post, "\(path)/mute", ["muted": false, "kind": "audio"]) == ["changed": 1])
            #expect(try await bench.call(.get, path)["connections"]?.array?.first?["muted"] == ["video"])
            // A channel of WHIP clients has no roles.
            let refused = try await bench.send(.post, "\(path)/role", ["role": "audience"])
            #expect(try bench.problem(refused) == .roleUnavailable)
        }
    }

    @Test func `a publisher that is made audience ends, and is refused until it is made host`() async throws {
        try await OperatorsBench.run { bench in
            var host = JoinRequest(channel: try #require(ChannelName("lobby")), role: .recvonly)
            host.options = MemberOptions(profile: .interactive)
            _ = try await bench.bench.directory.reserve(host)
            let session = try await bench.publish(as: "alice")
            let path = "/v1/channels/lobby/members/alice/role"
            #expect(try await bench.call(.post, path, ["role": "audience"]) == ["changed": 1])
            let token = try await bench.token(of: "alice")
            #expect(try await bench.clients.send(.delete, session.path, token: token).status == .notFound)
            let refused = try await bench.clients.post("/whip/lobby", Offers.publish, token: token)
            #expect(refused.status == .forbidden)
            let type = try JSONValue(parsing: refused.text)["type"]?.string
            #expect(type == "urn:nagare:problem:\(RefusalKind.audienceOnly.rawValue)")
            #expect(try await bench.clients.post("/whep/lobby", Offers.watch, token: token).status == .created)
            // No connection of the user can be host.
            #expect(try bench.problem(await bench.send(.post, path, ["role": "host"])) == .roleUnavailable)
        }
    }

    // MARK: Tokens

    @Test func `tokens of all kinds admit whom they name`() async throws {
        let strict = try AppKey(appID: "live", key: "0123456789abcdef", mode: .strict)
        try await OperatorsBench.run(keys: AccessKeys(apps: AppKeys([strict]))) { bench in
            let app: JSONValue = ["kind": "app", "channel": "lobby", "user": "bob", "expires_in": 60]
            let loose: JSONValue = ["kind": "app", "channel": "lobby", "user": "bob", "nonce": ""]
            #expect(try bench.problem(await bench.send(.post, "/v1/tokens", loose)) == .refusedValue)
            let token = try #require(try await bench.call(.post, "/v1/tokens", app)["token"]?.string)
            #expect(try await bench.clients.post("/whip/lobby", Offers.publish, token: token).status == .created)
            #expect(try await bench.call(.get, "/v1/channels/lobby/members/bob")["user_id"] == "bob")
        }
        try await OperatorsBench.run(keys: AccessKeys(urls: URLKeys(["testkey"]))) { bench in
            let request: JSONValue = ["kind": "url", "url": "https://host/whip/lobby", "expires_in": 60]
            let answer = try await bench.call(.post, "/v1/tokens", request)
            let url = try #require(answer["url"]?.string)
            #expect(url.hasPrefix("https://host/whip/lobby?auth_key="))
            #expect((answer["expires_at"]?.integer ?? 0) > Int(bench.bench.directory.unixSeconds))
            let path = String(url.dropFirst("https://host".count))
            #expect(try await bench.clients.post(path, Offers.publish).status == .created)
        }
    }

    @Test(
        arguments: [
            (["kind": "jwt", "channel": "lobby"], .keyMissing),
            (["kind": "app", "channel": "lobby", "user": "u"], .keyMissing),
            (["kind": "url", "url": "https://host/whip/lobby"], .keyMissing),
            (["kind": "url", "url": "lobby"], .refusedValue),
            (["kind": "jwt", "channel": "..", "role": "sendonly"], .refusedValue),
            (["kind": "jwt", "channel": "lobby", "claims": ["spotlight_number": 99]], .refusedValue),
            (["kind": "other"], .invalidRequest), ([:], .invalidRequest), (["kind": "jwt"], .invalidRequest),
            (["kind": "app", "channel": "lobby", "user": "u", "role": "sendonly"], .invalidRequest),
        ] as [(JSONValue, Problem.Kind)]
    )
    func `a token that the node cannot make is refused`(request: JSONValue, kind: Problem.Kind) async throws {
        try await OperatorsBench.run(keys: AccessKeys()) { bench in
            let answer = try await bench.send(.post, "/v1/tokens", request)
            #expect(try bench.problem(answer) == kind)
        }
    }

    // MARK: Subscriptions

    @Test func `subscriptions are added, listed and deleted, twenty at most`() async throws {
        try await OperatorsBench.run { bench in
            let request: JSONValue = [
                "url": "https://host/events", "channel": "lobby", "users": ["alice"], "events": ["publish"],
            ]
            let first = try await bench.call(.post, "/v1/subscriptions", request)
            for (name, value) in request.object ?? [:] { #expect(first[name] == value) }
            let second = try await bench.call(.post, "/v1/subscriptions", ["url": "http://host"])
            #expect(second["events"]?.array?.count == EventSubscriptions.Kind.allCases.count)
            #expect(try await bench.call(.get, "/v1/subscriptions") == ["subscriptions": [first, second]])
            let path = "/v1/subscriptions/\(try #require(first["id"]?.string))"
            try await bench.call(.delete, path)
            #expect(try bench.problem(await bench.send(.delete, path)) == .subscriptionUnknown)
            for _ in 0..<19 { try await bench.call(.post, "/v1/subscriptions", ["url": "http://host"]) }
            let full = try await bench.send(.post, "/v1/subscriptions", ["url": "http://host"])
            #expect(try bench.problem(full) == .subscriptionsFull)
        }
    }

    @Test func `the token for reading shows the URLs of subscriptions without their queries`() async throws {
        try await OperatorsBench.run(readToken: OperatorsBench.readToken) { bench in
            let urls = ["https://host/events?key=secret&b=/", "https://host:8443/?key=secret#secret", "https://host"]
            for url in urls { try await bench.call(.post, "/v1/subscriptions", ["url": .string(url)]) }
            func shown(to token: String) async throws -> [String?] {
                let answer = try await bench.send(.get, "/v1/subscriptions", token: token)
                let list = try JSONValue(parsing: answer.text)["subscriptions"]?.array
                return list?.map { $0["url"]?.string } ?? []
            }
            let (operating, reading) = (
                try await shown(to: OperatorsBench.token), try await shown(to: OperatorsBench.readToken)
            )
            #expect(operating == urls)
            #expect(reading == ["https://host/events", "https://host:8443/", "https://host"])
        }
    }

    @Test(
        arguments: [
            (["url": "host/events"], .refusedValue), (["url": "ftp://host"], .refusedValue),
            (["url": "http://user:secret@host"], .refusedValue),
            (["url": "http://host", "users": ["a"]], .refusedValue),
            (["url": "http://host", "channel": ".."], .refusedValue), ([:], .invalidRequest),
            (["url": "http://host", "events": ["other"]], .invalidRequest),
            (["url": "http://host", "events": []], .invalidRequest),
        ] as [(JSONValue, Problem.Kind)]
    )
    func `a subscription that is none is refused`(request: JSONValue, kind: Problem.Kind) async throws {
        try await OperatorsBench.run { bench in
            let answer = try await bench.send(.post, "/v1/subscriptions", request)
            #expect(try bench.problem(answer) == kind)
        }
    }

    // MARK: Refusals

    @Test(
        arguments: [
            (HTTPRequest.Method.get, "/v1/nothing", nil, Problem.Kind.pathUnknown), (.get, "/v1", nil, .pathUnknown),
            (.get, "/v1/channels/%FF", nil, .pathUnknown), (.get, "/v1/channels/%00", nil, .pathUnknown),
            (.get, "/v1/blocks/cats", nil, .pathUnknown), (.put, "/v1/channels/%20/bans/eve", nil, .pathUnknown),
            (.post, "/v1/channels", nil, .methodNotAllowed), (.get, "/v1/channels/lobby", nil, .channelUnknown),
            (.get, "/v1/channels/lobby/members", nil, .channelUnknown),
            (.post, "/v1/channels/lobby/members/eve/kick", nil, .channelUnknown),
            (.post, "/v1/channels/lobby/kick", ["users": ["eve"]], .channelUnknown),
            (.get, "/v1/channels?limit=0", nil, .invalidRequest),
            (.get, "/v1/channels?limit=101", nil, .invalidRequest),
            (.get, "/v1/channels?limit=x", nil, .invalidRequest), (.get, "/v1/channels?size=1", nil, .invalidRequest),
            (.get, "/v1/channels?limit=1&limit=2", nil, .invalidRequest),
            (.get, "/v1/channels?after=", nil, .invalidRequest),
            (.get, "/v1/channels?after=%FF", nil, .invalidRequest), (.get, "/v1/channels", ["a": 1], .invalidRequest),
            (.post, "/v1/channels/lobby/kick", nil, .invalidRequest),
            (.post, "/v1/channels/lobby/kick", ["users": []], .invalidRequest),
            (.post, "/v1/channels/lobby/kick", ["users": [1]], .invalidRequest),
            (.post, "/v1/channels/lobby/kick", ["users": ["eve", "eve"]], .invalidRequest),
            (.post, "/v1/channels/lobby/kick", ["users": ["eve"], "why": "x"], .invalidRequest),
            (.post, "/v1/channels/lobby/members/eve/role", ["role": "host"], .channelUnknown),
            (.post, "/v1/channels/lobby/members/eve/role", nil, .invalidRequest),
            (.post, "/v1/channels/lobby/members/eve/role", ["role": "king"], .invalidRequest),
            (.post, "/v1/channels/lobby/members/eve/mute", ["muted": true], .channelUnknown),
            (.post, "/v1/channels/lobby/members/eve/mute", ["kind": "audio"], .invalidRequest),
            (.post, "/v1/channels/lobby/members/eve/mute", ["muted": true, "kind": "text"], .invalidRequest),
            (.put, "/v1/channels/lobby/bans/eve", ["seconds": 0], .invalidRequest),
            (.put, "/v1/channels/lobby/bans/eve", ["seconds": "1"], .invalidRequest),
            (.put, "/v1/channels/lobby/bans/eve", [1], .invalidRequest),
        ] as [(HTTPRequest.Method, String, JSONValue?, Problem.Kind)]
    )
    func `an invalid request is refused`(
        method: HTTPRequest.Method,
        path: String,
        body: JSONValue?,
        kind: Problem.Kind
    ) async throws {
        try await OperatorsBench.run { bench in
            let response = try await bench.send(method, path, body)
            #expect(try bench.problem(response) == kind)
            if kind == .methodNotAllowed { #expect(response.headers[.allow] == "GET, HEAD") }
        }
    }

    @Test func `more than thirty users are too many for one kick`() async throws {
        try await OperatorsBench.run { bench in
            let users = (0..<31).map { JSONValue.string("u\($0)") }
            let response = try await bench.send(.post, "/v1/channels/lobby/kick", ["users": .array(users)])
            #expect(try bench.problem(response) == .invalidRequest)
        }
    }

    @Test func `a body that is too large or no JSON is refused`() async throws {
        try await OperatorsBench.run { bench in
            let large = JSONValue.object(["users": [.string(String(repeating: "x", count: OperatorsAPI.bodyBytesMax))]])
            #expect(try bench.problem(await bench.send(.post, "/v1/channels/lobby/kick", large)) == .bodyTooLarge)
            let text = try await bench.send(.post, "/v1/channels/lobby/kick", ["users": ["eve"]], type: "text/plain")
            #expect(try bench.problem(text) == .mediaTypeUnsupported)
        }
    }

    @Test(
        arguments: [
            ("127.0.0.1", nil, nil, nil), ("127.0.0.1", nil, "x", nil),
            ("127.0.0.1", OperatorsBench.token, nil, Problem.Kind.unauthenticated),
            ("127.0.0.1", OperatorsBench.token, "wrong", .unauthenticated),
            ("127.0.0.1", OperatorsBench.token, OperatorsBench.token, nil),
            ("0.0.0.0", OperatorsBench.token, OperatorsBench.token, nil),
            ("0.0.0.0", OperatorsBench.token, nil, .unauthenticated), ("0.0.0.0", nil, nil, .forbidden),
        ] as [(String, String?, String?, Problem.Kind?)]
    )
    func `the token is required where one is set, and one must be set on a network`(
        host: String,
        token: String?,
        sent: String?,
        kind: Problem.Kind?
    ) async throws {
        try await OperatorsBench.run(host: host, token: token) { bench in
            for path in ["/v1/channels", "/v1/nothing"] {
                let response = try await bench.send(.get, path, token: sent)
                if let kind {
                    #expect(try bench.problem(response) == kind)
                } else {
                    #expect(response.status == (path == "/v1/channels" ? .ok : .notFound))
                }
            }
            // The document describes the API to those who have no token yet.
            #expect(try await bench.send(.get, "/v1/openapi.json", token: nil).status == .ok)
            // The other API of the listener has the same power, so it requires the same token.
            let command = try await bench.send(.post, "/", [:], token: sent)
            #expect((command.status == .unauthorized) == (kind == .unauthenticated))
            let connection = try await bench.send(.get, "/api/connections/x", token: sent)
            #expect((connection.status == .unauthorized) == (kind == .unauthenticated))
            #expect(try await bench.send(.get, "/healthz", token: nil).status == .ok)
        }
    }

    /// A request for an operation, with any values.
    private func path(of operation: APIOperation) -> String {
        operation.path.map { segment in
            switch segment {
            case .literal(let text): "/\(text)"
            case .parameter(.kind): "/users"
            case .parameter: "/x"
            }
        }
        .joined()
    }

    @Test(arguments: OperatorsAPI.operations.map(\.id))
    func `an operation that changes something needs the token for it, and others do with that for reading`(
        id: String
    ) async throws {
        let operation = try #require(OperatorsAPI.operations.first { $0.id == id })
        let path = path(of: operation)
        try await OperatorsBench.run(readToken: OperatorsBench.readToken) { bench in
            let reading = try await bench.send(operation.method, path, token: OperatorsBench.readToken)
            #expect((reading.status == .forbidden) == (operation.method != .get), "\(reading.text)")
            #expect(reading.status != .unauthorized)
            if operation.method != .get {
                #expect(try bench.problem(reading) == .forbidden && reading.text.contains("role operate"))
            }
            let operating = try await bench.send(operation.method, path)
            #expect(operating.status != .forbidden && operating.status != .unauthorized)
            let stranger = try await bench.send(operation.method, path, token: "0000000000000000")
            #expect((stranger.status == .unauthorized) == !operation.isPublic)
        }
        let described = OperatorsAPI.document["paths"]?[operation.template]?[operation.method.rawValue.lowercased()]
        let roles: [JSONValue] = operation.method == .get ? ["read", "operate"] : ["operate"]
        #expect(described?["security"] == (operation.isPublic ? .array([]) : [["token": .array(roles)]]))
    }

    @Test(arguments: AdminAPI.operations.keys.sorted() + ["GetNothing", "Nothing", "DisconnectChannel.GetMode"])
    func `an operation of Sora's API that changes something needs the token for it, too`(name: String) async throws {
        let isReading = name.hasPrefix("Get") || name.hasPrefix("List")
        try await OperatorsBench.run(readToken: OperatorsBench.readToken) { bench in
            for token in [OperatorsBench.readToken, OperatorsBench.token] {
                let response = try await bench.command("Sora_20201013.\(name)", token: token)
                let isRefused = response.status == .forbidden && response.text.contains("ROLE-NOT-PERMITTED")
                #expect(isRefused == (!isReading && token == OperatorsBench.readToken), "\(response.text)")
                #expect(response.status != .unauthorized)
            }
        }
    }

    @Test func `the token for reading is none where it is not configured`() async throws {
        try await OperatorsBench.run { bench in
            let response = try await bench.send(.get, "/v1/channels", token: OperatorsBench.readToken)
            #expect(response.status == .unauthorized)
        }
        try await OperatorsBench.run(readToken: OperatorsBench.readToken) { bench in
            let connection = try await bench.send(.get, "/api/connections/x", token: OperatorsBench.readToken)
            #expect(connection.status == .notFound)
            // A path that does not exist is none for every role.
            let unknown = try await bench.send(.post, "/v1/nothing", token: OperatorsBench.readToken)
            #expect(unknown.status == .notFound)
        }
    }

    @Test func `pages of other origins may not use the API`() async throws {
        try await OperatorsBench.run(token: nil) { bench in
            let response = try await bench.send(.delete, "/v1/channels/lobby", origin: "https://evil.example")
            #expect(try bench.problem(response) == .forbidden)
        }
    }

    @Test func `who guesses tokens is slowed down, and who has the token is not`() async throws {
        let access = AdminAccess(token: OperatorsBench.token, isLoopback: true)
        let now = Instant(nanoseconds: 1_000_000_000)
        var kinds: [Problem.Kind?] = []
        for _ in 0...500 { kinds.append(await access.refusal([:], role: .read, at: now)?.kind) }
        #expect(Set(kinds.dropLast()) == [.unauthenticated] && kinds.last == .tooManyRequests)
        #expect(
            await access.refusal([.authorization: "Bearer \(OperatorsBench.token)"], role: .operate, at: now) == nil
        )
    }

    // MARK: Reload

    @Test func `a reload answers what is in force now, or why nothing changed`() async throws {
        let facts = CertificateInfo(serial: "00a1", expiresAt: 1_900_000_000)
        let renewed: ReloadAction = { () throws(ReloadFailure) in
            var report = ReloadReport(certificate: facts)
            report.changed = ["token", "limit channels"]
            report.needsRestart = ["http"]
            return report
        }
        try await OperatorsBench.run(reload: renewed) { bench in
            let answer = try await bench.call(.post, "/v1/reload")
            #expect(
                answer == [
                    "changed": ["token", "limit channels"], "needs_restart": ["http"],
                    "certificate": ["serial": "00a1", "expires_at": 1_900_000_000],
                ]
            )
            #expect(try bench.problem(try await bench.send(.post, "/v1/reload", token: nil)) == .unauthenticated)
        }
        try await OperatorsBench.run { bench in
            let answer = try await bench.call(.post, "/v1/reload")
            #expect(answer == ["changed": [], "needs_restart": []])
        }
        let failure = ReloadFailure(message: "chain.pem cannot be read.")
        let failed: ReloadAction = { () throws(ReloadFailure) in throw failure }
        try await OperatorsBench.run(reload: failed) { bench in
            let response = try await bench.send(.post, "/v1/reload")
            #expect(response.status == .conflict)
            #expect(response.text.contains(failure.message))
            #expect(try bench.problem(response) == .reloadFailed)
        }
    }

    // MARK: The document

    @Test func `the document has every operation with its parameters and answers`() throws {
        let paths = try #require(OperatorsAPI.document["paths"]?.object)
        #expect(OperatorsAPI.document["openapi"] == "3.1.0")
        #expect(Set(OperatorsAPI.operations.map(\.id)).count == OperatorsAPI.operations.count)
        for operation in OperatorsAPI.operations {
            let described = try #require(paths[operation.template]?[operation.method.rawValue.lowercased()])
            #expect(described["operationId"]?.string == operation.id)
            let statuses = Set((described["responses"]?.object ?? [:]).keys)
            #expect(statuses.isSuperset(of: [String(operation.status), "400", "401", "403", "429", "500"]))
            #expect((described["requestBody"] != nil) == (operation.body != nil))
            let names = described["parameters"]?.array?.compactMap { $0["name"]?.string } ?? []
            #expect(names.count == operation.template.count { $0 == "{" } + operation.query.count)
        }
        #expect(paths.values.reduce(0) { $0 + ($1.object?.count ?? 0) } == OperatorsAPI.operations.count)
    }
}
