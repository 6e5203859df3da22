import Base
import ChannelTypes
import JSON
import Logging
import Testing
import Wire

@testable import Access

@Suite struct RefreshRequestTests {
    private static let noon: Int64 = 1_500_000_000
    private static let lobby = ChannelName("lobby")!

    private func authorizer(_ keys: AccessKeys) -> SignatureAuthorizer {
        SignatureAuthorizer(
            keys: keys,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            now: { Double(Self.noon) }
        )
    }

    private func request(
        _ token: JSONValue,
        user: UserIdentity?,
        role: Role = .sendrecv,
        kinds: Set<MediaKind> = [.audio, .video]
    ) -> RefreshRequest {
        RefreshRequest(
            channel: Self.lobby,
            role: role,
            user: user,
            kinds: kinds,
            metadata: ["access_token": token]
        )
    }

    /// `nil` for an accepted token, else the sentence for the client, empty without one.
    private func refusal(_ decision: AccessDecision) -> String? {
        if case .denied(let reason) = decision { reason ?? "" } else { nil }
    }

    @Test(
        arguments: [
            ("the same", [:], nil),
            ("of another channel", ["channel_id": "other"], "The token is for another channel."),
            ("of another user", ["sub": "bob"], "The new token is for another user."),
            ("without a user", ["sub": nil], "The new token is for another user."),
            ("that expired", ["exp": 1_499_999_000], "The token expired."),
            ("that permits less", ["role": "recvonly"], "The token's role does not permit to publish."),
            ("without video", ["video": false], "The new token does not permit video."),
        ] as [(String, [String: JSONValue?], String?)]
    )
    func `a new JWT has to permit what the old one did`(
        name: String,
        changes: [String: JSONValue?],
        expected: String?
    ) async throws {
        let key = try JWTKey(.hs256, id: nil, text: TokenVectors.secret)
        var claims: [String: JSONValue] = [
            "channel_id": "lobby", "sub": "alice", "exp": .integer(Self.noon + 60), "max_channel_connections": 1,
        ]
        for (name, value) in changes { claims[name] = value }
        let token = try #require(key.token(claims: claims))
        let decision = await authorizer(AccessKeys(jwt: [key])).refresh(
            request(.string(token), user: UserIdentity("alice", .authorized))
        )
        #expect(refusal(decision) == expected)
        if case .allowed(let grants) = decision {
            #expect(grants.permissions.expiry == AccessExpiry(unixSeconds: Self.noon + 60))
        }
    }

    @Test func `a name that a client chose does not have to be in the token`() async throws {
        let key = try JWTKey(.hs256, id: nil, text: TokenVectors.secret)
        let token = try #require(key.token(claims: ["channel_id": "lobby", "exp": .integer(Self.noon + 60)]))
        let authorizer = authorizer(AccessKeys(jwt: [key]))
        for user in [nil, UserIdentity("alice", .chosen)] {
            #expect(refusal(await authorizer.refresh(request(.string(token), user: user))) == nil)
        }
    }

    @Test(arguments: [true, false])
    func `an app's token is accepted as text and as an object`(isText: Bool) async throws {
        let app = try AppKey(appID: "abc", key: "abckey")
        let authorizer = authorizer(AccessKeys(apps: AppKeys([app])))
        let token = try app.token(channelID: "lobby", userID: "alice", expiry: Self.noon + 60)
        let other = try app.token(channelID: "lobby", userID: "bob", expiry: Self.noon + 60)
        func value(_ token: AppToken) throws -> JSONValue {
            isText ? .string(token.parameter) : .object(token.fields)
        }
        let alice = UserIdentity("alice", .authorized)
        #expect(refusal(await authorizer.refresh(request(try value(token), user: alice))) == nil)
        #expect(refusal(await authorizer.refresh(request(try value(other), user: alice)))?.isEmpty == false)
    }

    @Test(arguments: [("a", nil), ("b", "The new token is of another app."), (nil, nil)] as [(String?, String?)])
    func `an app's member is extended by its own app`(old: String?, expected: String?) async throws {
        let app = try AppKey(appID: "a", key: "abckey")
        let authorizer = authorizer(AccessKeys(apps: AppKeys([app, try AppKey(appID: "b", key: "abckey")])))
        let token = try app.token(channelID: "lobby", userID: "alice", expiry: Self.noon + 60)
        var request = request(.object(token.fields), user: UserIdentity("alice", .authorized))
        request.app = old
        #expect(refusal(await authorizer.refresh(request)) == expected)
    }

    @Test func `without signatures there is nothing to refresh`() async {
        #expect(refusal(await OpenAuthorizer().refresh(request("token", user: nil)))?.isEmpty == false)
    }
}
