/// SHA-1 (FIPS 180-4 §6.1), which MESSAGE-INTEGRITY of STUN requires (RFC 8489 §14.5). Incremental, without allocation.
/// Only for HMAC: SHA-1 is no longer collision resistant.
package struct SHA1: Sendable {
    package static var digestBytes: Int { 20 }
    package static var blockBytes: Int { 64 }

    private var state: [5 of UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
    private var pending: [64 of UInt8] = .init(repeating: 0)
    private var pendingCount = 0
    private var byteCount: UInt64 = 0

    package init() {}

    /// Adds bytes to the message.
    package mutating func update(_ bytes: RawSpan) {
        byteCount &+= UInt64(bytes.byteCount)
        var offset = 0
        if pendingCount > 0 {
            while offset < bytes.byteCount, pendingCount < Self.blockBytes {
                pending[pendingCount] = bytes.byte(at: offset)
                pendingCount += 1
                offset += 1
            }
            guard pendingCount == Self.blockBytes else { return }
            compressPending()
        }
        while bytes.byteCount - offset >= Self.blockBytes {
            var words: [16 of UInt32] = .init(repeating: 0)
            for index in 0..<16 { words[index] = bytes.bigEndianUInt32(at: offset + 4 * index) }
            compress(words)
            offset += Self.blockBytes
        }
        while offset < bytes.byteCount {
            pending[pendingCount] = bytes.byte(at: offset)
            pendingCount += 1
            offset += 1
        }
    }

    /// Adds one byte to the message.
    package mutating func update(_ byte: UInt8) {
        byteCount &+= 1
        append(byte)
    }

    /// The digest of the message.
    package consuming func finalize() -> [20 of UInt8] {
        let bitCount = byteCount &* 8
        append(0x80)
        while pendingCount != Self.blockBytes - 8 { append(0) }
        for shift in stride(from: 56, through: 0, by: -8) { append(UInt8(truncatingIfNeeded: bitCount >> shift)) }
        var digest: [20 of UInt8] = .init(repeating: 0)
        for index in 0..<Self.digestBytes {
            digest[index] = UInt8(truncatingIfNeeded: state[index / 4] >> (24 - 8 * UInt32(index % 4)))
        }
        return digest
    }

    private mutating func append(_ byte: UInt8) {
        pending[pendingCount] = byte
        pendingCount += 1
        if pendingCount == Self.blockBytes { compressPending() }
    }

    private mutating func compressPending() {
        var words: [16 of UInt32] = .init(repeating: 0)
        for index in 0..<Self.blockBytes { words[index / 4] = words[index / 4] << 8 | UInt32(pending[index]) }
        pendingCount = 0
        compress(words)
    }

    /// Processes one block. The 80 words of the message schedule are computed in place in 16 words.
    private mutating func compress(_ block: [16 of UInt32]) {
        var words = block
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for round in 0..<80 {
            if round >= 16 {
                let mixed =
                    words[(round + 13) & 15] ^ words[(round + 8) & 15] ^ words[(round + 2) & 15] ^ words[round & 15]
                words[round & 15] = Self.rotate(mixed, 1)
            }
            let mix: UInt32
            let constant: UInt32
            switch round {
            case 0..<20: (mix, constant) = ((b & c) | (~b & d), 0x5A82_7999)
            case 20..<40: (mix, constant) = (b ^ c ^ d, 0x6ED9_EBA1)
            case 40..<60: (mix, constant) = ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC)
            default: (mix, constant) = (b ^ c ^ d, 0xCA62_C1D6)
            }
            let next = Self.rotate(a, 5) &+ mix &+ e &+ constant &+ words[round & 15]
            (e, d, c, b, a) = (d, c, Self.rotate(b, 30), a, next)
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
        state[4] &+= e
    }

    @inline(__always)
    private static func rotate(_ value: UInt32, _ count: UInt32) -> UInt32 {
        value &<< count | value &>> (32 - count)
    }
}

/// HMAC with SHA-1 (RFC 2104), incremental.
package struct HMACSHA1: Sendable {
    private var inner = SHA1()
    private var outer = SHA1()

    package init(key: RawSpan) {
        var block: [64 of UInt8] = .init(repeating: 0)
        if key.byteCount > SHA1.blockBytes {
            var hash = SHA1()
            hash.update(key)
            let digest = hash.finalize()
            for index in 0..<SHA1.digestBytes { block[index] = digest[index] }
        } else {
            for index in 0..<key.byteCount { block[index] = key.byte(at: index) }
        }
        for index in 0..<SHA1.blockBytes {
            inner.update(block[index] ^ 0x36)
            outer.update(block[index] ^ 0x5C)
        }
    }

    package mutating func update(_ bytes: RawSpan) { inner.update(bytes) }
    package mutating func update(_ byte: UInt8) { inner.update(byte) }

    package consuming func finalize() -> [20 of UInt8] {
        let digest = inner.finalize()
        for index in 0..<SHA1.digestBytes { outer.update(digest[index]) }
        return outer.finalize()
    }
}
