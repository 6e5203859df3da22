import JSON
import Testing

@testable import Access

extension JSONValue {
    /// A JSON Web Key Set.
    static func keySet(_ keys: [JSONValue]) -> JSONValue { ["keys": .array(keys)] }

    static let rsaKey: JSONValue = [
        "kty": "RSA", "kid": "r1", "use": "sig", "alg": "RS256", "n": .string(TokenVectors.rs256Modulus), "e": "AQAB",
    ]
    static let ecKey: JSONValue = [
        "kty": "EC", "kid": "k1", "crv": "P-256", "x": .string(TokenVectors.es256X), "y": .string(TokenVectors.es256Y),
    ]
    static let edKey: JSONValue = ["kty": "OKP", "crv": "Ed25519", "x": .string(TokenVectors.edDSAX)]

    /// The same key under so many IDs: `k0`, `k1`, ….
    func named(_ count: Int) -> [JSONValue] { (0..<count).map { with(["kid": .string("k\($0)")]) } }

    /// With other or no members.
    func with(_ changes: [String: JSONValue?]) -> JSONValue {
        var members = object ?? [:]
        for (name, value) in changes { members[name] = value }
        return .object(members)
    }
}

@Suite struct JSONWebKeySetTests {
    @Test func `tokens of another implementation are verified with the keys of a set`() throws {
        let set = try JSONWebKeySet(parsing: JSONValue.keySet([.rsaKey, .ecKey, .edKey]).bytes)
        #expect(set.keys.map(\.algorithm) == [.rs256, .es256, .edDSA])
        #expect(set.keys.map(\.id) == ["r1", "k1", nil] && set.warnings.isEmpty)
        #expect(set.keys.allSatisfy { !$0.canSign })
        for token in [TokenVectors.rs256Token, TokenVectors.es256Token, TokenVectors.edDSAToken] {
            #expect(try TokenClaims(token, keys: set.keys).channel == "lobby")
        }
        #expect(throws: TokenProblem.self) { try TokenClaims(TokenVectors.hs256Token, keys: set.keys) }
    }

    @Test(arguments: [
        JSONValue.rsaKey.with(["use": "enc"]), .rsaKey.with(["use": 1]), .rsaKey.with(["key_ops": ["sign"]]),
        .rsaKey.with(["key_ops": "verify"]), .rsaKey.with(["alg": "RS512"]), .rsaKey.with(["alg": "PS256"]),
        .rsaKey.with(["alg": "HS256"]), .rsaKey.with(["alg": "none"]), .rsaKey.with(["alg": 1]),
        .rsaKey.with(["kty": "DSA"]), .ecKey.with(["crv": "P-384"]), .ecKey.with(["crv": nil]),
        .ecKey.with(["alg": "RS256"]), .edKey.with(["crv": "X25519"]), .edKey.with(["crv": "Ed448"]),
    ])
    func `a key for something else is left out`(key: JSONValue) throws {
        let set = try JSONWebKeySet(parsing: JSONValue.keySet([key, .rsaKey]).bytes)
        #expect(set.keys.count == 1 && set.warnings.isEmpty)
        let problem = #expect(throws: JSONWebKeySet.Problem.self) {
            try JSONWebKeySet(parsing: JSONValue.keySet([key]).bytes)
        }
        #expect(problem?.message == "It has no key that verifies RS256, ES256 or EdDSA.")
    }

    @Test(
        arguments: [
            (["kty": "oct", "k": "c2VjcmV0"], "is a shared secret, which no set may publish"),
            (["kty": "oct", "alg": "HS256", "k": "c2VjcmV0"], "is a shared secret, which no set may publish"),
            (.rsaKey.with(["d": "AQ"]), #"has its private half ("d"), which no set may publish"#),
            (
                .rsaKey.with(["n": .string(TokenVectors.shortModulus)]),
                "is an RSA key of 1024 bits: 2048 to 8192 are possible"
            ),
            (.rsaKey.with(["n": ""]), "is an RSA key of 0 bits: 2048 to 8192 are possible"),
            (.rsaKey.with(["n": nil]), "is no valid RS256 key"), (.rsaKey.with(["n": 5]), "is no valid RS256 key"),
            (.rsaKey.with(["n": "a+b/"]), "is no valid RS256 key"),
            (.rsaKey.with(["e": "AA"]), "is no valid RS256 key"),
            (.rsaKey.with(["e": "AQ"]), "is no valid RS256 key"), (.rsaKey.with(["e": nil]), "is no valid RS256 key"),
            (.ecKey.with(["x": .string(TokenVectors.es256Y)]), "is no valid ES256 key"),
            (.ecKey.with(["y": nil]), "is no valid ES256 key"), (.edKey.with(["x": "AQ"]), "is no valid EdDSA key"),
            (.rsaKey.with(["kid": 5]), #"has a "kid" that is no text of 1 to 255 bytes"#),
            (.rsaKey.with(["kid": ""]), #"has a "kid" that is no text of 1 to 255 bytes"#),
            (
                .rsaKey.with(["kid": .string(String(repeating: "k", count: 256))]),
                #"has a "kid" that is no text of 1 to 255 bytes"#
            ),
            (.rsaKey.with(["kty": nil]), #"has no "kty""#), (5, #"has no "kty""#),
        ] as [(JSONValue, String)]
    )
    func `an unusable key is left out with a warning`(key: JSONValue, reason: String) throws {
        let set = try JSONWebKeySet(parsing: JSONValue.keySet([.edKey, key]).bytes)
        #expect(set.keys.count == 1 && set.warnings == ["Key 2 \(reason)."])
        let problem = #expect(throws: JSONWebKeySet.Problem.self) {
            try JSONWebKeySet(parsing: JSONValue.keySet([key]).bytes)
        }
        #expect(problem?.message.hasSuffix("Key 1 \(reason).") == true)
    }

    @Test(
        arguments: [
            "", "null", "[]", "{}", #"{"keys":{}}"#, #"{"keys":null}"#, "<html>", #"{"keys":[]"#,
            #"{"keys":"# + String(repeating: "[", count: 100_000),
            #"{"keys":[{"x5c":["# + String(repeating: "1,", count: 20_000) + "1]}]}", "\u{0}",
        ]
    )
    func `a text that is no set is refused`(text: String) {
        let problem = #expect(throws: JSONWebKeySet.Problem.self) { try JSONWebKeySet(parsing: Array(text.utf8)) }
        #expect(problem?.message.contains("no JSON Web Key Set") == true)
    }

    @Test func `a token that could be of many keys has to name its own`() throws {
        let unnamed = TokenVectors.edDSAToken
        let keys = try JSONWebKeySet(parsing: JSONValue.keySet(JSONValue.edKey.named(64)).bytes).keys
        let problem = #expect(throws: TokenProblem.self) { try TokenClaims(unnamed, keys: keys) }
        #expect(
            problem?.message
                == "The token could be of 64 EdDSA keys, and 4 are tried at most: its header needs the ID of its key (kid)."
        )
        #expect(problem?.needsOtherKeys == false)
        #expect(throws: TokenProblem.self) { try TokenClaims(unnamed, keys: Array(keys.prefix(5))) }
        #expect(try TokenClaims(unnamed, keys: Array(keys.prefix(4))).channel == "lobby")
        // This one names k1.
        let others = try JSONWebKeySet(parsing: JSONValue.keySet(JSONValue.ecKey.named(64)).bytes).keys
        #expect(try TokenClaims(TokenVectors.es256Token, keys: others).channel == "lobby")
        #expect(throws: TokenProblem.self) {
            try TokenClaims(TokenVectors.es256Token, keys: Array(repeating: others[1], count: 5))
        }
        // Keys of another source have no ID.
        let few = try JSONWebKeySet(parsing: JSONValue.keySet([JSONValue.ecKey.with(["kid": nil])]).bytes).keys
        let more = Array(repeating: few[0], count: 4) + others
        #expect(try TokenClaims(TokenVectors.es256Token, keys: more).channel == "lobby")
    }

    @Test(arguments: [(4, 0, true), (5, 0, false), (3, 61, true), (4, 1, false)])
    func `a set has few keys without an ID, of one algorithm`(unnamed: Int, named: Int, isAccepted: Bool) throws {
        let keys = Array(repeating: JSONValue.edKey, count: unnamed) + JSONValue.edKey.named(named)
        let bytes = JSONValue.keySet(keys).bytes
        if isAccepted {
            #expect(try JSONWebKeySet(parsing: bytes).keys.count == unnamed + named)
        } else {
            let problem = #expect(throws: JSONWebKeySet.Problem.self) { try JSONWebKeySet(parsing: bytes) }
            #expect(problem?.message.hasPrefix("Too many of its EdDSA keys have no \"kid\"") == true)
        }
    }

    @Test func `keys of several algorithms do not count together`() throws {
        let others = Array(repeating: JSONValue.ecKey.with(["kid": nil]), count: 4)
        let keys = Array(repeating: JSONValue.edKey, count: 4) + others
        let set = try JSONWebKeySet(parsing: JSONValue.keySet(keys).bytes)
        #expect(set.keys.count == 8)
        #expect(try TokenClaims(TokenVectors.es256Token, keys: set.keys).channel == "lobby")
    }

    @Test func `the size and the number of keys are bounded`() throws {
        let most = JSONValue.keySet(JSONValue.edKey.named(JSONWebKeySet.keysMax))
        #expect(try JSONWebKeySet(parsing: most.bytes).keys.count == JSONWebKeySet.keysMax)
        let many = JSONValue.keySet(JSONValue.edKey.named(JSONWebKeySet.keysMax + 1))
        var problem = #expect(throws: JSONWebKeySet.Problem.self) { try JSONWebKeySet(parsing: many.bytes) }
        #expect(problem?.message == "It has 65 keys: at most 64 are possible.")
        let long = [UInt8](repeating: 0x20, count: JSONWebKeySet.bytesMax) + JSONValue.keySet([.edKey]).bytes
        problem = #expect(throws: JSONWebKeySet.Problem.self) { try JSONWebKeySet(parsing: long) }
        #expect(problem?.message == "It has more than 262144 bytes.")
    }
}
