import AccessTestSupport
import ChannelTypes
import Foundation
import JSON
import Logging
import Testing

@testable import Access

@Suite struct AppTokenTests {
    /// The published vector.
    static let hash = "3c9ee8d9f8734f0b7560ed8022a0590659113955819724fc9345ab8eedf84f31"
    static let expiry: Int64 = 1_699_423_634
    static let fields: [String: JSONValue] = [
        "appid": "abc", "channelid": "abcChannel", "userid": "abcUser", "nonce": "", "timestamp": .integer(expiry),
        "token": .string(hash),
    ]

    private func key(_ isEnabled: Bool = true, mode: AppTokenMode = .lenient) throws -> AppKey {
        try AppKey(appID: "abc", key: "abckey", isEnabled: isEnabled, mode: mode)
    }

    private func parameter(_ fields: [String: JSONValue]) -> String {
        Data(JSONValue.object(fields).bytes).base64EncodedString()
    }

    /// The error of parsing and verifying; `nil` for a valid token.
    private func error(
        _ fields: [String: JSONValue],
        at now: Int64 = expiry - 1,
        isEnabled: Bool = true
    ) throws -> AppTokenError? {
        let keys = AppKeys([try key(isEnabled)])
        do throws(AppTokenError) {
            try AppToken(fields: fields).verify(keys, at: now)
            let again = try AppToken(parameter: parameter(fields))
            #expect(try again == AppToken(fields: fields))
            return nil
        } catch {
            return error
        }
    }

    // MARK: The vector

    @Test func `the published token is valid, and made again`() throws {
        #expect(try error(Self.fields) == nil)
        let made = try key().token(channelID: "abcChannel", userID: "abcUser", nonce: "", expiry: Self.expiry)
        #expect(made.fields == Self.fields)
        #expect(try AppToken(parameter: made.parameter) == made)
    }

    @Test func `the parameter may be standard or URL-safe Base64, padded or not`() throws {
        // A nonce whose Base64 has the symbols that differ.
        let token = try key().token(channelID: "c", userID: "u", nonce: "~~~???>>>", expiry: Self.expiry)
        let text = token.parameter
        let safe = text.replacing("+", with: "-").replacing("/", with: "_")
        #expect(text != safe)
        for form in [text, safe, text.replacing("=", with: ""), safe.replacing("=", with: "")] {
            #expect(try AppToken(parameter: form) == token)
        }
    }

    @Test func `separate fields may be written in camel case, and others are ignored`() throws {
        var fields = Self.fields
        for (lower, camel) in [("appid", "appId"), ("channelid", "channelId"), ("userid", "userId")] {
            fields[camel] = fields.removeValue(forKey: lower)
        }
        fields["nonce"] = nil
        fields["gslb"] = ["https://gslb.example.org"]
        #expect(try error(fields) == nil)
    }

    // MARK: Every field wrong in turn

    @Test(
        arguments: [
            ("appid", "abd", .appUnknown("abd"), 33_620_481),
            ("appid", "ABC", .appUnknown("ABC"), 33_620_481),
            ("channelid", "abcChanneL", .wrongHash, 33_620_485),
            ("userid", "abcUsers", .wrongHash, 33_620_485),
            ("timestamp", 1_699_423_635, .wrongHash, 33_620_485),
            ("timestamp", 1, .wrongHash, 33_620_485),
            ("token", .string(hash.replacing("3c9e", with: "3c9f")), .wrongHash, 33_620_485),
        ] as [(String, JSONValue, AppTokenError, UInt32)]
    )
    func `a changed field is refused`(name: String, value: JSONValue, expected: AppTokenError, code: UInt32) throws {
        var fields = Self.fields
        fields[name] = value
        let found = try #require(try error(fields))
        #expect(found == expected && found.resultCode.rawValue == code)
    }

    @Test(
        arguments: [
            ("appid", [nil, .null, "", 5, "a b", "a.b", "é"]), ("channelid", [nil, "", true, "a/b", "room\n"]),
            ("userid", [nil, "", [], "a:b", .string(String(repeating: "u", count: 65))]),
            ("nonce", [7, "two words", "\u{7F}", .string(String(repeating: "n", count: 129))]),
            (
                "timestamp",
                [
                    nil, .null, 0, -1, "1699423634", 1_699_423_634.5, 10_000_000_000, 1_699_423_634_000,
                    .integer(Int64.max),
                    .integer(Int64.min), 1e300, true,
                ]
            ),
            (
                "token",
                [
                    nil, "", 1, .string(hash.uppercased()), .string(String(hash.dropLast())), .string(hash + "0"),
                    .string("g" + hash.dropFirst()),
                ]
            ),
        ] as [(String, [JSONValue?])]
    )
    func `a malformed field is a bad parameter`(name: String, values: [JSONValue?]) throws {
        for value in values {
            var fields = Self.fields
            fields[name] = value
            let found = try #require(try error(fields), "\(name) \(String(describing: value))")
            #expect(found.resultCode.rawValue == 16_974_081)
            #expect(found.message.contains("\"\(name)\""), "\(found.message)")
        }
    }

    @Test func `identifiers have 1 to 64 characters`() throws {
        for text in ["a", "A-Z_09", String(repeating: "x", count: 64)] {
            let token = try key().token(channelID: text, userID: text, expiry: Self.expiry)
            #expect(try error(token.fields) == nil)
        }
    }

    @Test func `the checks have an order`() throws {
        // Wrong in all ways, and then in one less each time.
        var fields = Self.fields
        fields["appid"] = "other"
        fields["userid"] = "someone"
        let late = Self.expiry
        #expect(try error(fields, at: late, isEnabled: false) == .appUnknown("other"))
        fields["appid"] = "abc"
        #expect(try error(fields, at: late, isEnabled: false) == .appDisabled("abc"))
        #expect(try error(fields, at: late) == .wrongHash)
        #expect(try error(Self.fields, at: late) == .expired(at: Self.expiry))
        #expect(AppTokenError.appDisabled("abc").resultCode.rawValue == 33_620_482)
        #expect(AppTokenError.expired(at: late).resultCode.rawValue == 33_620_485)
    }

    // MARK: Time

    @Test(arguments: [(-86_400, true), (-1, true), (0, false), (1, false), (86_400, false)] as [(Int64, Bool)])
    func `a token is valid before its second, not in it`(offset: Int64, isValid: Bool) throws {
        #expect(try error(Self.fields, at: Self.expiry + offset) == (isValid ? nil : .expired(at: Self.expiry)))
    }

    @Test func `a duration in place of a time is named`() throws {
        let token = try key().token(channelID: "c", userID: "u", expiry: 86_400)
        let found = try #require(try error(token.fields, at: Self.expiry))
        #expect(found == .expiryIsDuration(86_400) && found.message.contains("duration"))
        let last = try key().token(channelID: "c", userID: "u", expiry: 9_999_999_999)
        #expect(try error(last.fields) == nil)
    }

    // MARK: Nonce

    @Test func `the hash may be made with the nonce or without it`() throws {
        var fields = Self.fields
        fields["nonce"] = "AK-1"
        #expect(try error(fields) == nil, "made without")
        let with = try key().token(channelID: "abcChannel", userID: "abcUser", nonce: "AK-1", expiry: Self.expiry)
        #expect(with.hash != Self.hash)
        #expect(try error(with.fields) == nil, "made with")
        fields = with.fields
        fields["nonce"] = "AK-2"
        #expect(try error(fields) == .wrongHash)
        fields["nonce"] = ""
        #expect(try error(fields) == .wrongHash)
    }

    // MARK: Fields that are moved

    /// The token with other fields, and its own hash.
    private func moved(_ token: AppToken, to read: [String], expiry: Int64 = Self.expiry) throws -> AppToken {
        var fields = token.fields
        for (name, value) in zip(["channelid", "userid", "nonce"], read) { fields[name] = .string(value) }
        fields["timestamp"] = .integer(expiry)
        return try AppToken(fields: fields)
    }

    @Test(
        arguments: [
            (["room1", "2", ""], ["room", "12", ""]), (["room", "12", ""], ["room1", "2", ""]),
            (["room", "hanako2", ""], ["room", "hanako", "2"]), (["room", "u", "x"], ["room", "ux", ""]),
        ] as [([String], [String])]
    )
    func `fields of a published token can be moved, but not where tokens are strict`(
        issued: [String],
        read: [String]
    ) throws {
        let (lenient, strict) = (AppKeys([try key()]), AppKeys([try key(mode: .strict)]))
        let token = try key().token(channelID: issued[0], userID: issued[1], nonce: issued[2], expiry: Self.expiry)
        let stolen = try moved(token, to: read)
        try stolen.verify(lenient, at: 0)
        #expect(throws: AppTokenError.self) { try stolen.verify(strict, at: 0) }
    }

    @Test(arguments: [
        ("room", "12", ""), ("room1", "2", "x"), ("1", "2", "3."), ("12", "1", "1.1."), ("1", "11", ".1.1."),
        ("11", "11", "11.11."), ("a-_", "0", "0-"), ("123456789", "0", ""), ("1234567890", "1", "0."),
    ])
    func `a strict token has one reading`(channel: String, user: String, rest: String) throws {
        let keys = AppKeys([try key(mode: .strict)])
        let nonce = "\(channel.count).\(user.count).\(rest)"
        let token = try key().token(channelID: channel, userID: user, nonce: nonce, expiry: Self.expiry)
        let text = Array("\(channel)\(user)\(nonce)\(Self.expiry)")
        var readings: [AppToken] = []
        for first in 1..<text.count {
            for second in (first + 1)..<text.count {
                for third in second..<text.count {
                    let read = [text[..<first], text[first..<second], text[second..<third]].map { String($0) }
                    guard let expiry = Int64(String(text[third...])),
                        let other = try? moved(token, to: read, expiry: expiry),
                        (try? other.verify(keys, at: 0)) != nil
                    else { continue }
                    readings.append(other)
                }
            }
        }
        #expect(readings == [token])
    }

    @Test(arguments: [
        "", "x", "10", "10.7", "9.7.", "10.8.", "7.10.", "010.7.", "10.07.", "x10.7.", "10.7.5", "10.7.x5",
    ])
    func `the nonce of a strict token is required, and its hash has it`(nonce: String) throws {
        let (lenientKey, strictKey) = (try key(), try key(mode: .strict))
        let (lenient, strict) = (AppKeys([lenientKey]), AppKeys([strictKey]))
        let make = { (key: AppKey, nonce: String) throws -> AppToken in
            try key.token(channelID: "abcChannel", userID: "abcUser", nonce: nonce, expiry: Self.expiry)
        }
        let token = try make(lenientKey, nonce)
        try token.verify(lenient, at: 0)
        let refused = #expect(throws: AppTokenError.self) { try token.verify(strict, at: 0) }
        #expect(refused?.resultCode == .badParameter)
        #expect(refused?.message.contains("\"nonce\" must begin with \"10.7.\"") == true)
        #expect(throws: AppTokenError.self, "nor is it made") { try make(strictKey, nonce) }
        for right in ["10.7.", "10.7.x", "10.7.5x", "10.7.~"] {
            for keys in [lenient, strict] { try make(strictKey, right).verify(keys, at: 0) }
            // The published hash, which has no nonce.
            var fields = Self.fields
            fields["nonce"] = .string(right)
            try AppToken(fields: fields).verify(lenient, at: 0)
            #expect(throws: AppTokenError.wrongHash) { try AppToken(fields: fields).verify(strict, at: 0) }
        }
    }

    @Test func `a token is made as a strict one, unless it gets another nonce`() throws {
        let token = try key().token(channelID: "abcChannel", userID: "abcUser", expiry: Self.expiry)
        #expect(token.nonce == "10.7.")
        try token.verify(AppKeys([try key(mode: .strict)]), at: 0)
    }

    @Test func `the reason for the longest IDs fits in a WebSocket close`() throws {
        let (id, strictKey) = (String(repeating: "i", count: 64), try key(mode: .strict))
        let refused = #expect(throws: AppTokenError.self) {
            try strictKey.token(channelID: id, userID: id, nonce: "", expiry: Self.expiry)
        }
        #expect((refused?.reason.utf8.count ?? 999) <= 123)
    }

    // MARK: Hostile input

    @Test(arguments: [
        "", "=", "====", "A", "not base64!", "e30", "bnVsbA==", "W10=", "eyJh", "e30=e30=", "eyJhIjoxfQ\n",
        "=eyJhIjoxfQ",
        "\u{0}", "é", String(repeating: "A", count: 2_732), String(repeating: "A", count: 2_733),
        String(repeating: "A", count: 1 << 20),
    ])
    func `a text that is no token is a bad parameter`(text: String) {
        let found = #expect(throws: AppTokenError.self) { try AppToken(parameter: text) }
        #expect(found?.resultCode.rawValue == 16_974_081)
    }

    @Test(arguments: [
        String(repeating: "[", count: 1_000),
        #"{"x":"# + String(repeating: "[", count: 100) + String(repeating: "]", count: 100) + "}",
        "{" + (0..<40).map { "\"m\($0)\":1" }.joined(separator: ",") + "}", #"{"x":{"a":[],"b":[],"c":[],"d":[]}}"#,
        #"{"x":""# + String(repeating: "y", count: 2_100) + #""}"#, #"{"timestamp":1e400}"#, "{\"a\":\"\u{1}\"}",
    ])
    func `JSON beyond a few short members is not parsed`(json: String) {
        let text = Data(json.utf8).base64EncodedString()
        #expect(throws: AppTokenError.self) { try AppToken(parameter: text) }
    }

    @Test func `a changed character never makes another valid token`() throws {
        let keys = AppKeys([try key()])
        let honest = try AppToken(fields: Self.fields)
        let text = Array(honest.parameter.utf8)
        for index in text.indices {
            for symbol in "Aa9+-=".utf8 where symbol != text[index] {
                var changed = text
                changed[index] = symbol
                guard let token = try? AppToken(parameter: String(decoding: changed, as: UTF8.self)) else { continue }
                let isValid = (try? token.verify(keys, at: Self.expiry - 1)) != nil
                #expect(!isValid || token == honest)
            }
        }
    }

    @Test func `reasons fit in a WebSocket close and start with the code`() {
        let errors: [AppTokenError] = [
            .badParameter("\"channelid\" must have 1 to 64 characters, only A-Z, a-z, 0-9, _ and -."),
            .appUnknown(String(repeating: "a", count: 64)), .appDisabled(String(repeating: "a", count: 64)), .wrongHash,
            .expired(at: 9_999_999_999), .expiryIsDuration(999_999_999), .otherChannel, .otherUser,
        ]
        for error in errors { #expect(error.reason.utf8.count <= 123, "\(error.reason)") }
        #expect(AppTokenError.wrongHash.reason.hasPrefix("0x02010205 "))
        #expect(errors[0].reason.hasPrefix("0x01030101 "))
    }

    @Test func `keys are checked and never printed`() throws {
        for (id, key, problem) in [
            ("", "key", AppKey.Problem.invalidID), ("a b", "key", .invalidID), ("a", "", .invalidKey),
            ("a", "two words", .invalidKey), ("a", "line\n", .invalidKey),
            ("a", String(repeating: "k", count: 256), .invalidKey),
        ] {
            #expect(throws: problem) { try AppKey(appID: id, key: key) }
        }
        let key = try AppKey(appID: "abc", key: "horse-battery")
        var dumped = ""
        dump(AccessKeys(apps: AppKeys([key]), urls: URLKeys(["horse"])), to: &dumped)
        dump(key, to: &dumped)
        for text in ["\(key)", String(reflecting: key), dumped, "\(AccessKeys(apps: AppKeys([key])))"] {
            #expect(!text.contains("horse"))
        }
        let long = try AppKey(appID: "a", key: String(repeating: "k", count: 16))
        #expect(key.isShort && !long.isShort)
    }
}

/// Tokens of apps and signed URLs at the authorizer.
@Suite struct AppAuthorizationTests {
    private static let now = 1_500_000_000.0

    private func authorizer(
        jwt: [JWTKey] = [],
        urls: URLKeys? = nil,
        now: Double = now
    ) throws -> SignatureAuthorizer {
        SignatureAuthorizer(
            keys: AccessKeys(jwt: jwt, apps: AppKeys([try key()]), urls: urls),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            now: { now }
        )
    }

    private func key() throws -> AppKey { try AppKey(appID: "live", key: "correct-horse-battery") }
    private func token(_ expiry: Int64 = 1_500_000_060) throws -> AppToken {
        try key().token(channelID: "lobby", userID: "user-7", expiry: expiry)
    }

    @Test func `a token is accepted in all places, with every role`() async throws {
        let token = try token()
        for role in [Role.sendonly, .recvonly, .sendrecv] {
            var requests = [
                AccessRequest.newcomer(token.parameter, role: role),
                AccessRequest.newcomer(nil, role: role, bearer: token.parameter),
            ]
            for metadata in [JSONValue.object(token.fields), ["access_token": .object(token.fields)]] {
                var request = AccessRequest.newcomer(nil, role: role)
                request.metadata = metadata
                requests.append(request)
            }
            for request in requests {
                let grants = try #require(try await authorizer().admit(request).grants)
                #expect(grants.clientID == "user-7")
                #expect(grants.permissions.expiry == AccessExpiry(unixSeconds: 1_500_000_060, warningSeconds: 30))
                var join = JoinRequest(channel: request.channel, role: role)
                grants.apply(to: &join)
                #expect(join.expiry == grants.permissions.expiry && join.clientID == "user-7")
            }
        }
    }

    @Test func `JWTs and tokens of apps are told apart`() async throws {
        let jwt = try JWTKey(.hs256, text: TokenVectors.secret)
        let both = try authorizer(jwt: [jwt])
        let signed = try #require(jwt.token(claims: ["channel_id": "lobby"]))
        #expect(await both.admit(.newcomer(signed)).grants != nil)
        #expect(try await both.admit(.newcomer(token().parameter)).grants != nil)
        #expect(await both.admit(.newcomer("x.y.z")).reason == nil)
        #expect(await both.admit(.newcomer("xyz")).reason?.hasPrefix("0x01030101 ") == true)
        let none = SignatureAuthorizer(
            keys: AccessKeys(jwt: [jwt]),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        #expect(try await none.admit(.newcomer(token().parameter)).isDenied)
    }

    @Test func `the client is told what is wrong`() async throws {
        let late = try token(1_500_000_000)
        #expect(
            try await authorizer().admit(.newcomer(late.parameter)).reason
                == "0x02010205 The token expired at 1500000000; make a new one with a later timestamp."
        )
        #expect(try await authorizer(now: Self.now - 0.001).admit(.newcomer(late.parameter)).grants != nil)
        let other = try await authorizer().admit(.newcomer(token().parameter, channel: "other"))
        #expect(other.reason == AppTokenError.otherChannel.reason)
        var request = AccessRequest.newcomer(try token().parameter)
        request.clientID = "user-8"
        #expect(try await authorizer().admit(request).reason == AppTokenError.otherUser.reason)
        request.clientID = "user-7"
        #expect(try await authorizer().admit(request).grants != nil)
        #expect(try await authorizer().admit(.newcomer(nil)).isDenied)
    }

    @Test func `an HTTP request with a token of an app is decided by it`() async throws {
        let (lobby, other) = (ChannelName("lobby")!, ChannelName("other")!)
        let text = try token().parameter
        for action in [AuthorizedAction.publish(lobby), .watch(lobby), .observe(lobby), .control(lobby), .probe] {
            let expected = action == .control(lobby) ? Authorization.asOwner : .allowed
            #expect(try await authorizer().authorize(action, token: text) == expected)
            #expect(try await authorizer().authorize(action, token: nil) == .unauthenticated)
        }
        for action in [AuthorizedAction.publish(other), .watch(other), .observe(other), .control(other)] {
            #expect(
                try await authorizer().authorize(action, token: text)
                    == .refused(reason: AppTokenError.otherChannel.reason, isForbidden: true, kind: .tokenInvalid)
            )
        }
        let late = try authorizer(now: 1_500_000_060)
        let expired = AppTokenError.expired(at: 1_500_000_060).reason
        for action in [AuthorizedAction.publish(lobby), .control(lobby), .probe] {
            #expect(
                await late.authorize(action, token: text)
                    == .refused(reason: expired, isForbidden: false, kind: .tokenExpired)
            )
        }
    }

    @Test func `a session of an app's user is that user's, and of no other app or kind of token`() async throws {
        let jwt = try JWTKey(.hs256, text: TokenVectors.secret)
        let authorizer = SignatureAuthorizer(
            keys: AccessKeys(
                jwt: [jwt],
                apps: AppKeys([try key(), try AppKey(appID: "other", key: "correct-horse-battery")]),
                urls: URLKeys(["k"])
            ),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            now: { Self.now }
        )
        let owner = try await authorizer.verify(token().parameter).ownerProof
        #expect(owner != nil)
        #expect(try await authorizer.verify(token(1_500_000_999).parameter).ownerProof == owner, "a later token")
        let bob = try key().token(channelID: "lobby", userID: "user-8", expiry: 1_500_000_060)
        #expect(await authorizer.verify(bob.parameter).ownerProof != owner)
        let other = try AppKey(appID: "other", key: "correct-horse-battery")
            .token(channelID: "lobby", userID: "user-7", expiry: 1_500_000_060)
        #expect(await authorizer.verify(other.parameter).ownerProof != owner)
        let signed = try #require(jwt.token(claims: ["channel_id": "lobby", "client_id": "user-7"]))
        #expect(await authorizer.verify(signed).ownerProof != owner)
        let lobby = ChannelName("lobby")!
        let url = authorizer.verify(signature: "x", ofPath: "/whip/lobby", for: .publish(lobby))
        #expect(url != nil && url?.ownerProof == nil)
    }

    @Test(arguments: [(1_500_000_030.0, 1_500_000_030), (1_500_000_030.25, 1_500_000_031)] as [(Double, Int64)])
    func `the expiry of a JWT is granted too`(claim: Double, second: Int64) async throws {
        let jwt = try JWTKey(.hs256, text: TokenVectors.secret)
        let token = try #require(jwt.token(claims: ["channel_id": "lobby", "exp": .double(claim)]))
        let grants = try #require(try await authorizer(jwt: [jwt]).admit(.newcomer(token)).grants)
        #expect(grants.permissions.expiry == AccessExpiry(unixSeconds: second))
        let endless = try #require(jwt.token(claims: ["channel_id": "lobby"]))
        #expect(try await authorizer(jwt: [jwt]).admit(.newcomer(endless)).grants?.permissions.expiry == nil)
        let far = try #require(jwt.token(claims: ["channel_id": "lobby", "exp": 1e300]))
        #expect(try await authorizer(jwt: [jwt]).admit(.newcomer(far)).grants?.permissions.expiry?.unixSeconds == .max)
    }

    // MARK: Signed URLs

    @Test func `a signed URL permits its own action only, until its expiry`() async throws {
        let urls = URLKeys(["k"], validity: 60)
        let lobby = ChannelName("lobby")!
        let text = try urls.signature(path: "/whip/lobby", timestamp: 1_500_000_000).text
        let authorizer = try authorizer(urls: urls)
        let publish = try #require(authorizer.verify(signature: text, ofPath: "/whip/lobby", for: .publish(lobby)))
        #expect(publish.isOfURL)
        #expect(await authorizer.authorize(.publish(lobby), publish) == .allowed)
        #expect(
            await authorizer.authorize(.watch(lobby), publish)
                == .refused(reason: "The token's role does not permit to watch.", isForbidden: true)
        )
        #expect(
            await authorizer.authorize(.publish(ChannelName("other")!), publish)
                == .refused(reason: "The token is for another channel.", isForbidden: true)
        )
        var request = AccessRequest.newcomer(nil, role: .sendonly)
        request.credential = publish
        let grants = try #require(await authorizer.admit(request).grants)
        #expect(grants.clientID == nil && grants.permissions.role == .publisher)
        #expect(grants.permissions.expiry == AccessExpiry(unixSeconds: 1_500_000_060, warningSeconds: 60))
        request.role = .sendrecv
        #expect(await authorizer.admit(request).isDenied)

        let wrong = try #require(authorizer.verify(signature: text, ofPath: "/whip/Lobby", for: .publish(lobby)))
        #expect(
            await authorizer.authorize(.publish(lobby), wrong)
                == .refused(reason: URLSignatureError.wrongHash.message, isForbidden: false, kind: .urlSignatureWrong)
        )
        let later = try self.authorizer(urls: urls, now: 1_500_000_060)
        let late = try #require(later.verify(signature: text, ofPath: "/whip/lobby", for: .publish(lobby)))
        let expired = URLSignatureError.expired(at: 1_500_000_060).message
        #expect(
            await later.authorize(.publish(lobby), late)
                == .refused(reason: expired, isForbidden: false, kind: .urlExpired)
        )
        #expect(try self.authorizer().verify(signature: text, ofPath: "/whip/lobby", for: .publish(lobby)) == nil)
    }

    @Test(arguments: [URLExpiryScope.publishers, .all])
    func `a signed URL ends those whom it admitted, of viewers only where that is set`(scope: URLExpiryScope)
        async throws
    {
        let urls = URLKeys(["k"], validity: 60, expiryEnds: scope)
        let lobby = ChannelName("lobby")!
        let text = try urls.signature(path: "/whep/lobby", timestamp: 1_500_000_000).text
        let authorizer = try authorizer(urls: urls)
        let watch = try #require(authorizer.verify(signature: text, ofPath: "/whep/lobby", for: .watch(lobby)))
        #expect(await authorizer.authorize(.watch(lobby), watch) == .allowed)
        var request = AccessRequest.newcomer(nil, role: .recvonly)
        request.credential = watch
        let expiry = try #require(await authorizer.admit(request).grants).permissions.expiry
        #expect(expiry?.unixSeconds == (scope == .all ? 1_500_000_060 : nil))
        // The time to join ends for both.
        let later = try self.authorizer(urls: urls, now: 1_500_000_060)
        let late = try #require(later.verify(signature: text, ofPath: "/whep/lobby", for: .watch(lobby)))
        #expect(await later.authorize(.watch(lobby), late) != .allowed)
        request.credential = late
        #expect(await later.admit(request).isDenied)
    }

    @Test func `where URLs are signed, a session without a token is controlled by its secret URL`() async throws {
        let lobby = ChannelName("lobby")!
        let authorizer = try authorizer(urls: URLKeys(["k"]))
        #expect(await authorizer.authorize(.control(lobby), nil) == .asOwner)
        #expect(await authorizer.authorize(.probe, nil) == .allowed)
        #expect(await authorizer.authorize(.publish(lobby), nil) == .unauthenticated)
        let only = SignatureAuthorizer(
            keys: AccessKeys(urls: URLKeys(["k"])),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        guard case .refused(let reason, isForbidden: false, kind: nil) = await only.authorize(.watch(lobby), nil) else {
            Issue.record("it is not refused")
            return
        }
        #expect(reason.contains("auth_key"))
    }
}

extension AccessDecision {
    fileprivate var reason: String? {
        if case .denied(let reason) = self { reason } else { nil }
    }
}
