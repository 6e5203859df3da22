import Access
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import Room
import Synchronization
import Testing

@testable import Signaling
@testable import Web

/// The owner of a WHIP or WHEP session. Other clients that know its URL may do nothing with it.
@Suite(.timeLimit(.minutes(10)))
struct SessionOwnerTests {
    private static let noon: Int64 = 1_500_000_000
    private static let secret = "correct horse battery staple, twice over"

    /// The time of the authorizer.
    private final class Clock: Sendable {
        private let state = Mutex(Double(SessionOwnerTests.noon))
        var now: Double { state.withLock { $0 } }
        func set(_ seconds: Int64) { state.withLock { $0 = Double(seconds) } }
    }

    private static func jwtKey() throws -> JWTKey { try JWTKey(.hs256, id: nil, text: secret) }
    private static func app(_ id: String) throws -> AppKey { try AppKey(appID: id, key: "correct-horse-battery") }

    private static func authorizer(_ clock: Clock = Clock()) throws -> SignatureAuthorizer {
        SignatureAuthorizer(
            keys: AccessKeys(
                jwt: [try jwtKey()],
                apps: AppKeys([try app("live"), try app("other")]),
                urls: URLKeys(["k"], validity: 60)
            ),
            logger: SignalingBench.quiet,
            now: { clock.now }
        )
    }

    private static func token(_ claims: [String: JSONValue]) throws -> String {
        let base: [String: JSONValue] = ["channel_id": "lobby", "exp": .integer(noon + 60)]
        return try #require(try jwtKey().token(claims: base.merging(claims) { $1 }))
    }

    private static func appToken(_ app: String, _ user: String) throws -> String {
        try Self.app(app).token(channelID: "lobby", userID: user, expiry: noon + 60).parameter
    }

    private static func body(_ token: String) -> String { JSONValue.object(["access_token": .string(token)]).text }

    /// The statuses of all requests to a session, of which the last one ends it.
    private static func statuses(
        _ http: HTTPTester,
        _ session: OpenSession,
        token: String?
    ) async throws -> [HTTPResponse.Status] {
        let (trickle, json) = ("application/trickle-ice-sdpfrag", "application/json")
        let extended = body(try Self.token(["sub": "alice", "exp": .integer(noon + 600)]))
        let requests: [(HTTPRequest.Method, String, type: String?, ifMatch: String?, body: String?)] = [
            (.get, "", nil, nil, nil), (.get, "/statistics", nil, nil, nil), (.head, "/events", nil, nil, nil),
            (.patch, "", trickle, session.tag, Offers.trickle), (.patch, "", trickle, "*", Offers.restart),
            // To extend it, with the Bearer token and with a token of its owner in the body.
            (.patch, "", nil, nil, nil), (.patch, "", json, nil, extended), (.delete, "", nil, nil, nil),
        ]
        var statuses: [HTTPResponse.Status] = []
        for request in requests {
            let response = try await http.send(
                request.0,
                session.path + request.1,
                type: request.type,
                token: token,
                ifMatch: request.ifMatch,
                body: request.body
            )
            statuses.append(response.status)
        }
        return statuses
    }

    private func expiry(_ session: OpenSession, in bench: SignalingBench) async throws -> Int64? {
        await bench.directory.connection(of: try #require(ParticipantID(session.participant)))?.expiry?.unixSeconds
    }

    /// A client that knows the URL of a session of alice.
    struct Stranger: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// `nil` for one without a token.
        let claims: [String: JSONValue]?
        let status: HTTPResponse.Status

        init(_ name: String, _ claims: [String: JSONValue]?, _ status: HTTPResponse.Status) {
            (testDescription, self.claims, self.status) = (name, claims, status)
        }
    }
    static let strangers = [
        Stranger("without a token", nil, .unauthorized), Stranger("another user", ["sub": "mallory"], .forbidden),
        Stranger("another user who may watch", ["sub": "mallory", "role": "recvonly"], .forbidden),
        Stranger("nobody in particular", [:], .forbidden),
        Stranger("nobody in particular who may watch", ["role": "recvonly"], .forbidden),
        Stranger("the user of another channel", ["sub": "alice", "channel_id": "other"], .forbidden),
        Stranger("the user with an expired token", ["sub": "alice", "exp": 1_499_990_000], .unauthorized),
        Stranger("the user with a token of tomorrow", ["sub": "alice", "nbf": 1_500_086_400], .unauthorized),
    ]

    @Test(arguments: strangers, ["/whip/lobby", "/whep/lobby"])
    func `a session of a user is refused to all others`(stranger: Stranger, path: String) async throws {
        let bench = try SignalingBench(authorizer: Self.authorizer())
        try await bench.test { http in
            let owner = try Self.token(["sub": "alice"])
            let offer = path.hasPrefix("/whip") ? Offers.publish : Offers.watch
            let session = try OpenSession(try await http.post(path, offer, token: owner))
            let token = try stranger.claims.map { try Self.token($0) }
            let statuses = try await Self.statuses(http, session, token: token)
            #expect(statuses.allSatisfy { $0 == stranger.status }, "\(statuses)")
            #expect(try await expiry(session, in: bench) == Self.noon + 60)
            let trickled = try await http.send(
                .patch,
                session.path,
                type: "application/trickle-ice-sdpfrag",
                token: owner,
                ifMatch: session.tag,
                body: Offers.trickle
            )
            #expect(trickled.status == .noContent, "its ICE is as it was")
            #expect(try await http.send(.delete, session.path, token: owner).status == .ok)
        }
        await bench.expectNothingLeft()
    }

    @Test func `the refusal says whose token is needed`() async throws {
        try await SignalingBench(authorizer: Self.authorizer()).test { http in
            let owner = try Self.token(["sub": "alice"])
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: owner))
            let refused = try await http.send(.delete, session.path, token: try Self.token(["sub": "mallory"]))
            let document = try JSONValue(parsing: refused.text)
            #expect(document["type"]?.string == "urn:nagare:problem:token-invalid")
            #expect(document["detail"]?.string?.hasPrefix("This session belongs to another token: ") == true)
            #expect(!refused.text.contains("alice"))
        }
    }

    @Test(
        arguments: [
            ["sub": "alice"], ["client_id": "alice"], ["sub": "alice", "role": "recvonly"],
        ] as [[String: JSONValue]]
    )
    func `every valid token of the user controls its sessions`(claims: [String: JSONValue]) async throws {
        let clock = Clock()
        let bench = try SignalingBench(authorizer: Self.authorizer(clock))
        try await bench.test { http in
            let first = try Self.token(["sub": "alice"])
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: first))
            // Beyond the leeway of the clocks.
            clock.set(Self.noon + 66)
            let later = try Self.token(claims.merging(["exp": .integer(Self.noon + 120)]) { $1 })
            #expect(try await http.send(.delete, session.path, token: first).status == .unauthorized)
            #expect(try await http.send(.get, session.path, token: later).status == .noContent)
            #expect(try await http.send(.delete, session.path, token: later).status == .ok)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a session of a token without a user is that token's, until a new one extends it`() async throws {
        let clock = Clock()
        let bench = try SignalingBench(authorizer: Self.authorizer(clock))
        try await bench.test { http in
            let first = try Self.token([:])
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: first))
            let second = try Self.token(["exp": .integer(Self.noon + 120)])
            #expect(try await http.send(.delete, session.path, token: second).status == .forbidden)
            #expect(try await http.send(.patch, session.path, token: second).status == .forbidden, "nor extended")
            let extended = try await http.send(
                .patch,
                session.path,
                type: "application/json",
                token: first,
                body: Self.body(second)
            )
            #expect(extended.status == .noContent)
            #expect(try await expiry(session, in: bench) == Self.noon + 120)
            #expect(try await http.send(.get, session.path, token: first).status == .forbidden)
            clock.set(Self.noon + 66)
            #expect(try await http.send(.delete, session.path, token: second).status == .ok)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a refused extension leaves a session to its token`() async throws {
        let bench = try SignalingBench(authorizer: Self.authorizer())
        try await bench.test { http in
            let first = try Self.token([:])
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: first))
            let sooner = try Self.token(["exp": .integer(Self.noon + 30)])
            let refused = try await http.send(
                .patch,
                session.path,
                type: "application/json",
                token: first,
                body: Self.body(sooner)
            )
            #expect(refused.status == .forbidden)
            #expect(try await http.send(.delete, session.path, token: sooner).status == .forbidden)
            #expect(try await http.send(.delete, session.path, token: first).status == .ok)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a session of an app's user is of that app`() async throws {
        let bench = try SignalingBench(authorizer: Self.authorizer())
        try await bench.test { http in
            let owner = try Self.appToken("live", "alice")
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: owner))
            for stranger in [
                try Self.appToken("live", "mallory"), try Self.appToken("other", "alice"),
                try Self.token(["sub": "alice"]),
            ] {
                let statuses = try await Self.statuses(http, session, token: stranger)
                #expect(statuses.allSatisfy { $0 == .forbidden }, "\(statuses)")
            }
            #expect(try await http.send(.delete, session.path, token: owner).status == .ok)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a session of a signed URL has no token, and its client goes on without one`() async throws {
        let bench = try SignalingBench(authorizer: Self.authorizer())
        let signature = try URLKeys(["k"], validity: 60).signature(path: "/whip/lobby", timestamp: Self.noon).text
        try await bench.test { http in
            let signed = try await http.post("/whip/lobby?auth_key=\(signature)", Offers.publish)
            let session = try OpenSession(signed)
            #expect(try await http.patch(session, ifMatch: session.tag, Offers.trickle).status == .noContent)
            let extended = try await http.send(
                .patch,
                session.path,
                type: "application/json",
                body: Self.body(try Self.token(["exp": .integer(Self.noon + 600)]))
            )
            #expect(extended.status == .noContent)
            #expect(try await http.send(.delete, session.path).status == .ok)
        }
        await bench.expectNothingLeft()
    }

    @Test func `where nobody needs a token, a session ends without one`() async throws {
        let bench = try SignalingBench()
        try await bench.test { http in
            for token in [nil, "t"] {
                let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: token))
                #expect(try await http.patch(session, ifMatch: session.tag, Offers.trickle).status == .noContent)
                #expect(try await http.send(.delete, session.path).status == .ok)
            }
        }
        await bench.expectNothingLeft()
    }

    @Test func `a client with an expired token does not learn which sessions exist`() async throws {
        try await SignalingBench(authorizer: Self.authorizer()).test { http in
            let expired = try Self.token(["sub": "alice", "exp": 1_499_990_000])
            #expect(try await http.send(.delete, "/sessions/unknown", token: expired).status == .unauthorized)
            let valid = try Self.token(["sub": "alice"])
            #expect(try await http.send(.delete, "/sessions/unknown", token: valid).status == .notFound)
        }
    }

    @Test func `a request that another node passes on is its owner's too`() async throws {
        let bench = try SignalingBench(authorizer: Self.authorizer())
        try await bench.test { http in
            let owner = try Self.token(["sub": "alice"])
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: owner))
            let forwarded = { (method: String, token: String) in
                ForwardedRequest(
                    method: method,
                    target: session.path,
                    headers: [ForwardedRequest.Field(name: "Authorization", value: "Bearer \(token)")],
                    body: []
                )
            }
            let stranger = try Self.token(["sub": "mallory"])
            for method in ["GET", "PATCH", "DELETE"] {
                #expect(await bench.server.respond(to: forwarded(method, stranger)).status == 403, "\(method)")
            }
            #expect(await bench.server.respond(to: forwarded("DELETE", owner)).status == 200)
        }
        await bench.expectNothingLeft()
    }
}
