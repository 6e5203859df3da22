import Base
import JSON

@testable import Access

/// The keys of this target. The fuzzer cannot sign with the ones of strangers, whatever it learns from the seeds.
private enum Keys {
    static let secret = jwtKey(.hs256, id: nil, "a secret of the fuzz targets, long enough")
    // Not kept, because LeakSanitizer does not see that the key belongs to an enum.
    static var edDSA: JWTKey {
        jwtKey(
            .edDSA,
            id: "k1",
            """
            -----BEGIN PRIVATE KEY-----
            MC4CAQAwBQYDK2VwBCIEIIF6hIXagPJFLpSBmuffFzai9BiJbXQjAwVFYBRhteCs
            -----END PRIVATE KEY-----
            """
        )
    }
    static var es256: JWTKey {
        jwtKey(
            .es256,
            id: "k2",
            """
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyTaSujR+J6HcRvUzsCYZ98prbIWF
            G0xD2Gxka3ol9Y3wYgJ4+EcqClzLbarAiKkW6ciJlN7EfdGLwC2X//kM0g==
            -----END PUBLIC KEY-----
            """
        )
    }
    static var own: [JWTKey] { [secret, edDSA] }
    static var strangers: [JWTKey] { [jwtKey(.hs256, id: nil, "another secret that nothing is signed with"), es256] }
    static let app = appKey("the-key-of-the-app")
    static let strangersApp = AppKeys([appKey("a-key-that-nothing-is-hashed-with")])
    static let urls = URLKeys(["the-key-of-the-URLs", "and-its-replacement"])
    static let strangersURLs = URLKeys(["a-key-that-nothing-is-signed-with"])

    private static func jwtKey(_ algorithm: JWTKey.Algorithm, id: String?, _ text: String) -> JWTKey {
        guard let key = try? JWTKey(algorithm, id: id, text: text) else { fatalError("not a key") }
        return key
    }
    private static func appKey(_ text: String) -> AppKey {
        guard let key = try? AppKey(appID: "app", key: text) else { fatalError("not a key") }
        return key
    }
}

/// A text that differs from `text`, which is ASCII, in one byte.
private func altered(_ text: String, at index: Int, by step: UInt8) -> String {
    var bytes = Array(text.utf8)
    guard !bytes.isEmpty else { return "A" }
    let index = index % bytes.count
    bytes[index] = (bytes[index] &+ 1 &+ step % 127) & 0x7F
    return String(decoding: bytes, as: UTF8.self)
}
private func altered(_ text: String, _ input: inout FuzzInput) -> String {
    let index = Int(input.uint16())
    return altered(text, at: index, by: input.byte())
}

private func wrongSignatureIsRefused(_ token: String, _ keys: [JWTKey], _ invariant: String) {
    guard (try? TokenClaims(token, keys: keys)) != nil else { return }
    fatalError("broken: \(invariant): \(token)")
}

// MARK: - JWT

/// A JWT of a stranger, claims that the node's own keys sign, or a set of public keys.
func fuzzJWT(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    switch input.choice(3) {
    case 0:
        let token = String(decoding: input.rest(), as: UTF8.self)
        wrongSignatureIsRefused(token, Keys.strangers, "a stranger's token is refused")
    case 1:
        let own = Keys.own
        let key = input.pick(own)
        let change = (index: Int(input.uint16()), step: input.byte())
        fuzzSignedClaims(key, among: own, change, input.rest())
    default:
        guard let set = try? JSONWebKeySet(parsing: input.rest()) else { return }
        require((1...JSONWebKeySet.keysMax).contains(set.keys.count), "the keys of a set are bounded")
        require(set.keys.allSatisfy { !$0.canSign && $0.algorithm.isAsymmetric }, "a set has public keys only")
        wrongSignatureIsRefused(Keys.strangersToken, set.keys, "a key of a set verifies its own tokens only")
    }
}

extension Keys {
    fileprivate static let strangersToken = secret.token(claims: ["channel_id": "lobby"]) ?? ""
}

private func fuzzSignedClaims(
    _ key: JWTKey,
    among own: [JWTKey],
    _ change: (index: Int, step: UInt8),
    _ text: [UInt8]
) {
    guard let claims = (try? JSONValue(parsing: text))?.object else { return }
    guard let token = key.token(claims: claims) else { fatalError("broken: a private key signs") }
    let isValid = token.utf8.count <= TokenClaims.bytesMax && (try? TokenClaims(claims: claims)) != nil
    let read = try? TokenClaims(token, keys: own)
    require((read != nil) == isValid, "a signed token is accepted when its claims are valid")
    if let read {
        for now in [0, 1_500_000_000, Double.greatestFiniteMagnitude] { _ = try? read.checkTime(now) }
        _ = try? read.checkRole(.viewer)
    }
    wrongSignatureIsRefused(token, Keys.strangers, "a token of another key is refused")
    wrongSignatureIsRefused(
        altered(token, at: change.index, by: change.step),
        own,
        "an altered token is refused"
    )
}

func seedsJWT() -> [(name: String, bytes: [UInt8])] {
    let claims: [(String, String)] = [
        ("claims", #"{"channel_id":"lobby","role":"sendrecv","exp":2000000000,"nbf":1.0e9,"jti":"t","sub":"u"}"#),
        (
            "grants",
            """
            {"channel_id":"lobby","client_id":"c","bundle_id":"b","audio":true,"audio_codec_type":"OPUS","audio_bit_rate":64,\
            "video":true,"video_codec_type":"VP9","video_vp9_params":{"profile_id":0},"metadata":{},"event_metadata":1,\
            "connection_lifetime":600,"publish_bit_rate":500,"receive_bit_rate":900,"max_channel_connections":3,\
            "simulcast":true,"simulcast_encodings":[{"rid":"r0","active":true}],"spotlight":true,"spotlight_number":2,\
            "rpc_methods":["m"],"data_channel_signaling":true,"data_channels":[{"label":"#a","direction":"sendrecv"}],\
            "forwarding_filters":[{"action":"block","rules":[[{"field":"kind","operator":"is_in","values":["audio"]}]]}]}
            """
        ),
    ]
    let sets = [
        #"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"3HhX4RwvKJB74UDDiaSnPow7Q693Hq2Np97NIgYfcus"}]}"#,
        """
        {"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","key_ops":["verify"],\
        "x":"yTaSujR-J6HcRvUzsCYZ98prbIWFG0xD2Gxka3ol9Y0","y":"8GICePhHKgpcy22qwIipFunIiZTexH3Ri8Atl__5DNI"},\
        {"kty":"RSA","n":"AQ","e":"AQAB"},{"kty":"oct"}]}
        """,
    ]
    return claims.map { (name: $0, bytes: [1, 0, 0, 70, 5] + Array($1.utf8)) }
        + claims.map { (name: "\($0)-eddsa", bytes: [1, 1, 0, 70, 5] + Array($1.utf8)) }
        + sets.enumerated().map { (name: "set-\($0.offset + 1)", bytes: [2] + Array($0.element.utf8)) }
        + [("token", [0] + Array(Keys.strangersToken.utf8))]
}

// MARK: - Tokens of apps

/// A token of an app as a client sends it, or one that the application server made and a client altered.
func fuzzAppToken(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    if input.flag() {
        forge(&input)
        return
    }
    guard let token = try? AppToken(parameter: String(decoding: input.rest(), as: UTF8.self)) else { return }
    require((try? AppToken(parameter: token.parameter)) == token, "what was written reads the same")
    require((try? AppToken(fields: token.fields)) == token, "the fields read the same")
    require((try? token.verify(Keys.strangersApp, at: 0)) == nil, "a token of another key is refused")
}

private func forge(_ input: inout FuzzInput) {
    let texts = (0..<3).map { _ in String(decoding: input.chunk(max: 70), as: UTF8.self) }
    let expiry = Int64(input.uint32())
    guard
        let token = try? Keys.app.token(channelID: texts[0], userID: texts[1], nonce: texts[2], expiry: expiry)
    else { return }
    let keys = AppKeys([Keys.app])
    require((try? token.verify(keys, at: expiry - 1)) != nil, "a token is valid before its expiry")
    require((try? token.verify(keys, at: expiry)) == nil, "a token is not valid at its expiry")
    require((try? token.verify(Keys.strangersApp, at: 0)) == nil, "a token of another key is refused")
    var fields = token.fields
    let name = input.pick(["appid", "channelid", "userid", "nonce", "timestamp", "token"])
    if name == "timestamp" {
        fields[name] = .integer(expiry &+ 1 &+ Int64(input.uint16()))
    } else {
        fields[name] = .string(altered(fields[name]?.string ?? "", &input))
    }
    guard let forged = try? AppToken(fields: fields), (try? forged.verify(keys, at: 0)) != nil else { return }
    // The hash is of the fields without separators, and may be made without the nonce.
    let signed = "\(token.appID)|\(token.channelID)\(token.userID)\(token.nonce)\(token.expiry)"
    let other = "\(forged.appID)|\(forged.channelID)\(forged.userID)"
    require(
        forged.hash == token.hash && [other + forged.nonce, other].map { "\($0)\(forged.expiry)" }.contains(signed),
        "an altered token is refused"
    )
}

func seedsAppToken() -> [(name: String, bytes: [UInt8])] {
    let made = try? Keys.app.token(channelID: "lobby", userID: "user-7", nonce: "", expiry: 2_000_000_000)
    let altered = (0..<6).map { field in
        SeedWriter.make { seed in
            seed.byte(1)
            seed.chunk(Array("lobby".utf8))
            seed.chunk(Array("user-7".utf8))
            seed.chunk(field == 3 ? [] : Array("n0".utf8))
            seed.uint32(2_000_000_000)
            seed.byte(field)
            seed.uint16(1)
            seed.byte(1)
        }
    }
    return [("parameter", [0] + Array((made?.parameter ?? "").utf8))]
        + altered.enumerated().map { ("altered-\($0.offset + 1)", $0.element) }
}

// MARK: - Signed URLs

/// The signature of a URL as a client sends it, a URL to sign, or a signed URL that a client altered.
func fuzzSignedURL(_ bytes: RawSpan) {
    var input = FuzzInput(bytes)
    switch input.choice(3) {
    case 0:
        let text = String(decoding: input.rest(), as: UTF8.self)
        guard let signature = try? URLSignature(parsing: text) else { return }
        require(signature.text == text, "a signature stays")
        require(
            (try? signature.verify(path: "/whep/lobby", Keys.strangersURLs, at: 0)) == nil,
            "another key is refused"
        )
    case 1:
        guard let url = SignableURL(String(decoding: input.rest(), as: UTF8.self)) else { return }
        guard let signature = try? Keys.urls.signature(path: url.path, timestamp: 1_700_000_000) else {
            fatalError("broken: a path is signed")
        }
        let signed = url.signed(signature)
        require(signed.contains("\(URLSignature.parameter)=\(signature.text)"), "a signed URL has its signature")
        require(SignableURL(signed) == nil, "a URL is signed once")
        require((try? signature.verify(path: url.path, Keys.urls, at: 1_700_000_000)) != nil, "it is valid")
    default: forgeURL(&input)
    }
}

private func forgeURL(_ input: inout FuzzInput) {
    let timestamp = Int64(input.uint32())
    let words = (0..<3).map { _ in String(decoding: input.chunk(max: 60), as: UTF8.self) }
    let path = "/" + words[0]
    guard
        let signature = try? Keys.urls.signature(path: path, timestamp: timestamp, rand: words[1], uid: words[2])
    else { return }
    let expiry = timestamp + Int64(URLKeys.validityDefault)
    require((try? signature.verify(path: path, Keys.urls, at: expiry - 1)) != nil, "a URL is valid before its expiry")
    require((try? signature.verify(path: path, Keys.urls, at: expiry)) == nil, "a URL is not valid at its expiry")
    require((try? signature.verify(path: path, Keys.strangersURLs, at: 0)) == nil, "another key is refused")
    if input.flag() {
        require(
            (try? signature.verify(path: altered(path, &input), Keys.urls, at: 0)) == nil,
            "another path is refused"
        )
    } else if let forged = try? URLSignature(parsing: altered(signature.text, &input)) {
        require((try? forged.verify(path: path, Keys.urls, at: 0)) == nil, "an altered signature is refused")
    }
}

func seedsSignedURL() -> [(name: String, bytes: [UInt8])] {
    let signature = try? Keys.urls.signature(path: "/whep/lobby", timestamp: 1_700_000_000, rand: "r1", uid: "u_2")
    let forged = (0..<2).map { kind in
        SeedWriter.make { seed in
            seed.byte(2)
            seed.uint32(1_700_000_000)
            for word in ["whip/lobby", "r1", "u2"] { seed.chunk(Array(word.utf8)) }
            seed.byte(kind)
            seed.uint16(3)
            seed.byte(1)
        }
    }
    let urls = ["https://example.net:8443/whip/lobby?a=b&c#d", "http://[2001:db8::7]/whep/a%20b?"]
    return [("signature", [0] + Array((signature?.text ?? "").utf8))]
        + urls.enumerated().map { ("url-\($0.offset + 1)", [1] + Array($0.element.utf8)) }
        + forged.enumerated().map { ("altered-\($0.offset + 1)", $0.element) }
}
