extension SignatureKey {
    /// Why the numbers of a public key are no key.
    package enum NumbersError: Error, Hashable, Sendable {
        /// A number has the wrong length or value, or the point is not on the curve.
        case invalid
        /// The modulus is outside of ``SignatureKey/modulusBits``.
        case modulusBits(Int)
    }

    /// An RSA public key (RFC 8017 §3.1) for signatures with SHA-256.
    /// - Parameters:
    ///   - modulus: big-endian, of ``modulusBits``.
    ///   - exponent: big-endian, odd and above 1, with at most 8 bytes: a longer one only makes verifications slow.
    package init(rsaModulus modulus: [UInt8], exponent: [UInt8]) throws(NumbersError) {
        let (modulus, exponent) = (Array(modulus.drop { $0 == 0 }), Array(exponent.drop { $0 == 0 }))
        let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
        guard Self.modulusBits.contains(bits) else { throw .modulusBits(bits) }
        guard modulus.last.map({ $0 & 1 == 1 }) == true, exponent.last.map({ $0 & 1 == 1 }) == true,
            (1...8).contains(exponent.count), exponent != [1]
        else { throw .invalid }
        let numbers = DER.sequence(DER.integer(modulus) + DER.integer(exponent))
        try self.init(publicKeyInfo: DER.rsaEncryption, numbers, .rsaPKCS1SHA256)
    }

    /// A public key on the curve P-256 for signatures with SHA-256.
    /// - Parameters:
    ///   - x: 32 bytes, big-endian (RFC 7518 §6.2.1.2).
    ///   - y: the same.
    package init(p256X x: [UInt8], y: [UInt8]) throws(NumbersError) {
        guard x.count == 32, y.count == 32 else { throw .invalid }
        try self.init(publicKeyInfo: DER.p256, [4] + x + y, .ecdsaP256SHA256)
    }

    /// A public key on the curve Ed25519: 32 bytes (RFC 8032 §5.1.5).
    package init(ed25519 bytes: [UInt8]) throws(NumbersError) {
        guard bytes.count == 32 else { throw .invalid }
        try self.init(publicKeyInfo: DER.ed25519, bytes, .ed25519)
    }

    private init(publicKeyInfo identifier: [UInt8], _ key: [UInt8], _ algorithm: Algorithm) throws(NumbersError) {
        let info = DER.sequence(identifier + DER.bitString(key))
        guard let key = OpenSSLKey(publicKeyInfo: info) else { throw .invalid }
        do throws(PEMError) {
            try self.init(key, algorithm: algorithm, isPrivate: false)
        } catch {
            throw .invalid
        }
    }
}

/// Writes the parts of a SubjectPublicKeyInfo (RFC 5280 §4.1.2.7) in DER.
private enum DER {
    /// The AlgorithmIdentifier of RSA keys (RFC 8017 §A.1).
    static let rsaEncryption: [UInt8] = [
        0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00,
    ]
    /// The one of keys on P-256 (RFC 5480 §2.1.1).
    static let p256: [UInt8] = [
        0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D,
        0x03,
        0x01, 0x07,
    ]
    /// The one of keys on Ed25519 (RFC 8410 §3).
    static let ed25519: [UInt8] = [0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70]

    static func sequence(_ content: [UInt8]) -> [UInt8] { [0x30] + length(content.count) + content }

    static func bitString(_ content: [UInt8]) -> [UInt8] { [0x03] + length(content.count + 1) + [0] + content }

    /// - Parameter bytes: big-endian and not negative, without leading zeros.
    static func integer(_ bytes: [UInt8]) -> [UInt8] {
        let content = (bytes.first ?? 0) < 0x80 ? bytes : [0] + bytes
        return [0x02] + length(content.count) + content
    }

    /// - Parameter count: less than 65,536.
    private static func length(_ count: Int) -> [UInt8] {
        switch count {
        case ..<0x80: [UInt8(count)]
        case ..<0x100: [0x81, UInt8(count)]
        default: [0x82, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
        }
    }
}
