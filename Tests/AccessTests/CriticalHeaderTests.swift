import AccessTestSupport
import ChannelTypes
import JSON
import Logging
import Signatures
import Testing

@testable import Access

/// Tokens with critical header parameters (RFC 7515 §4.1.11). The node understands no extension, so that every `crit` makes a
/// token invalid, whatever it names and however well the token is signed.
@Suite struct CriticalHeaderTests {
    private static let now = 1_500_000_000.0

    /// The header in JSON text.
    struct Header: Sendable, CustomTestStringConvertible {
        let members: String
        var testDescription: String { members }
    }

    static let refused: [Header] = [
        // An extension that is in the header, and one that is not.
        Header(members: #""crit":["exp"],"exp":4000000000"#), Header(members: #""crit":["exp"]"#),
        Header(members: #""crit":["http://example.org/policy"],"http://example.org/policy":true"#),
        // RFC 7797 §6: the payload of such a token is not encoded.
        Header(members: #""crit":["b64"],"b64":false"#), Header(members: #""crit":["b64"],"b64":true"#),
        // Names that the RFC itself defines, which the list may not have.
        Header(members: #""crit":["alg"]"#), Header(members: #""crit":["alg","typ"]"#),
        Header(members: #""crit":["crit"]"#),
        // An empty list, names that are none, and what is no list.
        Header(members: #""crit":[]"#), Header(members: #""crit":[""]"#), Header(members: #""crit":["exp","exp"]"#),
        Header(members: #""crit":[null]"#), Header(members: #""crit":[1]"#), Header(members: #""crit":[["exp"]]"#),
        Header(members: #""crit":null"#), Header(members: #""crit":false"#), Header(members: #""crit":0"#),
        Header(members: #""crit":"""#), Header(members: #""crit":"exp""#), Header(members: #""crit":{}"#),
        // The same name in other spellings, and a second one that looks harmless.
        Header(members: #""\u0063rit":["exp"]"#), Header(members: #""crit":["exp"],"crit":[]"#),
        Header(members: #""crit":["exp"],"crit":null"#),
    ]

    private static func key() throws -> JWTKey { try JWTKey(.hs256, text: TokenVectors.secret) }

    /// A token that its key signed, with these members in its header.
    private static func token(_ header: Header) throws -> String {
        let text = #"{"alg":"HS256","typ":"JWT",\#(header.members)}"#
        let claims = #"{"channel_id":"lobby","role":"sendrecv"}"#
        let input = Base64URL.encoded(Array(text.utf8)) + "." + Base64URL.encoded(Array(claims.utf8))
        let signer = SignatureKey(hmacSecret: Array(TokenVectors.secret.utf8))
        let signature = try #require(signer.signature(over: Array(input.utf8)))
        return input + "." + Base64URL.encoded(signature)
    }

    private static func authorizer() throws -> SignatureAuthorizer {
        SignatureAuthorizer(
            keys: AccessKeys(jwt: [try key()]),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            now: { now }
        )
    }

    @Test(arguments: refused)
    func `a token whose header has "crit" is refused although its signature is valid`(header: Header) async throws {
        let token = try Self.token(header)
        let problem = #expect(throws: TokenProblem.self) { try TokenClaims(token, keys: [try Self.key()]) }
        #expect(problem?.message == #"The token's header has "crit"."#)
        #expect(problem?.needsOtherKeys == false, "no other key makes it valid")

        let authorizer = try Self.authorizer()
        #expect(await authorizer.admit(.newcomer(token)).isDenied)
        #expect(await authorizer.admit(.newcomer(nil, bearer: token)).isDenied)
        let lobby = try #require(ChannelName("lobby"))
        for action in [AuthorizedAction.publish(lobby), .watch(lobby), .observe(lobby), .control(lobby), .probe] {
            #expect(await authorizer.authorize(action, token: token) == .unauthenticated, "\(action)")
        }
    }

    @Test(arguments: [
        Header(members: #""cty":"crit""#), Header(members: #""x":{"crit":["exp"]}"#),
        Header(members: #""CRIT":["exp"]"#),
        Header(members: #""exp":1"#), Header(members: #""crit ":["exp"]"#),
    ])
    func `a header without "crit" may have what the node does not know`(header: Header) async throws {
        let token = try Self.token(header)
        #expect(try TokenClaims(token, keys: [try Self.key()]).channel == "lobby")
        #expect(await (try Self.authorizer()).admit(.newcomer(token)).grants != nil)
    }

    @Test func `"crit" among the claims is a claim like any other`() async throws {
        let token = try #require(try Self.key().token(claims: ["channel_id": "lobby", "crit": ["exp"]]))
        #expect(await (try Self.authorizer()).admit(.newcomer(token)).grants != nil)
    }
}
