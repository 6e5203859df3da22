import JSON
internal import Signatures

/// The public keys of a JSON Web Key Set (RFC 7517 §5).
///
/// Keys for other purposes and of other algorithms are left out, as RFC 7517 §5 asks for. So are keys that nobody should
/// publish or use, such as shared secrets and short RSA keys; ``warnings`` tells of those.
package struct JSONWebKeySet: Sendable {
    /// Why a text is no usable set, as a sentence.
    package struct Problem: Error, Hashable, Sendable {
        package let message: String
    }

    /// The longest text in bytes.
    package static let bytesMax = 256 * 1024
    /// The maximum number of keys. A token names its key by its ID, unless it could be of ``JWTKey/candidatesMax`` at most.
    package static let keysMax = 64
    private static let limits = JSONLimits(bytesMax: bytesMax, depthMax: 8, containersMax: 2_048, valuesMax: 8_192)
    private static let idBytesMax = 255

    /// At least one.
    package let keys: [JWTKey]
    /// What is wrong with the keys that are left out although they are meant for signatures; one sentence each.
    package let warnings: [String]

    /// - Throws: ``Problem`` when the text is no set, or no key in it is usable.
    package init(parsing bytes: [UInt8]) throws(Problem) {
        guard bytes.count <= Self.bytesMax else {
            throw Problem(message: "It has more than \(Self.bytesMax) bytes.")
        }
        guard let value = try? JSONValue(parsing: bytes, limits: Self.limits), let members = value["keys"]?.array else {
            throw Problem(message: "It is no JSON Web Key Set: it has to be a JSON object with an array \"keys\".")
        }
        guard members.count <= Self.keysMax else {
            throw Problem(message: "It has \(members.count) keys: at most \(Self.keysMax) are possible.")
        }
        var keys: [JWTKey] = []
        var warnings: [String] = []
        for (index, member) in members.enumerated() {
            switch Self.key(member) {
            case .usable(let key): keys.append(key)
            case .irrelevant: break
            case .refused(let reason): warnings.append("Key \(index + 1) \(reason).")
            }
        }
        guard !keys.isEmpty else {
            let reason = warnings.first.map { " \($0)" } ?? ""
            throw Problem(message: "It has no key that verifies RS256, ES256 or EdDSA.\(reason)")
        }
        if let algorithm = JWTKey.algorithmWithTooManyUnnamed(keys) {
            throw Problem(
                message: "Too many of its \(algorithm.rawValue) keys have no \"kid\": a token is tried with "
                    + "\(JWTKey.candidatesMax) keys at most, so give the keys IDs."
            )
        }
        self.keys = keys
        self.warnings = warnings
    }

    private enum Outcome {
        case usable(JWTKey)
        /// For another purpose or algorithm.
        case irrelevant
        /// The end of a sentence that begins with the key.
        case refused(String)
    }

    private static func key(_ value: JSONValue) -> Outcome {
        guard value.object != nil, let type = value["kty"]?.string else { return .refused("has no \"kty\"") }
        if let use = value["use"], use.string != "sig" { return .irrelevant }
        if let operations = value["key_ops"] {
            guard operations.array?.contains(.string("verify")) == true else { return .irrelevant }
        }
        guard type != "oct" else { return .refused("is a shared secret, which no set may publish") }
        guard let algorithm = algorithm(of: value, type) else { return .irrelevant }
        guard value["d"] == nil else { return .refused("has its private half (\"d\"), which no set may publish") }
        let id = value["kid"]?.string
        guard value["kid"] == nil || id.map({ (1...idBytesMax).contains($0.utf8.count) }) == true else {
            return .refused("has a \"kid\" that is no text of 1 to \(idBytesMax) bytes")
        }
        do throws(SignatureKey.NumbersError) {
            let key = try publicKey(value, algorithm)
            return .usable(JWTKey(algorithm, id: id, publicKey: key))
        } catch {
            switch error {
            case .invalid: return .refused("is no valid \(algorithm.rawValue) key")
            case .modulusBits(let bits):
                let range = JWTKey.rsaBits
                return .refused(
                    "is an RSA key of \(bits) bits: \(range.lowerBound) to \(range.upperBound) are possible"
                )
            }
        }
    }

    /// The algorithm of the key's type and curve; `nil` for others, and where `alg` names another one.
    private static func algorithm(of value: JSONValue, _ type: String) -> JWTKey.Algorithm? {
        let found: JWTKey.Algorithm
        switch (type, value["crv"]?.string) {
        case ("RSA", _): found = .rs256
        case ("EC", "P-256"): found = .es256
        case ("OKP", "Ed25519"): found = .edDSA
        default: return nil
        }
        guard let stated = value["alg"] else { return found }
        // RFC 9864 §2.2 names the algorithm after its curve.
        let isFound = stated.string == found.rawValue || (found == .edDSA && stated.string == "Ed25519")
        return isFound ? found : nil
    }

    private static func publicKey(
        _ value: JSONValue,
        _ algorithm: JWTKey.Algorithm
    ) throws(SignatureKey.NumbersError) -> SignatureKey {
        let number = { (name: String) throws(SignatureKey.NumbersError) -> [UInt8] in
            guard let bytes = value[name]?.string.flatMap({ Base64URL.decoded($0) }) else { throw .invalid }
            return bytes
        }
        switch algorithm {
        case .rs256: return try SignatureKey(rsaModulus: try number("n"), exponent: try number("e"))
        case .es256: return try SignatureKey(p256X: try number("x"), y: try number("y"))
        case .edDSA: return try SignatureKey(ed25519: try number("x"))
        case .hs256: throw .invalid
        }
    }
}
