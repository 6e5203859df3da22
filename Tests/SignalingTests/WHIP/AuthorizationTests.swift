import Access
import HTTPTypes
import HummingbirdTesting
import Room
import Testing

@testable import Signaling

@Suite(.timeLimit(.minutes(30)))
struct AuthorizationTests {
    /// Permits all but publishing.
    struct ViewersOnly: Authorizer {
        func authorize(_ action: AuthorizedAction, _ credential: Credential?) async -> Authorization {
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
