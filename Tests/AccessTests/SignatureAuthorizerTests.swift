import AccessTestSupport
import ChannelTypes
import JSON
import Logging
import TestSupport
import Testing

@testable import Access

extension Authorizer {
    /// Decides as about a request that presents a token.
    func authorize(_ action: AuthorizedAction, token: String?) async -> Authorization {
        let credential: Credential? = if let token { await verify(token) } else { nil }
        return await authorize(action, credential)
    }
}

@Suite struct SignatureAuthorizerTests {
    private static let noon = 1_500_000_000.0

    private func authorizer(_ keys: [JWTKey], now: Double = noon) -> SignatureAuthorizer {
        SignatureAuthorizer(
            keys: AccessKeys(jwt: keys),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            now: { now }
        )
    }

    private func secret(_ id: String? = nil) throws -> JWTKey {
        try JWTKey(.hs256, id: id, text: TokenVectors.secret)
    }

    @Test func `claims are parsed only if the signature is valid`() throws {
        let key = try secret()
        let honest = try #require(key.token(claims: ["channel_id": "lobby"]))
        let parts = honest.split(separator: ".")
        // Nothing that a parser could take: whoever reads it before the signature finds out.
        let token = "\(parts[0]).\(Base64URL.encoded(Array("[[[[".utf8))).\(parts[2])"
        let problem = #expect(throws: TokenProblem.self) { try TokenClaims(token, keys: [key]) }
        #expect(problem?.message == "The token's signature is not valid.")
        #expect(try TokenClaims(honest, keys: [key]).channel == "lobby")
    }

    @Test(arguments: [
        #"{"alg":"HS256","x":"\#(String(repeating: "a", count: 1_100))"}"#, #"{"alg":"HS256","x":[[[[1]]]]}"#,
        #"{"alg":"HS256","x":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}"#,
    ])
    func `a header of a token that is more than a few short members is refused`(header: String) throws {
        let key = try secret()
        let honest = try #require(key.token(claims: ["channel_id": "lobby"]))
        let rest = honest.drop { $0 != "." }
        let problem = #expect(throws: TokenProblem.self) {
            try TokenClaims(Base64URL.encoded(Array(header.utf8)) + rest, keys: [key])
        }
        #expect(problem?.message == "The token is not a JWT.")
    }

    @Test func `tokens of another implementation are accepted`() async throws {
        let keys = try [
            JWTKey(.hs256, text: TokenVectors.secret), JWTKey(.es256, id: "k1", text: TokenVectors.es256Public),
            JWTKey(.edDSA, text: TokenVectors.edDSAPublic), JWTKey(.rs256, id: "r1", text: TokenVectors.rs256Public),
        ]
        for token in [
            TokenVectors.hs256Token, TokenVectors.es256Token, TokenVectors.edDSAToken, TokenVectors.rs256Token,
        ] {
            let grants = try #require(await authorizer(keys).admit(.newcomer(token)).grants)
            #expect(grants.clientID == "user-7")
            #expect(grants.isSimulcast == true)
            #expect(grants.permissions.lifetime == .seconds(600))
            #expect(grants.permissions.channelConnectionsMax == 3)
            #expect(await authorizer(keys).admit(.newcomer(nil, bearer: token)).grants != nil)
            for action in [AuthorizedAction.publish(ChannelName("lobby")!), .watch(ChannelName("lobby")!), .probe] {
                #expect(await authorizer(keys).authorize(action, token: token) == .allowed)
            }
        }
    }

    @Test(arguments: JWTKey.Algorithm.allCases)
    func `a token signed here is accepted, and a private key verifies too`(algorithm: JWTKey.Algorithm) async throws {
        let text =
            switch algorithm {
            case .hs256: TokenVectors.secret
            case .es256: TokenVectors.es256SEC1
            case .edDSA: TokenVectors.edDSAPrivate
            case .rs256: RSATestKey.privateKey
            }
        let key = try JWTKey(algorithm, id: "a", text: text)
        #expect(key.canSign)
        let token = try #require(key.token(claims: ["channel_id": "lobby"]))
        #expect(await authorizer([key]).admit(.newcomer(token)).grants != nil)
        #expect(await authorizer([key]).admit(.newcomer(token, channel: "other")).isDenied)
    }

    @Test func `a public key signs no token`() throws {
        let key = try JWTKey(.es256, text: TokenVectors.es256Public)
        #expect(!key.canSign && key.token(claims: [:]) == nil)
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let claims: [String: JSONValue]
        var role = Role.sendrecv
        var members = 0
        let testDescription: String
    }

    @Test(arguments: [
        Refusal(claims: [:], testDescription: "no channel"),
        Refusal(claims: ["channel_id": "other"], testDescription: "another channel"),
        Refusal(claims: ["channel_id": "Lobby"], testDescription: "another case"),
        Refusal(claims: ["channel_id": 5], testDescription: "a channel that is a number"),
        Refusal(claims: ["channel_id": "lobby", "exp": 1_499_999_995], testDescription: "expired"),
        Refusal(claims: ["channel_id": "lobby", "exp": "2000000000"], testDescription: "an expiry that is text"),
        Refusal(claims: ["channel_id": "lobby", "nbf": 1_500_000_006], testDescription: "not yet valid"),
        Refusal(claims: ["channel_id": "lobby", "role": "sendonly"], testDescription: "another role"),
        Refusal(
            claims: ["channel_id": "lobby", "role": "recvonly"],
            role: .sendonly,
            testDescription: "a viewer who wants to publish"
        ),
        Refusal(claims: ["channel_id": "lobby", "role": "host"], testDescription: "a role that there is not"),
        Refusal(
            claims: ["channel_id": "lobby", "max_channel_connections": 2],
            members: 2,
            testDescription: "a full channel"
        ),
        Refusal(claims: ["channel_id": "lobby", "simulcast": "yes"], testDescription: "a grant of the wrong type"),
    ])
    func `what a token does not permit is refused`(refusal: Refusal) async throws {
        let key = try secret()
        let token = try #require(key.token(claims: refusal.claims))
        let request = AccessRequest.newcomer(
            token,
            role: refusal.role,
            counts: ChannelCounts(recvonly: refusal.members)
        )
        #expect(await authorizer([key]).admit(request).isDenied)
    }

    @Test(
        arguments: [
            ["exp": 1_499_999_996], ["nbf": 1_500_000_005], ["role": "sendrecv"], ["max_channel_connections": 3],
            ["exp": 1_500_000_000.5],
        ] as [[String: JSONValue]]
    )
    func `clocks may differ a little, and what is within the bounds is permitted`(
        claims: [String: JSONValue]
    ) async throws {
        let key = try secret()
        let token = try #require(key.token(claims: claims.merging(["channel_id": "lobby"]) { $1 }))
        let request = AccessRequest.newcomer(token, role: .sendonly, counts: ChannelCounts(sendonly: 2))
        #expect(await authorizer([key]).admit(request).grants != nil)
    }

    @Test func `unconnected members count toward a token's limit`() async throws {
        let key = try secret()
        let token = try #require(key.token(claims: ["channel_id": "lobby", "max_channel_connections": 1]))
        var request = AccessRequest.newcomer(token)
        #expect(await authorizer([key]).admit(request).grants?.permissions.channelConnectionsMax == 1)
        request.members = 1
        #expect(await authorizer([key]).admit(request).isDenied)
    }

    @Test func `the algorithm is the key's, whatever the token's header says`() async throws {
        let claims = Base64URL.encoded(Array(#"{"channel_id":"lobby"}"#.utf8))
        let hmac = try secret()
        let ecdsa = try JWTKey(.es256, text: TokenVectors.es256Public)
        let header = { (text: String) in Base64URL.encoded(Array(text.utf8)) }
        // Signed by the secret, and naming something else.
        let honest = try #require(hmac.token(claims: ["channel_id": "lobby"]))
        let signature = honest.split(separator: ".")[2]
        // The public key's text taken as a secret, which is known to everybody.
        let confused = try JWTKey(.hs256, text: TokenVectors.es256Public)
        let forged = try #require(confused.token(claims: ["channel_id": "lobby"]))
        let rsa = try JWTKey(.rs256, text: TokenVectors.rs256Public)
        let confusedRSA = try JWTKey(.hs256, text: TokenVectors.rs256Public)
        let forgedByRSA = try #require(confusedRSA.token(claims: ["channel_id": "lobby"]))
        let tokens = [
            "\(header(#"{"alg":"none"}"#)).\(claims).", "\(header(#"{"alg":"None"}"#)).\(claims).AA",
            "\(header(#"{"alg":"ES256"}"#)).\(claims).\(signature)", "\(header(#"{"alg":"HS512"}"#)).\(claims).AA",
            "\(header(#"{}"#)).\(claims).\(signature)", forged,
            "\(header(#"{"alg":"RS256"}"#)).\(claims).\(signature)", forgedByRSA,
        ]
        for token in tokens {
            #expect(await authorizer([rsa]).admit(.newcomer(token)).isDenied, "\(token)")
            #expect(await authorizer([hmac, ecdsa, rsa]).admit(.newcomer(token)).isDenied, "\(token)")
            #expect(await authorizer([hmac, ecdsa]).authorize(.probe, token: token) == .unauthenticated)
        }
        #expect(await authorizer([hmac, ecdsa]).admit(.newcomer(honest)).grants != nil)
    }

    @Test func `a modified token is refused`() async throws {
        let key = try secret()
        let honest = Array(try #require(key.token(claims: ["channel_id": "lobby"])).utf8)
        let symbols = Array("AZaz09-_.=".utf8)
        for index in honest.indices {
            for symbol in symbols where symbol != honest[index] {
                var changed = honest
                changed[index] = symbol
                let token = String(decoding: changed, as: UTF8.self)
                #expect(await authorizer([key]).admit(.newcomer(token)).isDenied)
            }
            let cut = String(decoding: honest[..<index], as: UTF8.self)
            #expect(await authorizer([key]).admit(.newcomer(cut)).isDenied)
        }
    }

    @Test(arguments: ["", ".", "..", "...", "a.b.c", String(repeating: "A", count: 9_000)])
    func `malformed tokens are refused`(token: String) async throws {
        let authorizer = try authorizer([secret()])
        #expect(await authorizer.admit(.newcomer(token)).isDenied)
    }

    @Test func `clients without a token are refused`() async throws {
        let authorizer = try authorizer([secret()])
        #expect(await authorizer.admit(.newcomer(nil)).isDenied)
        #expect(await authorizer.authorize(.publish(ChannelName("lobby")!), token: nil) == .unauthenticated)
    }

    @Test func `a key id selects the key, and a key without one is tried for all`() async throws {
        let old = try JWTKey(.hs256, id: "old", text: String(repeating: "o", count: 32))
        let new = try JWTKey(.hs256, id: "new", text: String(repeating: "n", count: 32))
        let plain = try JWTKey(.hs256, text: String(repeating: "n", count: 32))
        let token = try #require(new.token(claims: ["channel_id": "lobby"]))
        #expect(await authorizer([old, new]).admit(.newcomer(token)).grants != nil)
        #expect(await authorizer([old]).admit(.newcomer(token)).isDenied)
        #expect(await authorizer([plain]).admit(.newcomer(token)).grants != nil)
        let anonymous = try #require(plain.token(claims: ["channel_id": "lobby"]))
        #expect(await authorizer([old, new]).admit(.newcomer(anonymous)).grants != nil)
    }

    @Test(arguments: [
        (#"{"alg":"none"}"#, "The algorithm in the token's header (alg) is none of HS256, ES256, EdDSA, RS256."),
        (#"{}"#, "The algorithm in the token's header (alg) is none of HS256, ES256, EdDSA, RS256."),
        (#"{"alg":"RS256"}"#, "There is no key for RS256, the algorithm in the token's header (alg)."),
        (#"{"alg":"HS256","kid":"b"}"#, #"No HS256 key has the key ID of the token's header (kid), "b"."#),
        (#"{"alg":"HS256","kid":"a"}"#, "The token's signature is not valid."),
    ])
    func `the reason of a refusal names what is wrong with the header`(header: String, message: String) throws {
        let token = Base64URL.encoded(Array(header.utf8)) + ".e30.AA"
        let problem = try #require(
            throws: TokenProblem.self,
            performing: { try TokenClaims(token, keys: [self.secret("a")]) }
        )
        #expect(problem.message == message)
        #expect(problem.needsOtherKeys == header.contains("RS256"))
    }

    @Test func `a valid token controls what its owner has, and an expired one nothing`() async throws {
        let key = try secret()
        let (lobby, other) = (ChannelName("lobby")!, ChannelName("other")!)
        let valid = try #require(key.token(claims: ["channel_id": "lobby", "role": "recvonly"]))
        #expect(await authorizer([key]).authorize(.control(lobby), token: valid) == .asOwner)
        #expect(await authorizer([key]).authorize(.probe, token: valid) == .allowed)
        #expect(
            await authorizer([key]).authorize(.control(other), token: valid)
                == .refused(reason: "The token is for another channel.", isForbidden: true)
        )
        let expired = try #require(key.token(claims: ["channel_id": "lobby", "exp": 1, "role": "recvonly"]))
        for action in [AuthorizedAction.publish(lobby), .watch(lobby), .observe(lobby), .control(lobby), .probe] {
            #expect(
                await authorizer([key]).authorize(action, token: expired)
                    == .refused(reason: "The token expired.", isForbidden: false),
                "\(action)"
            )
        }
    }

    @Test(
        arguments: [
            (["sub": "alice"], ["sub": "alice", "exp": 2_000_000_000], true),
            (["sub": "alice"], ["client_id": "alice", "role": "recvonly"], true),
            (["sub": "alice"], ["sub": "bob"], false), (["sub": "alice"], ["sub": "Alice"], false),
            (["sub": "alice"], [:], false), ([:], ["sub": "alice"], false), ([:], [:], true),
            ([:], ["exp": 2_000_000_000], false), (["sub": ""], ["sub": "", "role": "recvonly"], false),
        ] as [([String: JSONValue], [String: JSONValue], Bool)]
    )
    func `all tokens of a user have one owner, and a token without a user is its own`(
        first: [String: JSONValue],
        second: [String: JSONValue],
        isSame: Bool
    ) async throws {
        let key = try secret()
        var proofs: [OwnerProof?] = []
        for claims in [first, second] {
            let token = try #require(key.token(claims: claims.merging(["channel_id": "lobby"]) { $1 }))
            proofs.append(await authorizer([key]).verify(token).ownerProof)
        }
        #expect(proofs[0] != nil && (proofs[0] == proofs[1]) == isSame)
    }

    @Test func `a valid token without the permission is forbidden, not unauthenticated`() async throws {
        let key = try secret()
        let token = try #require(key.token(claims: ["channel_id": "lobby", "role": "recvonly"]))
        #expect(
            await authorizer([key]).authorize(.publish(ChannelName("lobby")!), token: token)
                == .refused(reason: "The token's role does not permit to publish.", isForbidden: true)
        )
        #expect(await authorizer([key]).authorize(.observe(ChannelName("lobby")!), token: token) == .allowed)
        #expect(
            await authorizer([key]).authorize(.watch(ChannelName("lounge")!), token: token)
                == .refused(reason: "The token is for another channel.", isForbidden: true)
        )
    }

    @Test func `malformed keys are refused`() {
        #expect(throws: JWTKey.Problem.secretTooShort(bytes: 31)) {
            try JWTKey(.hs256, text: String(repeating: "x", count: 31))
        }
        #expect(throws: JWTKey.Problem.notPEM) { try JWTKey(.es256, text: TokenVectors.edDSAPublic) }
        #expect(throws: JWTKey.Problem.notPEM) { try JWTKey(.edDSA, text: TokenVectors.es256Private) }
        #expect(throws: JWTKey.Problem.notPEM) { try JWTKey(.es256, text: "") }
        #expect(throws: JWTKey.Problem.rsaKeySize(bits: 1_024)) { try JWTKey(.rs256, text: TokenVectors.rs256Short) }
        #expect(throws: JWTKey.Problem.notPEM) { try JWTKey(.rs256, text: TokenVectors.es256Public) }
    }

    @Test func `a key is never printed`() throws {
        let key = try secret("k")
        var dumped = ""
        dump(key, to: &dumped)
        for text in ["\(key)", String(reflecting: key), dumped] { #expect(!text.contains("horse")) }
    }

    @Test func `the shared token is accepted in the header and in metadata`() async {
        let authorizer = StaticTokenAuthorizer(token: "s3cret")!
        #expect(await authorizer.admit(.newcomer("s3cret")).grants != nil)
        #expect(await authorizer.admit(.newcomer(nil, bearer: "s3cret")).grants != nil)
        #expect(await authorizer.admit(.newcomer("S3cret")).isDenied)
        #expect(await authorizer.admit(.newcomer(nil)).isDenied)
        #expect(await OpenAuthorizer().admit(.newcomer(nil)).grants != nil)
    }
}
