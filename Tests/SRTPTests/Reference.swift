import Base
import COpenSSL
import Wire

/// A reference implementation of SRTP, one packet at a time, to compare backends with.
struct Reference {
    let profile: SRTPProfile
    let masterKey: [UInt8]
    let masterSalt: [UInt8]

    init(profile: SRTPProfile, master: [UInt8]) {
        self.profile = profile
        masterKey = Array(master.prefix(profile.keyLength))
        masterSalt = Array(master.dropFirst(profile.keyLength))
    }

    /// RFC 3711 §4.3.1 with a key derivation rate of 0; a 96-bit salt is padded on the right (RFC 7714 §11).
    static func derive(key: [UInt8], salt: [UInt8], label: UInt8, count: Int) -> [UInt8] {
        var counter = salt + [UInt8](repeating: 0, count: 16 - salt.count)
        counter[7] ^= label
        return counterMode(key: key, counter: counter, data: [UInt8](repeating: 0, count: count))
    }

    /// RFC 3711 §4.1.1: the initial counter block for a packet's index.
    static func counter(salt: [UInt8], ssrc: UInt32, index: UInt64) -> [UInt8] {
        var counter = salt + [0, 0]
        for byte in 0..<4 { counter[4 + byte] ^= UInt8(truncatingIfNeeded: ssrc >> UInt32(24 - 8 * byte)) }
        for byte in 0..<6 { counter[8 + byte] ^= UInt8(truncatingIfNeeded: index >> UInt64(40 - 8 * byte)) }
        return counter
    }

    /// RFC 7714 §8.1 and §9.1: `number` is the roll-over counter and the sequence number, or the SRTCP index.
    static func nonce(salt: [UInt8], ssrc: UInt32, number: UInt64) -> [UInt8] {
        var nonce: [UInt8] = [0, 0]
        nonce.append(bigEndian: ssrc)
        nonce.append(bigEndian: UInt16(truncatingIfNeeded: number >> 32))
        nonce.append(bigEndian: UInt32(truncatingIfNeeded: number))
        return zip(nonce, salt).map { $0 ^ $1 }
    }

    func protectRTP(_ packet: [UInt8], headerLength: Int, rollOver: UInt32) -> [UInt8] {
        let sequence = UInt64(packet[2]) << 8 | UInt64(packet[3])
        let index = UInt64(rollOver) << 16 | sequence
        let header = Array(packet.prefix(headerLength))
        let payload = Array(packet.dropFirst(headerLength))
        let ssrc = Self.word(packet, at: 8)
        if profile != .aes128CMHMACSHA1 {
            let nonce = Self.nonce(salt: session(2, 12), ssrc: ssrc, number: index)
            return header + Self.seal(key: session(0, profile.keyLength), nonce: nonce, header, payload)
        }
        let counter = Self.counter(salt: session(2, 14), ssrc: ssrc, index: index)
        let cipher = Self.counterMode(key: session(0, 16), counter: counter, data: payload)
        var signed = header + cipher
        signed.append(bigEndian: rollOver)
        return header + cipher + Self.authenticate(key: session(1, 20), signed).prefix(10)
    }

    func protectRTCP(_ packet: [UInt8], index: UInt32) -> [UInt8] {
        let header = Array(packet.prefix(8))
        let payload = Array(packet.dropFirst(8))
        let ssrc = Self.word(packet, at: 4)
        var trailer: [UInt8] = []
        trailer.append(bigEndian: 0x8000_0000 | index)
        if profile != .aes128CMHMACSHA1 {
            let nonce = Self.nonce(salt: session(5, 12), ssrc: ssrc, number: UInt64(index))
            return header + Self.seal(key: session(3, profile.keyLength), nonce: nonce, header + trailer, payload)
                + trailer
        }
        let counter = Self.counter(salt: session(5, 14), ssrc: ssrc, index: UInt64(index))
        let cipher = Self.counterMode(key: session(3, 16), counter: counter, data: payload)
        let signed = header + cipher + trailer
        return signed + Self.authenticate(key: session(4, 20), signed).prefix(10)
    }

    private func session(_ label: UInt8, _ count: Int) -> [UInt8] {
        Self.derive(key: masterKey, salt: masterSalt, label: label, count: count)
    }

    private static func word(_ bytes: [UInt8], at offset: Int) -> UInt32 {
        bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// AES in counter mode.
    static func counterMode(key: [UInt8], counter: [UInt8], data: [UInt8]) -> [UInt8] {
        let context = unsafe EVP_CIPHER_CTX_new()
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        let cipher = key.count == 32 ? unsafe EVP_aes_256_ctr() : unsafe EVP_aes_128_ctr()
        var output = [UInt8](repeating: 0, count: data.count)
        var count: Int32 = 0
        precondition(unsafe EVP_EncryptInit_ex(context, cipher, nil, key, counter) == 1)
        precondition(unsafe EVP_EncryptUpdate(context, &output, &count, data, Int32(data.count)) == 1)
        return output
    }

    /// AES-GCM: the ciphertext with its 16-byte tag.
    static func seal(key: [UInt8], nonce: [UInt8], _ associated: [UInt8], _ plain: [UInt8]) -> [UInt8] {
        let context = unsafe EVP_CIPHER_CTX_new()
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        let cipher = key.count == 32 ? unsafe EVP_aes_256_gcm() : unsafe EVP_aes_128_gcm()
        var output = [UInt8](repeating: 0, count: plain.count)
        var tag = [UInt8](repeating: 0, count: 16)
        var count: Int32 = 0
        precondition(unsafe EVP_EncryptInit_ex(context, cipher, nil, key, nonce) == 1)
        precondition(unsafe EVP_EncryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1)
        precondition(unsafe EVP_EncryptUpdate(context, &output, &count, plain, Int32(plain.count)) == 1)
        precondition(unsafe EVP_EncryptFinal_ex(context, &tag, &count) == 1)
        precondition(unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, &tag) == 1)
        return output + tag
    }

    /// HMAC-SHA1.
    static func authenticate(key: [UInt8], _ data: [UInt8]) -> [UInt8] {
        var tag = [UInt8](repeating: 0, count: 20)
        var count: UInt32 = 0
        precondition(unsafe HMAC(EVP_sha1(), key, Int32(key.count), data, data.count, &tag, &count) != nil)
        return tag
    }
}

/// Bytes from hexadecimal text; white space is skipped.
func hex(_ text: String) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}
