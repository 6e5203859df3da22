import Access
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import NIOCore
import Room
import Testing

@testable import Signaling
@testable import Web

/// New tokens and signed URLs of WHIP and WHEP sessions.
@Suite(.timeLimit(.minutes(10)))
struct RefreshTests {
    private static let noon: Int64 = 1_500_000_000
    private static let secret = "correct horse battery staple, twice over"

    private func bench(_ keys: AccessKeys) throws -> SignalingBench {
        let authorizer = SignatureAuthorizer(keys: keys, logger: SignalingBench.quiet, now: { Double(Self.noon) })
        return try SignalingBench(authorizer: authorizer)
    }

    private func token(_ key: JWTKey, _ claims: [String: JSONValue]) throws -> String {
        let base: [String: JSONValue] = ["channel_id": "lobby", "sub": "alice", "exp": .integer(Self.noon + 60)]
        return try #require(key.token(claims: base.merging(claims) { $1 }))
    }

    private func expiry(_ session: OpenSession, in bench: SignalingBench) async throws -> Int64? {
        await bench.directory.connection(of: try #require(ParticipantID(session.participant)))?.expiry?.unixSeconds
    }

    @Test(arguments: ["/whip/lobby", "/whep/lobby"])
    func `a later token of the same user extends a session, and nothing else changes`(path: String) async throws {
        let key = try JWTKey(.hs256, id: nil, text: Self.secret)
        let bench = try bench(AccessKeys(jwt: [key]))
        let (first, second, third) = try (
            token(key, [:]), token(key, ["exp": .integer(Self.noon + 120)]),
            token(key, ["exp": .integer(Self.noon + 180)])
        )
        try await bench.test { http in
            let offer = path.hasPrefix("/whip") ? Offers.publish : Offers.watch
            let session = try OpenSession(try await http.post(path, offer, token: first))
            #expect(try await expiry(session, in: bench) == Self.noon + 60)
            let refreshed = try await http.send(.patch, session.path, token: second)
            #expect(refreshed.status == .noContent && refreshed.headers[.eTag] == nil)
            #expect(refreshed.body.readableBytes == 0)
            #expect(try await expiry(session, in: bench) == Self.noon + 120)
            // The token of the request may be the old one, if the body has the new one.
            let body = JSONValue.object(["access_token": .string(third)]).text
            let inBody = try await http.send(
                .patch,
                session.path,
                type: "application/json; charset=utf-8",
                token: first,
                body: body
            )
            #expect(inBody.status == .noContent)
            #expect(try await expiry(session, in: bench) == Self.noon + 180)
            let trickled = try await http.send(
                .patch,
                session.path,
                type: "application/trickle-ice-sdpfrag",
                token: first,
                ifMatch: session.tag,
                body: Offers.trickle
            )
            #expect(trickled.status == .noContent, "the ETag is that of the start")
        }
    }

    @Test(
        arguments: [
            ("of another channel", ["channel_id": "other"], .forbidden),
            ("of another user", ["sub": "bob"], .forbidden),
            ("that does not permit to publish", ["role": "recvonly"], .forbidden),
            ("that does not permit video", ["video": false], .forbidden),
            ("that expired", ["exp": 1_499_990_000], .unauthorized),
            ("that expires earlier", ["exp": 1_500_000_030], .forbidden),
            ("that expires at the same time", [:], .forbidden),
        ] as [(String, [String: JSONValue], HTTPResponse.Status)]
    )
    func `a token that permits less is refused, and the session goes on`(
        name: String,
        claims: [String: JSONValue],
        status: HTTPResponse.Status
    ) async throws {
        let key = try JWTKey(.hs256, id: nil, text: Self.secret)
        let bench = try bench(AccessKeys(jwt: [key]))
        let (first, second) = try (token(key, [:]), token(key, claims))
        try await bench.test { http in
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: first))
            let refused = try await http.send(.patch, session.path, token: second)
            #expect(refused.status == status, "\(refused.text)")
            #expect(refused.headers[.contentType] == "application/problem+json" && !refused.text.contains(second))
            #expect(try await expiry(session, in: bench) == Self.noon + 60)
            let body = JSONValue.object(["access_token": .string(second)]).text
            let inBody = try await http.send(
                .patch,
                session.path,
                type: "application/json",
                token: first,
                body: body
            )
            #expect(inBody.status == status, "\(inBody.text)")
            #expect(try await expiry(session, in: bench) == Self.noon + 60)
        }
    }

    @Test func `a later token extends all sessions of its user in the channel that it permits`() async throws {
        let key = try JWTKey(.hs256, id: nil, text: Self.secret)
        let bench = try bench(AccessKeys(jwt: [key]))
        let later: JSONValue = .integer(Self.noon + 120)
        let (first, viewers, second) = try (
            token(key, [:]), token(key, ["exp": later, "role": "recvonly"]), token(key, ["exp": later])
        )
        let (bob, longest) = try (token(key, ["sub": "bob"]), token(key, ["exp": .integer(Self.noon + 900)]))
        let elsewhere = try token(key, ["channel_id": "other"])
        try await bench.test { http in
            let publisher = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: first))
            let viewer = try OpenSession(try await http.post("/whep/lobby", Offers.watch, token: first))
            let long = try OpenSession(try await http.post("/whep/lobby", Offers.watch, token: longest))
            let others = [
                try OpenSession(try await http.post("/whep/lobby", Offers.watch, token: bob)),
                try OpenSession(try await http.post("/whep/other", Offers.watch, token: elsewhere)),
            ]
            #expect(try await http.send(.patch, viewer.path, token: viewers).status == .noContent)
            #expect(try await expiry(viewer, in: bench) == Self.noon + 120)
            #expect(try await expiry(publisher, in: bench) == Self.noon + 60, "the token does not permit to publish")
            #expect(try await http.send(.patch, publisher.path, token: second).status == .noContent)
            #expect(try await expiry(publisher, in: bench) == Self.noon + 120)
            #expect(try await expiry(long, in: bench) == Self.noon + 900)
            #expect(try await http.send(.patch, publisher.path, token: longest).status == .noContent)
            for session in [publisher, viewer, long] {
                #expect(try await expiry(session, in: bench) == Self.noon + 900)
            }
            for session in others { #expect(try await expiry(session, in: bench) == Self.noon + 60) }
        }
    }

    @Test func `a newly signed URL extends the session of a signed URL`() async throws {
        let keys = URLKeys(["k"], validity: 60)
        let bench = try bench(AccessKeys(urls: keys))
        let path = "/whip/my%20lobby"
        let signed = { (path: String, timestamp: Int64) in
            try "auth_key=" + keys.signature(path: path, timestamp: timestamp).text
        }
        let (first, second) = try (signed(path, Self.noon), signed(path, Self.noon + 60))
        let (expired, other) = try (signed(path, Self.noon - 60), signed("/whep/my%20lobby", Self.noon + 60))
        try await bench.test { http in
            let session = try OpenSession(try await http.post("\(path)?\(first)", Offers.publish))
            for wrong in [expired, other, "auth_key=1-2-3-4", ""] {
                let refused = try await http.send(.patch, "\(session.path)?\(wrong)")
                #expect(refused.status == .unauthorized, "\(refused.text)")
            }
            #expect(try await expiry(session, in: bench) == Self.noon + 60)
            #expect(try await http.send(.patch, "\(session.path)?\(second)").status == .noContent)
            #expect(try await expiry(session, in: bench) == Self.noon + 120)
            #expect(try await http.send(.patch, "\(session.path)?\(second)").status == .forbidden)
        }
    }

    @Test func `the session of a signed URL's viewer has no end, and a newly signed URL is accepted`() async throws {
        let keys = URLKeys(["k"], validity: 60)
        let bench = try bench(AccessKeys(urls: keys))
        let signed = { (timestamp: Int64) in
            try "auth_key=" + keys.signature(path: "/whep/lobby", timestamp: timestamp).text
        }
        let (first, second, expired) = try (signed(Self.noon), signed(Self.noon + 60), signed(Self.noon - 60))
        try await bench.test { http in
            let session = try OpenSession(try await http.post("/whep/lobby?\(first)", Offers.watch))
            #expect(try await expiry(session, in: bench) == nil)
            #expect(try await http.send(.patch, "\(session.path)?\(expired)").status == .unauthorized)
            #expect(try await http.send(.patch, "\(session.path)?\(second)").status == .noContent)
            #expect(try await expiry(session, in: bench) == nil)
        }
    }

    @Test func `an app's token extends a session as text and as an object`() async throws {
        let app = try AppKey(appID: "live", key: "correct-horse-battery")
        let bench = try bench(AccessKeys(apps: AppKeys([app])))
        let tokens = try (1...4).map {
            try app.token(channelID: "lobby", userID: $0 == 4 ? "bob" : "alice", expiry: Self.noon + Int64($0) * 60)
        }
        try await bench.test { http in
            let first = tokens[0].parameter
            let session = try OpenSession(try await http.post("/whip/lobby", Offers.publish, token: first))
            #expect(try await http.send(.patch, session.path, token: tokens[1].parameter).status == .noContent)
            let refresh = { (fields: [String: JSONValue]) in
                let body = JSONValue.object(["access_token": .object(fields)]).text
                return try await http.send(.patch, session.path, type: "application/json", token: first, body: body)
            }
            #expect(try await refresh(tokens[2].fields).status == .noContent)
            #expect(try await expiry(session, in: bench) == Self.noon + 180)
            #expect(try await refresh(tokens[3].fields).status == .forbidden)
            #expect(try await refresh([:]).status == .forbidden)
            #expect(try await expiry(session, in: bench) == Self.noon + 180)
        }
    }

    @Test func `a request to refresh has a JSON object or no body`() async throws {
        try await SignalingBench().test { http in
            let session = try await http.publish()
            let text = try await http.send(.patch, session.path, type: "application/json", body: "[]")
            #expect(text.status == .badRequest)
            let other = try await http.send(.patch, session.path, type: "text/plain", ifMatch: "*", body: "x")
            #expect(other.status == .unsupportedMediaType)
            let nothing = try await http.send(.patch, session.path)
            #expect(nothing.status == .forbidden && nothing.text.contains("nothing to refresh"))
            let options = try await http.send(.options, session.path)
            #expect(options.headers[.acceptPatch] == "application/trickle-ice-sdpfrag, application/json")
        }
    }
}
