import Access
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import Testing

@testable import Signaling

@Suite(.timeLimit(.minutes(10)))
struct AuthorizationTests {
    /// Permits all but publishing.
    struct ViewersOnly: Authorizer {
        func authorize(
            _ action: AuthorizedAction,
            _ credential: Credential?,
            from network: ClientNetwork
        ) async -> Authorization {
            if case .publish = action { .forbidden } else { .allowed }
        }
        func admit(_ request: AccessRequest) async -> AccessDecision { .allowed(Grants()) }
    }

    @Test func `without a token only the page and preflight requests are served`() async throws {
        let bench = try SignalingBench(authorizer: StaticTokenAuthorizer(token: "s3cret")!)
        try await bench.test { http in
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: "s3cret"))
            let requests: [(HTTPRequest.Method, String)] = [
                (.post, "/whip/lobby"), (.post, "/whep/lobby"), (.post, "/whep/lobby/\(session.participant)"),
                (.get, "/whip/lobby"), (.head, "/whep/lobby"), (.patch, session.path), (.delete, session.path),
                (.get, session.path), (.delete, "/sessions/unknown"), (.get, "/api/channels/lobby"),
                (.get, "/api/channels/lobby/events"),
            ]
            for (method, path) in requests {
                let none = try await http.send(method, path, type: "application/sdp", body: Offers.publish)
                #expect(none.status == .unauthorized, "\(method) \(path)")
                #expect(none.headers[.wwwAuthenticate] == "Bearer")
                let wrong = try await http.send(method, path, token: "s3creT", body: Offers.publish)
                #expect(wrong.status == .unauthorized, "\(method) \(path)")
                #expect(wrong.headers[.wwwAuthenticate]?.hasPrefix("Bearer") == true)
                #expect(!none.text.contains("s3cret") && !wrong.text.contains("s3cret"))
                let preflight = try await http.send(.options, path)
                #expect(preflight.status == .ok, "\(path)")
            }
            #expect(try await http.send(.get, "/").status == .ok)
            #expect(try await http.send(.delete, session.path, token: "s3cret").status == .ok)
        }
        await bench.expectNothingLeft()
    }

    @Test func `a valid token that does not permit the action answers 403`() async throws {
        try await SignalingBench(authorizer: ViewersOnly()).test { http in
            let publishing = try await http.post("/whip/lobby", Offers.publish, token: "t")
            #expect(publishing.status == .forbidden)
            let watching = try await http.post("/whep/lobby", Offers.watch, token: "t")
            #expect(watching.status == .created)
        }
    }

    private static let noon: Int64 = 1_500_000_000

    private func authorizer(_ keys: AccessKeys) -> SignatureAuthorizer {
        SignatureAuthorizer(keys: keys, logger: SignalingBench.quiet, now: { Double(Self.noon) })
    }

    @Test func `a signed URL admits to its own path, and its session needs no token`() async throws {
        let keys = URLKeys(["k"], validity: 60)
        let bench = try SignalingBench(authorizer: authorizer(AccessKeys(urls: keys)))
        let signed = { (path: String, timestamp: Int64) in
            try "auth_key=" + keys.signature(path: path, timestamp: timestamp).text
        }
        let valid = try signed("/whip/lobby", Self.noon)
        let watch = try signed("/whep/lobby", Self.noon)
        let expired = try signed("/whip/lobby", Self.noon - 60)
        try await bench.test { http in
            for query in ["", "?\(expired)", "?\(watch)", "?auth_key=", "?auth_key=1-2-3-4"] {
                let refused = try await http.post("/whip/lobby\(query)", Offers.publish)
                #expect(refused.status == .unauthorized, "\(query)")
                #expect(refused.headers[.wwwAuthenticate]?.hasPrefix("Bearer") == true)
                #expect(!refused.text.isEmpty && !refused.text.contains(valid))
            }
            #expect(try await http.post("/whip/other?\(valid)", Offers.publish).status == .unauthorized)
            let late = try await http.post("/whip/lobby?\(expired)", Offers.publish)
            #expect(late.text.contains("expired at 1500000000"))
            let session = try OpenSession(try await http.post("/whip/lobby?name=a&\(valid)", Offers.publish))
            let viewer = try OpenSession(try await http.post("/whep/lobby?\(watch)", Offers.watch))
            #expect(try await http.send(.get, "/api/channels/lobby?\(valid)").status == .unauthorized)
            #expect(try await http.send(.delete, "/sessions/unknown").status == .notFound)
            for path in [session.path, viewer.path] {
                #expect(try await http.send(.get, path).status == .noContent)
                #expect(try await http.send(.delete, path).status == .ok)
            }
        }
        await bench.expectNothingLeft()
    }

    @Test func `a token of an app is a Bearer token, and its refusal names the result code`() async throws {
        let app = try AppKey(appID: "live", key: "correct-horse-battery")
        let bench = try SignalingBench(authorizer: authorizer(AccessKeys(apps: AppKeys([app]))))
        let token = try app.token(channelID: "lobby", userID: "u", expiry: Self.noon + 1).parameter
        let expired = try app.token(channelID: "lobby", userID: "u", expiry: Self.noon).parameter
        try await bench.test { http in
            let late = try await http.post("/whip/lobby", Offers.publish, token: expired)
            #expect(late.status == .unauthorized && late.text.contains("0x02010205"))
            #expect(late.headers[.wwwAuthenticate] == "Bearer error=\"invalid_token\"")
            let other = try await http.post("/whip/other", Offers.publish, token: token)
            #expect(other.status == .forbidden && other.text.contains("0x02010205"))
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: token))
            #expect(try await http.send(.delete, session.path).status == .unauthorized)
            #expect(try await http.send(.delete, session.path, token: token).status == .ok)
        }
        await bench.expectNothingLeft()
    }

    @Test(
        arguments: [
            (nil, nil), ("", nil), ("Bearer", nil), ("Bearer ", nil), ("Basic abc", nil), ("Bearer abc", "abc"),
            ("bearer  abc", "abc"), ("BEARER a b", "a b"),
        ] as [(String?, String?)]
    )
    func `the token is read from the header`(header: String?, token: String?) {
        #expect(bearerToken(header) == token)
    }

    @Test(arguments: [("abc", true), ("abd", false), ("", false), ("ab", false), ("abcabc", false), ("abcc", false)])
    func `tokens are compared as a whole`(given: String, isEqual: Bool) {
        #expect(StaticTokenAuthorizer.isEqual(Array(given.utf8), Array("abc".utf8)) == isEqual)
    }

    @Test(arguments: ["", "two words", "ü", "line\n"])
    func `a token with characters that a header cannot have is refused`(token: String) {
        #expect(StaticTokenAuthorizer(token: token) == nil)
    }
}
