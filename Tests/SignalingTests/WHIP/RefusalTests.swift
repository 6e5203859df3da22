import Access
import ChannelTypes
import HTTPTypes
import HummingbirdTesting
import JSON
import Room
import Testing

@testable import Sora
@testable import Web

/// The problem documents of refused publishers.
@Suite struct RefusalTests {
    static func keys() throws -> AccessKeys {
        let apps = try [
            AppKey(appID: "live", key: "0123456789abcdef"),
            AppKey(appID: "off", key: "0123456789abcdef", isEnabled: false),
        ]
        return AccessKeys(apps: AppKeys(apps), urls: URLKeys(["testkey"], validity: 0))
    }

    private func expect(
        _ response: TestResponse,
        _ kind: RefusalKind,
        _ location: SourceLocation = #_sourceLocation
    ) throws {
        let document = try JSONValue(parsing: response.text)
        #expect(document["type"]?.string == "urn:nagare:problem:\(kind.rawValue)", sourceLocation: location)
        #expect(document["code"]?.integer == Int(kind.code.rawValue), sourceLocation: location)
        #expect(document["status"]?.integer == response.status.code, sourceLocation: location)
    }

    @Test(
        arguments: [
            ("x", RefusalKind.urlMalformed), ("5000000000-0-0-00000000000000000000000000000000", .urlSignatureWrong),
            (nil, .urlExpired),
        ] as [(String?, RefusalKind)]
    )
    func `a wrong signature of a URL says what is wrong`(signature: String?, kind: RefusalKind) async throws {
        let keys = try Self.keys()
        try await OperatorsBench.run(keys: keys) { bench in
            let expired = try keys.urls?.signature(path: "/whip/lobby", timestamp: 1_500_000_000).text
            let path = "/whip/lobby?auth_key=\(signature ?? expired ?? "")"
            try expect(await bench.clients.post(path, Offers.publish), kind)
        }
    }

    @Test(
        arguments: [
            ("live", 1_500_000_000, "lobby", RefusalKind.tokenExpired), ("live", 9_000_000_000, "hall", .tokenInvalid),
            ("off", 9_000_000_000, "lobby", .appDisabled), ("new", 9_000_000_000, "lobby", .appUnknown),
        ] as [(String, Int64, String, RefusalKind)]
    )
    func `a wrong token of an app says what is wrong`(
        app: String,
        expiry: Int64,
        channel: String,
        kind: RefusalKind
    ) async throws {
        try await OperatorsBench.run(keys: Self.keys()) { bench in
            let key = try AppKey(appID: app, key: "0123456789abcdef")
            let token = try key.token(channelID: channel, userID: "u", expiry: expiry).parameter
            try expect(await bench.clients.post("/whip/lobby", Offers.publish, token: token), kind)
        }
    }

    @Test(
        arguments: [
            ("", "", .tokenMalformed), ("", "4.2.", .tokenInvalid), (nil, "5.1.", .tokenMalformed),
            (nil, "4.2.", .tokenInvalid),
        ] as [(String?, String, RefusalKind)]
    )
    func `a strict app's token with moved fields takes nobody's place, and says what is wrong`(
        issued: String?,
        presented: String,
        kind: RefusalKind
    ) async throws {
        let (made, own) = try (
            AppKey(appID: "live", key: "0123456789abcdef"),
            AppKey(appID: "live", key: "0123456789abcdef", mode: .strict)
        )
        try await OperatorsBench.run(keys: AccessKeys(apps: AppKeys([own]))) { bench in
            let real = try own.token(channelID: "room", userID: "12", expiry: 9_000_000_000).parameter
            let session = try OpenSession(await bench.clients.post("/whip/room", Offers.publish, token: real))
            let token = try made.token(channelID: "room1", userID: "2", nonce: issued, expiry: 9_000_000_000)
            let moved: [String: JSONValue] = ["channelid": "room", "userid": "12", "nonce": .string(presented)]
            let stolen = try AppToken(fields: token.fields.merging(moved) { $1 }).parameter
            try expect(await bench.clients.post("/whip/room", Offers.publish, token: stolen), kind)
            #expect(try await bench.clients.send(.get, session.path, token: stolen).status == .unauthorized)
            #expect(try await bench.clients.send(.get, session.path, token: real).status == .noContent)
        }
    }

    @Test func `a channel of another app says so, to publishers, viewers and readers of its events`() async throws {
        let keys = AccessKeys(
            apps: AppKeys(try ["a", "b"].map { try AppKey(appID: $0, key: "0123456789abcdef") }),
            urls: URLKeys(["testkey"], validity: 0)
        )
        try await OperatorsBench.run(keys: keys) { bench in
            let token = { (app: String) in
                try AppKey(appID: app, key: "0123456789abcdef")
                    .token(channelID: "lobby", userID: "u", expiry: 9_000_000_000).parameter
            }
            _ = try OpenSession(await bench.clients.post("/whip/lobby", Offers.publish, token: try token("a")))
            #expect(try await bench.call(.get, "/v1/channels/lobby")["app"] == "a")
            for (path, offer) in [("/whip/lobby", Offers.publish), ("/whep/lobby", Offers.watch)] {
                try expect(await bench.clients.post(path, offer, token: try token("b")), .channelOfOtherApp)
            }
            for path in ["/api/channels/lobby", "/api/channels/lobby/events"] {
                try expect(await bench.clients.send(.get, path, token: try token("b")), .channelOfOtherApp)
            }
            #expect(try await bench.clients.send(.get, "/api/channels/lobby", token: try token("a")).status == .ok)
        }
    }

    @Test func `a text that is no token says so`() async throws {
        try await OperatorsBench.run(keys: Self.keys()) { bench in
            try expect(await bench.clients.post("/whip/lobby", Offers.publish, token: "x"), .tokenMalformed)
        }
    }

    @Test func `a ban, a blocked stream and a limit say so`() async throws {
        try await OperatorsBench.run(limits: RoomLimits(publishersPerChannelMax: 1)) { bench in
            try await bench.call(.put, "/v1/blocks/streams/lobby")
            let token = try await bench.token(of: "alice")
            try expect(await bench.clients.post("/whip/lobby", Offers.publish, token: token), .streamBlocked)
            try await bench.call(.put, "/v1/blocks/users/alice")
            try expect(await bench.clients.post("/whip/lobby", Offers.publish, token: token), .banned)
            try await bench.call(.delete, "/v1/blocks/users/alice")
            try await bench.call(.delete, "/v1/blocks/streams/lobby")
            _ = try await bench.publish(as: "bob")
            try expect(await bench.clients.post("/whip/lobby", Offers.publish, token: token), .publishersFull)
        }
    }

    /// A refusal of ingest, and how a publisher comes to it.
    struct Case: Sendable, CustomTestStringConvertible {
        let kind: RefusalKind
        let status: Int
        let words: String
        var limits = RoomLimits()
        /// What an operator blocks.
        var block: Block.Subject?
        /// The query of the signed URL; `nil` for a valid one.
        var query: String?
        /// The app and the user of a token in place of a URL.
        var app: (id: String, user: String)?
        /// Whether another publisher is there: with the same credential, or with the token of another user.
        var before: (app: String, user: String)?
        var isBefore = false

        var testDescription: String { "\(kind.rawValue): \(words)" }
    }

    static let cases: [Case] = [
        Case(kind: .urlMalformed, status: 401, words: "auth_key", query: "auth_key=x"),
        Case(
            kind: .urlSignatureWrong,
            status: 401,
            words: "signature",
            query: "auth_key=5000000000-0-0-00000000000000000000000000000000"
        ),
        Case(kind: .urlExpired, status: 401, words: "expired", query: "expired"),
        Case(kind: .streamBlocked, status: 403, words: "blocked publishing", block: .stream(ChannelName("lobby")!)),
        Case(kind: .banned, status: 403, words: "banned", block: .user("alice"), app: ("live", "alice")),
        Case(
            kind: .alreadyPublishing,
            status: 409,
            words: "publishes to the channel already",
            limits: RoomLimits(duplicateUsers: .refuse),
            isBefore: true
        ),
        Case(
            kind: .publishersFull,
            status: 503,
            words: "The channel has reached its limit of publishers",
            limits: RoomLimits(publishersPerChannelMax: 1),
            before: ("live", "bob")
        ),
        Case(
            kind: .publishersFull,
            status: 503,
            words: "The server has reached its limit of publishers",
            limits: RoomLimits(publishersMax: 1),
            before: ("live", "bob")
        ),
        Case(
            kind: .publishersFull,
            status: 503,
            words: "The app has reached its limit of publishers",
            limits: RoomLimits(publishersPerAppMax: 1),
            app: ("live", "alice"),
            before: ("live", "bob")
        ),
        Case(
            kind: .overLimit,
            status: 503,
            words: "participants",
            limits: RoomLimits(participantsPerChannelMax: 1),
            before: ("live", "bob")
        ),
        Case(kind: .appDisabled, status: 401, words: "disabled", app: ("off", "alice")),
        Case(kind: .appUnknown, status: 401, words: "app", app: ("new", "alice")),
    ]

    private static func token(_ app: String, _ user: String) throws -> String {
        try AppKey(appID: app, key: "0123456789abcdef")
            .token(channelID: "lobby", userID: user, expiry: 9_000_000_000).parameter
    }

    @Test(arguments: cases)
    func `each refusal of a publisher is told apart`(row: Case) async throws {
        let keys = try Self.keys()
        try await OperatorsBench.run(keys: keys, limits: row.limits) { bench in
            if let subject = row.block { _ = try await bench.bench.directory.block(Block(subject)) }
            let urls = try #require(keys.urls)
            let path = "/whip/lobby"
            let signature = { (timestamp: Int64) in
                "auth_key=\(try urls.signature(path: path, timestamp: timestamp).text)"
            }
            if let before = row.before {
                let token = try Self.token(before.app, before.user)
                _ = try OpenSession(await bench.clients.post(path, Offers.publish, token: token))
            }
            let valid = try signature(9_000_000_000)
            if row.isBefore { _ = try OpenSession(await bench.clients.post("\(path)?\(valid)", Offers.publish)) }
            let response: TestResponse
            if let app = row.app {
                response = try await bench.clients.post(path, Offers.publish, token: try Self.token(app.id, app.user))
            } else {
                let query = row.query == "expired" ? try signature(1_500_000_000) : row.query ?? valid
                response = try await bench.clients.post("\(path)?\(query)", Offers.publish)
            }
            #expect(Int(response.status.code) == row.status)
            try expect(response, row.kind)
            let detail = try JSONValue(parsing: response.text)["detail"]?.string ?? ""
            #expect(detail.contains(row.words), "\(detail)")
        }
    }

    /// The codes that push SDKs give to `onConnectFail`, each with what it means there: the URL is invalid, the server refuses the
    /// stream, the connection failed.
    @Test(
        arguments: [
            (.urlMalformed, 0x3002_0905), (.urlExpired, 0x3002_0904), (.streamBlocked, 0x3002_0904),
            (.publishersFull, 0x3002_0904), (.alreadyPublishing, 0x3002_0904), (.overLimit, 0x3002_0903),
        ] as [(RefusalKind, UInt32)]
    )
    func `a refused push has the code that push SDKs have for it`(kind: RefusalKind, code: UInt32) {
        #expect(kind.code.rawValue == code)
        // These are of the device alone.
        #expect(
            !ResultCode.allCases.contains {
                [0x3002_0901, 0x3002_0902, 0x3001_0900, 0x3001_0901].contains($0.rawValue)
            }
        )
    }

    @Test func `kinds of refusals that share a code have types of their own`() {
        #expect(Set(RefusalKind.allCases.map(\.rawValue)).count == RefusalKind.allCases.count)
        #expect(Set(ResultCode.allCases.map(\.rawValue)).count == ResultCode.allCases.count)
    }

    @Test(arguments: [
        (RoomError.publishersFull, "PUBLISHERS-FULL"), (.nodePublishersFull, "PUBLISHERS-FULL"),
        (.appPublishersFull, "PUBLISHERS-FULL"), (.alreadyPublishing, "ALREADY-PUBLISHING"),
        (.userPresent, "DUPLICATED-CHANNEL-ID"), (.banned(untilUnixSeconds: nil), "BANNED"),
        (.streamBlocked(untilUnixSeconds: 9), "STREAM-BLOCKED"), (.channelFull, "CHANNEL-FULL"),
    ])
    func `Sora clients are closed with a reason of the same kinds`(error: RoomError, reason: String) {
        let close = SoraClose(error)
        #expect(close.close == WebSocketClose(4490, reason))
        #expect(close.message == HTTPFailure(error).message)
    }
}
