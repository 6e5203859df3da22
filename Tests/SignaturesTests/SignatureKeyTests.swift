import Foundation
import TestSupport
import Testing

@testable import Signatures

@Suite struct SignatureKeyTests {
    private static let payload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    /// A published test vector: a message, its signature and the keys.
    struct Vector: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let keys: [SignatureKey]
        let message: [UInt8]
        let signature: [UInt8]
        /// Whether the algorithm is deterministic.
        let isDeterministic: Bool
    }

    static let vectors: [Vector] = [
        Vector(
            testDescription: "RFC 7515 A.1",
            keys: [
                SignatureKey(
                    hmacSecret: bytes(
                        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"
                    )
                )
            ],
            message: Array("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(payload)".utf8),
            signature: bytes("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            isDeterministic: true
        ),
        Vector(
            testDescription: "RFC 7515 A.2",
            keys: keys(.rsaPKCS1SHA256, KeyVectors.rfc7515RS256Public)
                + [try? SignatureKey(rsaModulus: bytes(KeyVectors.rfc7515RS256Modulus), exponent: [1, 0, 1])]
                .compactMap(\.self),
            message: Array("eyJhbGciOiJSUzI1NiJ9.\(payload)".utf8),
            signature: bytes(KeyVectors.rfc7515RS256Signature),
            isDeterministic: true
        ),
        Vector(
            testDescription: "RFC 7515 A.3",
            keys: keys(
                .ecdsaP256SHA256,
                KeyVectors.rfc7515ES256PKCS8,
                KeyVectors.rfc7515ES256SEC1,
                KeyVectors.rfc7515ES256Public
            ),
            message: Array("eyJhbGciOiJFUzI1NiJ9.\(payload)".utf8),
            signature: bytes("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"),
            isDeterministic: false
        ),
        Vector(
            testDescription: "RFC 8037 A.4",
            keys: keys(.ed25519, KeyVectors.rfc8037Private, KeyVectors.rfc8037Public),
            message: Array("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".utf8),
            signature: bytes("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"),
            isDeterministic: true
        ),
    ]

    @Test(arguments: vectors)
    func `published signatures verify, and deterministic ones are reproduced`(vector: Vector) throws {
        #expect(!vector.keys.isEmpty)
        for key in vector.keys {
            #expect(key.verifies(vector.signature, over: vector.message))
            guard key.canSign else { continue }
            let own = try #require(key.signature(over: vector.message))
            #expect(own.count == key.signatureBytes)
            if vector.isDeterministic { #expect(own == vector.signature) }
            for other in vector.keys { #expect(other.verifies(own, over: vector.message)) }
        }
    }

    @Test(arguments: vectors)
    func `a changed bit, a wrong length and another message do not verify`(vector: Vector) {
        for key in vector.keys {
            for index in vector.signature.indices {
                var changed = vector.signature
                changed[index] ^= 1
                #expect(!key.verifies(changed, over: vector.message), "\(index)")
            }
            let signature = vector.signature
            let count = signature.count
            let others: [[UInt8]] = [
                [], Array(signature.dropLast()), Array(signature.dropFirst()), signature + [0], [0] + signature,
                [UInt8](repeating: 0, count: count), [UInt8](repeating: 0xFF, count: count), signature + signature,
            ]
            for other in others { #expect(!key.verifies(other, over: vector.message)) }
            #expect(!key.verifies(signature, over: vector.message.dropLast()))
            #expect(!key.verifies(signature, over: []))
        }
    }

    @Test func `a signature of another key or algorithm does not verify`() {
        for vector in Self.vectors {
            for other in Self.vectors where other.testDescription != vector.testDescription {
                for key in other.keys { #expect(!key.verifies(vector.signature, over: vector.message)) }
            }
        }
    }

    @Test func `an RSA key signs what its public half verifies`() throws {
        let key = try SignatureKey(pem: RSATestKey.privateKey, algorithm: .rsaPKCS1SHA256)
        let signature = try #require(key.signature(over: [1, 2, 3]))
        #expect(key.canSign && signature.count == 256 && key.signatureBytes == 256)
        #expect(key.verifies(signature, over: [1, 2, 3]) && !key.verifies(signature, over: [1, 2]))
        for other in Self.keys(.rsaPKCS1SHA256, KeyVectors.rfc7515RS256Public) {
            #expect(!other.canSign && !other.verifies(signature, over: [1, 2, 3]))
        }
    }

    @Test func `the numbers of an RSA key are checked`() throws {
        let modulus = Self.bytes(KeyVectors.rfc7515RS256Modulus)
        #expect(try SignatureKey(rsaModulus: [0, 0] + modulus, exponent: [0, 3]).signatureBytes == 256)
        let even = Array(modulus.dropLast()) + [2]
        for exponent in [[], [0], [1], [2], [1, 0, 0], [UInt8](repeating: 0xFF, count: 9)] as [[UInt8]] {
            #expect(throws: SignatureKey.NumbersError.invalid, "\(exponent)") {
                try SignatureKey(rsaModulus: modulus, exponent: exponent)
            }
        }
        #expect(throws: SignatureKey.NumbersError.invalid) { try SignatureKey(rsaModulus: even, exponent: [3]) }
        for (count, bits) in [(0, 0), (128, 1_024), (255, 2_040), (1_025, 8_200), (70_000, 560_000)] {
            #expect(throws: SignatureKey.NumbersError.modulusBits(bits)) {
                try SignatureKey(rsaModulus: [UInt8](repeating: 0xFF, count: count), exponent: [3])
            }
        }
        let longest = [UInt8](repeating: 0xFF, count: 1_024)
        #expect(try SignatureKey(rsaModulus: longest, exponent: [3]).signatureBytes == 1_024)
    }

    @Test func `the numbers of other keys are checked`() {
        for count in [0, 31, 33, 64] {
            let bytes = [UInt8](repeating: 1, count: count)
            #expect(throws: SignatureKey.NumbersError.invalid) { try SignatureKey(ed25519: bytes) }
            #expect(throws: SignatureKey.NumbersError.invalid) { try SignatureKey(p256X: bytes, y: bytes) }
        }
        let one = [UInt8](repeating: 1, count: 32)
        #expect(throws: SignatureKey.NumbersError.invalid, "off the curve") { try SignatureKey(p256X: one, y: one) }
    }

    @Test func `an ECDSA signature in DER is refused`() throws {
        let vector = try #require(Self.vectors.first { $0.testDescription == "RFC 7515 A.3" })
        let der = try #require(ECDSASignature.der(raw: vector.signature))
        for key in vector.keys { #expect(!key.verifies(der, over: vector.message)) }
    }

    @Test(arguments: [
        [UInt8](repeating: 0, count: 64), [UInt8](repeating: 0xFF, count: 64),
        [UInt8](repeating: 0, count: 31) + [1] + [UInt8](repeating: 0, count: 31) + [0x80],
    ])
    func `r and s keep their leading zeros`(raw: [UInt8]) throws {
        let der = try #require(ECDSASignature.der(raw: raw))
        #expect(ECDSASignature.raw(der: der) == raw)
    }

    @Test(arguments: [0, 63, 65])
    func `an ECDSA signature has 64 bytes`(count: Int) {
        #expect(ECDSASignature.der(raw: [UInt8](repeating: 1, count: count)) == nil)
        #expect(ECDSASignature.raw(der: [UInt8](repeating: 1, count: count)) == nil)
    }

    @Test(arguments: [
        (SignatureKey.Algorithm.ecdsaP256SHA256, KeyVectors.p384, SignatureKey.PEMError.wrongKeyType, "P-384"),
        (.ecdsaP256SHA256, KeyVectors.secp256k1, .wrongKeyType, "secp256k1"),
        (.ecdsaP256SHA256, KeyVectors.rsa, .wrongKeyType, "RSA"),
        (.ecdsaP256SHA256, KeyVectors.rfc8037Private, .wrongKeyType, "Ed25519"),
        (.ed25519, KeyVectors.rfc7515ES256PKCS8, .wrongKeyType, "P-256"),
        (.rsaPKCS1SHA256, KeyVectors.rsa, .modulusBits(1_024), "RSA of 1,024 bits"),
        (.rsaPKCS1SHA256, KeyVectors.rfc7515ES256Public, .wrongKeyType, "P-256 for RSA"),
        (.ed25519, KeyVectors.ed448, .wrongKeyType, "Ed448"),
        (.ed25519, KeyVectors.x25519, .wrongKeyType, "X25519"),
        (.ecdsaP256SHA256, KeyVectors.offCurve, .unreadable, "a point off the curve"),
        (.ecdsaP256SHA256, KeyVectors.mismatchedHalves, .inconsistent, "two halves of different keys"),
        (.ecdsaP256SHA256, KeyVectors.encrypted, .unreadable, "an encrypted key"),
        (.ecdsaP256SHA256, "", .unreadable, "nothing"),
        (.ed25519, "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----", .unreadable, "no DER"),
        (.ed25519, String(KeyVectors.rfc8037Public.dropLast(30)), .unreadable, "a text that is cut short"),
        (.ed25519, String(repeating: " ", count: SignatureKey.pemBytesMax + 1), .tooLong, "a long text"),
    ])
    func `a key of another type is refused`(
        algorithm: SignatureKey.Algorithm,
        pem: String,
        problem: SignatureKey.PEMError,
        what: String
    ) {
        #expect(throws: problem, "\(what)") { try SignatureKey(pem: pem, algorithm: algorithm) }
    }

    @Test func `a block of curve parameters and text around a key are skipped`() throws {
        let key = try SignatureKey(pem: KeyVectors.withParameters, algorithm: .ecdsaP256SHA256)
        #expect(key.canSign)
        let commented = "The node's key:\r\n" + KeyVectors.rfc8037Private + "\nend"
        #expect(try SignatureKey(pem: commented, algorithm: .ed25519).canSign)
    }

    @Test func `a public key cannot sign`() throws {
        let edDSA = Self.keys(.ed25519, KeyVectors.rfc8037Public)
        let ecdsa = Self.keys(.ecdsaP256SHA256, KeyVectors.rfc7515ES256Public)
        #expect(edDSA.count == 1 && ecdsa.count == 1)
        for key in edDSA + ecdsa {
            #expect(!key.canSign && key.signature(over: [1]) == nil)
        }
    }

    @Test func `one key signs and verifies on many threads`() async throws {
        let key = try SignatureKey(pem: KeyVectors.rfc7515ES256PKCS8, algorithm: .ecdsaP256SHA256)
        let good = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<64 {
                group.addTask {
                    let message = [UInt8](repeating: UInt8(number), count: 200)
                    return key.signature(over: message).map { key.verifies($0, over: message) } ?? false
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(good == 64)
    }

    private static func keys(_ algorithm: SignatureKey.Algorithm, _ texts: String...) -> [SignatureKey] {
        texts.compactMap { try? SignatureKey(pem: $0, algorithm: algorithm) }
    }

    /// base64url without padding.
    private static func bytes(_ text: String) -> [UInt8] {
        let padded = text.replacing("-", with: "+").replacing("_", with: "/")
        return Data(base64Encoded: padded + String(repeating: "=", count: (4 - text.count % 4) % 4)).map(Array.init)
            ?? []
    }
}
